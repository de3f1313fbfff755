//! NFSv4.0, NFSv4.1 and NFSv4.2 through sockets, over the in-memory store; the client is `nfs_wire`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(
    dead_code,
    clippy::result_large_err,
    reason = "what only the tests of NFSv3 use, and results with attributes in both arms"
)]
#[path = "../server/client.rs"]
mod server;

mod anything;
mod backchannel;
#[allow(dead_code, reason = "a client has more than one file of tests needs")]
mod client;
mod delegations;
mod exactly_once;
mod locks;
mod moved;
mod names;
mod offload;
mod open_files;
mod opens;
mod plan;
mod ranges;
mod reclaim;
mod roles;
mod room;
mod rules;
mod session;
mod sessionless;
mod slots;
mod snapshot;
mod times;
mod untaken;
mod versions;
mod want_delegation;
mod withdrawn;

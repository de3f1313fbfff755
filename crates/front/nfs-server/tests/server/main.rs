//! The server through sockets, over the in-memory store; the client is `nfs_wire`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::result_large_err, reason = "results are those of the protocol, both arms with attributes")]

mod access;
mod attributes;
mod authority;
mod client;
mod create;
mod data;
mod filesystem;
mod hostile;
mod identity;
mod listing;
mod locks;
mod mount;
mod names;
mod other_protocol;
mod plan;
mod quotas;
mod repeated;
mod rights;
mod roles;
mod rpc;
mod security;
mod snapshot;
mod stuck;
mod tls;
mod untaken;
mod versions;
mod watched;

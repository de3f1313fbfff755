//! What the program does for those who run it, and for their clients.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

extern crate krb5 as anabranch_krb5;

mod access;
mod access_log;
mod accounts;
mod addresses;
mod advise;
mod advise_live;
mod alarm;
mod apart;
mod asked;
mod bench;
mod bench_forms;
mod bench_model;
mod bench_peers;
mod bench_workers;
mod check;
mod chromium;
mod cli;
mod client;
mod connected;
mod connections;
mod console;
mod control;
mod delegation;
mod disk;
mod fuse;
mod holdings;
mod hostile;
mod import;
mod log;
mod logged;
mod lying;
#[path = "../../../rules/krb5/tests/mint/mod.rs"]
mod mint;
mod moved_out;
mod needs;
mod nfs;
#[allow(dead_code, reason = "the tests of the gateway use the rest")]
mod nfs4;
mod ntlm;
mod persistence;
mod persistent;
mod prometheus;
#[path = "../../../front/smb-server/tests/socket/client/protection.rs"]
mod protection;
mod quotas;
#[expect(dead_code, reason = "not all that the other tests do is done here")]
#[path = "../../../front/smb-server/tests/socket/client/raw.rs"]
mod raw;
mod reload;
mod report;
mod reserved_names;
mod server;
mod service;
mod share;
mod share_restore;
mod share_revert;
mod share_rules;
mod silent_start;
mod snapshot_policies;
mod snapshots;
mod standby;
mod state;
mod strangers;
mod stuck;
mod subvolume;

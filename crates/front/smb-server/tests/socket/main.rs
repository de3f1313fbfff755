//! The server through sockets, over the store in memory, with a client of these tests.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate krb5 as anabranch_krb5;

mod accounting;
mod cancel;
mod channels;
mod client;
mod close;
mod compound;
mod create;
mod credits;
mod directory;
mod durable;
mod encryption;
mod guesses;
mod guest;
mod homes;
mod hostile;
mod information;
mod ioctl;
mod lease;
mod limits;
mod links;
mod local_changes;
mod lock;
#[path = "../../../../rules/krb5/tests/mint/mod.rs"]
mod mint;
mod names;
mod negotiate;
mod notify;
mod open_files;
mod opening;
mod oplock;
mod persistent;
mod pipes;
mod plan;
mod query_info;
mod quic;
mod read_write;
mod rename;
mod report;
mod reserved;
mod roles;
mod rules;
mod security;
mod sequence;
mod session;
mod set_info;
mod sharing;
mod signing;
mod snapshot;
mod streams;
mod stuck;
mod tickets;
mod tree;
mod unheard;
mod untaken;

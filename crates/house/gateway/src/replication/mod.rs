//! Shares that are replicas of shares on other servers, and what is asked of this server for replicas of its own shares.
//!
//! [`transfer`] brings a replica up to date; [`Replications`] has the transfers that go on, and what became of the last; [`Replicator`] is
//! the thread that begins them. [`remote`] is how another server is asked. [`Mirrors`] knows what clients of replicas see. Administrators'
//! part is in `administration/replication.rs`, and the source's in `administration/replication_source.rs`.

mod mirrors;
mod received;
mod remote;
mod replicator;
mod running;
mod transfer;
mod walks;

pub(crate) use mirrors::Mirrors;
pub use remote::{Answer, NO_SOURCE, Patience, Remote, Unanswered, WRONG_TOKEN};
pub(crate) use remote::{Place, is_token, json_call, legible};
pub(crate) use replicator::Replicator;
pub(crate) use running::Replications;
pub(crate) use transfer::{OWN_LABEL, open_snapshot, path_part};
pub(crate) use walks::Walk;

/// How the labels of snapshots begin that are kept for replication.
pub(crate) const LABEL: &str = "replica";

/// By which a destination is known.
pub(crate) fn written(id: u64) -> String {
    format!("{id:016x}")
}

/// Reads by which a destination is known.
pub(crate) fn read(id: &str) -> Option<u64> {
    let is_plain = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(id, 16).ok().filter(|_| is_plain)
}

//! NLM version 4: byte-range locks and share reservations for NFSv3 (RFC 1813 appendix II). Holds the table of the
//! procedures that concern shares.
//!
//! A host holds an open in each file in which it has locks; the open reserves nothing. The locks themselves are in `share`,
//! under an owner number, where they hold against those of SMB and NFSv4. [`nfs_proto::nlm`] has the rules.

mod arrive;
mod callback;
mod cancel;
mod free_all;
mod lock;
pub(crate) mod locking;
mod owner;
pub(crate) mod records;
mod recovery;
pub(crate) mod report;
mod reserve;
pub(crate) mod run;
pub(crate) mod state;
mod test;
mod unlock;
mod wait;

use nfs_wire::nlm::Procedure;

use crate::operation::Operation;

/// A row for each procedure that concerns shares.
pub(crate) const OPERATIONS: [&Operation<Procedure>; 6] = [
    &test::OPERATION,
    &lock::OPERATION,
    &cancel::OPERATION,
    &unlock::OPERATION,
    &reserve::SHARE,
    &reserve::UNSHARE,
];

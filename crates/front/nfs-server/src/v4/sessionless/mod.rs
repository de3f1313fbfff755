//! NFSv4.0: COMPOUNDs without a session (RFC 7530).
//!
//! [`run`] runs them. Before an operation, it finds the client that the operation names by a client ID or a stateid, and
//! renews the client's lease. An operation of a state-owner comes in the owner's sequence ([`turn`]): it runs once, and its
//! result is kept. The operations themselves are those of the later minor versions, without delegations and callbacks.

mod client;
pub(super) mod run;
mod turn;

use std::sync::Arc;

use nfs_wire::v4::open::ResultFlags;
use nfs_wire::v4::status::Status;

pub(super) use client::ClientState;

use super::state::Client;
use crate::config::RECORD_BYTES_MAX;

/// The client of a COMPOUND, as known from the operation that is running.
pub(super) struct Sessionless {
    client: Result<Arc<Client>, Status>,
    /// Whether the open-owner of an OPEN must confirm it.
    is_unconfirmed: bool,
}

impl Sessionless {
    /// The most bytes of a reply: the same as the default of a session.
    pub(super) const REPLY_BYTES_MAX: usize = RECORD_BYTES_MAX;

    /// No operation has named a client yet.
    fn new() -> Self {
        Self { client: Err(Status::BadStateId), is_unconfirmed: false }
    }

    /// The client.
    ///
    /// # Errors
    /// Why the operation names none: [`Status::StaleClientId`], [`Status::StaleStateId`], [`Status::Expired`],
    /// [`Status::BadStateId`].
    pub(super) fn client(&self) -> Result<&Arc<Client>, Status> {
        self.client.as_ref().map_err(|status| *status)
    }

    /// Properties of the open that OPEN returns.
    pub(super) fn open_flags(&self) -> ResultFlags {
        let mut flags = ResultFlags::LOCKTYPE_POSIX;
        flags.set(ResultFlags::CONFIRM, self.is_unconfirmed);
        flags
    }
}

//! On whose behalf the operations of a COMPOUND run: of the session that SEQUENCE has found, or, in NFSv4.0, of the client
//! that each operation names. What an operation returns depends on that in a few places, which are here.

use std::sync::Arc;

use nfs_wire::v4::open::ResultFlags;
use nfs_wire::v4::status::Status;

use super::in_session::{InSession, bytes};
use super::sessionless::Sessionless;
use super::state::{Client, Session};

/// The origin of a COMPOUND.
pub(super) enum Admission {
    /// A session.
    Session(InSession),
    /// A client without sessions.
    Sessionless(Sessionless),
}

impl Admission {
    /// The client of the operation that is running.
    ///
    /// # Errors
    /// Without a session: why the operation names no client.
    pub(super) fn client(&self) -> Result<&Arc<Client>, Status> {
        match self {
            Self::Session(in_session) => Ok(&in_session.session().client),
            Self::Sessionless(sessionless) => sessionless.client(),
        }
    }

    /// The session, for the operations that only sessions have.
    ///
    /// # Errors
    /// [`Status::NotSupp`].
    pub(super) fn session(&self) -> Result<&Arc<Session>, Status> {
        self.in_session().map(InSession::session)
    }

    /// The request in the session, for the operations that only sessions have.
    ///
    /// # Errors
    /// [`Status::NotSupp`].
    pub(super) fn in_session(&self) -> Result<&InSession, Status> {
        match self {
            Self::Session(in_session) => Ok(in_session),
            Self::Sessionless(_) => Err(Status::NotSupp),
        }
    }

    /// Checks whether a reply may have this length.
    ///
    /// # Errors
    /// [`Status::RepTooBig`], [`Status::RepTooBigToCache`]; without a session [`Status::Resource`].
    pub(super) fn check_reply(&self, length: usize) -> Result<(), Status> {
        match self {
            Self::Session(in_session) => in_session.check_reply(length),
            Self::Sessionless(_) if length > Sessionless::REPLY_BYTES_MAX => Err(Status::Resource),
            Self::Sessionless(_) => Ok(()),
        }
    }

    /// The most bytes of a reply.
    pub(super) fn reply_bytes_max(&self) -> usize {
        match self {
            Self::Session(in_session) => bytes(in_session.session().fore.response_bytes_max),
            Self::Sessionless(_) => Sessionless::REPLY_BYTES_MAX,
        }
    }

    /// Properties of the open that OPEN returns: locks may overlap and be split, and the server may tell a client that it
    /// can call that a lock is free.
    pub(super) fn open_flags(&self) -> ResultFlags {
        match self {
            Self::Session(_) => ResultFlags::LOCKTYPE_POSIX.union(ResultFlags::MAY_NOTIFY_LOCK),
            Self::Sessionless(sessionless) => sessionless.open_flags(),
        }
    }

    /// The status of RESTOREFH without a saved filehandle: RFC 8881 18.27.3, RFC 7530 16.29.4.
    pub(super) fn nothing_saved(&self) -> Status {
        match self {
            Self::Session(_) => Status::NoFileHandle,
            Self::Sessionless(_) => Status::RestoreFh,
        }
    }

    /// Whether there is a current stateid, and whether SECINFO consumes the current filehandle: RFC 8881 16.2.3.1.2,
    /// 2.6.3.1.1.8; RFC 7530 has none, and "the current filehandle retains its value" (16.31.4).
    pub(super) fn has_session(&self) -> bool {
        matches!(self, Self::Session(_))
    }
}

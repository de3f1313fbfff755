//! What a handler knows about its request.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use net::Buffer;
use share::{Caller, Share};
use smb_proto::channel::Channel;
use smb_proto::channel_sequence::Late;
use smb_proto::dialect::Dialect;
use smb_wire::{FileId, Header, HeaderFlags, NtStatus, header};

use crate::connection::Connection;
use crate::open::{Open, Outstanding};
use crate::receive::is_guarded;
use crate::reply::Compound;
use crate::server::Server;
use crate::session::{Login, Session};
use crate::status::Failure;
use crate::tree::{Target, Tree};

/// A request, with everything that it is about. Owned by the request's future.
pub(crate) struct RequestContext {
    /// Where the request came from.
    pub(crate) connection: Rc<Connection>,
    /// The server.
    pub(crate) server: Arc<Server>,
    /// The request's header.
    pub(crate) header: Header,
    /// The whole request, from its header on. A WRITE's payload is a slice of it.
    pub(crate) message: Bytes,
    /// Whether the request came encrypted: its answer goes encrypted too.
    pub(crate) encrypted: bool,
    /// Set before the handler runs, except by SESSION_SETUP, which sets it itself.
    pub(crate) session: OnceCell<Arc<Session>>,
    /// Likewise.
    pub(crate) login: OnceCell<Arc<Login>>,
    /// Likewise: the session's channel on this connection.
    pub(crate) channel: OnceCell<Arc<Channel>>,
    /// Set before the handler runs for commands that have a tree, except by TREE_CONNECT, which sets it itself.
    pub(crate) tree: OnceCell<Arc<Tree>>,
    /// The compound that the request belongs to, and the answers so far.
    pub(crate) compound: RefCell<Compound>,
    /// The AsyncId of the interim response, once that is sent.
    pub(crate) async_id: Cell<Option<u64>>,
    /// The request as the open that it names counts it.
    outstanding: OnceCell<Outstanding>,
    /// Whether credits were granted for this request.
    pub(crate) granted: Cell<bool>,
    status: Cell<NtStatus>,
    payload_bytes: Cell<u64>,
}

impl RequestContext {
    /// A request of which nothing but its header is known.
    pub(crate) fn new(
        connection: &Rc<Connection>,
        header: Header,
        encrypted: bool,
        compound: Compound,
    ) -> Self {
        Self {
            connection: Rc::clone(connection),
            server: Arc::clone(&connection.server),
            header,
            message: Bytes::new(),
            encrypted,
            session: OnceCell::new(),
            login: OnceCell::new(),
            channel: OnceCell::new(),
            tree: OnceCell::new(),
            compound: RefCell::new(compound),
            async_id: Cell::new(None),
            outstanding: OnceCell::new(),
            granted: Cell::new(false),
            status: Cell::new(NtStatus::SUCCESS),
            payload_bytes: Cell::new(0),
        }
    }

    /// The session.
    ///
    /// # Errors
    /// STATUS_USER_SESSION_DELETED when the request has none.
    pub(crate) fn session(&self) -> Result<&Arc<Session>, Failure> {
        self.session.get().ok_or_else(|| NtStatus::USER_SESSION_DELETED.into())
    }

    /// Who is asking, with the protection of the session.
    ///
    /// # Errors
    /// STATUS_USER_SESSION_DELETED when nobody has logged on.
    pub(crate) fn login(&self) -> Result<&Arc<Login>, Failure> {
        self.login.get().ok_or_else(|| NtStatus::USER_SESSION_DELETED.into())
    }

    /// Who is asking, in the terms of the shares.
    ///
    /// # Errors
    /// STATUS_USER_SESSION_DELETED when nobody has logged on.
    pub(crate) fn caller(&self) -> Result<&Caller, Failure> {
        self.login().map(|login| &login.caller)
    }

    /// The tree connect.
    ///
    /// # Errors
    /// STATUS_NETWORK_NAME_DELETED when the request has none.
    pub(crate) fn tree(&self) -> Result<&Arc<Tree>, Failure> {
        self.tree.get().ok_or_else(|| NtStatus::NETWORK_NAME_DELETED.into())
    }

    /// The share that the request is about.
    ///
    /// # Errors
    /// STATUS_NETWORK_NAME_DELETED without a tree connect, STATUS_INVALID_DEVICE_REQUEST on IPC$.
    pub(crate) fn share(&self) -> Result<&Arc<Share>, Failure> {
        match &self.tree()?.target {
            Target::Disk(share) => Ok(share),
            Target::Pipe => Err(NtStatus::INVALID_DEVICE_REQUEST.into()),
        }
    }

    /// Whether the request takes session, tree and file from the one before it.
    pub(crate) fn is_related(&self) -> bool {
        self.header.flags.contains(HeaderFlags::RELATED_OPERATIONS)
    }

    /// The open that the request names; in a related request, the one of the request before it.
    ///
    /// # Errors
    /// STATUS_FILE_CLOSED for an open that is not there or belongs to another tree connect; in a related request, what
    /// the request before it failed with. STATUS_FILE_NOT_AVAILABLE for a late request to change something.
    pub(crate) fn open(&self, id: FileId) -> Result<Arc<Open>, Failure> {
        let id = self.compound.borrow_mut().chain.file_id(self.is_related(), id)?;
        let open = self.session()?.open(id).ok_or(NtStatus::FILE_CLOSED)?;
        if !Arc::ptr_eq(&open.tree, self.tree()?) {
            return Err(NtStatus::FILE_CLOSED.into());
        }
        self.check_channel_sequence(&open)?;
        open.used();
        Ok(open)
    }

    /// 3.3.5.2.10: Verifying the Channel Sequence Number.
    fn check_channel_sequence(&self, open: &Open) -> Result<(), Failure> {
        if !self.connection.dialect().is_some_and(Dialect::is_smb3) || self.outstanding.get().is_some() {
            return Ok(());
        }
        let replay = self.header.flags.contains(HeaderFlags::REPLAY_OPERATION);
        match open.arrive(self.header.channel_sequence(), replay) {
            Ok(outstanding) => {
                let _ = self.outstanding.set(outstanding);
                Ok(())
            }
            Err(Late) if is_guarded(self.header.command) => {
                // Its client is to send it again (3.2.5.12); Linux tells its program that it failed.
                let (peer, command) = (self.connection.peer.address, self.header.command);
                tracing::info!(%peer, ?command, path = open.path, "a late request is refused");
                Err(NtStatus::FILE_NOT_AVAILABLE.into())
            }
            Err(Late) => Ok(()),
        }
    }

    /// Enters an open that this request has made, for the client and for the related requests behind this one. On an
    /// error the caller closes it again.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES at the limit of the session.
    pub(crate) fn add_open(&self, open: &Arc<Open>) -> Result<(), Failure> {
        open.begin_sequence(self.header.channel_sequence());
        self.session()?.add_open(open)?;
        self.set_related_file(open.id);
        Ok(())
    }

    /// The related requests behind this one are about this file.
    pub(crate) fn set_related_file(&self, id: FileId) {
        self.compound.borrow_mut().chain.generated_file(id);
    }

    /// A buffer for the answer with room for `capacity` bytes of body. It begins with 64 zero bytes in which the header is
    /// written at the end; the body is appended.
    pub(crate) fn reply(&self, capacity: usize) -> Buffer {
        let mut buffer = Buffer::with_capacity(header::LEN.saturating_add(capacity));
        buffer.append(&[0; header::LEN]);
        buffer
    }

    /// The answer carries this status although it is no error (STATUS_BUFFER_OVERFLOW, STATUS_NOTIFY_ENUM_DIR).
    pub(crate) fn set_status(&self, status: NtStatus) {
        self.status.set(status);
    }

    /// The status of an answer that is no error.
    pub(crate) fn status(&self) -> NtStatus {
        self.status.get()
    }

    /// The request has moved so many bytes of payload: for the accounting.
    pub(crate) fn moved(&self, bytes: usize) {
        self.payload_bytes.set(bytes as u64);
    }

    /// The bytes of payload that the request has moved.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.payload_bytes.get()
    }

    /// The most bytes of a READ, of a WRITE and of a transaction on this connection.
    pub(crate) fn io_bytes_max(&self) -> u32 {
        self.connection.io_bytes_max()
    }
}

//! The context of a request for its handler: the more its command needs, the more the context provides.
//!
//! A [`RequestContext`] is any request. The [`Subject`] of an admitted request is its session or tree connect. Handlers
//! of commands that need these receive the request as [`InSession`], [`Admitted`] or [`OnShare`]; each of these
//! provides everything that the previous one does.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use net::{Buffer, Room};
use share::{Call, Caller, Share};
use smb_proto::channel::Channel;
use smb_proto::channel_sequence::Late;
use smb_proto::dialect::Dialect;
use smb_proto::session::Principal;
use smb_wire::{FileId, Header, HeaderFlags, NtStatus, header};

use crate::compound::Compound;
use crate::connection::Connection;
use crate::login::Login;
use crate::operation::Operation;
use crate::server::Server;
use crate::state::open::{InUse, Open, Outstanding};
use crate::state::session::Session;
use crate::status::Failure;
use crate::tree::Tree;

/// A request. Owned by the request's future.
pub(crate) struct RequestContext {
    /// Where the request came from.
    pub(crate) connection: Rc<Connection>,
    /// The server.
    pub(crate) server: Arc<Server>,
    /// The header of the request.
    pub(crate) header: Header,
    /// The properties of its command.
    pub(crate) operation: &'static Operation,
    /// The whole request, starting with its header. A WRITE's payload is a slice of it.
    pub(crate) message: Bytes,
    /// Whether the request was encrypted. If so, its reply is encrypted too.
    pub(crate) encrypted: bool,
    /// The session and tree connect in the reply. SESSION_SETUP and TREE_CONNECT can change them. For other commands
    /// they are those found for the request, even if it fails.
    pub(crate) envelope: Envelope,
    /// The compound to which the request belongs, and the replies so far.
    pub(crate) compound: RefCell<Compound>,
    /// The AsyncId of the interim response, once it has been sent.
    pub(crate) async_id: Cell<Option<u64>>,
    /// Whether credits were granted for this request.
    pub(crate) granted: Cell<bool>,
    status: Cell<NtStatus>,
    payload_bytes: Cell<u64>,
    /// Room for the reply, until the compound takes it.
    room: Cell<Option<Room>>,
}

/// The session and tree connect in a reply, and how the reply is signed.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    /// The session.
    pub(crate) session_id: Option<u64>,
    /// The user who has logged on.
    pub(crate) logged_on: Option<LoggedOn>,
    /// The session's channel on this connection, whose key signs.
    pub(crate) channel: Option<Arc<Channel>>,
    /// The tree connect.
    pub(crate) tree_id: Option<u32>,
}

/// The properties of the logon on which the reply depends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedOn {
    /// Session.IsGuest, Session.IsAnonymous
    pub(crate) principal: Principal,
    /// Session.SigningRequired
    pub(crate) signing_required: bool,
}

impl From<&Login> for LoggedOn {
    fn from(login: &Login) -> Self {
        Self { principal: login.principal, signing_required: login.signing_required }
    }
}

/// The session and tree connect of an admitted request, as far as its command needs them.
pub(crate) enum Subject {
    /// The connection, and the session that the request names, if it exists.
    Connection(Option<Arc<Session>>),
    /// A session.
    Session(Arc<Session>, Arc<Login>),
    /// A tree connect of a session.
    Tree(Arc<Session>, Arc<Login>, Arc<Tree>),
}

/// A request of a session in which a user has logged on.
#[derive(Clone, Copy)]
pub(crate) struct InSession<'r> {
    request: &'r RequestContext,
    /// The session.
    pub(crate) session: &'r Arc<Session>,
    /// The caller, with the protection of the session.
    pub(crate) login: &'r Arc<Login>,
}

/// A request on a tree connect.
#[derive(Clone, Copy)]
pub(crate) struct Admitted<'r> {
    in_session: InSession<'r>,
    /// The tree connect.
    pub(crate) tree: &'r Arc<Tree>,
}

/// A request about a share.
#[derive(Clone, Copy)]
pub(crate) struct OnShare<'r> {
    admitted: Admitted<'r>,
    /// The share.
    pub(crate) share: &'r Arc<Share>,
    /// The request as an operation on the share.
    pub(crate) call: &'r Call,
    /// Whether the request may have to wait for the share's budget.
    pub(crate) takes_turns: bool,
}

impl Deref for InSession<'_> {
    type Target = RequestContext;

    fn deref(&self) -> &RequestContext {
        self.request
    }
}

impl<'r> Deref for Admitted<'r> {
    type Target = InSession<'r>;

    fn deref(&self) -> &InSession<'r> {
        &self.in_session
    }
}

impl<'r> Deref for OnShare<'r> {
    type Target = Admitted<'r>;

    fn deref(&self) -> &Admitted<'r> {
        &self.admitted
    }
}

impl RequestContext {
    /// A request of which only the header is known.
    pub(crate) fn new(
        connection: &Rc<Connection>,
        header: Header,
        operation: &'static Operation,
        encrypted: bool,
        compound: Compound,
    ) -> Self {
        Self {
            connection: Rc::clone(connection),
            server: Arc::clone(&connection.server),
            header,
            operation,
            message: Bytes::new(),
            encrypted,
            envelope: Envelope::default(),
            compound: RefCell::new(compound),
            async_id: Cell::new(None),
            granted: Cell::new(false),
            status: Cell::new(NtStatus::SUCCESS),
            payload_bytes: Cell::new(0),
            room: Cell::new(None),
        }
    }

    /// Waits for room for a reply of this many bytes, shared with all other data that the client has not taken. The
    /// room is held until the reply is sent or the request fails.
    pub(crate) async fn room_for(&self, bytes: usize) {
        let had = self.compound.borrow().room_bytes();
        let room = self.connection.outbox.room(bytes, had).await;
        self.room.set(Some(room));
    }

    /// Takes the room for which [`RequestContext::room_for`] waited.
    pub(crate) fn take_room(&self) -> Option<Room> {
        self.room.take()
    }

    /// Whether nobody else could read the request: it was encrypted, or client and server rely on what carried it.
    pub(crate) fn is_confidential(&self) -> bool {
        self.encrypted || self.connection.is_secured()
    }

    /// Whether the request inherits session, tree and file from the previous one.
    pub(crate) fn is_related(&self) -> bool {
        self.header.flags.contains(HeaderFlags::RELATED_OPERATIONS)
    }

    /// Makes this the file of the related requests that follow.
    pub(crate) fn set_related_file(&self, id: FileId) {
        self.compound.borrow_mut().chain.generated_file(id);
    }

    /// A buffer for a reply without data. It begins with 64 zero bytes, into which the header is written at the end.
    /// The body is appended.
    pub(crate) fn reply(&self) -> Buffer {
        self.reply_with(0)
    }

    /// Like [`RequestContext::reply`], for a reply with this many bytes of data.
    pub(crate) fn reply_with(&self, data_bytes: usize) -> Buffer {
        message(self.operation.answer_bytes.saturating_add(data_bytes))
    }

    /// Sets a status of the reply that is not an error (STATUS_BUFFER_OVERFLOW, STATUS_NOTIFY_ENUM_DIR).
    pub(crate) fn set_status(&self, status: NtStatus) {
        self.status.set(status);
    }

    /// The status of a reply that is not an error.
    pub(crate) fn status(&self) -> NtStatus {
        self.status.get()
    }

    /// Notes for the accounting that the request has moved this many bytes of payload.
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

impl<'r> InSession<'r> {
    /// A request with its session and the user who has logged on there.
    pub(crate) fn new(request: &'r RequestContext, session: &'r Arc<Session>, login: &'r Arc<Login>) -> Self {
        Self { request, session, login }
    }

    /// This request on a tree connect of the session.
    pub(crate) fn on_tree(self, tree: &'r Arc<Tree>) -> Admitted<'r> {
        Admitted { in_session: self, tree }
    }

    /// The caller, in the terms of all shares.
    pub(crate) fn caller(&self) -> &'r Caller {
        &self.login.caller
    }
}

impl<'r> OnShare<'r> {
    /// A request on the tree connect of a share.
    pub(crate) fn new(admitted: Admitted<'r>, share: &'r Arc<Share>, call: &'r Call) -> Self {
        Self { admitted, share, call, takes_turns: share.asks_for_turns() }
    }

    /// The caller, with its role in the share.
    pub(crate) fn caller(&self) -> &'r Caller {
        &self.call.caller
    }

    /// The same request as one about this view of the share.
    pub(crate) fn at<'v>(&self, view: &'v Arc<Share>) -> OnShare<'v>
    where
        'r: 'v,
    {
        OnShare { share: view, ..*self }
    }

    /// The same request as one about what this open is of: the share, or a view of it.
    pub(crate) fn of<'o>(&self, open: &'o Open) -> OnShare<'o>
    where
        'r: 'o,
    {
        open.view().map_or(*self, |view| self.at(view))
    }
}

impl<'r> Admitted<'r> {
    /// The open that the request names; in a related request, the one of the previous request.
    ///
    /// # Errors
    /// STATUS_FILE_CLOSED for an open that does not exist or belongs to another tree connect; in a related request, the
    /// failure of the previous request. STATUS_FILE_NOT_AVAILABLE for a late request that would change something.
    pub(crate) fn open(&self, id: FileId) -> Result<InUse, Failure> {
        let id = self.compound.borrow_mut().chain.file_id(self.is_related(), id)?;
        let open = self.session.open(id).ok_or(NtStatus::FILE_CLOSED)?;
        if !Arc::ptr_eq(&open.tree, self.tree) {
            return Err(NtStatus::FILE_CLOSED.into());
        }
        let outstanding = self.check_channel_sequence(&open)?;
        open.used();
        Ok(InUse::new(open, outstanding))
    }

    /// 3.3.5.2.10: Verifying the Channel Sequence Number.
    fn check_channel_sequence(&self, open: &Open) -> Result<Option<Outstanding>, Failure> {
        if !self.connection.dialect().is_some_and(Dialect::is_smb3) {
            return Ok(None);
        }
        let replay = self.header.flags.contains(HeaderFlags::REPLAY_OPERATION);
        match open.arrive(self.header.channel_sequence(), replay) {
            Ok(outstanding) => Ok(Some(outstanding)),
            Err(Late) if self.operation.is_guarded() => {
                // The client is expected to send the request again (3.2.5.12). Linux reports a failure to its program.
                let (peer, command) = (self.connection.peer.address, self.header.command);
                let kind = "a late request is refused";
                if let Some(left_out) = self.server.repeats.admit_from(peer, kind) {
                    tracing::info!(%peer, ?command, path = open.path, left_out, "{kind}");
                }
                Err(NtStatus::FILE_NOT_AVAILABLE.into())
            }
            Err(Late) => Ok(None),
        }
    }

    /// Enters an open that this request has made, for the client and for the related requests that follow. After an
    /// error the caller closes the open.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES at the limit of the session.
    pub(crate) fn add_open(&self, open: &Arc<Open>) -> Result<(), Failure> {
        open.begin_sequence(self.header.channel_sequence());
        self.session.add_open(open)?;
        self.set_related_file(open.id);
        Ok(())
    }
}

/// A message with room for `capacity` bytes after its header, which is written at the end.
pub(crate) fn message(capacity: usize) -> Buffer {
    let mut buffer = Buffer::with_capacity(header::LEN.saturating_add(capacity));
    buffer.append(&[0; header::LEN]);
    buffer
}

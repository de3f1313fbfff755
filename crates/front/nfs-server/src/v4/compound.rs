//! The context of the operations of a COMPOUND (RFC 8881 16.2).
//!
//! Only [`run`](super::run) makes a [`Compound`], from the slot that SEQUENCE has found, and
//! [`sessionless::run`](super::sessionless::run), which finds the client of each operation of NFSv4.0. Since NFSv4.1 there is
//! none without SEQUENCE, so a request without it cannot reach any client's state.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use net::{Buffer, Room, turn_clock};
use nfs_proto::v4::holdings::Through;
use nfs_proto::v4::open_state::ShareAccess;
use nfs_proto::v4::stateid::{Designates, designates};
use nfs_wire::v4::callback::ReferringCalls;
use nfs_wire::v4::compound::{ArgOp, BadOperation};
use nfs_wire::v4::open::ResultFlags;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Stateid;
use nfs_wire::v4::{Operation as Number, read};
use nfs_wire::xdr::padding;
use share::{Call, Caller, File, Open, Share};

use super::absent::Absent;
use super::admission::Admission;
use super::files::{Held, file_of, refused, unusable};
use super::owner::Names;
use super::place::Place;
use super::reply::{Outcome, Reply};
use super::sequence;
use super::sessionless::Sessionless;
use super::state::{Client, Session};
use super::wrong_sec;
use crate::call::Request;
use crate::gss::Flavor;
use crate::object::Object;
use crate::operation::{Callers, Operation};
use crate::server::ServerState;
use crate::standing::Standing;

/// A COMPOUND under way.
pub(super) struct Compound<'a> {
    pub(super) request: &'a Request<'a>,
    /// The minor version, which decides which operations there are, and what some of them mean.
    pub(super) minor_version: u32,
    /// When the request began.
    pub(super) now: Instant,
    admission: Admission,
    /// The operation that is running.
    operation: &'static Operation<Number>,
    current: Option<Position>,
    saved: Option<Position>,
    reply: Reply,
    /// Room for large results in the reply, until the reply is sent.
    room: Cell<Option<Room>>,
    moved_bytes: u64,
}

/// A filehandle, and the stateid that goes with it (RFC 8881 16.2.3.1.2).
#[derive(Debug, Clone)]
struct Position {
    place: Place,
    stateid: Option<Stateid>,
}

impl<'a> Compound<'a> {
    /// A context, before the first operation in it.
    pub(super) fn begin(
        request: &'a Request<'a>,
        minor_version: u32,
        admission: Admission,
        reply: Reply,
        now: Instant,
    ) -> Self {
        Self {
            request,
            minor_version,
            now,
            admission,
            operation: &sequence::OPERATION,
            current: None,
            saved: None,
            reply,
            room: Cell::new(None),
            moved_bytes: 0,
        }
    }

    /// The next operation comes from this client without sessions.
    pub(super) fn admit(&mut self, client: Sessionless) {
        self.admission = Admission::Sessionless(client);
    }

    /// Checks whether this many more bytes fit into the reply (RFC 8881 2.10.6.4). An operation that changes something
    /// checks this first.
    pub(super) fn check_room(&self, bytes: usize) -> Result<(), Status> {
        let end = self.reply.buffer.len().saturating_add(bytes);
        self.admission.check_reply(end.saturating_add(self.request.protection_bytes()))
    }

    /// Writes the result of an operation.
    pub(super) fn end(&mut self, operation: Number, result: &impl Outcome) {
        self.reply.end(operation, result);
    }

    /// Ends an operation with a failure, without examining arguments.
    pub(super) fn refuse(&mut self, operation: Number, status: Status) {
        self.reply.fail(operation, status);
    }

    /// Ends READ, whose result [`Compound::put_data`] has written.
    pub(super) fn end_data(&mut self, operation: Number, result: Result<DataWritten, Status>) {
        match result {
            Ok(DataWritten) => self.reply.end_written(),
            Err(status) => self.reply.fail(operation, status),
        }
    }

    /// The outcome of the operations so far.
    pub(super) fn outcome(&self) -> Result<(), Status> {
        self.reply.status
    }

    /// Begins an operation, and with it the next result.
    pub(super) fn begin_operation(&mut self, operation: &'static Operation<Number>) {
        self.operation = operation;
        self.moved_bytes = 0;
        self.reply.begin_result();
    }

    /// Replaces the last result, which is too long, with a failure.
    pub(super) fn take_back(&mut self, operation: Number, status: Status) {
        self.reply.take_back(operation, status);
    }

    /// Ends an operation that could not be decoded.
    pub(super) fn refuse_unread(&mut self, bad: BadOperation) {
        self.reply.refuse(bad);
    }

    /// How many bytes of payload the last operation has moved.
    pub(super) fn moved_bytes(&self) -> u64 {
        self.moved_bytes
    }

    /// The object whose share the next operation is charged to: the current one.
    pub(super) fn counted(&self) -> Option<&Object> {
        match &self.current {
            Some(Position { place: Place::Object(object), .. }) => Some(object),
            _ => None,
        }
    }

    /// The operations have run. Returns the reply, and on whose behalf they ran.
    pub(super) fn finish(self) -> (Reply, Admission) {
        (self.reply, self.admission)
    }

    /// The last result: operation, status and the rest.
    pub(super) fn last_result(&self) -> &[u8] {
        self.reply.last_result()
    }

    /// Writes the result of an operation that was run before.
    pub(super) fn put_result(&mut self, result: &[u8], status: Result<(), Status>) {
        self.reply.put(result, status);
    }

    // What follows is for the operations.

    /// The server.
    pub(super) fn server(&self) -> &'a Arc<ServerState> {
        &self.request.connection.server
    }

    /// Who knows the names that clients give.
    pub(super) fn names(&self) -> Names<'a> {
        self.server().owner_names.as_deref()
    }

    /// Who knows the names that this client is told. A client with AUTH_SYS deals in numbers: it says by number who its users are.
    pub(super) fn names_told(&self) -> Names<'a> {
        self.names().filter(|_| self.request.flavor != Flavor::Sys)
    }

    /// The session.
    ///
    /// # Errors
    /// [`Status::NotSupp`] without one.
    pub(super) fn session(&self) -> Result<&Arc<Session>, Status> {
        self.admission.session()
    }

    /// The request, for callbacks that refer to it.
    ///
    /// # Errors
    /// [`Status::NotSupp`] without a session.
    pub(super) fn referring_call(&self) -> Result<ReferringCalls, Status> {
        self.admission.in_session().map(|in_session| in_session.referring_call())
    }

    /// The client.
    ///
    /// # Errors
    /// Without a session: why the operation names no client.
    pub(super) fn client(&self) -> Result<&Arc<Client>, Status> {
        self.admission.client()
    }

    /// Properties of the open that OPEN returns.
    pub(super) fn open_flags(&self) -> ResultFlags {
        self.admission.open_flags()
    }

    /// The caller in a share, and the caller's standing there. Operations without an open do not break a delegation of the
    /// same client (RFC 8881 8.2.5: the server "SHOULD note the presence of a delegation even when a special stateid is
    /// sent"). Clients without sessions have none.
    pub(super) async fn caller(&self, share: &Share) -> (Caller, Standing) {
        let (caller, standing) = self.request.caller(share).await;
        match self.admission.session() {
            Ok(session) => (caller.of_client(session.client.files.holder()), standing),
            Err(_) => (caller, standing),
        }
    }

    /// The operation under way as a call of this caller, in a share that the operation itself has reached: it uses no
    /// budget.
    pub(super) fn call_on_the_way(&self, caller: Caller) -> Rc<Call> {
        let call = Call::new(&self.operation.on_share, caller, turn_clock::now())
            .within(&self.request.connection.moment);
        call.needs_no_turn();
        Rc::new(call)
    }

    /// Begins the next operation on the current object, if there is one.
    pub(super) fn begin_call(&mut self, operation: &'static Operation<Number>) {
        let Some(Position { place: Place::Object(object), .. }) = &mut self.current else { return };
        let (operation, begun) = (&operation.on_share, turn_clock::now());
        match Rc::get_mut(&mut object.call) {
            Some(call) => call.renew(operation, begun),
            // The saved object still uses the call.
            None => {
                let call = Call::new(operation, object.call.caller.clone(), begun);
                object.call = Rc::new(call.within(&self.request.connection.moment));
            }
        }
    }

    /// Checks whether the caller may use this operation on the current object, under the rules of its share.
    ///
    /// # Errors
    /// [`Status::Access`]; [`Status::WrongSec`] for a call that is not secured as the share demands; [`Status::Moved`] for a
    /// share that another server has.
    pub(super) fn check_standing(&self, operation: &Operation<Number>) -> Result<(), Status> {
        let object = match self.current.as_ref().map(|current| &current.place) {
            Some(Place::Object(object)) => object,
            Some(Place::Absent(_)) => return Absent::check(operation),
            Some(Place::Root) | None => return Ok(()),
        };
        let is_live = object.share.snapshot().is_none() && !object.is_folder;
        let is_top = || is_live && object.node.id() == object.share.root().id();
        let may = match (operation.callers, object.standing) {
            (_, Standing::TooWeak | Standing::Unencrypted) if wrong_sec::concerns(operation, is_top()) => {
                return Err(Status::WrongSec);
            }
            (Callers::Anybody, _) | (_, Standing::Member(_) | Standing::TooWeak | Standing::Unencrypted) => {
                true
            }
            (Callers::Mounting, Standing::Visitor) => is_top(),
            (Callers::Mounting, Standing::Refused) | (Callers::Members, _) => false,
        };
        if may { Ok(()) } else { Err(Status::Access) }
    }

    /// Ends an operation that was refused before it began: in its own result, or in that of the operation before, if that has
    /// set the filehandle and must report it.
    pub(super) fn refuse_begun(&mut self, args: &ArgOp<'_>, status: Status) {
        let set_by = self.operation.number;
        if status == Status::WrongSec && wrong_sec::is_reported_by(set_by, args) {
            self.take_back(set_by, status);
        } else {
            self.refuse(args.operation(), status);
        }
    }

    /// The current object. The pseudo file system has none.
    ///
    /// # Errors
    /// [`Status::NoFileHandle`]; [`Status::RoFs`] in the pseudo file system, which cannot be changed and contains no
    /// files; [`Status::Moved`] in a file system that another server has.
    pub(super) fn object(&self) -> Result<&Object, Status> {
        object_of(self.current.as_ref())
    }

    /// The current object, for an operation that changes it or something in it.
    ///
    /// # Errors
    /// Those of [`Compound::object`]; [`Status::RoFs`] when the export is read-only.
    pub(super) fn object_to_change(&self) -> Result<&Object, Status> {
        self.to_change(self.object()?)
    }

    /// The saved object.
    ///
    /// # Errors
    /// As [`Compound::object`].
    pub(super) fn saved_object(&self) -> Result<&Object, Status> {
        let object = object_of(self.saved.as_ref())?;
        match object.standing {
            Standing::Member(_) => Ok(object),
            // RFC 8881 2.6.3.1.2: LINK and RENAME check both filehandles.
            Standing::TooWeak | Standing::Unencrypted => Err(Status::WrongSec),
            Standing::Refused | Standing::Visitor => Err(Status::Access),
        }
    }

    /// The saved object, for an operation that changes it or something in it.
    ///
    /// # Errors
    /// As [`Compound::object_to_change`].
    pub(super) fn saved_object_to_change(&self) -> Result<&Object, Status> {
        self.to_change(self.saved_object()?)
    }

    /// The current object as a file to read, to write or to set the size of, as the stateid determines (RFC 8881 8.2.5,
    /// 9.1.2): through an open, or without one for a special stateid.
    ///
    /// # Errors
    /// Those of the stateid, [`Status::OpenMode`], [`Status::Grace`].
    pub(super) fn file(&self, sent: Stateid, access: ShareAccess) -> Result<File, Status> {
        self.file_of(self.object()?, self.stateid(sent)?, access)
    }

    /// The saved object as a file, for COPY and CLONE.
    ///
    /// # Errors
    /// As [`Compound::file`].
    pub(super) fn saved_file(&self, sent: Stateid, access: ShareAccess) -> Result<File, Status> {
        self.file_of(self.saved_object()?, self.saved_stateid(sent)?, access)
    }

    fn file_of(&self, object: &Object, stateid: Stateid, access: ShareAccess) -> Result<File, Status> {
        match designates(stateid).map_err(refused)? {
            Designates::Locks => {}
            Designates::Current => return Err(Status::BadStateId),
            Designates::Anonymous | Designates::ReadBypass => {
                // RFC 8881 8.4.2.1: operations without an open wait until clients have reclaimed state that may
                // conflict with them.
                self.server().v4.recovery.check_stateless(self.now)?;
                return Ok(object.file());
            }
        }
        let held = self.client()?.files.with(|holdings| {
            holdings.for_data(stateid, file_of(object), access).map(|through| match through {
                Through::Open(held) => held.clone(),
                Through::Delegation(delegated) => delegated.held.clone(),
            })
        });
        let held = held.map_err(unusable)?;
        // RFC 8881 18.16.3: "the server is REQUIRED to perform access checking on the READs and WRITEs themselves". The
        // user who opened the file has already been checked.
        if *held.identity == *object.call.caller.identity {
            Ok(File::Open(held.open))
        } else {
            Ok(object.file())
        }
    }

    /// Holds an open, which the share has admitted for the caller, for the client.
    pub(super) fn held(&self, object: &Object, open: Arc<Open>) -> Held {
        let claimant = Arc::new(self.request.claimant());
        let identity = Arc::clone(&object.call.caller.identity);
        Held { share: Arc::clone(&object.share), open, identity, claimant }
    }

    fn to_change<'o>(&self, object: &'o Object) -> Result<&'o Object, Status> {
        debug_assert!(
            self.operation.changes,
            "{:?} has not said that it changes something",
            self.operation.number
        );
        if object.is_read_only() { Err(Status::RoFs) } else { Ok(object) }
    }

    /// The place of the current filehandle: an object, the root of the pseudo file system, or one in a file system that another
    /// server has.
    ///
    /// # Errors
    /// [`Status::NoFileHandle`].
    pub(super) fn place(&self) -> Result<&Place, Status> {
        self.current.as_ref().map(|current| &current.place).ok_or(Status::NoFileHandle)
    }

    /// Sets the current filehandle. This clears the current stateid (RFC 8881 16.2.3.1.2).
    pub(super) fn set_place(&mut self, place: Place) {
        self.current = Some(Position { place, stateid: None });
    }

    /// Sets the current filehandle to an object.
    pub(super) fn set_object(&mut self, object: Object) {
        self.set_place(Place::Object(object));
    }

    /// Clears the current filehandle, which SECINFO and SECINFO_NO_NAME consume (RFC 8881 2.6.3.1.1.8) in a session.
    pub(super) fn consume_place(&mut self) {
        if self.admission.has_session() {
            self.clear_place();
        }
    }

    /// Clears the current filehandle.
    pub(super) fn clear_place(&mut self) {
        self.current = None;
    }

    /// SAVEFH.
    ///
    /// # Errors
    /// [`Status::NoFileHandle`].
    pub(super) fn save(&mut self) -> Result<(), Status> {
        self.saved = Some(self.current.clone().ok_or(Status::NoFileHandle)?);
        Ok(())
    }

    /// RESTOREFH.
    ///
    /// # Errors
    /// [`Admission::nothing_saved`].
    pub(super) fn restore(&mut self) -> Result<(), Status> {
        self.current = Some(self.saved.clone().ok_or_else(|| self.admission.nothing_saved())?);
        Ok(())
    }

    /// The stateid that a client means: the current one if it says so (RFC 8881 16.2.3.1.2).
    ///
    /// # Errors
    /// [`Status::BadStateId`] when there is no current stateid, or the client sends the one that is never valid.
    pub(super) fn stateid(&self, sent: Stateid) -> Result<Stateid, Status> {
        match sent {
            Stateid::CURRENT if !self.admission.has_session() => Err(Status::BadStateId),
            Stateid::CURRENT => self.returned_stateid().ok_or(Status::BadStateId),
            Stateid::INVALID => Err(Status::BadStateId),
            sent => Ok(sent),
        }
    }

    /// The current stateid: what the last operation has returned that returns one.
    pub(super) fn returned_stateid(&self) -> Option<Stateid> {
        self.current.as_ref().and_then(|current| current.stateid)
    }

    /// As [`Compound::stateid`], for the saved filehandle (COPY and CLONE).
    ///
    /// # Errors
    /// As [`Compound::stateid`].
    pub(super) fn saved_stateid(&self, sent: Stateid) -> Result<Stateid, Status> {
        match sent {
            Stateid::CURRENT => self.saved.as_ref().and_then(|saved| saved.stateid).ok_or(Status::BadStateId),
            Stateid::INVALID => Err(Status::BadStateId),
            sent => Ok(sent),
        }
    }

    /// Sets the current stateid, which an operation has returned; `None` clears it.
    pub(super) fn set_stateid(&mut self, stateid: Option<Stateid>) {
        if let Some(current) = &mut self.current {
            current.stateid = stateid;
        }
    }

    /// Bytes of the arguments as part of the record in which they arrived, to be kept or written without a copy.
    pub(super) fn bytes(&self, arguments: &'a [u8]) -> Bytes {
        self.request.record.slice_ref(arguments)
    }

    /// Notes how many bytes of payload the operation has moved.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.moved_bytes = bytes;
    }

    /// Waits for room for this many more bytes of the reply, shared with all other data that the client has not taken.
    /// The total is never more than the session allows for a reply.
    pub(super) async fn take_room(&self, bytes: usize) {
        let before = self.room.take();
        let had = before.as_ref().map_or(0, Room::bytes);
        let bytes = bytes.min(self.reply_bytes_max().saturating_sub(had));
        let mut room = self.request.connection.outbox.room(bytes, had).await;
        before.into_iter().for_each(|before| room.add(before));
        self.room.set(Some(room));
    }

    /// How many more bytes the reply may have.
    pub(super) fn room(&self) -> usize {
        self.reply_bytes_max().saturating_sub(self.reply.buffer.len())
    }

    fn reply_bytes_max(&self) -> usize {
        self.admission.reply_bytes_max().saturating_sub(self.request.protection_bytes())
    }

    /// A buffer into which to read `count` bytes of data: the reply so far, room for the head of READ's result, and the
    /// data, which [`AsMut`] gives. If the read fails, the buffer is dropped and the reply is unchanged.
    pub(super) fn data_buffer(&self, count: usize) -> Buffer {
        const FRONT: [u8; 4 + read::Head::BYTES] = [0; 4 + read::Head::BYTES];
        let sent = &self.reply.buffer;
        let mut buffer = Buffer::with_capacity(sent.len() + FRONT.len() + count + padding(count));
        buffer.append(sent);
        buffer.append(&FRONT);
        buffer.mark();
        buffer.grow(count);
        buffer
    }

    /// Takes a buffer of [`Compound::data_buffer`] with `count` bytes of data as READ's result.
    pub(super) fn put_data(&mut self, mut buffer: Buffer, count: usize, eof: bool) -> DataWritten {
        let front = self.reply.buffer.len();
        let data = front + 4 + read::Head::BYTES;
        buffer.truncate(data + count);
        buffer.append(&[0; 3][..padding(count)]);
        let mut head = [0; 4 + read::Head::BYTES];
        let (operation, rest) = head.split_at_mut(4);
        operation.copy_from_slice(&(Number::Read as u32).to_be_bytes());
        rest[4..8].copy_from_slice(&u32::from(eof).to_be_bytes());
        rest[8..].copy_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
        buffer[front..data].copy_from_slice(&head);
        self.reply.buffer = buffer;
        self.moved_bytes = count as u64;
        DataWritten
    }
}

/// READ's result is already in the reply.
pub(super) struct DataWritten;

fn object_of(position: Option<&Position>) -> Result<&Object, Status> {
    match &position.ok_or(Status::NoFileHandle)?.place {
        Place::Object(object) => Ok(object),
        Place::Root => Err(Status::RoFs),
        Place::Absent(_) => Err(Status::Moved),
    }
}

//! COMPOUND, RFC 8881 16.2: the operations one after another, up to the first that fails.
//!
//! [`Compound`] is what the operations of a session work on. Only [`sequence`](super::sequence) makes one: without
//! SEQUENCE there is none, and so nothing that such a request could do to a client's state.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use net::{Buffer, turn_clock};
use nfs_proto::export::ClientRule;
use nfs_wire::rpc::{AcceptStatus, Reply as RpcReply, ReplyBody};
use nfs_wire::v4::callback::ReferringCalls;
use nfs_wire::v4::compound::{self as wire, Args, BadOperation, ResultsHead, encode_failure};
use nfs_wire::v4::create_session::ChannelAttributes;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Stateid, Text};
use nfs_wire::v4::{MINOR_VERSION_MAX, MINOR_VERSION_MIN, Operation, copy, lock, read, setattr};
use nfs_wire::xdr::{Encode, Reader, Writer, padding};
use share::{Caller, Measure, Protocol, Share};

use super::pseudo_fs::Place;
use super::sequence::{self, InSession};
use super::state::{Client, Session};
use super::{alone, api, run};
use crate::object::Object;
use crate::rpc_dispatch::{NotRun, REPLY_HEADER_BYTES, Request, mark};
use crate::{ServerState, status};

/// What most replies fit into, in bytes.
const REPLY_BYTES: usize = 800;

/// Bytes of a result that is only a status: its operation and the status.
const FAILURE_BYTES: usize = 8;

/// A COMPOUND under way in a session.
pub(super) struct Compound<'a> {
    pub(super) request: &'a Request<'a>,
    /// Which operations there are, and what some of them mean.
    pub(super) minor_version: u32,
    /// When it began.
    pub(super) now: Instant,
    in_session: InSession,
    current: Option<Position>,
    saved: Option<Position>,
    reply: Reply,
    moved_bytes: u64,
}

/// A filehandle, and the stateid that goes with it (RFC 8881 16.2.3.1.2).
#[derive(Debug, Clone)]
struct Position {
    place: Place,
    stateid: Option<Stateid>,
}

/// The reply so far.
pub(super) struct Reply {
    buffer: Buffer,
    /// Where the number of results stands.
    count_at: usize,
    count: u32,
    /// Where the last result begins.
    last_at: usize,
    status: Result<(), Status>,
}

/// Runs a COMPOUND.
pub(crate) async fn answer(request: &Request<'_>, mut arguments: Reader<'_>) -> Result<Buffer, NotRun> {
    use nfs_wire::xdr::Decode;
    let Args { tag, minor_version, mut operations } =
        Args::decode(&mut arguments).map_err(|_| AcceptStatus::GarbageArgs)?;
    let mut reply = Reply::begin(request.call.xid, tag);
    // RFC 8881 16.2.3: "the server MUST return ... NFS4ERR_MINOR_VERS_MISMATCH and a zero length resultdata array".
    if !(MINOR_VERSION_MIN..=MINOR_VERSION_MAX).contains(&minor_version) {
        reply.status = Err(Status::MinorVersMismatch);
        return Ok(reply.finish());
    }
    if tag.as_str().is_err() {
        reply.status = Err(Status::Inval);
        return Ok(reply.finish());
    }
    let only = operations.left() == 1;
    match operations.next() {
        None => {}
        Some(Err(bad)) => reply.refuse(bad),
        Some(Ok(wire::ArgOp::Sequence(args))) => {
            return Ok(sequence::run(request, minor_version, args, operations, reply).await);
        }
        Some(Ok(operation)) => alone::run(request, minor_version, operation, only, &mut reply).await,
    }
    Ok(reply.finish())
}

impl<'a> Compound<'a> {
    /// What SEQUENCE begins.
    pub(super) fn begin(
        request: &'a Request<'a>,
        minor_version: u32,
        in_session: InSession,
        reply: Reply,
        now: Instant,
    ) -> Self {
        Self { request, minor_version, now, in_session, current: None, saved: None, reply, moved_bytes: 0 }
    }

    /// Runs the operations behind SEQUENCE; the reply, and the session's part of it.
    pub(super) async fn run(mut self, operations: wire::Operations<'a>) -> (Reply, InSession) {
        let mut operations = operations;
        loop {
            let last = operations.left() == 1;
            match operations.next() {
                None => break,
                Some(Err(bad)) => self.reply.refuse(bad),
                Some(Ok(operation)) => self.step(operation, last).await,
            }
            if self.reply.status.is_err() {
                break;
            }
        }
        (self.reply, self.in_session)
    }

    /// Runs one operation, counts it for the share that it was for, and bounds its result.
    async fn step(&mut self, operation: wire::ArgOp<'a>, last: bool) {
        let number = operation.operation();
        if let Err(status) = self.check_room(result_bytes(number)) {
            return self.reply.fail(number, status);
        }
        let measure = api(number).map(|api| Measure::begin(api, Protocol::Nfs4, turn_clock::now()));
        if let (Some(api), Some(Position { place: Place::Object(object), .. })) = (api(number), &self.current)
        {
            object.share.take_turn(&object.caller, api).await;
        }
        self.moved_bytes = 0;
        self.reply.last_at = self.reply.buffer.len();
        run(self, operation, last).await;
        if let Some(measure) = measure
            && let Some(Position { place: Place::Object(object), .. }) = &self.current
        {
            let outcome = self.reply.status.map_or_else(status::v4_outcome, |()| share::Outcome::Done);
            let connection = self.request.connection;
            let measure = measure.over(connection.traffic.round_trip.time());
            let (share, client) = (&object.share, object.caller.machine);
            connection.accounts.end(share, client, &measure, turn_clock::read, self.moved_bytes, outcome);
        }
        if self.moved_bytes > 0 {
            let traffic = &self.request.connection.traffic;
            match number {
                Operation::Read | Operation::ReadPlus => traffic.reads.add(self.moved_bytes),
                Operation::Write => traffic.writes.add(self.moved_bytes),
                _ => {}
            }
        }
        if let Err(status) = self.check_room(0) {
            self.reply.take_back(number, status);
        }
    }

    /// Whether so many bytes more fit into the reply (RFC 8881 2.10.6.4). What changes something asks before it does.
    fn check_room(&self, bytes: usize) -> Result<(), Status> {
        let end = self.reply.buffer.len().saturating_add(bytes);
        self.in_session.check_reply(end)
    }

    /// Writes the result of an operation.
    pub(super) fn end(&mut self, operation: Operation, result: &impl Outcome) {
        self.reply.end(operation, result);
    }

    /// Ends an operation without arguments of its own to look at.
    pub(super) fn refuse(&mut self, operation: Operation, status: Status) {
        self.reply.fail(operation, status);
    }

    /// Ends READ, whose result [`Compound::put_data`] has written.
    pub(super) fn end_data(&mut self, operation: Operation, result: Result<DataWritten, Status>) {
        match result {
            Ok(DataWritten) => self.reply.count = self.reply.count.saturating_add(1),
            Err(status) => self.reply.fail(operation, status),
        }
    }

    // What follows is for the operations.

    /// The server.
    pub(super) fn server(&self) -> &'a Arc<ServerState> {
        &self.request.connection.server
    }

    /// The session.
    pub(super) fn session(&self) -> &Arc<Session> {
        self.in_session.session()
    }

    /// The request, for callbacks that refer to it.
    pub(super) fn referring_call(&self) -> ReferringCalls {
        self.in_session.referring_call()
    }

    /// The client.
    pub(super) fn client(&self) -> &Arc<Client> {
        &self.session().client
    }

    /// The client's address.
    pub(super) fn peer(&self) -> IpAddr {
        self.request.connection.client
    }

    /// Who is asking in a share, and by which rule; `None` if the client may not use the share.
    pub(super) fn caller(&self, share: &Share) -> Option<(Caller, &'a ClientRule)> {
        let Request { connection, call, stated, .. } = *self.request;
        let rule = connection.server.exports.rules_of(share).rule_for(connection.client)?;
        let callers = &connection.callers;
        let caller = callers.caller(Protocol::Nfs4, share.id(), rule, &call.credential, stated.as_ref());
        Some((caller.of_client(self.client().files.holder()), rule))
    }

    /// The current object. In the pseudo file system there are none.
    ///
    /// # Errors
    /// [`Status::NoFileHandle`]; [`Status::RoFs`] in the pseudo file system, where nothing changes and no file is.
    pub(super) fn object(&self) -> Result<&Object, Status> {
        object_of(self.current.as_ref())
    }

    /// The current object, for an operation that changes it or something in it.
    ///
    /// # Errors
    /// Those of [`Compound::object`]; [`Status::RoFs`] when the export is read-only.
    pub(super) fn object_to_change(&self) -> Result<&Object, Status> {
        writable(self.object()?)
    }

    /// The saved object.
    ///
    /// # Errors
    /// As [`Compound::object`].
    pub(super) fn saved_object(&self) -> Result<&Object, Status> {
        object_of(self.saved.as_ref())
    }

    /// The saved object, for an operation that changes it or something in it.
    ///
    /// # Errors
    /// As [`Compound::object_to_change`].
    pub(super) fn saved_object_to_change(&self) -> Result<&Object, Status> {
        writable(self.saved_object()?)
    }

    /// Where the current filehandle is: an object, or the root of the pseudo file system.
    ///
    /// # Errors
    /// [`Status::NoFileHandle`].
    pub(super) fn place(&self) -> Result<&Place, Status> {
        self.current.as_ref().map(|current| &current.place).ok_or(Status::NoFileHandle)
    }

    /// Sets the current filehandle. There is no current stateid with it (RFC 8881 16.2.3.1.2).
    pub(super) fn set_place(&mut self, place: Place) {
        self.current = Some(Position { place, stateid: None });
    }

    /// Sets the current filehandle to an object.
    pub(super) fn set_object(&mut self, object: Object) {
        self.set_place(Place::Object(object));
    }

    /// There is no current filehandle any more: SECINFO and SECINFO_NO_NAME use it up (RFC 8881 2.6.3.1.1.8).
    pub(super) fn consume_place(&mut self) {
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
    /// [`Status::NoFileHandle`].
    pub(super) fn restore(&mut self) -> Result<(), Status> {
        self.current = Some(self.saved.clone().ok_or(Status::NoFileHandle)?);
        Ok(())
    }

    /// The stateid that a client means: the current one where it says so (RFC 8881 16.2.3.1.2).
    ///
    /// # Errors
    /// [`Status::BadStateId`] when there is no current stateid, or the client sends the one that is never valid.
    pub(super) fn stateid(&self, sent: Stateid) -> Result<Stateid, Status> {
        match sent {
            Stateid::CURRENT => {
                self.current.as_ref().and_then(|current| current.stateid).ok_or(Status::BadStateId)
            }
            Stateid::INVALID => Err(Status::BadStateId),
            sent => Ok(sent),
        }
    }

    /// As [`Compound::stateid`], for the saved filehandle: COPY and CLONE.
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

    /// Sets the current stateid, which an operation has returned; `None`: there is none any more.
    pub(super) fn set_stateid(&mut self, stateid: Option<Stateid>) {
        if let Some(current) = &mut self.current {
            current.stateid = stateid;
        }
    }

    /// Bytes of arguments as part of the record that they came in: to be kept or written without a copy.
    pub(super) fn bytes(&self, arguments: &'a [u8]) -> Bytes {
        self.request.record.slice_ref(arguments)
    }

    /// How many bytes of payload the operation has moved.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.moved_bytes = bytes;
    }

    /// How many bytes more the reply may have.
    pub(super) fn room(&self) -> usize {
        let fore: &ChannelAttributes = &self.session().fore;
        let most = usize::try_from(fore.response_bytes_max).unwrap_or(usize::MAX);
        most.saturating_sub(self.reply.buffer.len())
    }

    /// A buffer to read `count` bytes of data into: the reply so far, room for the head of READ's result, and the data
    /// as what [`AsMut`] gives. If it comes to nothing, it is dropped and the reply is as before.
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

    /// Takes a buffer of [`Compound::data_buffer`] as READ's result: `count` bytes are in it.
    pub(super) fn put_data(&mut self, mut buffer: Buffer, count: usize, eof: bool) -> DataWritten {
        let front = self.reply.buffer.len();
        let data = front + 4 + read::Head::BYTES;
        buffer.truncate(data + count);
        buffer.append(&[0; 3][..padding(count)]);
        let mut head = [0; 4 + read::Head::BYTES];
        let (operation, rest) = head.split_at_mut(4);
        operation.copy_from_slice(&(Operation::Read as u32).to_be_bytes());
        rest[4..8].copy_from_slice(&u32::from(eof).to_be_bytes());
        rest[8..].copy_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
        buffer[front..data].copy_from_slice(&head);
        self.reply.buffer = buffer;
        self.moved_bytes = count as u64;
        DataWritten
    }
}

/// READ's result is in the reply already.
pub(super) struct DataWritten;

fn object_of(position: Option<&Position>) -> Result<&Object, Status> {
    match &position.ok_or(Status::NoFileHandle)?.place {
        Place::Object(object) => Ok(object),
        Place::Root => Err(Status::RoFs),
    }
}

fn writable(object: &Object) -> Result<&Object, Status> {
    if object.is_read_only() { Err(Status::RoFs) } else { Ok(object) }
}

/// The most bytes of an operation's result, for those that change something: their result must be told. Others are asked
/// afterwards. OPEN's comes with that of the GETFH behind it (RFC 8881 2.10.6.4).
fn result_bytes(operation: Operation) -> usize {
    use Operation as O;
    match operation {
        O::Open => 320,
        O::Create | O::Link | O::Remove | O::Rename | O::SetAttr | O::SetXattr | O::RemoveXattr => 64,
        O::Lock => 96,
        O::Close | O::LockU | O::OpenDowngrade | O::Write | O::Commit | O::Copy => 48,
        _ => FAILURE_BYTES,
    }
}

/// What the result of every operation has.
pub(super) trait Outcome: Encode {
    fn outcome(&self) -> Result<(), Status>;
}

impl<T: Encode> Outcome for Result<T, Status> {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(|status| *status)
    }
}

impl<T: Encode> Outcome for Result<T, lock::Failure<'_>> {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(lock::Failure::status)
    }
}

impl Outcome for copy::Res {
    fn outcome(&self) -> Result<(), Status> {
        self.as_ref().map(|_| ()).map_err(copy::Failure::status)
    }
}

impl Outcome for setattr::Res {
    fn outcome(&self) -> Result<(), Status> {
        self.status
    }
}

impl Reply {
    fn begin(xid: u32, tag: Text<'_>) -> Self {
        let mut buffer = Buffer::with_capacity(REPLY_BYTES);
        buffer.append_with(|bytes, _| {
            let mut writer = Writer::new(bytes);
            RpcReply { xid, body: ReplyBody::accepted(AcceptStatus::Success) }.encode(&mut writer);
            let _ = ResultsHead::begin(&mut writer, tag); // finished by its place: the buffer may be another one then
        });
        let (count_at, last_at) = (buffer.len() - 4, buffer.len());
        Self { buffer, count_at, count: 0, last_at, status: Ok(()) }
    }

    /// The reply to a request that was answered before.
    pub(super) fn repeat(xid: u32, body: &[u8]) -> Buffer {
        let mut buffer = Buffer::with_capacity(REPLY_HEADER_BYTES + body.len());
        buffer.append_with(|bytes, _| {
            let header = RpcReply { xid, body: ReplyBody::accepted(AcceptStatus::Success) };
            header.encode(&mut Writer::new(bytes));
        });
        buffer.append(body);
        mark(buffer)
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Writes the result of an operation.
    pub(super) fn end(&mut self, operation: Operation, result: &impl Outcome) {
        self.last_at = self.buffer.len();
        self.buffer.append_with(|bytes, _| {
            let mut writer = Writer::new(bytes);
            operation.encode(&mut writer);
            result.encode(&mut writer);
        });
        self.count = self.count.saturating_add(1);
        self.status = result.outcome();
    }

    /// Writes that an operation has failed.
    pub(super) fn fail(&mut self, operation: Operation, status: Status) {
        self.last_at = self.buffer.len();
        self.buffer.append_with(|bytes, _| encode_failure(&mut Writer::new(bytes), operation, status));
        self.count = self.count.saturating_add(1);
        self.status = Err(status);
    }

    /// Writes the result of an operation that could not be read.
    pub(super) fn refuse(&mut self, bad: BadOperation) {
        self.buffer.append_with(|bytes, _| bad.encode(&mut Writer::new(bytes)));
        self.count = self.count.saturating_add(1);
        self.status = Err(bad.status);
    }

    /// Puts a failure in the place of the last result, which is too long.
    fn take_back(&mut self, operation: Operation, status: Status) {
        self.buffer.truncate(self.last_at);
        self.count = self.count.saturating_sub(1);
        self.fail(operation, status);
    }

    /// The body of the reply, for a repetition.
    pub(super) fn body(&mut self) -> &[u8] {
        self.settle();
        &self.buffer[REPLY_HEADER_BYTES..]
    }

    /// The whole reply.
    pub(super) fn finish(mut self) -> Buffer {
        self.settle();
        mark(self.buffer)
    }

    /// Fills in what is known last.
    fn settle(&mut self) {
        let status = self.status.map_or_else(|status| status as u32, |()| 0);
        self.buffer[REPLY_HEADER_BYTES..][..4].copy_from_slice(&status.to_be_bytes());
        self.buffer[self.count_at..][..4].copy_from_slice(&self.count.to_be_bytes());
    }
}

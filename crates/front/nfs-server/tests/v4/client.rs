//! A client of NFSv4.1 and NFSv4.2 for the tests: sessions, COMPOUNDs, and callbacks on the same connection.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use nfs_wire::auth_sys::{AuthSys, Groups, MachineName};
use nfs_wire::rpc::{AcceptStatus, Call, Reply as RpcReply, ReplyBody};
use nfs_wire::v4::compound::{self, ArgOp, ResOp};
use nfs_wire::v4::create_session::{self, ChannelAttributes};
use nfs_wire::v4::exchange_id::{self, ClientOwner, StateProtectArgs};
use nfs_wire::v4::open::{self, Claim, CreateHow, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{
    ClientId, FileHandle, Name, OwnerId, SecurityParameters, SessionId, StateOwner, Stateid, Text, Verifier,
};
use nfs_wire::v4::{
    self, attr, callback, close, destroy_clientid, destroy_session, lookup, putfh, read, reclaim_complete,
    remove, sequence, write,
};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};
use socket2::{Domain, Socket, Type};

use crate::server;

/// The number that this client gives its callback program.
pub(crate) const CALLBACK_PROGRAM: u32 = 0x4000_0001;
/// Slots of a session.
const SLOTS: usize = 8;
/// Nobody waits longer for a callback, or for a delay to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// One connection, and the session that it belongs to.
pub(crate) struct V4Client {
    pub(crate) connection: server::Client,
    pub(crate) minor_version: u32,
    pub(crate) client_id: ClientId,
    pub(crate) session: Session,
    /// Callbacks that have come in and were not looked at yet.
    pub(crate) callbacks: VecDeque<Callback>,
    /// How callbacks are answered: NFS4_OK, another status, or not at all.
    pub(crate) callback_answer: CallbackAnswer,
    /// What CB_GETATTR is answered.
    pub(crate) keeps: attr::AttributesBuf,
    /// Replies that came in while another one was waited for.
    replies: Vec<(u32, Vec<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallbackAnswer {
    Ok,
    Fail(Status),
    /// All is well, but what CB_GETATTR asks for is not there.
    Truncated,
    Never,
}

/// The client's side of a session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// The sequence ID of each slot's last request.
    pub(crate) slots: [u32; SLOTS],
    pub(crate) fore_channel: ChannelAttributes,
    pub(crate) back_channel: ChannelAttributes,
    /// Whether the server binds the back channel to the connection that made the session.
    pub(crate) flags: create_session::Flags,
}

/// A COMPOUND's reply.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: Result<(), Status>,
    /// COMPOUND4res.
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// All results, that of SEQUENCE, too.
    pub(crate) fn results(&self) -> Vec<ResOp<'_>> {
        let res = compound::Res::from_bytes(&self.body).unwrap();
        res.results.map(Result::unwrap).collect()
    }

    /// The last result.
    pub(crate) fn last(&self) -> ResOp<'_> {
        self.results().pop().unwrap()
    }

    /// What GETFH returned.
    pub(crate) fn file_handle(&self) -> Vec<u8> {
        let found = self.results().into_iter().find_map(|result| match result {
            ResOp::GetFh(Ok(ok)) => Some(ok.object.0.to_vec()),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no GETFH in {self:?}"))
    }

    /// What GETATTR returned.
    pub(crate) fn attribute(&self, attribute: attr::Attribute) -> Option<attr::Value<'_>> {
        self.results().into_iter().find_map(|result| match result {
            ResOp::GetAttr(Ok(ok)) => ok.attributes.value(attribute),
            _ => None,
        })
    }

    /// What OPEN returned.
    pub(crate) fn opened(&self) -> open::ResOk<'_> {
        let found = self.results().into_iter().find_map(|result| match result {
            ResOp::Open(Ok(ok)) => Some(ok),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no OPEN in {self:?}"))
    }

    /// What SEQUENCE returned.
    pub(crate) fn sequence(&self) -> sequence::ResOk {
        match self.results().first() {
            Some(ResOp::Sequence(Ok(ok))) => *ok,
            other => panic!("no SEQUENCE but {other:?}"),
        }
    }
}

/// A CB_COMPOUND that the server sent.
#[derive(Debug, Clone)]
pub(crate) struct Callback {
    pub(crate) xid: u32,
    /// CB_COMPOUND4args.
    pub(crate) body: Vec<u8>,
}

impl Callback {
    /// The operations, CB_SEQUENCE included.
    pub(crate) fn operations(&self) -> Vec<callback::ArgOp<'_>> {
        let args = callback::CompoundArgs::from_bytes(&self.body).unwrap();
        args.operations.map(Result::unwrap).collect()
    }
}

/// A COMPOUND's arguments.
struct Compound<'a> {
    minor_version: u32,
    operations: &'a [ArgOp<'a>],
}

impl Encode for Compound<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        compound::encode_args(writer, "test", self.minor_version, self.operations);
    }
}

const IDS: (u32, u32, u32) = (v4::PROGRAM, v4::VERSION, v4::Procedure::Compound as u32);

/// EXCHANGE_ID's arguments for a client that calls itself `owner`, in its life `verifier`.
pub(crate) fn exchange_id_args(owner: &[u8], verifier: u64) -> exchange_id::Args<'_> {
    exchange_id::Args {
        client_owner: ClientOwner { verifier: Verifier(verifier.to_be_bytes()), owner_id: OwnerId(owner) },
        flags: exchange_id::Flags::empty(),
        state_protect: StateProtectArgs::None,
        implementation: None,
    }
}

/// CREATE_SESSION's arguments with a back channel.
pub(crate) fn create_session_args(client_id: ClientId, sequence_id: u32) -> create_session::Args<'static> {
    let channel = ChannelAttributes {
        header_pad_bytes: 0,
        request_bytes_max: 1 << 20,
        response_bytes_max: 1 << 20,
        response_cached_bytes_max: 8 << 10,
        operations_max: 16,
        requests_max: 8,
        rdma_ird: None,
    };
    let machine_name = MachineName(b"test");
    let credential = AuthSys { stamp: 0, machine_name, uid: 0, gid: 0, groups: Groups::default() };
    create_session::Args {
        client_id,
        sequence_id,
        flags: create_session::Flags::CONN_BACK_CHAN,
        fore_channel: channel,
        back_channel: ChannelAttributes { request_bytes_max: 4096, response_bytes_max: 4096, ..channel },
        callback_program: CALLBACK_PROGRAM,
        callback_security: vec![SecurityParameters::Sys(credential)],
    }
}

impl V4Client {
    /// A connection without a session.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(server::Client::connect(address))
    }

    /// A client of its own, with a session, at this address.
    pub(crate) fn start_at(source: IpAddr, address: SocketAddr, owner: &str) -> Self {
        Self::over(connect_from(source, address)).begin(owner)
    }

    fn over(connection: server::Client) -> Self {
        Self {
            connection,
            minor_version: 1,
            client_id: ClientId(0),
            session: Session {
                id: SessionId::default(),
                slots: [0; SLOTS],
                fore_channel: ChannelAttributes::default(),
                back_channel: ChannelAttributes::default(),
                flags: create_session::Flags::empty(),
            },
            callbacks: VecDeque::new(),
            callback_answer: CallbackAnswer::Ok,
            keeps: attr::AttributesBuf::default(),
            replies: Vec::new(),
        }
    }

    /// A client of its own, with a session, that has nothing to reclaim.
    pub(crate) fn start(address: SocketAddr, owner: &str) -> Self {
        Self::start_minor(address, owner, 1)
    }

    /// The same with a minor version.
    pub(crate) fn start_minor(address: SocketAddr, owner: &str, minor_version: u32) -> Self {
        let mut client = Self::connect(address);
        client.minor_version = minor_version;
        client.begin(owner)
    }

    /// A new run of a client that was there before.
    pub(crate) fn start_again(address: SocketAddr, owner: &str) -> Self {
        Self::connect(address).begin_run(owner, 2)
    }

    fn begin(self, owner: &str) -> Self {
        self.begin_run(owner, 1)
    }

    fn begin_run(mut self, owner: &str, verifier: u64) -> Self {
        self.establish(owner, verifier);
        self.compound(&[ArgOp::ReclaimComplete(reclaim_complete::Args { one_fs: false })]);
        self
    }

    /// EXCHANGE_ID and CREATE_SESSION; no RECLAIM_COMPLETE.
    pub(crate) fn establish(&mut self, owner: &str, verifier: u64) {
        self.establish_with(owner, verifier, create_session::Flags::CONN_BACK_CHAN);
    }

    /// The same, with or without a back channel.
    pub(crate) fn establish_with(&mut self, owner: &str, verifier: u64, flags: create_session::Flags) {
        let reply = self.alone(ArgOp::ExchangeId(exchange_id_args(owner.as_bytes(), verifier)));
        let ResOp::ExchangeId(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
        self.client_id = ok.client_id;
        let sequence_id = ok.sequence_id;
        let args = create_session::Args { flags, ..create_session_args(self.client_id, sequence_id) };
        let reply = self.alone(ArgOp::CreateSession(args));
        let ResOp::CreateSession(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
        self.session = Session {
            id: ok.session_id,
            slots: [0; SLOTS],
            fore_channel: ok.fore_channel,
            back_channel: ok.back_channel,
            flags: ok.flags,
        };
    }

    /// A further connection to the same session. Callbacks still come over the first.
    pub(crate) fn another_connection(&self, address: SocketAddr) -> Self {
        self.over_another(server::Client::connect(address))
    }

    /// The same, from this address.
    pub(crate) fn another_connection_at(&self, source: IpAddr, address: SocketAddr) -> Self {
        self.over_another(connect_from(source, address))
    }

    fn over_another(&self, connection: server::Client) -> Self {
        let mut other = Self::over(connection);
        other.minor_version = self.minor_version;
        other.client_id = self.client_id;
        other.session = self.session.clone();
        other
    }

    /// Who asks from now on.
    pub(crate) fn become_user(&mut self, uid: u32, gid: u32, groups: &[u32]) {
        self.connection.user = Some((uid, gid, groups.to_vec()));
    }

    // --- COMPOUNDs ---

    /// Sends operations as they are, and returns the call's number.
    pub(crate) fn send(&mut self, operations: &[ArgOp<'_>]) -> u32 {
        let xid = self.connection.xid;
        self.connection.send(IDS, &Compound { minor_version: self.minor_version, operations });
        xid
    }

    /// The reply to an earlier call. Answers callbacks meanwhile.
    pub(crate) fn receive(&mut self, xid: u32) -> Reply {
        loop {
            if let Some(index) = self.replies.iter().position(|(of, _)| *of == xid) {
                let body = self.replies.swap_remove(index).1;
                let status = compound::Res::from_bytes(&body).unwrap().status;
                return Reply { status, body };
            }
            self.receive_message();
        }
    }

    /// Sends one operation without a SEQUENCE in front of it.
    pub(crate) fn alone(&mut self, operation: ArgOp<'_>) -> Reply {
        self.raw(&[operation])
    }

    /// Sends operations as they are.
    pub(crate) fn raw(&mut self, operations: &[ArgOp<'_>]) -> Reply {
        let xid = self.send(operations);
        self.receive(xid)
    }

    /// SEQUENCE for the next request of a slot.
    pub(crate) fn next_sequence(&mut self, slot: u32) -> sequence::Args {
        let last = &mut self.session.slots[slot as usize];
        *last = last.wrapping_add(1);
        sequence::Args {
            session_id: self.session.id,
            sequence_id: *last,
            slot_id: slot,
            highest_slot_id: slot,
            cache_this: false,
        }
    }

    /// Sends operations behind a SEQUENCE of slot 0.
    pub(crate) fn compound(&mut self, operations: &[ArgOp<'_>]) -> Reply {
        let xid = self.send_on(0, operations);
        self.receive(xid)
    }

    /// Sends operations behind a SEQUENCE of a slot, and does not wait.
    pub(crate) fn send_on(&mut self, slot: u32, operations: &[ArgOp<'_>]) -> u32 {
        let sequence = ArgOp::Sequence(self.next_sequence(slot));
        let operations: Vec<_> = std::iter::once(sequence).chain(operations.iter().cloned()).collect();
        self.send(&operations)
    }

    /// As [`Self::compound`], and all must go well.
    #[track_caller]
    pub(crate) fn ok(&mut self, operations: &[ArgOp<'_>]) -> Reply {
        let reply = self.compound(operations);
        assert_eq!(reply.status, Ok(()), "{:?}", reply.results());
        reply
    }

    /// As [`Self::compound`], and the last operation must fail: with which status?
    #[track_caller]
    pub(crate) fn fails(&mut self, operations: &[ArgOp<'_>]) -> Status {
        let reply = self.compound(operations);
        let results = reply.results();
        assert_eq!(results.len(), operations.len() + 1, "another operation failed: {results:?}");
        reply.status.expect_err("it went well")
    }

    /// As [`Self::compound`], again and again while the server asks for patience.
    pub(crate) fn patiently(&mut self, operations: &[ArgOp<'_>]) -> Reply {
        let begin = Instant::now();
        loop {
            let reply = self.compound(operations);
            if reply.status != Err(Status::Delay) || begin.elapsed() > PATIENCE {
                return reply;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    // --- callbacks ---

    /// Reads one message: a reply, or a callback, which is answered and kept.
    fn receive_message(&mut self) {
        let record = self.connection.receive_record();
        let mut reader = Reader::new(&record);
        if let Ok(call) = Call::decode(&mut reader.clone()) {
            assert_eq!((call.program, call.version), (CALLBACK_PROGRAM, callback::VERSION));
            Call::decode(&mut reader).unwrap();
            let callback = Callback { xid: call.xid, body: reader.rest().to_vec() };
            match call.procedure {
                callback::PROCEDURE_NULL => self.send_callback_reply(call.xid, &()),
                _ => self.answer(callback),
            }
            return;
        }
        let reply = RpcReply::decode(&mut reader).unwrap();
        assert_eq!(reply.body, ReplyBody::accepted(AcceptStatus::Success));
        self.replies.push((reply.xid, reader.rest().to_vec()));
    }

    fn answer(&mut self, callback: Callback) {
        let outcome = match self.callback_answer {
            CallbackAnswer::Ok | CallbackAnswer::Truncated => Some(Ok(())),
            CallbackAnswer::Fail(status) => Some(Err(status)),
            CallbackAnswer::Never => None,
        };
        if let Some(outcome) = outcome {
            self.answer_with(&callback, outcome);
        }
        self.callbacks.push_back(callback);
    }

    fn is_truncating(&self) -> bool {
        matches!(self.callback_answer, CallbackAnswer::Truncated)
    }

    /// Answers a callback: CB_SEQUENCE well, what follows it with this outcome.
    pub(crate) fn answer_with(&mut self, callback: &Callback, outcome: Result<(), Status>) {
        let (operations, keeps) = (callback.operations(), self.keeps.clone());
        let mut results = Vec::new();
        for operation in &operations {
            let result = match operation {
                callback::ArgOp::Sequence(args) => callback::ResOp::Sequence(Ok(callback::SequenceResOk {
                    session_id: args.session_id,
                    sequence_id: args.sequence_id,
                    slot_id: args.slot_id,
                    highest_slot_id: args.slot_id,
                    target_highest_slot_id: args.slot_id,
                })),
                callback::ArgOp::GetAttr(_) if !self.is_truncating() => callback::ResOp::GetAttr(
                    outcome.map(|()| callback::GetAttrResOk { attributes: keeps.as_attributes() }),
                ),
                other => callback::ResOp::Other(other.operation(), outcome),
            };
            let failed = result.status().is_err();
            results.push(result);
            if failed {
                break;
            }
        }
        let status = results.last().unwrap().status();
        self.send_callback_reply(callback.xid, &callback::CompoundRes { status, tag: Text(b""), results });
    }

    fn send_callback_reply(&mut self, xid: u32, result: &impl Encode) {
        let mut record = RpcReply { xid, body: ReplyBody::accepted(AcceptStatus::Success) }.encode_to_vec();
        result.encode(&mut Writer::new(&mut record));
        self.connection.send_record(&record);
    }

    /// The next callback, waiting for it if there is none yet.
    pub(crate) fn callback(&mut self) -> Callback {
        while self.callbacks.is_empty() {
            self.receive_message();
        }
        self.callbacks.pop_front().unwrap()
    }

    /// Whether a callback comes in this time; it is answered.
    pub(crate) fn is_told_within(&mut self, time: Duration) -> bool {
        if self.callbacks.is_empty() {
            let stream = &self.connection.stream;
            let patience = stream.read_timeout().unwrap();
            stream.set_read_timeout(Some(time)).unwrap();
            let something = stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
            stream.set_read_timeout(patience).unwrap();
            if something {
                self.receive_message();
            }
        }
        !self.callbacks.is_empty()
    }

    // --- what many tests begin with ---

    /// The filehandle of `/path/of/names` below the server's root.
    pub(crate) fn path(&mut self, path: &str) -> Vec<u8> {
        let names = path.split('/').filter(|name| !name.is_empty());
        let mut operations = vec![ArgOp::PutRootFh];
        operations.extend(names.map(|name| ArgOp::Lookup(lookup::Args { name: Name(name.as_bytes()) })));
        operations.push(ArgOp::GetFh);
        self.ok(&operations).file_handle()
    }

    /// OPEN's arguments for a name.
    pub(crate) fn open_args<'a>(
        &self,
        owner: &'a [u8],
        name: &'a str,
        (share_access, share_deny): (ShareAccess, ShareDeny),
        how: How<'a>,
    ) -> open::Args<'a> {
        open::Args {
            seqid: 0,
            share_access,
            share_deny,
            owner: StateOwner { client_id: self.client_id, owner: OwnerId(owner) },
            how,
            claim: Claim::Null(Name(name.as_bytes())),
        }
    }

    /// Opens a name for reading and writing, denying nothing and wanting no delegation; makes it if need be.
    pub(crate) fn open(&mut self, dir: &[u8], name: &str) -> (Stateid, Vec<u8>) {
        let modes = (ShareAccess::BOTH.with_want(Want::None), ShareDeny::NONE);
        let how = How::Create(CreateHow::Unchecked(attr::Attributes::EMPTY));
        let args = self.open_args(b"owner", name, modes, how);
        let reply = self.ok(&[put(dir), ArgOp::Open(args), ArgOp::GetFh]);
        (reply.opened().stateid, reply.file_handle())
    }

    pub(crate) fn close(&mut self, file: &[u8], open_stateid: Stateid) {
        self.ok(&[put(file), ArgOp::Close(close::Args { seqid: 0, open_stateid })]);
    }

    pub(crate) fn read(&mut self, file: &[u8], stateid: Stateid, offset: u64, count: u32) -> Vec<u8> {
        let reply = self.ok(&[put(file), ArgOp::Read(read::Args { stateid, offset, count })]);
        let ResOp::Read(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
        ok.data.to_vec()
    }

    pub(crate) fn write(&mut self, file: &[u8], stateid: Stateid, offset: u64, data: &[u8]) {
        let stable = v4::types::StableHow::FileSync;
        self.ok(&[put(file), ArgOp::Write(write::Args { stateid, offset, stable, data })]);
    }

    pub(crate) fn remove(&mut self, dir: &[u8], name: &str) {
        self.ok(&[put(dir), ArgOp::Remove(remove::Args { target: Name(name.as_bytes()) })]);
    }

    /// DESTROY_SESSION and DESTROY_CLIENTID, as a client that unmounts.
    pub(crate) fn leave(mut self) {
        let session_id = self.session.id;
        let reply = self.alone(ArgOp::DestroySession(destroy_session::Args { session_id }));
        assert_eq!(reply.status, Ok(()));
        let client_id = self.client_id;
        let reply = self.alone(ArgOp::DestroyClientId(destroy_clientid::Args { client_id }));
        assert_eq!(reply.status, Ok(()));
    }
}

fn connect_from(source: IpAddr, address: SocketAddr) -> server::Client {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(source, 0).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    server::Client::over(socket.into())
}

/// PUTFH.
pub(crate) fn put(object: &[u8]) -> ArgOp<'_> {
    ArgOp::PutFh(putfh::Args { object: FileHandle(object) })
}

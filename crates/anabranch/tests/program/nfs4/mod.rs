//! The least of an NFSv4.1 client that is root: a session without a back channel, opens, and what has become of them.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use nfs_wire::v4::attr::Attributes;
use nfs_wire::v4::compound::{self, ArgOp, ResOp};
use nfs_wire::v4::create_session::{self, ChannelAttributes};
use nfs_wire::v4::exchange_id::{self, ClientOwner, StateProtectArgs};
use nfs_wire::v4::open::{self, Claim, CreateHow, DelegationType, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{
    ClientId, FileHandle, Name, OwnerId, SecurityParameters, SessionId, StableHow, StateOwner, Stateid,
    Verifier,
};
use nfs_wire::v4::{
    PROGRAM, Procedure, VERSION, lookup, putfh, reclaim_complete, sequence, test_stateid, write,
};
use nfs_wire::xdr::{Decode, Writer};
use socket2::{Domain, Socket, Type};

/// A client with one session, of which it uses the first slot.
pub(crate) struct Nfs4 {
    pub(crate) stream: TcpStream,
    pub(crate) client_id: ClientId,
    /// Which server it is: the major identifier of its owner, and its scope.
    pub(crate) server: (Vec<u8>, Vec<u8>),
    session_id: SessionId,
    /// Of the last request.
    sequence_id: u32,
}

/// A file that a client has opened: its filehandle and the stateid.
pub(crate) type Opened = (Vec<u8>, Stateid);

impl Nfs4 {
    /// A client of this name at this address, which has nothing to reclaim.
    pub(crate) fn start(source: IpAddr, address: &str, owner: &str) -> Self {
        let mut client = Self::reclaiming(source, address, owner);
        client.complete();
        client
    }

    /// A client of this name that has not said yet that it has reclaimed what it had before.
    pub(crate) fn reclaiming(source: IpAddr, address: &str, owner: &str) -> Self {
        Self::try_reclaiming(source, address, owner).unwrap()
    }

    /// The same, if there is a server.
    pub(crate) fn try_reclaiming(source: IpAddr, address: &str, owner: &str) -> io::Result<Self> {
        Self::try_reclaiming_within(Duration::from_secs(60), source, address, owner)
    }

    /// The same, if it takes the connection and answers within this time.
    pub(crate) fn try_reclaiming_within(
        patience: Duration,
        source: IpAddr,
        address: &str,
        owner: &str,
    ) -> io::Result<Self> {
        let address: SocketAddr = address.parse().unwrap();
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::new(source, 0).into()).unwrap();
        socket.connect_timeout(&address.into(), patience)?;
        let stream: TcpStream = socket.into();
        stream.set_read_timeout(Some(patience))?;
        let (client_id, session_id) = (ClientId(0), SessionId::default());
        let server = (Vec::new(), Vec::new());
        let mut client = Self { stream, client_id, server, session_id, sequence_id: 0 };
        client.begin(owner.as_bytes())?;
        Ok(client)
    }

    fn begin(&mut self, owner_id: &[u8]) -> io::Result<()> {
        let body = self.try_call(&[ArgOp::ExchangeId(exchange_id::Args {
            client_owner: ClientOwner { verifier: Verifier([1; 8]), owner_id: OwnerId(owner_id) },
            flags: exchange_id::Flags::empty(),
            state_protect: StateProtectArgs::None,
            implementation: None,
        })])?;
        let Some(ResOp::ExchangeId(Ok(known))) = results(&body).pop() else { panic!("{body:?}") };
        self.client_id = known.client_id;
        self.server = (known.server_owner.major_id.0.to_vec(), known.server_scope.0.to_vec());
        let channel = ChannelAttributes {
            header_pad_bytes: 0,
            request_bytes_max: 1 << 16,
            response_bytes_max: 1 << 16,
            response_cached_bytes_max: 4096,
            operations_max: 8,
            requests_max: 1,
            rdma_ird: None,
        };
        let body = self.try_call(&[ArgOp::CreateSession(create_session::Args {
            client_id: known.client_id,
            sequence_id: known.sequence_id,
            flags: create_session::Flags::empty(),
            fore_channel: channel,
            back_channel: channel,
            callback_program: 0,
            callback_security: vec![SecurityParameters::None],
        })])?;
        let Some(ResOp::CreateSession(Ok(session))) = results(&body).pop() else { panic!("{body:?}") };
        self.session_id = session.session_id;
        Ok(())
    }

    /// RECLAIM_COMPLETE.
    pub(crate) fn complete(&mut self) {
        self.try_complete().unwrap();
    }

    /// The same, if the connection is there until the reply.
    pub(crate) fn try_complete(&mut self) -> io::Result<()> {
        let body = self.try_compound(&[ArgOp::ReclaimComplete(reclaim_complete::Args { one_fs: false })])?;
        assert_eq!(status(&body), Ok(()));
        Ok(())
    }

    /// The results of a COMPOUND (COMPOUND4res), if the connection is there until then.
    fn try_call(&mut self, operations: &[ArgOp<'_>]) -> io::Result<Vec<u8>> {
        // RFC 5531 section 9 and appendix A: AUTH_SYS of a machine without a name, no further groups.
        let (program, version, procedure) = (PROGRAM, VERSION, Procedure::Compound as u32);
        let head = [7, 0, 2, program, version, procedure, 1, 20, 0, 0, 0, 0, 0, 0, 0];
        let mut call: Vec<u8> = head.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
        compound::encode_args(&mut Writer::new(&mut call), "", 1, operations);
        let mark = 0x8000_0000 | u32::try_from(call.len()).unwrap();
        self.stream.write_all(&[&mark.to_be_bytes()[..], &call].concat())?;
        let mut mark = [0; 4];
        self.stream.read_exact(&mut mark)?;
        let mut reply = vec![0; usize::try_from(u32::from_be_bytes(mark) & 0x7fff_ffff).unwrap()];
        self.stream.read_exact(&mut reply)?;
        // xid, REPLY, accepted, AUTH_NONE, success
        assert_eq!(reply[4..24], [1, 0, 0, 0, 0].map(u32::to_be_bytes).concat(), "the call did not run");
        Ok(reply.split_off(24))
    }

    /// The same, of operations behind SEQUENCE.
    pub(crate) fn compound(&mut self, operations: &[ArgOp<'_>]) -> Vec<u8> {
        self.try_compound(operations).unwrap()
    }

    /// The same, if the connection is there until then.
    pub(crate) fn try_compound(&mut self, operations: &[ArgOp<'_>]) -> io::Result<Vec<u8>> {
        self.sequence_id += 1;
        let sequence = ArgOp::Sequence(sequence::Args {
            session_id: self.session_id,
            sequence_id: self.sequence_id,
            slot_id: 0,
            highest_slot_id: 0,
            cache_this: false,
        });
        self.try_call(&[&[sequence], operations].concat())
    }

    /// The filehandle of a share's top.
    pub(crate) fn top(&mut self, share: &str) -> Result<Vec<u8>, Status> {
        let lookup = ArgOp::Lookup(lookup::Args { name: Name(share.as_bytes()) });
        let body = self.compound(&[ArgOp::PutRootFh, lookup, ArgOp::GetFh]);
        status(&body)?;
        Ok(file_handle(&body))
    }

    /// Opens a name for reading and writing, wanting no delegation; makes it if need be. Others are kept out from what is denied.
    pub(crate) fn open(&mut self, top: &[u8], name: &str, denied: ShareDeny) -> Result<Opened, Status> {
        let open = ArgOp::Open(open::Args {
            seqid: 0,
            share_access: ShareAccess::BOTH.with_want(Want::None),
            share_deny: denied,
            owner: StateOwner { client_id: self.client_id, owner: OwnerId(b"owner") },
            how: How::Create(CreateHow::Unchecked(Attributes::EMPTY)),
            claim: Claim::Null(Name(name.as_bytes())),
        });
        let body = self.compound(&[put(top), open, ArgOp::GetFh]);
        status(&body)?;
        let opened = results(&body).into_iter().find_map(|result| match result {
            ResOp::Open(Ok(ok)) => Some(ok.stateid),
            _ => None,
        });
        Ok((file_handle(&body), opened.unwrap()))
    }

    /// Opens a file again that it had open, without a delegation, before the server lost that.
    pub(crate) fn reclaim(&mut self, file: &[u8], denied: ShareDeny) -> Result<Opened, Status> {
        self.try_reclaim(file, denied).unwrap()
    }

    /// The same, if the connection is there until the reply.
    pub(crate) fn try_reclaim(
        &mut self,
        file: &[u8],
        denied: ShareDeny,
    ) -> io::Result<Result<Opened, Status>> {
        let open = ArgOp::Open(open::Args {
            seqid: 0,
            share_access: ShareAccess::BOTH.with_want(Want::None),
            share_deny: denied,
            owner: StateOwner { client_id: self.client_id, owner: OwnerId(b"owner") },
            how: How::NoCreate,
            claim: Claim::Previous(DelegationType::None),
        });
        let body = self.try_compound(&[put(file), open])?;
        let opened = results(&body).into_iter().find_map(|result| match result {
            ResOp::Open(Ok(ok)) => Some(ok.stateid),
            _ => None,
        });
        Ok(status(&body).map(|()| (file.to_vec(), opened.unwrap())))
    }

    /// The same, once nobody denies it any more.
    pub(crate) fn open_when_free(&mut self, top: &[u8], name: &str) -> Opened {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match self.open(top, name, ShareDeny::NONE) {
                Ok(opened) => return opened,
                Err(status) => assert_eq!(status, Status::ShareDenied),
            }
            assert!(Instant::now() < deadline, "{name} is denied still");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn write(&mut self, opened: &Opened) -> Result<(), Status> {
        self.try_write(opened).unwrap()
    }

    /// The same, if the connection is there until the reply.
    pub(crate) fn try_write(&mut self, (file, stateid): &Opened) -> io::Result<Result<(), Status>> {
        let stable = StableHow::FileSync;
        let write = ArgOp::Write(write::Args { stateid: *stateid, offset: 0, stable, data: b"data" });
        Ok(status(&self.try_compound(&[put(file), write])?))
    }

    /// Waits until an open is taken from the client.
    pub(crate) fn until_revoked(&mut self, opened: &Opened) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.test(opened) != Err(Status::AdminRevoked) {
            assert!(Instant::now() < deadline, "it has it still");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// TEST_STATEID.
    pub(crate) fn test(&mut self, (_, stateid): &Opened) -> Result<(), Status> {
        let test = ArgOp::TestStateid(test_stateid::Args { stateids: vec![*stateid] });
        let body = self.compound(&[test]);
        let Some(ResOp::TestStateid(Ok(ok))) = results(&body).pop() else { panic!("{body:?}") };
        ok.statuses[0]
    }
}

pub(crate) fn put(object: &[u8]) -> ArgOp<'_> {
    ArgOp::PutFh(putfh::Args { object: FileHandle(object) })
}

pub(crate) fn status(body: &[u8]) -> Result<(), Status> {
    compound::Res::from_bytes(body).unwrap().status
}

pub(crate) fn results(body: &[u8]) -> Vec<ResOp<'_>> {
    compound::Res::from_bytes(body).unwrap().results.map(Result::unwrap).collect()
}

/// What GETFH returned.
fn file_handle(body: &[u8]) -> Vec<u8> {
    let found = results(body).into_iter().find_map(|result| match result {
        ResOp::GetFh(Ok(ok)) => Some(ok.object.0.to_vec()),
        _ => None,
    });
    found.unwrap()
}

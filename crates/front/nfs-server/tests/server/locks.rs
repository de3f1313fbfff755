//! Locks of NFSv3 clients (NLM) and hosts that restart (NSM).

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_nfs_server::{HostLimits, HostRecord, HostRecords, NetworkLocks};
use net::Datagrams;
use nfs_wire::nlm::{self, CallerName, Found, NetObject, Procedure, Res, ShareRes, Status, TestRes};
use nfs_wire::nsm::{self, HostName, StateChange};
use nfs_wire::rpc::{AcceptStatus, OpaqueAuth, ReplyBody};
use nfs_wire::v3::types::FileHandle;
use nfs_wire::xdr::{Decode, Encode};
use parking_lot::Mutex;
use share::{Access, ByteRange, Case, LockKind, LockWait, OpenRequest, Sharing, Squash};
use socket2::{Domain, Socket, Type};
use storage::Want;
use storage::memory::MemoryStore;

use crate::client::{Client, TestServer, by_smb, call_record, export};

/// Records in memory.
#[derive(Debug, Default)]
struct Records(Mutex<Vec<HostRecord>>);

impl HostRecords for Records {
    fn keep(&self, record: &HostRecord) -> io::Result<()> {
        self.0.lock().push(record.clone());
        Ok(())
    }

    fn forget(&self, records: &[HostRecord]) -> io::Result<()> {
        self.0.lock().retain(|known| !records.contains(known));
        Ok(())
    }

    fn all(&self) -> io::Result<Vec<HostRecord>> {
        Ok(self.0.lock().clone())
    }
}

fn locking_with(store: &Arc<MemoryStore>, run: u8, records: &Arc<Records>, limits: HostLimits) -> TestServer {
    let records: Arc<dyn HostRecords> = Arc::clone(records) as _;
    let locks = NetworkLocks { limits, records: Some(records), host_name: "server".to_owned() };
    let of_server = |config: &mut anabranch_nfs_server::Config| config.network_locks = Some(locks);
    TestServer::with(Arc::clone(store), export(Squash::None), run, |_| {}, of_server)
}

fn locking() -> TestServer {
    locking_with(&Arc::default(), 1, &Arc::default(), HostLimits::default())
}

/// A client with this address.
fn client_at(server: &TestServer, last: u8) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)).into()).unwrap();
    socket.connect(&server.address.into()).unwrap();
    Client::over(TcpStream::from(socket))
}

/// One process of a client.
struct Process {
    client: Client,
    file: FileHandle,
    host: &'static str,
    svid: u32,
    state: u32,
}

impl Process {
    fn at(server: &TestServer, last: u8, file: FileHandle, host: &'static str) -> Self {
        Self { client: client_at(server, last), file, host, svid: u32::from(last), state: 1 }
    }

    fn described(&self, offset: u64, length: u64) -> nlm::Lock<'static> {
        nlm::Lock {
            caller: CallerName(self.host.as_bytes()),
            file: self.file,
            owner: NetObject(b"owner"),
            svid: self.svid,
            offset,
            length,
        }
    }

    fn call(&mut self, procedure: Procedure, args: &impl Encode) -> Vec<u8> {
        let (body, results) = self.client.exchange((nlm::PROGRAM, nlm::VERSION, procedure as u32), args);
        assert_eq!(body, ReplyBody::accepted(AcceptStatus::Success));
        results
    }

    fn status(&mut self, procedure: Procedure, args: &impl Encode) -> Status {
        let results = self.call(procedure, args);
        let res = Res::from_bytes(&results).unwrap();
        assert_eq!(res.cookie, NetObject(b"c"));
        res.status
    }

    fn args(&self, range: (u64, u64), block: bool, reclaim: bool) -> nlm::LockArgs<'static> {
        let (lock, state) = (self.described(range.0, range.1), self.state);
        nlm::LockArgs { cookie: NetObject(b"c"), block, exclusive: true, lock, reclaim, state }
    }

    fn lock(&mut self, range: (u64, u64)) -> Status {
        self.status(Procedure::Lock, &self.args(range, false, false))
    }

    fn reclaim(&mut self, range: (u64, u64)) -> Status {
        self.status(Procedure::Lock, &self.args(range, false, true))
    }

    fn wait(&mut self, range: (u64, u64)) -> Status {
        self.status(Procedure::Lock, &self.args(range, true, false))
    }

    fn cancel(&mut self, range: (u64, u64)) -> Status {
        let lock = self.described(range.0, range.1);
        let args = nlm::CancelArgs { cookie: NetObject(b"c"), block: true, exclusive: true, lock };
        self.status(Procedure::Cancel, &args)
    }

    fn unlock(&mut self, range: (u64, u64)) -> Status {
        let lock = self.described(range.0, range.1);
        self.status(Procedure::Unlock, &nlm::UnlockArgs { cookie: NetObject(b"c"), lock })
    }

    /// The process that holds a lock in the range, with the lock's range.
    fn test(&mut self, range: (u64, u64)) -> Result<Option<(u32, u64, u64)>, Status> {
        let lock = self.described(range.0, range.1);
        let args = nlm::TestArgs { cookie: NetObject(b"c"), exclusive: true, lock };
        let results = self.call(Procedure::Test, &args);
        match TestRes::from_bytes(&results).unwrap().found {
            Found::Conflict(holder) => Ok(Some((holder.svid, holder.offset, holder.length))),
            Found::Other(Status::Granted) => Ok(None),
            Found::Other(status) => Err(status),
        }
    }

    fn free_all(&mut self, host: &str, state: u32) {
        let args = nlm::FreeAllArgs { caller: CallerName(host.as_bytes()), state };
        assert!(self.call(Procedure::FreeAll, &args).is_empty());
    }
}

/// A file, and processes on the hosts `a` at 127.0.0.11 and `b` at 127.0.0.12.
fn two(server: &TestServer) -> (Process, Process) {
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o666, b"data");
    (Process::at(server, 11, file, "a"), Process::at(server, 12, file, "b"))
}

/// Tries until this is so.
fn eventually(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_that_is_not_to_lock_has_no_such_programs() {
    let server = TestServer::start();
    let mut client = server.client();
    for program in [(nlm::PROGRAM, nlm::VERSION, 0), (nsm::PROGRAM, nsm::VERSION, 0)] {
        let (body, _) = client.exchange(program, &());
        assert_eq!(body, ReplyBody::accepted(AcceptStatus::ProgramUnavailable));
    }
    let server = locking();
    let (body, _) = server.client().exchange((nlm::PROGRAM, 3, 0), &());
    assert_eq!(body, ReplyBody::accepted(AcceptStatus::ProgramMismatch { low: 4, high: 4 }));
    for procedure in [0, 15, 16, 19, 24] {
        let (body, _) = server.client().exchange((nlm::PROGRAM, 4, procedure), &());
        let known = ReplyBody::accepted(AcceptStatus::Success);
        assert_eq!(body == known, procedure < 16, "{procedure}");
    }
}

#[test]
fn a_lock_excludes_others_until_it_is_released() {
    let server = locking();
    let (mut a, mut b) = two(&server);
    assert_eq!(a.lock((0, 100)), Status::Granted);
    assert_eq!(a.lock((0, 100)), Status::Granted, "its own");
    assert_eq!((b.lock((50, 10)), b.lock((100, 10))), (Status::Denied, Status::Granted));
    assert_eq!((b.test((0, 1)), a.test((0, 1))), (Ok(Some((11, 0, 100))), Ok(None)));
    assert_eq!(a.unlock((0, 50)), Status::Granted);
    assert_eq!((b.lock((0, 50)), b.lock((50, 1))), (Status::Granted, Status::Denied));
    assert_eq!(a.unlock((0, 0)), Status::Granted, "all of it");
    assert_eq!((b.lock((0, 0)), a.test((7, 1))), (Status::Granted, Ok(Some((12, 0, 0)))));
    assert_eq!((b.unlock((0, 0)), b.unlock((0, 0))), (Status::Granted, Status::Granted));
    assert_eq!(a.lock((u64::MAX, 2)), Status::FBig);
    assert_eq!(server.data.open_count().0, 0, "a file is closed with the last lock");
}

#[test]
fn nobody_releases_the_locks_of_a_host_at_another_address() {
    let server = locking();
    let (mut a, mut b) = two(&server);
    assert_eq!(a.lock((0, 100)), Status::Granted);
    let mut impostor = Process { svid: a.svid, ..Process::at(&server, 13, a.file, "a") };
    assert_eq!(impostor.unlock((0, 100)), Status::Granted, "it has none");
    impostor.free_all("a", 3);
    assert_eq!(b.lock((0, 100)), Status::Denied);
    a.free_all("b", 3);
    assert_eq!(b.lock((0, 100)), Status::Denied, "that is another name");
    a.free_all("a", 3);
    eventually(|| b.lock((0, 100)) == Status::Granted);
}

#[test]
fn a_host_that_says_over_udp_that_it_has_restarted_loses_its_locks() {
    let server = locking();
    let (mut a, mut b) = two(&server);
    assert_eq!(a.lock((0, 100)), Status::Granted);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let notify = |from: [u8; 4], host: &str, state| {
        let args = StateChange { host: HostName(host.as_bytes()), state };
        let ids = (nsm::PROGRAM, nsm::VERSION, nsm::Procedure::Notify as u32);
        let call = call_record(7, ids, OpaqueAuth::NONE, &args);
        let answered = runtime.block_on(async {
            let answer = Datagrams::answer(&*server.server, (from, 700).into(), &call);
            tokio::task::yield_now().await;
            answer
        });
        assert!(answered.is_some_and(|answer| answer.len() <= call.len()));
    };
    notify([127, 0, 0, 13], "a", 3);
    notify([127, 0, 0, 11], "b", 3);
    notify([127, 0, 0, 11], "a", 1);
    assert_eq!(b.lock((0, 100)), Status::Denied, "another address, another name, its present state");
    notify([127, 0, 0, 11], "a.example.org", 3);
    eventually(|| b.lock((0, 100)) == Status::Granted);
    assert!(Datagrams::answer(&*server.server, ([127, 0, 0, 1], 7).into(), b"nonsense").is_none());
}

#[test]
fn a_host_whose_state_has_changed_begins_anew() {
    let server = locking();
    let (mut a, mut b) = two(&server);
    assert_eq!(a.lock((0, 100)), Status::Granted);
    a.state = 3;
    assert_eq!(a.lock((200, 1)), Status::Granted);
    assert_eq!(b.lock((0, 100)), Status::Granted);
}

#[test]
fn a_lock_that_is_waited_for_comes_when_it_is_free() {
    let server = locking();
    let (mut a, mut b) = two(&server);
    assert_eq!(a.lock((0, 100)), Status::Granted);
    assert_eq!((b.wait((0, 100)), b.wait((0, 100))), (Status::Blocked, Status::Blocked));
    assert_eq!(a.unlock((0, 100)), Status::Granted);
    // The server takes it for the host that waits. That host asks again: it cannot be called here.
    eventually(|| a.test((0, 100)) == Ok(Some((12, 0, 100))));
    assert_eq!((b.wait((0, 100)), a.lock((0, 100))), (Status::Granted, Status::Denied));
    assert_eq!(b.cancel((0, 100)), Status::Denied, "it waits no more");
    assert_eq!((b.unlock((0, 100)), a.lock((0, 100))), (Status::Granted, Status::Granted));
}

#[test]
fn a_wait_that_is_given_up_takes_nothing() {
    let server = locking();
    let (mut a, mut b) = two(&server);
    assert_eq!(a.lock((0, 100)), Status::Granted);
    assert_eq!(
        (b.wait((0, 100)), b.cancel((0, 100)), b.cancel((0, 100))),
        (Status::Blocked, Status::Granted, Status::Denied)
    );
    assert_eq!((b.wait((0, 100)), b.unlock((0, 100))), (Status::Blocked, Status::Granted));
    assert_eq!(a.unlock((0, 100)), Status::Granted);
    assert_eq!((a.test((0, 100)), a.lock((0, 100))), (Ok(None), Status::Granted));
}

#[test]
fn locks_that_are_waited_for_and_hosts_are_limited() {
    let limits = HostLimits { hosts_max: 2, waiting_max: 2, ..HostLimits::default() };
    let server = locking_with(&Arc::default(), 1, &Arc::default(), limits);
    let (mut a, mut b) = two(&server);
    assert_eq!(a.lock((0, 0)), Status::Granted);
    assert_eq!(
        [b.wait((0, 1)), b.wait((1, 1)), b.wait((2, 1))],
        [Status::Blocked, Status::Blocked, Status::DeniedNoLocks]
    );
    let mut third = Process::at(&server, 13, a.file, "c");
    assert_eq!(third.lock((0, 1)), Status::DeniedNoLocks);
}

#[test]
fn locks_of_smb_and_of_nfsv3_exclude_each_other() {
    let server = locking();
    let (mut a, _) = two(&server);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (by_smb, data) = (by_smb(0, 0), &server.data);
    let open = runtime.block_on(async {
        let found =
            data.lookup(&by_smb, data.root(), b"file", Case::Insensitive, Want::empty()).await.unwrap();
        let access = Access::READ_DATA | Access::WRITE_DATA;
        data.open(&by_smb, &found, &OpenRequest::new(access, Sharing::all())).await.unwrap()
    });
    let lock = |range: (u64, u64)| {
        let range = ByteRange::new(range.0, range.1).unwrap();
        runtime.block_on(data.lock(&open, range, LockKind::Exclusive, LockWait::Never)).is_ok()
    };
    assert!(lock((0, 10)));
    assert_eq!((a.lock((5, 1)), a.lock((10, 1))), (Status::Denied, Status::Granted));
    assert!(matches!(a.test((0, 1)), Ok(Some((0, 0, 10)))));
    assert!(!lock((10, 1)) && lock((11, 1)));
}

#[test]
fn after_a_restart_only_those_who_had_locks_get_them() {
    let (store, records) = (Arc::<MemoryStore>::default(), Arc::<Records>::default());
    let server = locking_with(&store, 1, &records, HostLimits::default());
    let (mut a, _) = two(&server);
    assert_eq!((a.lock((0, 100)), a.lock((200, 1))), (Status::Granted, Status::Granted));
    assert_eq!(records.0.lock().len(), 1, "a host is written down once");
    let file = a.file;
    drop(server);
    let server = locking_with(&store, 2, &records, HostLimits::default());
    a = Process::at(&server, 11, file, "a");
    let mut b = Process::at(&server, 12, file, "b");
    assert_eq!(
        (b.lock((0, 100)), b.test((0, 100))),
        (Status::DeniedGracePeriod, Err(Status::DeniedGracePeriod))
    );
    assert_eq!((b.reclaim((0, 100)), a.lock((0, 100))), (Status::Denied, Status::DeniedGracePeriod));
    let mut impostor = Process::at(&server, 13, file, "a");
    assert_eq!(impostor.reclaim((0, 100)), Status::Denied);
    assert_eq!((a.reclaim((0, 100)), a.unlock((0, 100))), (Status::Granted, Status::Granted));
    assert_eq!(b.client.write(file, 0, b"meanwhile").map(|ok| ok.count), Ok(9), "all else goes on");
}

#[test]
fn a_user_who_may_not_read_a_file_may_not_lock_it() {
    let server = locking();
    let (mut a, _) = two(&server);
    let (mut client, root) = server.mounted();
    a.file = client.make_file(root, "secret", 0o600, b"");
    a.client.user = Some((1000, 1000, Vec::new()));
    assert_eq!(a.lock((0, 1)), Status::Failed);
    a.client.user = Some((0, 0, Vec::new()));
    assert_eq!(a.lock((0, 1)), Status::Granted);
    a.file = client.make_dir(root, "dir", 0o777);
    assert_eq!(a.lock((0, 1)), Status::Failed, "a directory");
    a.file = FileHandle::new(b"nonsense").unwrap();
    assert_eq!(a.lock((0, 1)), Status::StaleFileHandle);
}

#[test]
fn reservations_exclude_others_until_they_end() {
    let server = locking();
    let (mut a, mut b) = two(&server);
    let reserve = |process: &mut Process, procedure, mode, access| {
        let (caller, file) = (CallerName(process.host.as_bytes()), process.file);
        let share = nlm::Share { caller, file, owner: NetObject(b"owner"), mode, access };
        let args = nlm::ShareArgs { cookie: NetObject(b"c"), share, reclaim: false };
        let results = process.call(procedure, &args);
        ShareRes::from_bytes(&results).unwrap().status
    };
    use nlm::{Access as Does, Mode};
    assert_eq!(reserve(&mut a, Procedure::Share, Mode::DenyWrite, Does::Read), Status::Granted);
    assert_eq!(reserve(&mut b, Procedure::Share, Mode::DenyNone, Does::Write), Status::Denied);
    assert_eq!(reserve(&mut b, Procedure::Share, Mode::DenyNone, Does::Read), Status::Granted);
    for _ in 0..2 {
        assert_eq!(reserve(&mut a, Procedure::Unshare, Mode::DenyWrite, Does::Read), Status::Granted);
    }
    assert_eq!(reserve(&mut b, Procedure::Share, Mode::DenyNone, Does::Write), Status::Granted, "instead");
    assert_eq!(server.data.open_count().0, 1);
}

#[test]
fn what_hosts_hold_is_shown_and_ended_by_administrators() {
    let server = locking();
    let (mut a, mut b) = two(&server);
    assert_eq!((a.lock((0, 10)), b.lock((20, 10))), (Status::Granted, Status::Granted));
    let files = server.server.open_files();
    assert_eq!(files.len(), 2);
    let of_a = files.iter().find(|file| file.client == "a").unwrap();
    assert_eq!((of_a.protocol(), of_a.locks().len(), of_a.is_connected), ("nfs3", 1, true));
    let hosts = server.server.lock_hosts();
    assert_eq!((&*hosts[1].name, hosts[1].address, hosts[1].files), ("b", [127, 0, 0, 12].into(), 1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    assert!(runtime.block_on(server.server.close_file(of_a.share.id(), of_a.open.key())));
    assert_eq!(b.lock((0, 10)), Status::Granted);
    let (hosts, connections) = runtime.block_on(server.server.disconnect([127, 0, 0, 12].into()));
    assert_eq!((hosts, connections), (1, 1));
    assert_eq!(a.lock((0, 100)), Status::Granted);
    server.end_share(&server.data);
    assert!(server.server.open_files().is_empty());
}

#[test]
fn anything_that_a_client_may_send_is_answered() {
    let server = locking();
    let (mut a, _) = two(&server);
    let whole = a.args((0, 1), true, false).encode_to_vec();
    for procedure in 0..=24 {
        for length in (0..whole.len()).step_by(4) {
            let part = crate::client::Raw(&whole[..length]);
            let (body, _) = a.client.exchange((nlm::PROGRAM, nlm::VERSION, procedure), &part);
            assert!(matches!(body, ReplyBody::Accepted { .. }), "{procedure} {length}");
        }
    }
    // The server goes on.
    assert_eq!(a.unlock((0, 0)), Status::Granted);
}

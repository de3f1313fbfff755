//! After a restart: clients that are written down reclaim what they held, and the others wait.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_nfs_server::{ClientRecord, ClientRecords};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::lock::{self, LockType, Locker};
use nfs_wire::v4::open::{self, Claim, Delegation, DelegationType, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{OwnerId, StateOwner, Stateid};
use nfs_wire::v4::{read, reclaim_complete};
use share::Squash;
use share::{Access, Sharing};
use storage::memory::MemoryStore;

use crate::client::{V4Client, put};
use crate::delegations::{Came, came, give_back};
use crate::opens::smb_open;
use crate::server::{TestServer, export};
use crate::want_delegation::{claims, granted, wants};

/// What survives a restart.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<Vec<ClientRecord>>);

impl ClientRecords for Records {
    fn keep(&self, record: &ClientRecord) -> io::Result<()> {
        self.0.lock().unwrap().push(record.clone());
        Ok(())
    }

    fn forget(&self, records: &[ClientRecord]) -> io::Result<()> {
        self.0.lock().unwrap().retain(|record| !records.contains(record));
        Ok(())
    }

    fn all(&self) -> io::Result<Vec<ClientRecord>> {
        Ok(self.0.lock().unwrap().clone())
    }
}

struct Machine {
    store: Arc<MemoryStore>,
    records: Arc<Records>,
    lease: Duration,
}

impl Machine {
    fn new(lease: Duration) -> Self {
        Self { store: Arc::default(), records: Arc::default(), lease }
    }

    fn start(&self, run: u8) -> TestServer {
        let patience = |settings: &mut share::Settings| settings.retry_after = Duration::from_millis(20);
        TestServer::with(Arc::clone(&self.store), export(Squash::None), run, patience, |config| {
            config.client_records = Some(Arc::clone(&self.records) as _);
            config.lease_times.lease = self.lease;
        })
    }

    fn known(&self) -> Vec<Vec<u8>> {
        self.records.all().unwrap().into_iter().map(|record| record.owner).collect()
    }
}

fn complete() -> ArgOp<'static> {
    ArgOp::ReclaimComplete(reclaim_complete::Args { one_fs: false })
}

fn previous(client: &V4Client, had: DelegationType) -> ArgOp<'static> {
    let modes = (ShareAccess::BOTH, ShareDeny::WRITE);
    let args = client.open_args(b"owner", "", modes, How::NoCreate);
    ArgOp::Open(open::Args { claim: Claim::Previous(had), ..args })
}

fn lock_of(client: &V4Client, open_stateid: Stateid, reclaim: bool) -> ArgOp<'static> {
    let owner = StateOwner { client_id: client.client_id, owner: OwnerId(b"l") };
    let locker = Locker::New { open_seqid: 0, open_stateid, lock_seqid: 0, owner };
    ArgOp::Lock(lock::Args { lock_type: LockType::Write, reclaim, offset: 0, length: 10, locker })
}

#[test]
fn what_a_client_held_it_has_again_before_anybody_else() {
    let machine = Machine::new(Duration::from_secs(90));
    let server = machine.start(1);
    let root = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    assert!(machine.known().is_empty());
    let (open_stateid, file) = client.open(&root, "file");
    assert_eq!(machine.known(), [b"one"], "before it hears of its first open");
    let taken = lock_of(&client, open_stateid, false);
    client.ok(&[put(&file), taken]);
    drop(server);

    let server = machine.start(2);
    let mut client = V4Client::connect(server.address);
    client.establish("one", 1);
    let mut other = V4Client::start(server.address, "two");
    let args = other.open_args(b"o", "file", (ShareAccess::READ, ShareDeny::NONE), How::NoCreate);
    assert_eq!(other.fails(&[put(&root), ArgOp::Open(args)]), Status::Grace);
    let read = ArgOp::Read(read::Args { stateid: Stateid::ANONYMOUS, offset: 0, count: 1 });
    assert_eq!(other.fails(&[put(&file), read]), Status::Grace);
    let reclaims = previous(&other, DelegationType::None);
    assert_eq!(other.fails(&[put(&file), reclaims]), Status::NoGrace, "it is done");
    let mut stranger = V4Client::connect(server.address);
    stranger.establish("three", 1);
    let reclaims = previous(&stranger, DelegationType::None);
    assert_eq!(stranger.fails(&[put(&file), reclaims]), Status::ReclaimBad, "it held nothing");
    let handle = nfs_wire::v3::types::FileHandle::new(&file).unwrap();
    assert!(server.client().write(handle, 0, b"x").is_err(), "version 3 is put off");

    std::thread::scope(|scope| {
        let smb = scope.spawn(|| smb_open(&server, Access::WRITE_DATA, Sharing::all()));
        let reclaims = previous(&client, DelegationType::None);
        let reply = client.ok(&[put(&file), reclaims]);
        let opened = reply.opened();
        let again = lock_of(&client, opened.stateid, true);
        client.ok(&[put(&file), again]);
        let new = lock_of(&client, opened.stateid, false);
        assert_eq!(client.fails(&[put(&file), new]), Status::Grace);
        assert!(!smb.is_finished());
        client.ok(&[complete()]);
        assert_eq!(client.fails(&[complete()]), Status::CompleteAlready);
        // It is over at once, and what was reclaimed holds.
        assert_eq!(smb.join().unwrap().unwrap_err(), share::Error::SharingViolation);
    });
    let args = other.open_args(
        b"o",
        "file",
        (ShareAccess::READ.with_want(Want::None), ShareDeny::NONE),
        How::NoCreate,
    );
    other.ok(&[put(&root), ArgOp::Open(args)]);
    let reclaims = previous(&client, DelegationType::None);
    assert_eq!(client.fails(&[put(&file), reclaims]), Status::NoGrace);
}

#[test]
fn a_delegation_is_reclaimed_with_its_open() {
    let machine = Machine::new(Duration::from_secs(90));
    let server = machine.start(1);
    let root = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    let (_, file) = client.open(&root, "file");
    drop(server);
    let server = machine.start(2);
    let mut client = V4Client::connect(server.address);
    client.establish("one", 1);
    let reclaims = previous(&client, DelegationType::Read);
    let reply = client.ok(&[put(&file), reclaims]);
    let Delegation::Read(delegation) = reply.opened().delegation else { panic!("{reply:?}") };
    client.read(&file, delegation.stateid, 0, 1);
}

#[test]
fn a_delegation_without_an_open_is_reclaimed_too() {
    let machine = Machine::new(Duration::from_secs(90));
    let server = machine.start(1);
    let root = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    let (stateid, file) = client.open(&root, "file");
    client.close(&file, stateid);
    granted(&mut client, &file, Want::Write);
    drop(server);
    let server = machine.start(2);
    let mut other = V4Client::start(server.address, "two");
    assert_eq!(other.fails(&wants(&file, Want::Read)), Status::Grace);
    let reclaims = claims(&file, Want::Write, DelegationType::Write);
    assert_eq!(other.fails(&reclaims), Status::NoGrace, "it is done");
    let mut stranger = V4Client::connect(server.address);
    stranger.establish("three", 1);
    assert_eq!(stranger.fails(&reclaims), Status::ReclaimBad, "it held nothing");
    let mut client = V4Client::connect(server.address);
    client.establish("one", 1);
    assert_eq!(client.fails(&wants(&file, Want::Write)), Status::Grace);
    let none = claims(&file, Want::Write, DelegationType::None);
    assert_eq!(client.fails(&none), Status::Inval);
    let reply = client.ok(&reclaims);
    let ResOp::WantDelegation(Ok(delegation)) = reply.last() else { panic!("{reply:?}") };
    let Came::Write(stateid) = came(delegation) else { panic!("{delegation:?}") };
    client.write(&file, stateid, 0, b"data");
    client.ok(&[complete()]);
    client.ok(&give_back(&file, stateid));
    assert!(matches!(granted(&mut other, &file, Want::Write), Came::Write(_)));
}

#[test]
fn who_does_not_come_back_in_time_is_forgotten() {
    let machine = Machine::new(Duration::from_secs(3));
    let server = machine.start(1);
    let root = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    client.open(&root, "file");
    drop(server);
    let begin = Instant::now();
    let server = machine.start(2);
    let mut other = V4Client::start(server.address, "two");
    let args = other.open_args(b"o", "file", (ShareAccess::READ, ShareDeny::NONE), How::NoCreate);
    let open = [put(&root), ArgOp::Open(args)];
    let status = other.compound(&open).status;
    // A machine may be too busy to ask in time.
    assert!(status == Err(Status::Grace) || begin.elapsed() >= machine.lease, "{status:?}");
    std::thread::sleep(machine.lease);
    other.ok(&open);
    assert_eq!(machine.known(), [b"two"], "the next restart finds who holds something now");
}

#[test]
fn a_client_that_comes_late_may_finish_its_reclaims() {
    // On a machine that stands still for longer than the client may, nothing is learned: then it is tried again.
    assert!((0..20).any(|_| finishes_its_reclaims()), "the machine stands still again and again");
}

/// Whether the client has reclaimed as often as it is to.
fn finishes_its_reclaims() -> bool {
    let machine = Machine::new(Duration::from_secs(3));
    let server = machine.start(1);
    let root = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    let files: Vec<_> = (0..3).map(|index| client.open(&root, &format!("file{index}")).1).collect();
    drop(server);
    let begin = Instant::now();
    let server = machine.start(2);
    let mut other = V4Client::start(server.address, "two");
    let mut client = V4Client::connect(server.address);
    client.establish("one", 1);
    let args = client.open_args(b"owner", "", (ShareAccess::BOTH, ShareDeny::NONE), How::NoCreate);
    let reclaims = ArgOp::Open(open::Args { claim: Claim::Previous(DelegationType::None), ..args });
    // From before the end of the first lease until well into the second, with less than an eighth of a lease in between.
    let mut reclaimed = files.iter().cycle();
    let mut last = begin + machine.lease * 3 / 4;
    let is_late = |last: Instant| last.elapsed() > machine.lease / 10;
    while begin.elapsed() < machine.lease * 3 / 2 {
        std::thread::sleep(machine.lease / 100);
        if begin.elapsed() > machine.lease * 3 / 4 {
            let reply = client.compound(&[put(reclaimed.next().unwrap()), reclaims.clone()]);
            if is_late(last) {
                return false;
            }
            assert_eq!(reply.status, Ok(()), "{reply:?}");
            last = Instant::now();
        }
    }
    let args = other.open_args(b"o", "file0", (ShareAccess::READ, ShareDeny::NONE), How::NoCreate);
    let status = other.compound(&[put(&root), ArgOp::Open(args)]).status;
    let handle = nfs_wire::v3::types::FileHandle::new(&files[0]).unwrap();
    let written = server.client().write(handle, 0, b"x");
    if is_late(last) {
        return false;
    }
    assert_eq!(status, Err(Status::Grace));
    assert!(written.is_err(), "version 3 is put off as long");
    client.ok(&[complete()]);
    other.ok(&[put(&root), ArgOp::Open(args)]);
    true
}

#[test]
fn a_client_that_has_not_finished_its_reclaims_in_time_is_still_written_down() {
    // A client may come too late on a machine that stands still: then it is tried again.
    assert!((0..20).any(|_| reclaims_and_does_not_finish()), "the machine stands still again and again");
}

/// Whether the client has come in time to reclaim something.
fn reclaims_and_does_not_finish() -> bool {
    let machine = Machine::new(Duration::from_secs(2));
    let server = machine.start(1);
    let root = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    let (_, file) = client.open(&root, "file");
    drop(server);
    let server = machine.start(2);
    let mut client = V4Client::connect(server.address);
    client.establish("one", 1);
    let reclaims = previous(&client, DelegationType::None);
    if client.compound(&[put(&file), reclaims]).status.is_err() {
        return false;
    }
    // A reclaim extends the time by an eighth.
    std::thread::sleep(machine.lease * 5 / 4);
    let mut other = V4Client::start(server.address, "two");
    other.open(&root, "another");
    let known = machine.known();
    assert!(known.contains(&b"one".to_vec()), "the next restart finds who holds something now: {known:?}");
    true
}

#[test]
fn a_client_that_leaves_has_nothing_to_reclaim() {
    let machine = Machine::new(Duration::from_secs(90));
    let server = machine.start(1);
    let root = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    let (stateid, file) = client.open(&root, "file");
    client.close(&file, stateid);
    client.leave();
    assert!(machine.known().is_empty());
    drop(server);
    let server = machine.start(2);
    let mut client = V4Client::start(server.address, "two");
    client.open(&root, "file");
}

#[test]
fn a_client_that_came_again_has_lost_what_its_earlier_life_held() {
    let machine = Machine::new(Duration::from_secs(90));
    let server = machine.start(1);
    let root = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    let modes = (ShareAccess::BOTH.with_want(Want::None), ShareDeny::BOTH);
    let made = How::Create(open::CreateHow::Unchecked(nfs_wire::v4::attr::Attributes::EMPTY));
    let args = client.open_args(b"owner", "file", modes, made);
    client.ok(&[put(&root), ArgOp::Open(args)]);
    let mut again = V4Client::connect(server.address);
    again.establish("one", 2);
    again.ok(&[complete()]);
    again.open(&root, "file");
    assert_eq!(machine.known().last(), Some(&b"one".to_vec()));
}

//! NFSv4.0: clients without sessions, the sequences of their owners, and what they share with other clients.

use std::sync::Arc;
use std::time::Duration;

use nfs_wire::v4::attr::{Attribute, AttributeSet, Attributes, Value};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::exchange_id::ClientOwner;
use nfs_wire::v4::lock::{self, Failure, LockType, Locker};
use nfs_wire::v4::open::{
    self, Claim, CreateHow, Delegation, DelegationType, How, ResultFlags, ShareAccess, ShareDeny, Want,
};
use nfs_wire::v4::setclientid::CallbackClient;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{
    ClientId, Name, NetAddr, OwnerId, StateOwner, Stateid, StateidOther, Text, Verifier,
};
use nfs_wire::v4::{
    close, getattr, lockt, locku, lookup, open_confirm, open_downgrade, read, release_lockowner, remove,
    renew, secinfo, sequence, setclientid, setclientid_confirm, write,
};
use share::{Access, Sharing, Squash};
use storage::memory::MemoryStore;

use crate::client::{Reply, V4Client, put};
use crate::opens::smb_open;
use crate::reclaim::Records;
use crate::server::{TestServer, export};

const LEASE: Duration = Duration::from_millis(300);

/// A client of NFSv4.0, with one open-owner.
struct Sessionless {
    client: V4Client,
    root: Vec<u8>,
    seqid: u32,
}

fn introduction(name: &[u8], run: u64) -> ArgOp<'_> {
    let location = NetAddr { netid: Text(b"tcp"), address: Text(b"127.0.0.1.0.0") };
    ArgOp::SetClientId(setclientid::Args {
        client: ClientOwner { verifier: Verifier(run.to_be_bytes()), owner_id: OwnerId(name) },
        callback: CallbackClient { program: 0x4000_0000, location },
        callback_ident: 1,
    })
}

fn introduced(reply: &Reply) -> setclientid::ResOk {
    match reply.last() {
        ResOp::SetClientId(Ok(ok)) => ok,
        other => panic!("{other:?}"),
    }
}

fn confirm(ok: setclientid::ResOk) -> ArgOp<'static> {
    let setclientid::ResOk { client_id, confirm } = ok;
    ArgOp::SetClientIdConfirm(setclientid_confirm::Args { client_id, confirm })
}

impl Sessionless {
    fn start(server: &TestServer, name: &str) -> Self {
        Self::start_run(server, name, 1)
    }

    fn start_run(server: &TestServer, name: &str, run: u64) -> Self {
        let mut client = V4Client::connect(server.address);
        client.minor_version = 0;
        let ok = introduced(&client.raw(&[introduction(name.as_bytes(), run)]));
        assert_eq!(client.raw(&[confirm(ok)]).status, Ok(()));
        client.client_id = ok.client_id;
        let names = ["data"].map(|name| ArgOp::Lookup(lookup::Args { name: Name(name.as_bytes()) }));
        let [data] = names;
        let root = client.raw(&[ArgOp::PutRootFh, data, ArgOp::GetFh]).file_handle();
        Self { client, root, seqid: 0 }
    }

    fn next(&mut self) -> u32 {
        self.seqid += 1;
        self.seqid
    }

    #[track_caller]
    fn ok(&mut self, operations: &[ArgOp<'_>]) -> Reply {
        let reply = self.client.raw(operations);
        assert_eq!(reply.status, Ok(()), "{:?}", reply.results());
        reply
    }

    fn status(&mut self, operations: &[ArgOp<'_>]) -> Result<(), Status> {
        self.client.raw(operations).status
    }

    /// OPEN of a name for reading and writing, by the owner `owner`, with its next number.
    fn open_args<'a>(&mut self, name: &'a str, deny: ShareDeny) -> open::Args<'a> {
        let how = How::Create(CreateHow::Unchecked(Attributes::EMPTY));
        let seqid = self.next();
        open::Args { seqid, ..self.client.open_args(b"owner", name, (ShareAccess::BOTH, deny), how) }
    }

    /// Opens a name and confirms the owner if that is asked.
    fn open(&mut self, name: &str) -> (Stateid, Vec<u8>) {
        self.open_denying(name, ShareDeny::NONE)
    }

    fn open_denying(&mut self, name: &str, deny: ShareDeny) -> (Stateid, Vec<u8>) {
        let (args, root) = (self.open_args(name, deny), self.root.clone());
        let reply = self.ok(&[put(&root), ArgOp::Open(args), ArgOp::GetFh]);
        let (opened, file) = (reply.opened(), reply.file_handle());
        if !opened.flags.contains(ResultFlags::CONFIRM) {
            return (opened.stateid, file);
        }
        let args = open_confirm::Args { open_stateid: opened.stateid, seqid: self.next() };
        let reply = self.ok(&[put(&file), ArgOp::OpenConfirm(args)]);
        let ResOp::OpenConfirm(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
        (ok.open_stateid, file)
    }

    fn close_args(&mut self, open_stateid: Stateid) -> ArgOp<'static> {
        ArgOp::Close(close::Args { seqid: self.next(), open_stateid })
    }

    /// The first lock of the lock-owner `l` under an open.
    fn lock_args(&mut self, open_stateid: Stateid, lock_type: LockType, reclaim: bool) -> ArgOp<'static> {
        let owner = StateOwner { client_id: self.client.client_id, owner: OwnerId(b"l") };
        let locker = Locker::New { open_seqid: self.next(), open_stateid, lock_seqid: 0, owner };
        ArgOp::Lock(lock::Args { lock_type, reclaim, offset: 0, length: 10, locker })
    }
}

fn locked(reply: &Reply) -> Stateid {
    match reply.last() {
        ResOp::Lock(Ok(ok)) => ok.lock_stateid,
        other => panic!("{other:?}"),
    }
}

fn unlock(lock_stateid: Stateid, seqid: u32) -> ArgOp<'static> {
    ArgOp::LockU(locku::Args { lock_type: LockType::Write, seqid, lock_stateid, offset: 0, length: u64::MAX })
}

fn write(stateid: Stateid, data: &[u8]) -> ArgOp<'_> {
    let stable = nfs_wire::v4::types::StableHow::FileSync;
    ArgOp::Write(write::Args { stateid, offset: 0, stable, data })
}

fn read(stateid: Stateid) -> ArgOp<'static> {
    ArgOp::Read(read::Args { stateid, offset: 0, count: 100 })
}

#[test]
fn a_file_is_opened_written_read_and_closed() {
    let server = TestServer::start();
    let mut client = Sessionless::start(&server, "one");
    let (open, file) = client.open("file");
    client.ok(&[put(&file), write(open, b"some data")]);
    let reply = client.ok(&[put(&file), read(open)]);
    let ResOp::Read(Ok(data)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!(data.data, b"some data");
    // The owner is known now.
    let (second, _) = client.open("file");
    assert_eq!(second.other, open.other);
    let args = open_downgrade::Args {
        open_stateid: second,
        seqid: client.next(),
        share_access: ShareAccess::BOTH,
        share_deny: ShareDeny::NONE,
    };
    client.ok(&[put(&file), ArgOp::OpenDowngrade(args)]);
    let close = client.close_args(Stateid { seqid: 0, ..open });
    client.ok(&[put(&file), close]);
    assert_eq!(client.status(&[put(&file), read(open)]), Err(Status::BadStateId));
}

#[test]
fn a_request_that_comes_again_is_answered_again() {
    let server = TestServer::start();
    let mut client = Sessionless::start(&server, "one");
    let root = client.root.clone();
    let guarded = How::Create(CreateHow::Guarded(Attributes::EMPTY));
    let open = open::Args { how: guarded, ..client.open_args("file", ShareDeny::NONE) };
    // What follows an OPEN goes on with the file, although it was not opened again.
    let open = [put(&root), ArgOp::Open(open), ArgOp::GetFh];
    let (first, again) = (client.ok(&open), client.ok(&open));
    assert_eq!(first.body, again.body);
    let (opened, file) = (first.opened().stateid, first.file_handle());
    let confirm = ArgOp::OpenConfirm(open_confirm::Args { open_stateid: opened, seqid: client.next() });
    let confirm = [put(&file), confirm];
    assert_eq!(client.ok(&confirm).body, client.ok(&confirm).body);
    let opened = Stateid { seqid: 0, ..opened };
    let lock = [put(&file), client.lock_args(opened, LockType::Write, false)];
    let (first, again) = (client.ok(&lock), client.ok(&lock));
    assert_eq!(first.body, again.body);
    let held = locked(&first);
    let unlock = [put(&file), unlock(held, 1)];
    assert_eq!(client.ok(&unlock).body, client.ok(&unlock).body);
    let close = [put(&file), client.close_args(opened)];
    assert_eq!(client.ok(&close).body, client.ok(&close).body);
    // Failures, too.
    let missing = open::Args { how: How::NoCreate, ..client.open_args("missing", ShareDeny::NONE) };
    let missing = [put(&root), ArgOp::Open(missing)];
    let first = client.client.raw(&missing);
    assert_eq!(first.status, Err(Status::NoEnt));
    assert_eq!(client.client.raw(&missing).body, first.body);
    // A number that is neither the last nor the next, and another operation under the last number.
    for seqid in [0, client.seqid - 1, client.seqid + 2] {
        let modes = (ShareAccess::READ, ShareDeny::NONE);
        let args = open::Args { seqid, ..client.client.open_args(b"owner", "file", modes, How::NoCreate) };
        assert_eq!(client.status(&[put(&root), ArgOp::Open(args)]), Err(Status::BadSeqId), "{seqid}");
    }
}

#[test]
fn an_open_is_of_no_use_before_its_owner_confirms() {
    let server = TestServer::start();
    let mut client = Sessionless::start(&server, "one");
    let (root, args) = (client.root.clone(), client.open_args("file", ShareDeny::WRITE));
    let reply = client.ok(&[put(&root), ArgOp::Open(args), ArgOp::GetFh]);
    let (opened, file) = (reply.opened(), reply.file_handle());
    assert_eq!(opened.flags, ResultFlags::LOCKTYPE_POSIX | ResultFlags::CONFIRM);
    assert_eq!(client.status(&[put(&file), read(opened.stateid)]), Err(Status::BadStateId));
    let close = ArgOp::Close(close::Args { seqid: 2, open_stateid: opened.stateid });
    assert_eq!(client.status(&[put(&file), close]), Err(Status::BadStateId));
    // Another OPEN, out of order: the first one was an old request. It no longer denies anything.
    client.seqid = 40;
    let (second, _) = client.open_denying("file", ShareDeny::WRITE);
    assert_ne!(second.other, opened.stateid.other);
    client.ok(&[put(&file), write(second, b"data")]);
    let close = client.close_args(second);
    client.ok(&[put(&file), close]);
    // The owner is confirmed for all its opens.
    let args = client.open_args("other", ShareDeny::NONE);
    let reply = client.ok(&[put(&root), ArgOp::Open(args)]);
    assert_eq!(reply.opened().flags, ResultFlags::LOCKTYPE_POSIX);
    assert_eq!(reply.opened().delegation, Delegation::None);
}

#[test]
fn what_only_later_minor_versions_have_does_not_exist() {
    let server = TestServer::start();
    let mut client = Sessionless::start(&server, "one");
    let root = client.root.clone();
    let sequence = ArgOp::Sequence(sequence::Args {
        session_id: nfs_wire::v4::types::SessionId::default(),
        sequence_id: 1,
        slot_id: 0,
        highest_slot_id: 0,
        cache_this: false,
    });
    assert_eq!(client.status(&[sequence]), Err(Status::OpIllegal));
    assert_eq!(client.status(&[put(&root), ArgOp::RestoreFh]), Err(Status::RestoreFh));
    let all = (0..=82).filter_map(|number| Attribute::try_from(number).ok()).collect::<Vec<_>>();
    let request = AttributeSet::of(&all).difference(AttributeSet::WRITE_ONLY);
    let reply = client.ok(&[put(&root), ArgOp::GetAttr(getattr::Args { request })]);
    let Some(Value::SupportedAttrs(supported)) = reply.attribute(Attribute::SupportedAttrs) else {
        panic!("{reply:?}")
    };
    assert!(supported.iter().all(|attribute| attribute as u32 <= 55), "{supported:?}");
    assert!(reply.attribute(Attribute::SuppattrExclcreat).is_none());
    let name = Name(b"missing");
    let kept = [put(&root), ArgOp::SecInfo(secinfo::Args { name }), ArgOp::GetFh];
    assert_eq!(client.status(&kept), Err(Status::NoEnt));
    let (_, file) = client.open("file");
    let kept = [put(&root), ArgOp::SecInfo(secinfo::Args { name: Name(b"file") }), ArgOp::GetFh];
    assert_eq!(client.ok(&kept).file_handle(), root, "SECINFO keeps the current filehandle");
    assert_eq!(client.status(&[put(&file), read(Stateid::CURRENT)]), Err(Status::BadStateId));
    let wants = (ShareAccess::READ.with_want(Want::Read), ShareDeny::NONE);
    let args = client.client.open_args(b"owner", "file", wants, How::NoCreate);
    assert_eq!(client.status(&[put(&root), ArgOp::Open(args)]), Err(Status::Inval));
    // And the other way round: a session has none of the operations of state-owners.
    let mut other = V4Client::start(server.address, "two");
    let renew = ArgOp::Renew(renew::Args { client_id: other.client_id });
    assert_eq!(other.fails(std::slice::from_ref(&renew)), Status::NotSupp);
    assert_eq!(other.alone(renew).status, Err(Status::OpNotInSession));
}

#[test]
fn stateids_and_client_ids_say_what_is_wrong_with_them() {
    let server = TestServer::start();
    let mut client = Sessionless::start(&server, "one");
    let (open, file) = client.open("file");
    let changed = |place: usize| {
        let mut other = open.other.0;
        other[place] ^= 1;
        Stateid { seqid: 0, other: StateidOther(other) }
    };
    assert_eq!(client.status(&[put(&file), read(changed(0))]), Err(Status::StaleStateId), "another run");
    assert_eq!(client.status(&[put(&file), read(changed(4))]), Err(Status::BadStateId), "another client");
    assert_eq!(client.status(&[put(&file), read(changed(11))]), Err(Status::BadStateId));
    let renew = |client_id| ArgOp::Renew(renew::Args { client_id });
    let ClientId(known) = client.client.client_id;
    assert_eq!(client.status(&[renew(ClientId(known))]), Ok(()));
    for stale in [0, known ^ (1 << 40), known + 7] {
        assert_eq!(client.status(&[renew(ClientId(stale))]), Err(Status::StaleClientId));
    }
    let owner = StateOwner { client_id: ClientId(7), owner: OwnerId(b"owner") };
    let args = open::Args { owner, ..client.open_args("file", ShareDeny::NONE) };
    let root = client.root.clone();
    assert_eq!(client.status(&[put(&root), ArgOp::Open(args)]), Err(Status::StaleClientId));
    client.seqid -= 1; // does not count
    client.open("file");
}

#[test]
fn locks_hold_against_clients_with_sessions_and_smb() {
    let server = TestServer::start();
    let mut client = Sessionless::start(&server, "one");
    let mut other = V4Client::start(server.address, "two");
    let (open, file) = client.open("file");
    let lock = client.lock_args(open, LockType::Write, false);
    let held = locked(&client.ok(&[put(&file), lock]));
    let root = other.path("/data");
    let (others_open, _) = other.open(&root, "file");
    let owner = StateOwner { client_id: other.client_id, owner: OwnerId(b"m") };
    let locker = Locker::New { open_seqid: 0, open_stateid: others_open, lock_seqid: 0, owner };
    let wanted =
        ArgOp::Lock(lock::Args { lock_type: LockType::Write, reclaim: false, offset: 5, length: 1, locker });
    let refused = other.compound(&[put(&file), wanted.clone()]);
    let ResOp::Lock(Err(Failure::Denied(denied))) = refused.last() else { panic!("{refused:?}") };
    assert_eq!((denied.owner.client_id, denied.owner.owner), (client.client.client_id, OwnerId(b"l")));
    // The owner cannot be released while it holds a lock, and its stateid is void afterwards.
    let lock_owner = StateOwner { client_id: client.client.client_id, owner: OwnerId(b"l") };
    let release = ArgOp::ReleaseLockOwner(release_lockowner::Args { lock_owner });
    assert_eq!(client.status(std::slice::from_ref(&release)), Err(Status::LocksHeld));
    client.ok(&[put(&file), unlock(held, 1)]);
    other.ok(&[put(&file), wanted]);
    let lock = client.lock_args(open, LockType::Write, false);
    let lock = match lock {
        ArgOp::Lock(lock::Args {
            locker: Locker::New { open_seqid, open_stateid, owner, .. },
            lock_type,
            reclaim,
            offset,
            length,
        }) => {
            let locker = Locker::New { open_seqid, open_stateid, lock_seqid: 2, owner };
            ArgOp::Lock(lock::Args { lock_type, reclaim, offset, length, locker })
        }
        other => panic!("{other:?}"),
    };
    let refused = client.client.raw(&[put(&file), lock]);
    let ResOp::Lock(Err(Failure::Denied(denied))) = refused.last() else { panic!("{refused:?}") };
    assert_eq!((denied.owner.client_id, denied.owner.owner), (other.client_id, OwnerId(b"m")));
    let (lock_type, owner) = (LockType::Read, lock_owner);
    let test = ArgOp::LockT(lockt::Args { lock_type, offset: 0, length: 4, owner });
    client.ok(&[put(&file), test]);
    client.ok(&[release]);
    assert_eq!(client.status(&[put(&file), unlock(held, 3)]), Err(Status::BadStateId));
    // Share reservations.
    let close = client.close_args(Stateid { seqid: 0, ..open });
    client.ok(&[put(&file), close]);
    other.close(&file, others_open);
    let (_, _) = client.open_denying("file", ShareDeny::READ);
    assert!(smb_open(&server, Access::READ_DATA, Sharing::all()).is_err());
}

#[test]
fn a_client_that_has_restarted_gives_up_what_it_held() {
    let server = TestServer::start();
    let mut first = Sessionless::start(&server, "one");
    first.open_denying("file", ShareDeny::READ | ShareDeny::WRITE);
    let mut second = Sessionless::start_run(&server, "one", 2);
    let (open, file) = second.open("file");
    second.ok(&[put(&file), write(open, b"data")]);
    let renew = ArgOp::Renew(renew::Args { client_id: first.client.client_id });
    assert_eq!(first.status(&[renew]), Err(Status::Expired));
    // A client that only announces its callback again keeps everything.
    let again = introduced(&second.client.raw(&[introduction(b"one", 2)]));
    assert_eq!(again.client_id, second.client.client_id);
    second.ok(&[confirm(again)]);
    second.ok(&[put(&file), read(open)]);
    // Nobody else may take its name.
    second.client.become_user(1000, 1000, &[]);
    let reply = second.client.raw(&[introduction(b"one", 3)]);
    assert!(matches!(reply.last(), ResOp::SetClientId(Err(setclientid::Failure::InUse(_)))), "{reply:?}");
}

#[test]
fn a_change_that_comes_again_over_another_connection_is_not_made_again() {
    let server = TestServer::start();
    let mut client = Sessionless::start(&server, "one");
    let root = client.root.clone();
    let (open, file) = client.open("file");
    let close = client.close_args(open);
    client.ok(&[put(&file), close]);
    let remove = [put(&root), ArgOp::Remove(remove::Args { target: Name(b"file") })];
    let xid = client.client.send(&remove);
    let first = client.client.receive(xid);
    assert_eq!(first.status, Ok(()));
    let mut another = V4Client::connect(server.address);
    another.minor_version = 0;
    another.connection.xid = xid;
    let again = another.raw(&remove);
    assert_eq!(again.body, first.body);
    assert_eq!(client.status(&remove), Err(Status::NoEnt), "another call");
}

#[test]
fn too_many_operations_are_refused() {
    let server = TestServer::start();
    let mut client = Sessionless::start(&server, "one");
    let most: Vec<_> = std::iter::repeat_n(ArgOp::PutRootFh, 64).collect();
    client.ok(&most);
    let more: Vec<_> = std::iter::repeat_n(ArgOp::PutRootFh, 65).collect();
    assert_eq!(client.status(&more), Err(Status::Resource));
}

/// A server whose clients may reclaim after it has started again.
struct Machine {
    store: Arc<MemoryStore>,
    records: Arc<Records>,
}

impl Machine {
    fn new() -> Self {
        Self { store: Arc::default(), records: Arc::default() }
    }

    fn start(&self, run: u8, lease: Duration) -> TestServer {
        let patience = |settings: &mut share::Settings| settings.retry_after = Duration::from_millis(20);
        TestServer::with(Arc::clone(&self.store), export(Squash::None), run, patience, |config| {
            config.client_records = Some(Arc::clone(&self.records) as _);
            config.lease_times.lease = lease;
        })
    }
}

#[test]
fn after_a_restart_of_the_server_clients_reclaim_what_they_held() {
    let machine = Machine::new();
    let server = machine.start(1, Duration::from_secs(90));
    let mut client = Sessionless::start(&server, "one");
    let (open, file) = client.open_denying("file", ShareDeny::WRITE);
    let lock = client.lock_args(open, LockType::Write, false);
    client.ok(&[put(&file), lock]);
    drop(server);
    let server = machine.start(2, Duration::from_secs(4));
    let mut client = {
        let before = client.client.client_id;
        let mut client = Sessionless::start_run(&server, "one", 1);
        let renew = ArgOp::Renew(renew::Args { client_id: before });
        assert_eq!(client.status(&[renew]), Err(Status::StaleClientId));
        assert_eq!(client.status(&[put(&file), read(open)]), Err(Status::StaleStateId));
        client
    };
    // The same name in another minor version is another client, which has nothing to reclaim.
    let mut other = V4Client::start(server.address, "one");
    let root = other.path("/data");
    let modes = (ShareAccess::BOTH, ShareDeny::NONE);
    let args = other.open_args(b"o", "file", modes, How::NoCreate);
    assert_eq!(other.fails(&[put(&root), ArgOp::Open(args)]), Status::Grace);
    let args = client.open_args("file", ShareDeny::NONE);
    assert_eq!(client.status(&[put(&root), ArgOp::Open(args)]), Err(Status::Grace));
    let args = open::Args {
        claim: Claim::Previous(DelegationType::None),
        how: How::NoCreate,
        ..client.open_args("", ShareDeny::WRITE)
    };
    let reply = client.ok(&[put(&file), ArgOp::Open(args)]);
    assert_eq!(reply.opened().flags, ResultFlags::LOCKTYPE_POSIX, "a reclaim needs no confirmation");
    let open = reply.opened().stateid;
    let lock = client.lock_args(open, LockType::Write, true);
    client.ok(&[put(&file), lock]);
    // Until the grace period is over: nobody says that he is done.
    let begin = std::time::Instant::now();
    let reply = loop {
        let args = other.open_args(b"o", "file", modes, How::NoCreate);
        let reply = other.patiently(&[put(&root), ArgOp::Open(args)]);
        if reply.status != Err(Status::Grace) || begin.elapsed() > Duration::from_secs(60) {
            break reply;
        }
        let renew = ArgOp::Renew(renew::Args { client_id: client.client.client_id });
        client.ok(&[renew]);
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(reply.status, Err(Status::ShareDenied), "what was reclaimed holds");
    let args = open::Args {
        claim: Claim::Previous(DelegationType::None),
        how: How::NoCreate,
        ..client.open_args("", ShareDeny::WRITE)
    };
    assert_eq!(client.status(&[put(&file), ArgOp::Open(args)]), Err(Status::NoGrace));
}

#[test]
fn a_silent_client_keeps_what_nobody_needs_and_gives_way() {
    let machine = Machine::new();
    let server = machine.start(1, LEASE);
    let mut client = Sessionless::start(&server, "one");
    let (open, file) = client.open_denying("file", ShareDeny::WRITE);
    std::thread::sleep(LEASE * 2);
    client.ok(&[put(&file), read(open)]); // as a courtesy
    std::thread::sleep(LEASE * 2);
    let mut other = V4Client::start(server.address, "two");
    let root = other.path("/data");
    let modes = (ShareAccess::BOTH, ShareDeny::NONE);
    let args = other.open_args(b"o", "file", modes, How::NoCreate);
    let reply = other.patiently(&[put(&root), ArgOp::Open(args)]);
    assert_eq!(reply.status, Ok(()));
    assert_eq!(client.status(&[put(&file), read(open)]), Err(Status::Expired));
    let renew = ArgOp::Renew(renew::Args { client_id: client.client.client_id });
    assert_eq!(client.status(&[renew]), Err(Status::Expired));
}

#[test]
fn the_limits_of_clients_hold_for_both_kinds() {
    let store = Arc::<MemoryStore>::default();
    let server =
        TestServer::with(store, export(Squash::None), 1, |_| (), |config| config.clients.clients_max = 2);
    let _first = Sessionless::start(&server, "one");
    let _second = V4Client::start(server.address, "two");
    let mut third = V4Client::connect(server.address);
    third.minor_version = 0;
    let reply = third.raw(&[introduction(b"three", 1)]);
    assert_eq!(reply.status, Err(Status::Delay));
}

#[test]
fn what_clients_have_open_is_told_and_can_be_ended() {
    let server = TestServer::start();
    let mut client = Sessionless::start(&server, "one");
    let (open, file) = client.open("file");
    let lock = client.lock_args(open, LockType::Write, false);
    client.ok(&[put(&file), lock]);
    let files = server.server.open_files();
    let [told] = files.as_slice() else { panic!("{files:?}") };
    assert!(
        told.client == "one" && told.is_connected && !told.is_delegation && told.locks().len() == 1,
        "{told:?}"
    );
    let versions: Vec<_> =
        server.server.connections().iter().map(|one| (one.version, one.minor_version)).collect();
    assert_eq!(versions, [(Some(4), Some(0))]);
    let runtime = crate::opens::runtime();
    assert!(runtime.block_on(server.server.close_file(told.share.id(), told.open.key())));
    assert_eq!(client.status(&[put(&file), read(open)]), Err(Status::AdminRevoked));
    let close = client.close_args(Stateid { seqid: 0, ..open });
    assert_eq!(client.status(&[put(&file), close]), Err(Status::AdminRevoked));
    client.open("file"); // the CLOSE has counted
    assert_eq!(runtime.block_on(server.server.disconnect(told.address)).0, 1);
}

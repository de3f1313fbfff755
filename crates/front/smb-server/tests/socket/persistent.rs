//! Persistent opens: they outlive the server. [MS-SMB2] 3.3.5.9.10, 3.3.5.9.12.

use std::collections::BTreeMap;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_smb_server::{
    Change, Config, Limits, PersistentLease, PersistentLock, PersistentOpen, PersistentOpens, Timeouts,
};
use share::{Settings, Terms};
use smb_proto::dialect::Dialect;
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions, OplockLevel};
use smb_wire::create_context::{LeaseState, RequestContext};
use smb_wire::negotiate::Capabilities;
use smb_wire::oplock_break::Request as Acknowledgment;
use smb_wire::tree_connect::ShareCapabilities;
use smb_wire::{Command, Guid, NtStatus, negotiate};
use storage::conformance::MAY;
use storage::memory::MemoryStore;

use crate::client::{Client, OTHER_USER, PASSWORD, SHARE, TestServer, USER};
use crate::durable::{
    Asking, EXCLUSIVE, Got, disconnect, finish, lease, lock, read_handle, reconnect_v2, request_v2, until,
};
use crate::opening::{Opening, delete};

const GUID: Guid = Guid([0x11; 16]);
const KEY: [u8; 16] = [0x77; 16];
const READ_WRITE_HANDLE: LeaseState = LeaseState::READ.union(LeaseState::WRITE).union(LeaseState::HANDLE);

/// What outlives a server of these tests.
#[derive(Debug, Default)]
struct Kept {
    opens: Mutex<BTreeMap<u64, PersistentOpen>>,
    fails: AtomicBool,
    /// Whether it takes a while to write.
    slow: AtomicBool,
    /// Writes that have begun; they wait for the gate.
    begun: AtomicUsize,
    gate: Mutex<()>,
}

impl Kept {
    fn count(&self) -> usize {
        self.opens.lock().unwrap().len()
    }
}

impl PersistentOpens for Kept {
    fn write(&self, changes: &[Change]) -> io::Result<()> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        drop(self.gate.lock());
        if self.fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("no room"));
        }
        if self.slow.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut opens = self.opens.lock().unwrap();
        for change in changes {
            match change {
                Change::Keep(open) => opens.insert(open.id, (**open).clone()),
                Change::Forget(id) => opens.remove(id),
            };
        }
        Ok(())
    }

    fn all(&self) -> io::Result<Vec<PersistentOpen>> {
        Ok(self.opens.lock().unwrap().values().cloned().collect())
    }
}

/// A machine on which servers come and go.
struct Machine {
    store: Arc<MemoryStore>,
    kept: Arc<Kept>,
    config: Config,
    terms: Terms,
}

impl Machine {
    fn new(config: Config) -> Self {
        let terms = Terms::CONTINUOUSLY_AVAILABLE;
        Self { store: Arc::new(MemoryStore::new()), kept: Arc::default(), config, terms }
    }

    fn start(&self) -> TestServer {
        let (config, store) = (self.config.clone(), Arc::clone(&self.store));
        let settings = Settings { terms: self.terms, ..Settings::new(SHARE) };
        TestServer::prepared(config, settings, store, |server| {
            server.keep_persistent_opens(Arc::clone(&self.kept) as _, MAY).unwrap();
        })
    }
}

/// A client that knows of persistent handles.
fn client(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.capabilities |= Capabilities::PERSISTENT_HANDLES;
    client.negotiate(&[Dialect::Smb311]);
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    client
}

/// Another one.
fn other_client(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.client_guid = Guid([0xEE; 16]);
    client.negotiate(&[Dialect::Smb311]);
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    client
}

fn persistent(create_guid: Guid) -> Asking {
    Asking::new(OplockLevel::None, vec![request_v2(create_guid, 0, true)]).exclusive()
}

fn leased(state: LeaseState) -> Asking {
    Asking::new(OplockLevel::Lease, vec![request_v2(GUID, 0, true), lease(KEY, state)])
}

/// Takes a persistent open up again; it had this lease.
fn reclaim(client: &mut Client, got: &Got, create_guid: Guid) -> Result<Got, NtStatus> {
    let mut contexts = vec![reconnect_v2(got.id, create_guid, true)];
    contexts.extend(got.lease.map(|had| lease(had.key, LeaseState::empty())));
    Asking::new(OplockLevel::None, contexts).send(client, "f")
}

#[test]
fn clients_are_told_where_persistent_handles_are_to_be_had() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut one = server.connect();
    one.capabilities |= Capabilities::PERSISTENT_HANDLES;
    let reply = one.negotiate(&[Dialect::Smb311]);
    let told = negotiate::Response::decode(&reply.message).unwrap().capabilities;
    assert!(told.contains(Capabilities::PERSISTENT_HANDLES));
    one.log_in(USER, PASSWORD).unwrap();
    let tree = one.tree_connect(SHARE).unwrap();
    assert!(tree.capabilities.contains(ShareCapabilities::CONTINUOUS_AVAILABILITY));
    let tree = one.tree_connect("Fixed").unwrap();
    assert!(!tree.capabilities.contains(ShareCapabilities::CONTINUOUS_AVAILABILITY));

    // Neither to clients that do not know of them, nor in old dialects, nor where nothing can be written down.
    let mut other = server.client();
    assert_eq!(persistent(GUID).send(&mut other, "f").unwrap().durable_v2, None);
    let mut old = server.connect();
    old.capabilities |= Capabilities::PERSISTENT_HANDLES;
    let reply = old.negotiate(&[Dialect::Smb210]);
    let told = negotiate::Response::decode(&reply.message).unwrap().capabilities;
    assert!(!told.contains(Capabilities::PERSISTENT_HANDLES));
    let forgetful = TestServer::start(machine.config.clone());
    assert_eq!(persistent(GUID).send(&mut client(&forgetful), "f").unwrap().durable_v2, None);
    assert_eq!(machine.kept.count(), 0);
}

#[test]
fn a_persistent_open_is_there_after_a_restart_with_its_locks() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut one = client(&server);
    let got = persistent(GUID).send(&mut one, "f").unwrap();
    assert_eq!((got.oplock, got.durable_v2), (OplockLevel::None, Some((60_000, true))));
    one.write(got.id, 0, b"written").unwrap();
    assert_eq!(lock(&mut one, got.id, 0, (1, 4), EXCLUSIVE), NtStatus::SUCCESS);
    assert_eq!(lock(&mut one, got.id, 50, (2, 4), EXCLUSIVE), NtStatus::SUCCESS);
    drop((one, server));

    let server = machine.start();
    assert_eq!(server.server.disconnected_opens(), 1);
    let mut one = client(&server);
    // Nobody else gets in: neither by SMB 3, nor by a dialect that does not know of this.
    assert_eq!(Opening::default().send(&mut one, "F"), Err(NtStatus::FILE_NOT_AVAILABLE));
    let mut old = server.connect();
    old.negotiate(&[Dialect::Smb210]);
    old.log_in(USER, PASSWORD).unwrap();
    old.tree_connect(SHARE).unwrap();
    assert_eq!(Opening::default().send(&mut old, "f"), Err(NtStatus::SHARING_VIOLATION));

    let again = reclaim(&mut one, &got, GUID).unwrap();
    assert_eq!((again.id.persistent, again.action), (got.id.persistent, CreateAction::Opened));
    assert_eq!(one.read(again.id, 0, 9), Ok(b"written".to_vec()));
    assert_eq!(lock(&mut one, again.id, 0, (1, 4), EXCLUSIVE), NtStatus::SUCCESS, "done before the restart");
    assert_eq!(lock(&mut one, again.id, 50, (3, 0), EXCLUSIVE), NtStatus::LOCK_NOT_GRANTED);
    one.write(again.id, 0, b"WRITTEN").unwrap();
    one.close(again.id).unwrap();
    assert_eq!(machine.kept.count(), 0);
    Opening::default().send(&mut old, "f").unwrap();
}

#[test]
fn an_open_whose_client_knows_no_identifier_is_found_by_its_create() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut one = client(&server);
    let asking = persistent(GUID);
    let got = asking.send(&mut one, "f").unwrap();
    drop((one, server));
    let server = machine.start();
    let mut one = client(&server);
    let mut unknown = got.clone();
    unknown.id.persistent ^= 1;
    assert_eq!(reclaim(&mut one, &unknown, Guid([9; 16])), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    let again = reclaim(&mut one, &unknown, GUID).unwrap();
    assert_eq!(again.id.persistent, got.id.persistent);
    disconnect(&server, one, 1);
    // Or by the CREATE itself, sent again.
    let mut one = client(&server);
    assert_eq!(asking.send(&mut one, "f"), Err(NtStatus::DUPLICATE_OBJECTID));
    let again = asking.replayed().send(&mut one, "f").unwrap();
    assert_eq!((again.id.persistent, again.action), (got.id.persistent, CreateAction::Created));
    assert_eq!(again.durable_v2, Some((60_000, true)));
}

#[test]
fn a_lease_is_there_after_a_restart() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut one = client(&server);
    let got = leased(read_handle()).send(&mut one, "f").unwrap();
    // Another open of the lease adds to it.
    let contexts = vec![lease(KEY, READ_WRITE_HANDLE)];
    let more = Asking::new(OplockLevel::Lease, contexts).send(&mut one, "f").unwrap();
    assert_eq!(more.lease.unwrap().state, READ_WRITE_HANDLE);
    one.close(more.id).unwrap();
    drop((one, server));
    let server = machine.start();
    let mut one = client(&server);
    let wrong = Asking::new(OplockLevel::None, vec![reconnect_v2(got.id, GUID, true)]);
    assert_eq!(wrong.send(&mut one, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND), "without its lease");
    let again = reclaim(&mut one, &got, GUID).unwrap();
    assert_eq!(again.lease.unwrap().state, READ_WRITE_HANDLE);
    // And it is broken as any other.
    let mut other = other_client(&server);
    Asking::new(OplockLevel::None, Vec::new()).start(&mut other, "f");
    assert_eq!(other.receive().status(), NtStatus::PENDING);
    assert_eq!(one.receive().header.command, Command::OplockBreak);
    let mut body = Vec::new();
    Acknowledgment::Lease { lease_key: KEY, lease_state: read_handle() }.encode(&mut body);
    assert_eq!(one.call(Command::OplockBreak, &body).status(), NtStatus::SUCCESS);
    finish(&mut other).unwrap();
    drop((one, other, server));
    let server = machine.start();
    let again = reclaim(&mut client(&server), &got, GUID).unwrap();
    assert_eq!(again.lease.unwrap().state, read_handle(), "less is remembered, too");
}

#[test]
fn who_wants_what_an_absent_client_caches_waits_for_it() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut one = client(&server);
    let got = leased(READ_WRITE_HANDLE).send(&mut one, "f").unwrap();
    drop(one);
    until(|| server.server.disconnected_opens() == 1);
    let mut other = other_client(&server);
    Asking::new(OplockLevel::None, Vec::new()).start(&mut other, "f");
    assert_eq!(other.receive().status(), NtStatus::PENDING);
    let mut one = client(&server);
    let contexts = vec![reconnect_v2(got.id, GUID, true), lease(KEY, LeaseState::empty())];
    Asking::new(OplockLevel::None, contexts).start(&mut one, "f");
    // It is told now, and gives up what it was asked for.
    let replies = [one.receive(), one.receive()];
    assert!(replies.iter().any(|reply| reply.header.command == Command::OplockBreak));
    let mut body = Vec::new();
    Acknowledgment::Lease { lease_key: KEY, lease_state: read_handle() }.encode(&mut body);
    assert_eq!(one.call(Command::OplockBreak, &body).status(), NtStatus::SUCCESS);
    finish(&mut other).unwrap();
}

#[test]
fn what_is_to_be_deleted_is_deleted_by_the_next_server_too() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut one = client(&server);
    let mut asking = persistent(GUID);
    asking.opening.options = CreateOptions::DELETE_ON_CLOSE;
    let got = asking.send(&mut one, "f").unwrap();
    drop((one, server));
    let server = machine.start();
    let mut one = client(&server);
    let again = reclaim(&mut one, &got, GUID).unwrap();
    one.close(again.id).unwrap();
    assert_eq!(Opening::default().send(&mut one, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn nobody_waits_for_ever_for_a_client_of_an_earlier_server() {
    let durable = Timeouts { durable_v2: Duration::from_millis(300), ..Timeouts::default() };
    let machine = Machine::new(Config { durable, ..Config::default() });
    let server = machine.start();
    let mut one = client(&server);
    let got = persistent(GUID).send(&mut one, "f").unwrap();
    drop((one, server));
    let server = machine.start();
    until(|| server.server.disconnected_opens() == 0 && machine.kept.count() == 0);
    let mut one = client(&server);
    assert_eq!(reclaim(&mut one, &got, GUID), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    Opening::default().send(&mut one, "f").unwrap();
}

#[test]
fn what_is_gone_when_the_server_starts_is_given_up() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut one = client(&server);
    let got = persistent(GUID).send(&mut one, "f").unwrap();
    let kept = persistent(Guid([2; 16])).send(&mut one, "g").unwrap();
    drop((one, server));
    // Somebody else deletes the file meanwhile.
    let between = TestServer::start_on(Config::default(), Arc::clone(&machine.store) as _);
    delete(&mut between.client(), "f").unwrap();
    drop(between);
    let server = machine.start();
    assert_eq!((server.server.disconnected_opens(), machine.kept.count()), (1, 1));
    let mut one = client(&server);
    assert_eq!(reclaim(&mut one, &got, GUID), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    reclaim(&mut one, &kept, Guid([2; 16])).unwrap();
    drop((one, server));
    // The share is not continuously available any more.
    let machine = Machine { terms: Terms::empty(), ..machine };
    let server = machine.start();
    assert_eq!((server.server.disconnected_opens(), machine.kept.count()), (0, 0));
}

/// Whatever is written down, the server starts, and keeps of it exactly what it has brought back.
#[test]
fn any_record_is_brought_back_or_given_up() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut one = client(&server);
    leased(READ_WRITE_HANDLE).send(&mut one, "f").unwrap();
    drop((one, server));
    let real = machine.kept.all().unwrap().remove(0);
    let machine = AssertUnwindSafe(machine);
    let shape = bolero::produce::<Shape>();
    bolero::check!().with_generator(shape).with_iterations(200).for_each(|shape| {
        let record = odd(&real, shape);
        *machine.kept.opens.lock().unwrap() = BTreeMap::from([(record.id, record)]);
        let server = machine.start();
        assert_eq!(server.server.disconnected_opens(), machine.kept.count());
    });
}

/// What is odd about a record.
type Shape = ([u64; 4], [u32; 6], [u8; 6], Vec<(u64, u64, bool)>, Option<Vec<u8>>);

/// A record of the same file with other figures in it.
fn odd(real: &PersistentOpen, (wide, long, short, locks, handle): &Shape) -> PersistentOpen {
    let lock = |&(offset, length, exclusive): &_| PersistentLock { offset, length, exclusive };
    let lease =
        PersistentLease { key: [short[0]; 16], version: short[1], epoch: short[2].into(), parent_key: None };
    PersistentOpen {
        id: wide[0],
        handle: handle.clone().unwrap_or_else(|| real.handle.clone()),
        access: long[0],
        sharing: short[3],
        delete_on_close: short[4] & 1 != 0,
        delete_pending: short[4] & 2 != 0,
        locks: locks.iter().map(lock).collect(),
        caching: short[5],
        lease: (short[4] & 4 != 0).then_some(lease),
        timeout_ms: wide[1],
        granted_access: long[1],
        create_options: long[2],
        desired_access: long[3],
        share_access: long[4],
        action: long[5],
        app_instance_version: (short[4] & 8 != 0).then_some((wide[2], wide[3])),
        lock_sequence: short.iter().map(|&one| (one & 1 != 0).then_some(one)).collect(),
        ..real.clone()
    }
}

#[test]
fn what_cannot_be_written_down_is_not_granted() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut one = client(&server);
    machine.kept.fails.store(true, Ordering::Relaxed);
    assert_eq!(persistent(GUID).send(&mut one, "f"), Err(NtStatus::UNEXPECTED_IO_ERROR));
    machine.kept.fails.store(false, Ordering::Relaxed);
    // It has left nothing behind.
    let got = persistent(GUID).send(&mut one, "f").unwrap();
    assert_eq!(got.action, CreateAction::Opened);
    machine.kept.fails.store(true, Ordering::Relaxed);
    assert_eq!(lock(&mut one, got.id, 0, (1, 4), EXCLUSIVE), NtStatus::UNEXPECTED_IO_ERROR);
    machine.kept.fails.store(false, Ordering::Relaxed);
    assert_eq!(lock(&mut one, got.id, 0, (1, 4), EXCLUSIVE), NtStatus::SUCCESS);
    assert_eq!(lock(&mut one, got.id, 0, (1, 5), EXCLUSIVE), NtStatus::LOCK_NOT_GRANTED, "it was locked");
}

#[test]
fn there_are_so_many_persistent_opens_and_no_more() {
    let limits = Limits { persistent_opens_max: 1, ..Limits::default() };
    let machine = Machine::new(Config { limits, ..Config::default() });
    let server = machine.start();
    let mut one = client(&server);
    let first = persistent(GUID).send(&mut one, "f").unwrap();
    let mut asking = persistent(Guid([2; 16]));
    asking.oplock = OplockLevel::Batch;
    let second = asking.send(&mut one, "g").unwrap();
    assert_eq!(second.durable_v2, Some((60_000, false)), "durable, at least");
    one.close(first.id).unwrap();
    let third = persistent(Guid([3; 16])).send(&mut one, "h").unwrap();
    assert_eq!(third.durable_v2, Some((60_000, true)));
}

#[test]
fn a_persistent_open_knows_its_application_after_a_restart() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut one = client(&server);
    let mut asking = persistent(GUID);
    asking.opening.contexts.push(RequestContext::AppInstanceId(Guid([0xAA; 16])));
    asking.send(&mut one, "f").unwrap();
    drop((one, server));
    let server = machine.start();
    let mut two = other_client(&server);
    asking.opening.disposition = CreateDisposition::Open;
    asking.send(&mut two, "f").unwrap();
    assert_eq!((server.server.disconnected_opens(), machine.kept.count()), (0, 0));
}

#[test]
fn what_a_client_has_closed_is_closed_although_it_is_gone() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let (mut ann, mut bob) = (client(&server), other_client(&server));
    for (number, name) in (1..).zip(["f", "g", "h"]) {
        persistent(Guid([number; 16])).send(&mut ann, name).unwrap();
    }
    assert_eq!(machine.kept.count(), 3);
    machine.kept.slow.store(true, Ordering::Relaxed);
    ann.send(Command::TreeDisconnect, &[4, 0, 0, 0]);
    drop(ann);
    until(|| machine.kept.count() == 0);
    for name in ["f", "g", "h"] {
        Asking::new(OplockLevel::None, Vec::new()).exclusive().send(&mut bob, name).unwrap();
    }
}

#[test]
fn a_replay_does_not_get_what_is_not_written_down_yet() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut client = client(&server);
    let gate = machine.kept.gate.lock().unwrap();
    persistent(GUID).start(&mut client, "f");
    until(|| machine.kept.begun.load(Ordering::Relaxed) == 1);
    assert_eq!(persistent(GUID).replayed().send(&mut client, "f"), Err(NtStatus::FILE_NOT_AVAILABLE));
    machine.kept.fails.store(true, Ordering::Relaxed);
    drop(gate);
    assert_eq!(finish(&mut client), Err(NtStatus::UNEXPECTED_IO_ERROR));
    machine.kept.fails.store(false, Ordering::Relaxed);
    let got = persistent(GUID).replayed().send(&mut client, "f").unwrap();
    assert_eq!(persistent(GUID).replayed().send(&mut client, "f").unwrap().id, got.id);
}

#[test]
fn a_persistent_open_in_a_home_keeps_nobody_from_another_home() {
    let machine = Machine::new(Config::default());
    let server = machine.start();
    let mut whole = client(&server);
    for home in [USER, OTHER_USER] {
        Opening::directory().try_out(&mut whole, home).unwrap();
    }
    drop((whole, server));
    let machine = Machine { terms: Terms::CONTINUOUSLY_AVAILABLE | Terms::HOMES, ..machine };
    let server = machine.start();
    let got = persistent(GUID).send(&mut client(&server), "f").unwrap();
    drop(server);

    let server = machine.start();
    assert_eq!(server.server.disconnected_opens(), 1);
    let mut other = server.connect();
    other.negotiate(&[Dialect::Smb311]);
    other.log_in(OTHER_USER, PASSWORD).unwrap();
    other.tree_connect(SHARE).unwrap();
    let of_other = Opening::default().send(&mut other, "f").map(|_| ());
    assert_eq!(of_other, Err(NtStatus::OBJECT_NAME_NOT_FOUND), "another file, which does not exist");
    let mut owner = client(&server);
    assert_eq!(Opening::default().send(&mut owner, "F"), Err(NtStatus::FILE_NOT_AVAILABLE));
    let got = reclaim(&mut owner, &got, GUID).unwrap();
    owner.write(got.id, 0, b"written").unwrap();
}

//! Opens that outlive their connection. [MS-SMB2] 3.3.5.9.6, 3.3.5.9.7, 3.3.5.9.10, 3.3.5.9.12, 3.3.5.9.13, 3.3.5.15.9.

use std::time::{Duration, Instant};

use anabranch_smb_server::report::Session;
use anabranch_smb_server::{Config, Limits, Timeouts};
use smb_proto::dialect::Dialect;
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions, OplockLevel, Request, Response};
use smb_wire::create_context::{
    DurableFlags, Lease, LeaseFlags, LeaseState, LeaseV2, RequestContext, ResponseContext,
};
use smb_wire::fscc::fsctl::Fsctl;
use smb_wire::lock::{LockElement, LockFlags};
use smb_wire::{AccessMask, Command, FileId, Guid, HeaderFlags, NtStatus, header, ioctl, lock};

use crate::client::{Client, OTHER_USER, PASSWORD, TestServer};
use crate::opening::{Opening, SHARE_ALL, delete, make_file};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);
const GUID: Guid = Guid([0x11; 16]);
const KEY: [u8; 16] = [0x77; 16];

/// A CREATE with what makes it durable, or takes a durable open up again.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) opening: Opening,
    pub(crate) oplock: OplockLevel,
    /// SMB2_FLAGS_REPLAY_OPERATION
    pub(crate) replay: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) id: FileId,
    pub(crate) action: CreateAction,
    pub(crate) oplock: OplockLevel,
    pub(crate) lease: Option<Lease>,
    /// Whether the answer says that the open is durable: the first version.
    pub(crate) durable: bool,
    /// The second version: for how many milliseconds, and whether persistent.
    pub(crate) durable_v2: Option<(u32, bool)>,
}

/// SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2
pub(crate) fn request_v2(create_guid: Guid, timeout_ms: u32, persistent: bool) -> RequestContext<'static> {
    RequestContext::DurableHandleRequestV2 { timeout_ms, flags: flags(persistent), create_guid }
}

/// SMB2_CREATE_DURABLE_HANDLE_RECONNECT_V2
pub(crate) fn reconnect_v2(file_id: FileId, create_guid: Guid, persistent: bool) -> RequestContext<'static> {
    RequestContext::DurableHandleReconnectV2 { file_id, create_guid, flags: flags(persistent) }
}

fn flags(persistent: bool) -> DurableFlags {
    if persistent { DurableFlags::PERSISTENT } else { DurableFlags::empty() }
}

/// SMB2_CREATE_REQUEST_LEASE_V2
pub(crate) fn lease(key: [u8; 16], state: LeaseState) -> RequestContext<'static> {
    let v2 = Some(LeaseV2 { parent_key: [0; 16], epoch: 0 });
    RequestContext::RequestLease(Lease { key, state, flags: LeaseFlags::empty(), v2 })
}

pub(crate) fn read_handle() -> LeaseState {
    LeaseState::READ | LeaseState::HANDLE
}

impl Asking {
    /// With these contexts; a file that is missing is made.
    pub(crate) fn new(oplock: OplockLevel, contexts: Vec<RequestContext<'static>>) -> Self {
        let opening = Opening { contexts, ..Opening::with(CreateDisposition::OpenIf) };
        Self { opening, oplock, replay: false }
    }

    /// A batch oplock and a durable open of the second version.
    pub(crate) fn batch(create_guid: Guid) -> Self {
        Self::new(OplockLevel::Batch, vec![request_v2(create_guid, 0, false)])
    }

    pub(crate) fn replayed(&self) -> Self {
        Self { replay: true, ..self.clone() }
    }

    pub(crate) fn exclusive(mut self) -> Self {
        self.opening.sharing = smb_wire::create::ShareAccess::empty();
        self
    }

    pub(crate) fn start(&self, client: &mut Client, name: &str) {
        let mut request = vec![0; header::LEN];
        request.extend(self.opening.body(name));
        let request = Request { requested_oplock_level: self.oplock, ..Request::decode(&request).unwrap() };
        let mut body = vec![0; header::LEN];
        request.encode(&mut body).unwrap();
        let mut header = client.header(Command::Create);
        header.flags.set(HeaderFlags::REPLAY_OPERATION, self.replay);
        client.send_with(&header, &body[header::LEN..]);
    }

    pub(crate) fn send(&self, client: &mut Client, name: &str) -> Result<Got, NtStatus> {
        self.start(client, name);
        finish(client)
    }
}

/// The answer to a CREATE, after an interim one or without.
pub(crate) fn finish(client: &mut Client) -> Result<Got, NtStatus> {
    let mut reply = client.receive();
    while reply.status() == NtStatus::PENDING || reply.header.command == Command::OplockBreak {
        reply = client.receive();
    }
    let reply = reply.ok()?;
    let response = Response::decode(&reply.message).unwrap();
    let mut got = Got {
        id: response.file_id,
        action: response.create_action,
        oplock: response.oplock_level,
        lease: None,
        durable: false,
        durable_v2: None,
    };
    for context in &response.contexts {
        match *context {
            ResponseContext::DurableHandle => got.durable = true,
            ResponseContext::DurableHandleV2 { timeout_ms, flags } => {
                got.durable_v2 = Some((timeout_ms, flags.contains(DurableFlags::PERSISTENT)));
            }
            ResponseContext::Lease(lease) => got.lease = Some(lease),
            _ => panic!("not asked for: {context:?}"),
        }
    }
    Ok(got)
}

/// The client loses its connection; the server notices, and keeps so many opens of all clients.
pub(crate) fn disconnect(server: &TestServer, client: Client, kept: usize) {
    drop(client);
    until(|| server.server.disconnected_opens() == kept && server.server.report().is_empty());
}

/// Waits until it is so.
pub(crate) fn until(mut it_is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !it_is_so() {
        assert!(begun.elapsed() < PATIENCE, "it does not come about");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn resiliency(client: &mut Client, file_id: FileId, timeout_ms: u32) -> NtStatus {
    let mut input = timeout_ms.to_le_bytes().to_vec();
    input.extend([0; 4]);
    ioctl_status(client, file_id, &input)
}

fn ioctl_status(client: &mut Client, file_id: FileId, input: &[u8]) -> NtStatus {
    let request = ioctl::Request {
        ctl_code: Fsctl::LmrRequestResiliency,
        file_id,
        input,
        max_input_response: 0,
        output_count: 0,
        max_output_response: 0,
        flags: ioctl::IoctlFlags::IS_FSCTL,
    };
    let mut body = vec![0; header::LEN];
    request.encode(&mut body).unwrap();
    client.call(Command::Ioctl, &body[header::LEN..]).status()
}

pub(crate) fn lock(
    client: &mut Client,
    file_id: FileId,
    offset: u64,
    sequence: (u32, u8),
    flags: LockFlags,
) -> NtStatus {
    let locks = vec![LockElement { offset, length: 10, flags }];
    let (lock_sequence_index, lock_sequence_number) = sequence;
    let request = lock::Request { lock_sequence_number, lock_sequence_index, file_id, locks };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    client.call(Command::Lock, &body).status()
}

pub(crate) const EXCLUSIVE: LockFlags = LockFlags::EXCLUSIVE_LOCK.union(LockFlags::FAIL_IMMEDIATELY);

fn v1(file_id: FileId) -> Asking {
    Asking::new(OplockLevel::None, vec![RequestContext::DurableHandleReconnect { file_id }])
}

fn v2(file_id: FileId) -> Asking {
    Asking::new(OplockLevel::None, vec![reconnect_v2(file_id, GUID, false)])
}

#[test]
fn a_resilient_open_goes_on_with_its_locks_and_lock_sequence() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f", &[7; 100]);
    let file = Opening::default().send(&mut client, "f").unwrap().id;
    assert_eq!(resiliency(&mut client, file, 60_000), NtStatus::SUCCESS);
    assert_eq!(lock(&mut client, file, 0, (3, 5), EXCLUSIVE), NtStatus::SUCCESS);
    disconnect(&server, client, 1);

    let mut client = server.client();
    let other = Opening::default().send(&mut client, "f").unwrap().id;
    assert_eq!(client.read(other, 0, 10), Err(NtStatus::FILE_LOCK_CONFLICT));
    let again = v1(file).send(&mut client, "").unwrap();
    assert_eq!((again.id.persistent, again.action), (file.persistent, CreateAction::Opened));
    assert_ne!(again.id.volatile, file.volatile);
    assert_eq!(client.read(again.id, 0, 2), Ok(vec![7; 2]));
    assert_eq!(client.read(file, 0, 2), Err(NtStatus::FILE_CLOSED), "its former identifier");
    // What was locked by this request before is not locked again.
    assert_eq!(lock(&mut client, again.id, 0, (3, 5), EXCLUSIVE), NtStatus::SUCCESS);
    assert_eq!(lock(&mut client, again.id, 0, (3, 6), EXCLUSIVE), NtStatus::LOCK_NOT_GRANTED);
    assert_eq!(server.server.disconnected_opens(), 0);
    client.close(again.id).unwrap();
    assert_eq!(client.read(other, 0, 2), Ok(vec![7; 2]));
}

#[test]
fn resilience_has_its_limits() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f", &[]);
    let file = Opening::default().send(&mut client, "f").unwrap().id;
    assert_eq!(resiliency(&mut client, file, 301_000), NtStatus::INVALID_PARAMETER);
    assert_eq!(ioctl_status(&mut client, file, &[0; 7]), NtStatus::INVALID_PARAMETER);
    assert_eq!(resiliency(&mut client, FileId { persistent: 1, volatile: 1 }, 0), NtStatus::FILE_CLOSED);
    let mut old = server.connect();
    old.negotiate(&[Dialect::Smb202]);
    old.log_in("ann", PASSWORD).unwrap();
    old.tree_connect("Data").unwrap();
    let file = old.create("g", CreateDisposition::Create).unwrap();
    assert_eq!(resiliency(&mut old, file, 0), NtStatus::INVALID_DEVICE_REQUEST);
}

#[test]
fn what_is_not_durable_is_closed() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let none = Asking::new(OplockLevel::LevelII, vec![request_v2(GUID, 0, false)]);
    let file = none.exclusive().send(&mut client, "f").unwrap();
    assert_eq!((file.oplock, file.durable_v2), (OplockLevel::LevelII, None));
    disconnect(&server, client, 0);
    let mut client = server.client();
    assert_eq!(v2(file.id).send(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    Opening::default().send(&mut client, "f").unwrap();
}

#[test]
fn a_durable_open_with_a_batch_oplock_goes_on() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let first = Asking::new(OplockLevel::Batch, vec![RequestContext::DurableHandleRequest]);
    let file = first.exclusive().send(&mut client, "f").unwrap();
    assert_eq!((file.oplock, file.durable, file.durable_v2), (OplockLevel::Batch, true, None));
    client.write(file.id, 0, b"abc").unwrap();
    disconnect(&server, client, 1);
    let mut client = server.client();
    // Neither the name nor anything else is looked at.
    let again = v1(file.id).send(&mut client, "no such name").unwrap();
    assert_eq!((again.oplock, again.durable), (OplockLevel::Batch, false));
    assert_eq!(client.read(again.id, 0, 9), Ok(b"abc".to_vec()));
    // And once more, by the second version: the open has no CreateGuid.
    disconnect(&server, client, 1);
    let mut client = server.client();
    let again = Asking::new(OplockLevel::None, vec![reconnect_v2(file.id, Guid::ZERO, false)]);
    again.send(&mut client, "f").unwrap();
}

#[test]
fn the_second_version_says_for_how_long() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    for (number, asked, told) in [(1, 0, 60_000), (2, 5000, 5000), (3, u32::MAX, 300_000)] {
        let guid = Guid([number; 16]);
        let asking = Asking::new(OplockLevel::Batch, vec![request_v2(guid, asked, true)]);
        let got = asking.send(&mut client, &format!("f{number}")).unwrap();
        assert_eq!(got.durable_v2, Some((told, false)), "the share is not continuously available");
    }
}

#[test]
fn a_durable_open_with_a_lease_goes_on_for_the_same_client_and_file_only() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let contexts = vec![request_v2(GUID, 0, false), lease(KEY, read_handle())];
    let file = Asking::new(OplockLevel::Lease, contexts).send(&mut client, "f").unwrap();
    assert_eq!((file.oplock, file.durable_v2), (OplockLevel::Lease, Some((60_000, false))));
    disconnect(&server, client, 1);

    let mut client = server.client();
    let not_found = Err(NtStatus::OBJECT_NAME_NOT_FOUND);
    let asking =
        |context, key| Asking::new(OplockLevel::Lease, vec![context, lease(key, LeaseState::empty())]);
    let reconnect = |guid| reconnect_v2(file.id, guid, false);
    assert_eq!(v2(file.id).send(&mut client, "f"), not_found, "without its lease");
    assert_eq!(asking(reconnect(GUID), [1; 16]).send(&mut client, "f"), not_found, "with another");
    assert_eq!(asking(reconnect(Guid([9; 16])), KEY).send(&mut client, "f"), not_found, "another CREATE");
    let invalid = Err(NtStatus::INVALID_PARAMETER);
    assert_eq!(asking(reconnect(GUID), KEY).send(&mut client, "g"), invalid, "another file");
    let persistent = reconnect_v2(file.id, GUID, true);
    assert_eq!(asking(persistent, KEY).send(&mut client, "f"), invalid, "it is not persistent");
    let gone = FileId { persistent: file.id.persistent ^ 1, ..file.id };
    assert_eq!(asking(reconnect_v2(gone, GUID, false), KEY).send(&mut client, "f"), not_found);
    let mut stranger = server.connect();
    stranger.client_guid = Guid([0xEE; 16]);
    stranger.negotiate(&[Dialect::Smb311]);
    stranger.log_in("ann", PASSWORD).unwrap();
    stranger.tree_connect("Data").unwrap();
    assert_eq!(asking(reconnect(GUID), KEY).send(&mut stranger, "f"), not_found, "another client");
    let mut bob = server.connect();
    bob.negotiate(&[Dialect::Smb311]);
    bob.log_in(OTHER_USER, PASSWORD).unwrap();
    bob.tree_connect("Data").unwrap();
    assert_eq!(
        asking(reconnect(GUID), KEY).send(&mut bob, "f"),
        Err(NtStatus::ACCESS_DENIED),
        "another user"
    );
    let mut elsewhere = server.log_in();
    elsewhere.tree_connect("Fixed").unwrap();
    assert_eq!(asking(reconnect(GUID), KEY).send(&mut elsewhere, "f"), not_found, "another share");

    let again = asking(reconnect(GUID), KEY).send(&mut client, "F").unwrap();
    assert_eq!((again.oplock, again.durable_v2), (OplockLevel::Lease, None));
    let told = again.lease.unwrap();
    assert_eq!((told.key, told.state, told.v2.unwrap().epoch), (KEY, read_handle(), 1));
    assert_eq!(asking(reconnect(GUID), KEY).send(&mut client, "f"), not_found, "it is connected");
}

#[test]
fn contexts_of_both_versions_are_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let id = FileId { persistent: 1, volatile: 2 };
    let first =
        [RequestContext::DurableHandleRequest, RequestContext::DurableHandleReconnect { file_id: id }];
    let second = [request_v2(GUID, 0, false), reconnect_v2(id, GUID, false)];
    for one in first {
        for other in second {
            let asking = Asking::new(OplockLevel::Batch, vec![one, other]);
            assert_eq!(asking.send(&mut client, "f"), Err(NtStatus::INVALID_PARAMETER));
        }
    }
    let asking = Asking::new(OplockLevel::Batch, second.to_vec());
    assert_eq!(asking.send(&mut client, "f"), Err(NtStatus::INVALID_PARAMETER));
    let asking = Asking::new(OplockLevel::Batch, first.to_vec());
    assert_eq!(asking.send(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND), "a reconnection");
}

#[test]
fn nobody_waits_for_ever() {
    let durable = Timeouts { durable_v2: Duration::from_millis(200), ..Timeouts::default() };
    let server = TestServer::start(Config { durable, ..Config::default() });
    let mut client = server.client();
    let mut asking = Asking::batch(GUID).exclusive();
    asking.opening.options = CreateOptions::DELETE_ON_CLOSE;
    let file = asking.send(&mut client, "f").unwrap();
    assert_eq!(file.durable_v2, Some((200, false)));
    drop(client);
    until(|| server.server.report().is_empty());
    // Then it is closed, and the file deleted, as was asked for.
    until(|| server.server.disconnected_opens() == 0);
    // Each time a client of its own: an open that succeeds before that would be told when the next one comes.
    until(|| Opening::default().send(&mut server.client(), "f") == Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(v2(file.id).send(&mut server.client(), "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn what_nobody_can_take_up_any_more_is_closed_when_the_server_ends() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let mut asking = Asking::batch(GUID).exclusive();
    asking.opening.options = CreateOptions::DELETE_ON_CLOSE;
    asking.send(&mut client, "f").unwrap();
    disconnect(&server, client, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.server.close_disconnected());
    let gone = Opening::default().send(&mut server.client(), "f");
    assert_eq!(gone, Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn an_open_that_its_client_cannot_be_asked_about_makes_room() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = Asking::batch(GUID).exclusive().send(&mut client, "f").unwrap();
    let contexts = vec![request_v2(Guid([2; 16]), 0, false), lease(KEY, read_handle())];
    let leased = Asking::new(OplockLevel::Lease, contexts).exclusive().send(&mut client, "g").unwrap();
    disconnect(&server, client, 2);
    let mut client = server.client();
    for name in ["f", "g"] {
        Asking::new(OplockLevel::None, Vec::new()).send(&mut client, name).unwrap();
    }
    assert_eq!(server.server.disconnected_opens(), 0);
    for id in [file.id, leased.id] {
        assert_eq!(v2(id).send(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    }
}

/// [MS-SMB2] 3.3.4.6: an open that is resilient is kept, without its oplock.
#[test]
fn a_resilient_open_that_cannot_be_asked_goes_on_without_its_oplock() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = Asking::new(OplockLevel::Batch, Vec::new()).send(&mut client, "f").unwrap();
    assert_eq!(file.oplock, OplockLevel::Batch);
    assert_eq!(resiliency(&mut client, file.id, 60_000), NtStatus::SUCCESS);
    disconnect(&server, client, 1);
    let mut client = server.client();
    let begun = Instant::now();
    let other = Asking::new(OplockLevel::LevelII, Vec::new()).send(&mut client, "f").unwrap();
    assert!(begun.elapsed() < PATIENCE, "nobody was waited for");
    assert_eq!(other.oplock, OplockLevel::LevelII, "the other one has none");
    assert_eq!(server.server.disconnected_opens(), 1);
    let again = v1(file.id).send(&mut client, "").unwrap();
    assert_eq!(again.oplock, OplockLevel::None);
}

#[test]
fn an_open_that_disturbs_nothing_lets_it_wait() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = Asking::batch(GUID).send(&mut client, "f").unwrap();
    disconnect(&server, client, 1);
    let mut client = server.client();
    let access = AccessMask::READ_ATTRIBUTES;
    Opening { access, ..Opening::default() }.send(&mut client, "f").unwrap();
    v2(file.id).send(&mut client, "f").unwrap();
}

#[test]
fn a_session_that_is_replaced_or_logs_off_leaves_its_durable_opens() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = Asking::batch(GUID).send(&mut client, "f").unwrap();
    let mut next = server.connect();
    next.previous_session_id = client.session_id;
    next.negotiate(&[Dialect::Smb311]);
    next.log_in("ann", PASSWORD).unwrap();
    next.tree_connect("Data").unwrap();
    let again = v2(file.id).send(&mut next, "f").unwrap();
    assert_eq!(client.read(file.id, 0, 1), Err(NtStatus::USER_SESSION_DELETED));
    // 3.3.5.6: also after a LOGOFF
    assert_eq!(next.call(Command::Logoff, &[4, 0, 0, 0]).status(), NtStatus::SUCCESS);
    let mut last = server.client();
    let again = v2(again.id).send(&mut last, "f").unwrap();
    // 3.3.5.8: but not after a TREE_DISCONNECT
    assert_eq!(last.call(Command::TreeDisconnect, &[4, 0, 0, 0]).status(), NtStatus::SUCCESS);
    last.tree_connect("Data").unwrap();
    assert_eq!(v2(again.id).send(&mut last, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn there_is_room_for_so_many_and_no_more() {
    let limits = Limits { disconnected_opens_max: 2, ..Limits::default() };
    let server = TestServer::start(Config { limits, ..Config::default() });
    let mut client = server.client();
    for number in 1..=3 {
        Asking::batch(Guid([number; 16])).send(&mut client, &format!("f{number}")).unwrap();
    }
    disconnect(&server, client, 2);
}

// --- CREATE sent again ---

#[test]
fn a_create_that_comes_again_has_the_open_that_it_made() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let asking = Asking::batch(GUID).exclusive();
    let made = asking.send(&mut client, "f").unwrap();
    assert_eq!(made.action, CreateAction::Created);
    assert_eq!(asking.replayed().send(&mut client, "f"), Ok(made.clone()));
    assert_eq!(asking.send(&mut client, "f"), Err(NtStatus::DUPLICATE_OBJECTID), "not marked as a replay");
    // Whoever uses the open knows of it.
    client.write(made.id, 0, b"x").unwrap();
    let next = Asking::batch(GUID).replayed();
    next.start(&mut client, "g");
    let other = finish(&mut client).unwrap();
    assert_ne!(other.id, made.id);
}

#[test]
fn a_replay_is_for_the_same_session_and_lease_only() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let contexts = |key| vec![request_v2(GUID, 0, false), lease(key, read_handle())];
    let asking = |key| Asking::new(OplockLevel::Lease, contexts(key)).replayed();
    let made = asking(KEY).send(&mut client, "f").unwrap();
    assert_eq!(asking([1; 16]).send(&mut client, "f"), Err(NtStatus::ACCESS_DENIED));
    let mut other = server.client();
    assert_eq!(asking(KEY).send(&mut other, "f"), Err(NtStatus::DUPLICATE_OBJECTID));
    let again = asking(KEY).send(&mut client, "f").unwrap();
    assert_eq!((again.id, again.lease), (made.id, made.lease));
}

#[test]
fn a_create_that_was_not_answered_is_found_after_a_reconnection() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let asking = Asking::batch(GUID).exclusive();
    let made = asking.send(&mut client, "f").unwrap();
    disconnect(&server, client, 1);
    let mut client = server.client();
    let mut other = asking.replayed();
    other.opening.sharing = SHARE_ALL;
    assert_eq!(other.send(&mut client, "f"), Err(NtStatus::CONTEXT_MISMATCH));
    let again = asking.replayed().send(&mut client, "f").unwrap();
    assert_eq!((again.id.persistent, again.action), (made.id.persistent, CreateAction::Created));
    client.write(again.id, 0, b"x").unwrap();
}

#[test]
fn a_create_that_is_under_way_is_not_begun_again() {
    let server = TestServer::start(Config::default());
    let mut holder = server.client();
    let held = Asking::new(OplockLevel::Batch, Vec::new()).send(&mut holder, "f").unwrap();
    let mut client = server.client();
    let asking = Asking::batch(GUID);
    asking.start(&mut client, "f");
    assert_eq!(client.receive().status(), NtStatus::PENDING);
    for again in [asking.replayed(), asking.clone()] {
        assert_eq!(again.send(&mut client, "f"), Err(NtStatus::FILE_NOT_AVAILABLE));
    }
    assert_eq!(holder.receive().header.command, Command::OplockBreak);
    holder.close(held.id).unwrap();
    let made = finish(&mut client).unwrap();
    assert_eq!(asking.replayed().send(&mut client, "f").unwrap().id, made.id);
}

#[test]
fn a_create_goes_on_when_its_channel_is_lost_and_the_session_has_another() {
    let server = TestServer::start(Config::default());
    let mut holder = other_client(&server);
    let held = Asking::new(OplockLevel::Batch, Vec::new()).send(&mut holder, "f").unwrap();
    let mut first = server.client();
    let mut second = server.connect();
    second.negotiate(&[Dialect::Smb311]);
    second.bind(&first, "ann", PASSWORD).unwrap();
    let asking = Asking::batch(GUID);
    asking.start(&mut first, "f");
    assert_eq!(first.receive().status(), NtStatus::PENDING);
    drop(first);
    let channels = |session: &Session| session.channels.len();
    until(|| server.server.report().iter().map(channels).sum::<usize>() == 2);
    let again = asking.replayed().send(&mut second, "f");
    assert_eq!(again, Err(NtStatus::FILE_NOT_AVAILABLE), "it is still being carried out");
    assert_eq!(holder.receive().header.command, Command::OplockBreak);
    holder.close(held.id).unwrap();
    until(|| asking.replayed().send(&mut second, "f").is_ok_and(|got| got.action == CreateAction::Opened));
}

#[test]
fn a_create_that_failed_can_be_begun_again() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let mut asking = Asking::batch(GUID);
    asking.opening.disposition = CreateDisposition::Open;
    for _ in 0..2 {
        assert_eq!(asking.send(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    }
}

// --- instances of an application ---

fn other_client(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.client_guid = Guid([0xEE; 16]);
    client.negotiate(&[Dialect::Smb311]);
    client.log_in("ann", PASSWORD).unwrap();
    client.tree_connect("Data").unwrap();
    client
}

fn instance(create_guid: u8, version: Option<(u64, u64)>) -> Asking {
    let mut asking = Asking::batch(Guid([create_guid; 16])).exclusive();
    asking.opening.contexts.push(RequestContext::AppInstanceId(Guid([0xAA; 16])));
    let version = version.map(|(high, low)| RequestContext::AppInstanceVersion { high, low });
    asking.opening.contexts.extend(version);
    asking
}

#[test]
fn an_application_goes_on_at_another_client() {
    let server = TestServer::start(Config::default());
    let (mut one, mut two) = (server.client(), other_client(&server));
    let first = instance(1, None).send(&mut one, "f").unwrap();
    let second = instance(2, None).send(&mut two, "f").unwrap();
    assert_eq!(second.durable_v2, Some((60_000, false)));
    assert_eq!(one.close(first.id), Err(NtStatus::FILE_CLOSED));
    // Also from an open that waits for its client.
    disconnect_one(&server, two);
    instance(3, None).send(&mut one, "f").unwrap();
    assert_eq!(server.server.disconnected_opens(), 0);
}

fn disconnect_one(server: &TestServer, client: Client) {
    drop(client);
    until(|| server.server.disconnected_opens() == 1);
}

#[test]
fn an_application_yields_to_a_later_version_of_itself_only() {
    let server = TestServer::start(Config::default());
    let (mut one, mut two) = (server.client(), other_client(&server));
    let first = instance(1, Some((1, 5))).send(&mut one, "f").unwrap();
    for version in [None, Some((1, 5)), Some((0, 9))] {
        let refused = instance(2, version).send(&mut two, "f");
        assert_eq!(refused, Err(NtStatus::FILE_FORCED_CLOSED), "{version:?}");
    }
    instance(3, Some((1, 6))).send(&mut two, "f").unwrap();
    assert_eq!(one.close(first.id), Err(NtStatus::FILE_CLOSED));
    // The same client is no other instance.
    let mut again = other_client(&server);
    assert_eq!(
        instance(4, Some((9, 9))).send(&mut again, "g").map(|got| got.action),
        Ok(CreateAction::Created)
    );
    delete(&mut one, "g").unwrap_err();
}

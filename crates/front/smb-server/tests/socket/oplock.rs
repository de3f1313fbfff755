//! Oplocks, and how they are taken back. [MS-SMB2] 3.3.4.6, 3.3.5.9, 3.3.5.22.1.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anabranch_smb_server::Config;
use share::{
    Call, Caller, Case, DirectoryReport, Error, File, Front, Identity, Operation, Patience, Proof, Settings,
    Terms,
};
use smb_wire::create::{CreateDisposition, CreateOptions, OplockLevel, ShareAccess};
use smb_wire::lock::LockFlags;
use smb_wire::oplock_break::{Acknowledgment, LeaseBreak, Notification, OplockBreak};
use smb_wire::{Command, FileId, NtStatus, Target, read};
use storage::memory::MemoryStore;
use storage::{NodeRef, SetAttributes, Stability, Want};

use crate::client::{Client, Element, PASSWORD, Reply, SHARE, TestServer, USER, close_body, read_body};
use crate::durable::{Asking, EXCLUSIVE, finish, lock, until};
use crate::opening::Opening;
use smb_proto::dialect::Dialect;

/// A CREATE that asks for an oplock; a file that is missing is made.
pub(crate) fn asking(oplock: OplockLevel) -> Asking {
    Asking::new(oplock, Vec::new())
}

/// A server that takes grants back from clients that are silent for so long.
pub(crate) fn impatient(break_timeout: Duration, retry_after: Duration) -> TestServer {
    let settings = Settings { break_timeout, retry_after, ..Settings::new(SHARE) };
    TestServer::sharing(Config::default(), settings, Arc::new(MemoryStore::new()))
}

/// The next message, which must be a break.
pub(crate) fn notification(client: &mut Client) -> (Reply, Notification) {
    let reply = client.receive();
    assert_eq!((reply.header.command, reply.header.message_id), (Command::OplockBreak, u64::MAX));
    assert!(!reply.is_signed() && reply.header.target == Target::Sync { tree_id: 0 });
    let notification = Notification::decode(&reply.message).unwrap();
    (reply, notification)
}

fn broken(client: &mut Client) -> OplockBreak {
    match notification(client) {
        (reply, Notification::Oplock(told)) => {
            assert_eq!(reply.header.session_id, client.session_id);
            told
        }
        (_, Notification::Lease(LeaseBreak { .. })) => panic!("the break of a lease"),
    }
}

pub(crate) fn acknowledge(client: &mut Client, acknowledged: Acknowledgment) -> NtStatus {
    let mut body = Vec::new();
    acknowledged.encode(&mut body);
    let reply = client.call(Command::OplockBreak, &body);
    if reply.status() == NtStatus::SUCCESS {
        assert_eq!(Acknowledgment::decode(&reply.message), Ok(acknowledged), "the answer says the same");
    }
    reply.status()
}

fn keep(client: &mut Client, file_id: FileId, oplock_level: OplockLevel) -> NtStatus {
    acknowledge(client, Acknowledgment::Oplock(OplockBreak { oplock_level, file_id }))
}

/// The interim answer to a request that waits.
pub(crate) fn pending(client: &mut Client) -> Reply {
    let reply = client.receive();
    assert_eq!(reply.status(), NtStatus::PENDING);
    reply
}

static NFS: Front =
    Front { name: "nfs3", patience: Patience::UntilRetry, directories: DirectoryReport::Attributes };
static BY_NFS: Operation = Operation::new(&NFS, 1, "Lookup");

/// An operation of an NFS client.
pub(crate) fn nfs() -> Call {
    let caller = Caller::new(Identity::unix(0, 0, vec![]), Proof::Stated);
    let call = Call::new(&BY_NFS, caller, Instant::now());
    call.needs_no_turn();
    call
}

/// Does something to the share as an NFS client does.
pub(crate) fn by_nfs<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

pub(crate) fn node(server: &TestServer, name: &str) -> NodeRef {
    let (share, who) = (&server.share, nfs());
    let found = share.lookup(&who, share.root(), name.as_bytes(), Case::Sensitive, Want::empty());
    by_nfs(found).unwrap().node
}

#[test]
fn oplocks_are_granted_as_there_is_room() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (server.client(), server.client());
    for level in [OplockLevel::None, OplockLevel::LevelII, OplockLevel::Exclusive, OplockLevel::Batch] {
        let got = asking(level).send(&mut ann, "file").unwrap();
        assert_eq!(got.oplock, level);
        ann.close(got.id).unwrap();
    }
    let first = asking(OplockLevel::LevelII).send(&mut ann, "file").unwrap();
    let second = asking(OplockLevel::Batch).send(&mut bob, "file").unwrap();
    assert_eq!(second.oplock, OplockLevel::LevelII, "beside another");
    bob.close(second.id).unwrap();
    assert_eq!(lock(&mut ann, first.id, 0, (0, 0), EXCLUSIVE), NtStatus::SUCCESS);
    assert_eq!(broken(&mut ann).oplock_level, OplockLevel::None, "by the client's own lock");
    let second = asking(OplockLevel::LevelII).send(&mut bob, "file").unwrap();
    assert_eq!(second.oplock, OplockLevel::None, "while bytes are locked");
    let mut directory = asking(OplockLevel::Batch);
    directory.opening.options = CreateOptions::DIRECTORY_FILE;
    assert_eq!(directory.send(&mut ann, "dir").unwrap().oplock, OplockLevel::None);
}

#[test]
fn an_open_waits_until_the_holder_has_answered() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (server.client(), server.client());
    let held = asking(OplockLevel::Batch).send(&mut ann, "file").unwrap();
    asking(OplockLevel::Batch).start(&mut bob, "file");
    let told = broken(&mut ann);
    assert_eq!(told, OplockBreak { oplock_level: OplockLevel::LevelII, file_id: held.id });
    let waiting = pending(&mut bob);
    assert!(matches!(waiting.header.target, Target::Async { .. }));
    // What the holder had not written yet.
    ann.write(held.id, 0, b"cached").unwrap();
    assert_eq!(keep(&mut ann, held.id, OplockLevel::LevelII), NtStatus::SUCCESS);
    let got = finish(&mut bob).unwrap();
    assert_eq!(got.oplock, OplockLevel::LevelII);
    assert_eq!(bob.read(got.id, 0, 6).unwrap(), b"cached");
    // Both lose what they have to a write, and nobody waits for that.
    bob.write(got.id, 0, b"newer").unwrap();
    assert_eq!(broken(&mut bob).oplock_level, OplockLevel::None);
    assert_eq!(broken(&mut ann).oplock_level, OplockLevel::None);
    assert_eq!(server.share.grant_counts().broken.load(Ordering::Relaxed), 3);
    assert_eq!(server.share.grant_counts().revoked.load(Ordering::Relaxed), 0);
}

#[test]
fn a_holder_may_close_instead_and_a_waiting_open_be_cancelled() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (server.client(), server.client());
    let held = asking(OplockLevel::Exclusive).send(&mut ann, "file").unwrap();
    asking(OplockLevel::Batch).start(&mut bob, "file");
    let waiting = pending(&mut bob);
    broken(&mut ann);
    let mut cancel = bob.header(Command::Cancel);
    bob.next_message_id -= 1;
    cancel.message_id = waiting.header.message_id;
    cancel.target = waiting.header.target;
    cancel.flags |= smb_wire::HeaderFlags::ASYNC_COMMAND;
    bob.send_with(&cancel, &[4, 0, 0, 0]);
    assert_eq!(finish(&mut bob).unwrap_err(), NtStatus::CANCELLED);
    asking(OplockLevel::Batch).start(&mut bob, "file");
    pending(&mut bob);
    ann.close(held.id).unwrap(); // it is told only once
    assert_eq!(finish(&mut bob).unwrap().oplock, OplockLevel::Batch, "alone");
}

#[test]
fn a_holder_that_is_gone_keeps_nobody_waiting() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (server.client(), server.client());
    asking(OplockLevel::Batch).send(&mut ann, "file").unwrap();
    asking(OplockLevel::Batch).start(&mut bob, "file");
    pending(&mut bob);
    drop(ann);
    assert_eq!(finish(&mut bob).unwrap().oplock, OplockLevel::Batch);
}

#[test]
fn a_holder_that_does_not_answer_loses_all() {
    let server = impatient(Duration::from_millis(200), Duration::from_secs(3));
    let (mut ann, mut bob) = (server.client(), server.client());
    let held = asking(OplockLevel::Batch).send(&mut ann, "file").unwrap();
    asking(OplockLevel::Batch).start(&mut bob, "file");
    broken(&mut ann);
    assert_eq!(finish(&mut bob).unwrap().oplock, OplockLevel::LevelII);
    assert_eq!(server.share.grant_counts().revoked.load(Ordering::Relaxed), 1);
    assert_eq!(keep(&mut ann, held.id, OplockLevel::LevelII), NtStatus::INVALID_OPLOCK_PROTOCOL);
    ann.write(held.id, 0, b"still open").unwrap();
    assert_eq!(broken(&mut bob).oplock_level, OplockLevel::None);
}

#[test]
fn acknowledgments_that_make_no_sense_are_refused() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (server.client(), server.client());
    let plain = asking(OplockLevel::None).send(&mut ann, "plain").unwrap();
    assert_eq!(keep(&mut ann, plain.id, OplockLevel::None), NtStatus::INVALID_OPLOCK_PROTOCOL);
    let nothing = FileId { persistent: 77, volatile: 77 };
    assert_eq!(keep(&mut ann, nothing, OplockLevel::None), NtStatus::FILE_CLOSED);
    let cases = [
        (OplockLevel::Exclusive, OplockLevel::Batch, NtStatus::INVALID_OPLOCK_PROTOCOL),
        (OplockLevel::Exclusive, OplockLevel::Exclusive, NtStatus::INVALID_OPLOCK_PROTOCOL),
        (OplockLevel::Batch, OplockLevel::Batch, NtStatus::INVALID_OPLOCK_PROTOCOL),
        (OplockLevel::Batch, OplockLevel::Lease, NtStatus::INVALID_PARAMETER),
        (OplockLevel::Batch, OplockLevel::Exclusive, NtStatus::SUCCESS),
    ];
    for (level, kept, status) in cases {
        let held = asking(level).send(&mut ann, "file").unwrap();
        assert_eq!(keep(&mut ann, held.id, kept), NtStatus::INVALID_OPLOCK_PROTOCOL, "not asked for");
        asking(OplockLevel::None).start(&mut bob, "file");
        broken(&mut ann);
        assert_eq!(keep(&mut ann, held.id, kept), status, "{level:?} {kept:?}");
        // Whatever it was, the oplock is gone and nobody waits for it.
        let other = finish(&mut bob).unwrap();
        bob.write(other.id, 0, b"x").unwrap();
        assert!(ann.is_alive(), "no further break");
        bob.close(other.id).unwrap();
        ann.close(held.id).unwrap();
    }
}

#[test]
fn an_open_kept_for_later_makes_room_for_one_that_it_does_not_share_with() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (server.client(), server.client());
    for closes in [true, false] {
        let held = asking(OplockLevel::Batch).exclusive().send(&mut ann, "file").unwrap();
        asking(OplockLevel::None).start(&mut bob, "file");
        assert_eq!(broken(&mut ann).oplock_level, OplockLevel::LevelII);
        pending(&mut bob);
        if closes {
            ann.close(held.id).unwrap();
            let id = finish(&mut bob).unwrap().id;
            bob.close(id).unwrap();
        } else {
            assert_eq!(keep(&mut ann, held.id, OplockLevel::LevelII), NtStatus::SUCCESS);
            assert_eq!(finish(&mut bob).unwrap_err(), NtStatus::SHARING_VIOLATION);
            ann.close(held.id).unwrap();
        }
    }
    let mut alone = asking(OplockLevel::Exclusive);
    alone.opening.sharing = ShareAccess::empty();
    alone.send(&mut ann, "file").unwrap();
    let refused = asking(OplockLevel::None).send(&mut bob, "file");
    assert_eq!(refused.unwrap_err(), NtStatus::SHARING_VIOLATION, "an exclusive one keeps nothing for later");
    assert!(ann.is_alive());
}

#[test]
fn who_asks_for_attributes_only_disturbs_nobody() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (server.client(), server.client());
    asking(OplockLevel::Batch).send(&mut ann, "file").unwrap();
    let mut quiet = asking(OplockLevel::None);
    quiet.opening = Opening {
        access: smb_wire::AccessMask::READ_ATTRIBUTES | smb_wire::AccessMask::SYNCHRONIZE,
        ..Opening::with(CreateDisposition::Open)
    };
    quiet.send(&mut bob, "file").unwrap();
    assert!(ann.is_alive());
}

#[test]
fn the_break_of_an_encrypted_session_is_encrypted() {
    let server = TestServer::on_terms(Config::default(), Terms::ENCRYPTED);
    let mut clients = [server.log_in(), server.log_in()];
    for client in &mut clients {
        client.encrypt = true;
        client.tree_connect(SHARE).unwrap();
    }
    let [mut ann, mut bob] = clients;
    let held = asking(OplockLevel::Batch).send(&mut ann, "file").unwrap();
    asking(OplockLevel::None).start(&mut bob, "file");
    let (reply, told) = notification(&mut ann);
    let level_ii = OplockBreak { oplock_level: OplockLevel::LevelII, file_id: held.id };
    assert_eq!((reply.encrypted, told), (true, Notification::Oplock(level_ii)));
    ann.close(held.id).unwrap();
    finish(&mut bob).unwrap();
}

#[test]
fn a_break_that_may_be_lost_is_sent_again_over_another_channel() {
    let server = TestServer::start(Config::default());
    let mut ann = server.connect();
    ann.negotiate(&[Dialect::Smb311]);
    ann.log_in(USER, PASSWORD).unwrap();
    ann.tree_connect(SHARE).unwrap();
    let mut second = server.connect();
    second.negotiate(&[Dialect::Smb311]);
    second.bind(&ann, USER, PASSWORD).unwrap();
    let mut bob = server.client();
    let held = asking(OplockLevel::Batch).send(&mut ann, "file").unwrap();
    asking(OplockLevel::None).start(&mut bob, "file");
    let told = broken(&mut ann);
    drop(ann);
    assert_eq!(broken(&mut second), told);
    assert_eq!(keep(&mut second, held.id, OplockLevel::LevelII), NtStatus::SUCCESS);
    finish(&mut bob).unwrap();
}

#[test]
fn nfs_clients_wait_for_what_is_not_written_yet() {
    let server = impatient(Duration::from_secs(60), Duration::from_millis(20));
    let mut ann = server.client();
    let held = asking(OplockLevel::Batch).send(&mut ann, "file").unwrap();
    let (file, share) = (File::Stateless(node(&server, "file")), &server.share);
    let read =
        || by_nfs(share.read(&nfs(), &file, 0, vec![0; 6])).map(|(data, count)| data[..count].to_vec());
    assert_eq!(read(), Err(Error::Delayed), "retry later");
    assert_eq!(broken(&mut ann).oplock_level, OplockLevel::LevelII);
    assert_eq!(read(), Err(Error::Delayed), "nobody is told twice");
    ann.write(held.id, 0, b"cached").unwrap();
    assert_eq!(keep(&mut ann, held.id, OplockLevel::LevelII), NtStatus::SUCCESS);
    assert_eq!(read().unwrap(), b"cached");
    by_nfs(share.write(&nfs(), &file, 0, b"newer".to_vec(), Stability::Unstable)).unwrap();
    assert_eq!(broken(&mut ann).oplock_level, OplockLevel::None);
    ann.close(held.id).unwrap();

    let held = asking(OplockLevel::Exclusive).send(&mut ann, "file").unwrap();
    let cut = SetAttributes { size: Some(0), ..SetAttributes::default() };
    let cut = || by_nfs(share.set_attributes(&nfs(), &file, &cut, None)).map(|changed| changed.after.size);
    assert_eq!(cut(), Err(Error::Delayed));
    assert_eq!(broken(&mut ann).oplock_level, OplockLevel::None);
    assert_eq!(keep(&mut ann, held.id, OplockLevel::None), NtStatus::SUCCESS);
    assert_eq!(cut(), Ok(0));
}

#[test]
fn an_nfs_client_is_answered_as_soon_as_the_holder_has() {
    let server = impatient(Duration::from_secs(60), Duration::from_secs(30));
    let mut ann = server.client();
    let held = asking(OplockLevel::Exclusive).send(&mut ann, "file").unwrap();
    let (file, share) = (File::Stateless(node(&server, "file")), Arc::clone(&server.share));
    let writer = std::thread::spawn(move || {
        by_nfs(share.write(&nfs(), &file, 0, b"nfs".to_vec(), Stability::Unstable)).map(|_| ())
    });
    assert_eq!(broken(&mut ann).oplock_level, OplockLevel::None);
    assert_eq!(keep(&mut ann, held.id, OplockLevel::None), NtStatus::SUCCESS);
    until(|| writer.is_finished());
    assert_eq!(writer.join().unwrap(), Ok(()));
    assert_eq!(ann.read(held.id, 0, 3).unwrap(), b"nfs");
}

#[test]
fn a_lock_of_another_ends_what_is_cached() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (server.client(), server.client());
    asking(OplockLevel::LevelII).send(&mut ann, "file").unwrap();
    let other = asking(OplockLevel::None).send(&mut bob, "file").unwrap();
    let flags = LockFlags::SHARED_LOCK | LockFlags::FAIL_IMMEDIATELY;
    assert_eq!(lock(&mut bob, other.id, 0, (0, 0), flags), NtStatus::SUCCESS);
    assert_eq!(broken(&mut ann).oplock_level, OplockLevel::None);
}

/// Opens `file`, reads and closes it in one compound.
fn open_read_close(client: &mut Client) {
    let element = |command, related, body| Element { command, related, body };
    let frame = client.compound(&[
        element(Command::Create, false, Opening::with(CreateDisposition::Open).body("file")),
        element(Command::Read, true, read_body(FileId::ANY, 0, 6)),
        element(Command::Close, true, close_body(FileId::ANY)),
    ]);
    client.send_frame(&frame);
}

#[test]
fn an_open_in_a_compound_waits_and_says_so() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (server.client(), server.client());
    let held = asking(OplockLevel::Batch).send(&mut ann, "file").unwrap();
    open_read_close(&mut bob);
    broken(&mut ann);
    let waiting = pending(&mut bob);
    let Target::Async { async_id } = waiting.header.target else { panic!("an AsyncId") };
    assert_eq!((waiting.header.command, waiting.header.next_command), (Command::Create, 0));
    ann.write(held.id, 0, b"cached").unwrap();
    assert_eq!(keep(&mut ann, held.id, OplockLevel::None), NtStatus::SUCCESS);
    let replies = bob.receive_all();
    assert_eq!(replies.iter().map(Reply::status).collect::<Vec<_>>(), [NtStatus::SUCCESS; 3]);
    assert_eq!(replies[0].header.target, Target::Async { async_id });
    assert_eq!(replies[0].header.message_id, waiting.header.message_id);
    assert_eq!(read::Response::decode(&replies[1].message).unwrap().data, b"cached");
}

#[test]
fn an_open_that_waits_in_a_compound_can_be_cancelled() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (server.client(), server.client());
    asking(OplockLevel::Batch).send(&mut ann, "file").unwrap();
    open_read_close(&mut bob);
    broken(&mut ann);
    let waiting = pending(&mut bob);
    let mut cancel = bob.header(Command::Cancel);
    bob.next_message_id -= 1; // CANCEL uses no identifier
    (cancel.target, cancel.message_id) = (waiting.header.target, waiting.header.message_id);
    bob.send_with(&cancel, &[4, 0, 0, 0]);
    let replies = bob.receive_all();
    assert_eq!(replies.iter().map(Reply::status).collect::<Vec<_>>(), [NtStatus::CANCELLED; 3]);
    assert!(bob.is_alive());
}

//! Leases, of files and directories, and how they are taken back. [MS-SMB2] 3.3.4.7, 3.3.5.9.8, 3.3.5.9.11, 3.3.5.22.2.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anabranch_smb_server::Config;
use share::{Error, File};
use smb_proto::dialect::Dialect;
use smb_wire::create::{CreateDisposition, CreateOptions, OplockLevel};
use smb_wire::create_context::{Lease, LeaseFlags, LeaseState, LeaseV2, RequestContext};
use smb_wire::fscc::FileInfoClass;
use smb_wire::fscc::file_info::{Rename, RenameFlags};
use smb_wire::oplock_break::{Acknowledgment, LeaseBreak, LeaseBreakFlags, Notification};
use smb_wire::{AccessMask, Command, FileId, Guid, NtStatus};

use crate::client::{Client, PASSWORD, SHARE, TestServer, USER, close_body};
use crate::durable::{Asking, EXCLUSIVE, Got, finish, lock, until};
use crate::information::{set, set_body};
use crate::oplock::{acknowledge, asking, by_nfs, impatient, nfs, notification, pending};

const NONE: LeaseState = LeaseState::empty();
const R: LeaseState = LeaseState::READ;
const RH: LeaseState = R.union(LeaseState::HANDLE);
const RW: LeaseState = R.union(LeaseState::WRITE);
const RWH: LeaseState = RH.union(LeaseState::WRITE);

const ONE: [u8; 16] = [1; 16];
const TWO: [u8; 16] = [2; 16];

/// A CREATE that asks for a lease of the second version, its epoch 10.
fn leasing(key: [u8; 16], state: LeaseState) -> Asking {
    let v2 = Some(LeaseV2 { parent_key: [0; 16], epoch: 10 });
    with(Lease { key, state, flags: LeaseFlags::empty(), v2 })
}

fn leasing_v1(key: [u8; 16], state: LeaseState) -> Asking {
    with(Lease { key, state, flags: LeaseFlags::empty(), v2: None })
}

/// One for a file in a directory of which the client has the lease `parent_key`.
fn leasing_below(parent_key: [u8; 16], key: [u8; 16], state: LeaseState) -> Asking {
    let v2 = Some(LeaseV2 { parent_key, epoch: 10 });
    with(Lease { key, state, flags: LeaseFlags::PARENT_LEASE_KEY_SET, v2 })
}

fn with(lease: Lease) -> Asking {
    Asking::new(OplockLevel::Lease, vec![RequestContext::RequestLease(lease)])
}

fn of_directory(mut asking: Asking) -> Asking {
    asking.opening.options = CreateOptions::DIRECTORY_FILE;
    asking
}

fn state(got: &Got) -> LeaseState {
    assert_eq!(got.oplock, OplockLevel::Lease);
    got.lease.unwrap().state
}

/// A client with a GUID of its own.
fn client(server: &TestServer, number: u8) -> Client {
    let mut client = server.connect();
    client.client_guid = Guid([number; 16]);
    client.capabilities |= smb_wire::negotiate::Capabilities::DIRECTORY_LEASING;
    client.negotiate(&[Dialect::Smb311]);
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    client
}

/// The next message, which must be the break of this lease: from what to what, and whether it must be answered.
fn broken(client: &mut Client, key: [u8; 16]) -> (LeaseState, LeaseState, bool) {
    let told = told(client);
    assert_eq!(told.lease_key, key);
    let answer = told.flags.contains(LeaseBreakFlags::ACK_REQUIRED);
    (told.current_lease_state, told.new_lease_state, answer)
}

fn told(client: &mut Client) -> LeaseBreak {
    match notification(client) {
        (reply, Notification::Lease(told)) => {
            assert_eq!(reply.header.session_id, 0);
            told
        }
        (_, other) => panic!("{other:?}"),
    }
}

fn keep(client: &mut Client, lease_key: [u8; 16], lease_state: LeaseState) -> NtStatus {
    acknowledge(client, Acknowledgment::Lease { lease_key, lease_state })
}

#[test]
fn leases_are_granted_as_there_is_room_and_answered_in_their_version() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    for (wanted, granted) in [(NONE, NONE), (R, R), (RH, RH), (RW, RW), (RWH, RWH), (LeaseState::WRITE, NONE)]
    {
        let got = leasing(ONE, wanted).send(&mut ann, "file").unwrap();
        let epoch = if granted.is_empty() { 10 } else { 11 };
        let v2 = Some(LeaseV2 { parent_key: [0; 16], epoch });
        let lease = Lease { key: ONE, state: granted, flags: LeaseFlags::empty(), v2 };
        assert_eq!((got.oplock, got.lease), (OplockLevel::Lease, Some(lease)));
        ann.close(got.id).unwrap();
    }
    let first = leasing_v1(ONE, RH).send(&mut ann, "file").unwrap();
    assert_eq!((state(&first), first.lease.unwrap().v2), (RH, None));
    let second = leasing(ONE, RWH).send(&mut bob, "file").unwrap();
    assert_eq!(state(&second), RH, "another client's lease, whatever its key");
    let again = leasing_v1(ONE, RWH).send(&mut ann, "file").unwrap();
    assert_eq!(state(&again), RH, "there is no room for more");
    assert!(ann.is_alive() && bob.is_alive(), "nobody was told of anything");
}

#[test]
fn a_request_that_the_dialect_does_not_know_is_ignored() {
    let server = TestServer::start(Config::default());
    let lease = |asking: Asking, dialect| {
        let mut client = server.connect();
        client.negotiate(&[dialect]);
        client.log_in(USER, PASSWORD).unwrap();
        client.tree_connect(SHARE).unwrap();
        let got = asking.send(&mut client, "file").unwrap();
        client.close(got.id).unwrap();
        (got.oplock, got.lease.map(|lease| lease.state))
    };
    assert_eq!(lease(leasing_v1(ONE, RWH), Dialect::Smb202), (OplockLevel::None, None));
    assert_eq!(lease(leasing_v1(ONE, RWH), Dialect::Smb210), (OplockLevel::Lease, Some(RWH)));
    assert_eq!(lease(leasing(ONE, RWH), Dialect::Smb210), (OplockLevel::None, None));
    assert_eq!(lease(leasing(ONE, RWH), Dialect::Smb300), (OplockLevel::Lease, Some(RWH)));
    let mut batch = leasing(ONE, RWH);
    batch.oplock = OplockLevel::Batch;
    assert_eq!(lease(batch, Dialect::Smb311), (OplockLevel::Batch, None), "not asked for by the level");
    assert_eq!(lease(asking(OplockLevel::Lease), Dialect::Smb311), (OplockLevel::None, None));
}

#[test]
fn a_key_is_that_of_one_file() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let got = leasing(ONE, RH).send(&mut ann, "file").unwrap();
    asking(OplockLevel::None).send(&mut bob, "other").unwrap();
    let refused = |client: &mut Client, name: &str| leasing(ONE, RH).send(client, name).unwrap_err();
    assert_eq!(refused(&mut ann, "other"), NtStatus::INVALID_PARAMETER);
    assert_eq!(refused(&mut ann, "new"), NtStatus::INVALID_PARAMETER);
    assert_eq!(ann.create("new", CreateDisposition::Open), Err(NtStatus::OBJECT_NAME_NOT_FOUND), "not made");
    leasing(ONE, RH).send(&mut bob, "other").unwrap();
    ann.close(got.id).unwrap();
    leasing(ONE, RH).send(&mut ann, "new").unwrap();
}

#[test]
fn a_lease_is_broken_and_acknowledged() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let held = leasing(ONE, RWH).send(&mut ann, "file").unwrap();
    leasing(TWO, RWH).start(&mut bob, "file");
    let expected = LeaseBreak {
        new_epoch: 12,
        flags: LeaseBreakFlags::ACK_REQUIRED,
        lease_key: ONE,
        current_lease_state: RWH,
        new_lease_state: RH,
    };
    assert_eq!(told(&mut ann), expected);
    pending(&mut bob);
    // Under the lease itself all goes on.
    let again = leasing(ONE, RWH).send(&mut ann, "file").unwrap();
    assert_eq!((state(&again), again.lease.unwrap().flags), (RWH, LeaseFlags::BREAK_IN_PROGRESS));
    ann.write(held.id, 0, b"cached").unwrap();
    assert_eq!(keep(&mut ann, TWO, R), NtStatus::OBJECT_NAME_NOT_FOUND, "another client's");
    for too_much in [RWH, RW, LeaseState::from_bits_retain(0x13)] {
        assert_eq!(keep(&mut ann, ONE, too_much), NtStatus::REQUEST_NOT_ACCEPTED);
    }
    assert_eq!(keep(&mut ann, ONE, RH), NtStatus::SUCCESS);
    let got = finish(&mut bob).unwrap();
    assert_eq!((state(&got), got.lease.unwrap().v2.unwrap().epoch), (RH, 11));
    assert_eq!(bob.read(got.id, 0, 6).unwrap(), b"cached");
    assert_eq!(keep(&mut ann, ONE, R), NtStatus::UNSUCCESSFUL, "nobody asked");
    // What is written under one lease ends the other, and nobody waits for that.
    bob.write(got.id, 0, b"newer").unwrap();
    assert_eq!(broken(&mut ann, ONE), (RH, NONE, true));
    assert!(bob.is_alive());
    assert_eq!(keep(&mut ann, ONE, NONE), NtStatus::SUCCESS);
    let renewed = leasing(ONE, R).send(&mut ann, "file").unwrap();
    assert_eq!((state(&renewed), renewed.lease.unwrap().v2.unwrap().epoch), (R, 14));
}

#[test]
fn a_lease_that_is_broken_further_gives_up_one_thing_after_the_other() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    leasing(ONE, RWH).send(&mut ann, "file").unwrap();
    asking(OplockLevel::None).start(&mut bob, "file");
    pending(&mut bob);
    let mut overwriter = client(&server, 3);
    let mut overwrite = asking(OplockLevel::None);
    overwrite.opening.disposition = CreateDisposition::Overwrite;
    overwrite.start(&mut overwriter, "file");
    pending(&mut overwriter);
    assert_eq!(broken(&mut ann, ONE), (RWH, RH, true));
    assert_eq!(keep(&mut ann, ONE, RH), NtStatus::SUCCESS);
    assert_eq!(broken(&mut ann, ONE), (RH, R, true));
    assert_eq!(keep(&mut ann, ONE, R), NtStatus::SUCCESS);
    assert_eq!(broken(&mut ann, ONE), (R, NONE, false));
    finish(&mut bob).unwrap();
    finish(&mut overwriter).unwrap();
    assert!(ann.is_alive());
}

#[test]
fn a_lease_is_taken_from_a_client_that_does_not_answer() {
    let server = impatient(Duration::from_millis(200), Duration::from_secs(3));
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let held = leasing(ONE, RWH).send(&mut ann, "file").unwrap();
    let got = leasing(TWO, RWH).send(&mut bob, "file").unwrap();
    assert_eq!(state(&got), RH);
    assert_eq!(broken(&mut ann, ONE), (RWH, RH, true));
    assert_eq!(keep(&mut ann, ONE, RH), NtStatus::UNSUCCESSFUL, "too late");
    let again = leasing(ONE, NONE).send(&mut ann, "file").unwrap();
    assert_eq!((state(&again), again.lease.unwrap().flags), (NONE, LeaseFlags::empty()));
    // Nor is it found to hold anything when nobody has waited for it.
    ann.write(held.id, 0, b"x").unwrap();
    assert_eq!(broken(&mut bob, TWO), (RH, NONE, true));
    let file = File::Stateless(crate::oplock::node(&server, "file"));
    until(|| {
        by_nfs(server.share.read(&nfs(), &file, 0, [0; 1])).unwrap();
        server.share.grant_counts().revoked.load(Ordering::Relaxed) == 2
    });
    assert_eq!(keep(&mut bob, TWO, NONE), NtStatus::UNSUCCESSFUL);
}

#[test]
fn a_client_is_told_over_its_first_connection() {
    let server = TestServer::start(Config::default());
    let (mut first, mut second, mut bob) = (client(&server, 1), client(&server, 1), client(&server, 2));
    leasing(ONE, RWH).send(&mut second, "file").unwrap();
    asking(OplockLevel::None).start(&mut bob, "file");
    assert_eq!(broken(&mut first, ONE), (RWH, RH, true));
    drop(first);
    assert_eq!(broken(&mut second, ONE), (RWH, RH, true), "it may have been lost");
    assert_eq!(keep(&mut second, ONE, RH), NtStatus::SUCCESS);
    finish(&mut bob).unwrap();
}

#[test]
fn a_listing_is_cached_until_an_entry_changes() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let held = of_directory(leasing(ONE, RWH)).send(&mut ann, "dir").unwrap();
    assert_eq!(state(&held), RH, "nobody writes to a directory");
    let below = leasing_below(ONE, TWO, RWH).send(&mut ann, r"dir\own").unwrap();
    let lease = below.lease.unwrap();
    assert_eq!((lease.state, lease.flags), (RWH, LeaseFlags::PARENT_LEASE_KEY_SET));
    assert_eq!(lease.v2.unwrap().parent_key, ONE);
    ann.write(below.id, 0, b"x").unwrap();
    ann.close(below.id).unwrap();
    assert!(ann.is_alive(), "under the lease its holder changes what it likes");

    let foreign = asking(OplockLevel::None).send(&mut bob, r"dir\foreign").unwrap();
    assert_eq!(broken(&mut ann, ONE), (RH, NONE, true));
    assert_eq!(keep(&mut ann, ONE, NONE), NtStatus::SUCCESS);
    let again = |ann: &mut Client| {
        let got = of_directory(leasing(ONE, RH)).send(ann, "dir").unwrap();
        assert_eq!(state(&got), RH);
    };
    again(&mut ann);
    bob.write(foreign.id, 0, b"x").unwrap();
    assert!(ann.is_alive(), "more may be written before it is closed");
    bob.close(foreign.id).unwrap();
    assert_eq!(broken(&mut ann, ONE), (RH, NONE, true));
    assert_eq!(keep(&mut ann, ONE, NONE), NtStatus::SUCCESS);
    again(&mut ann);
    let dir = crate::oplock::node(&server, "dir");
    by_nfs(server.share.remove(&nfs(), &dir, b"foreign", false)).unwrap();
    assert_eq!(broken(&mut ann, ONE), (RH, NONE, true));
}

/// The Linux kernel's client would not know what a break is about that comes right behind the answer.
#[test]
fn a_young_lease_of_a_directory_is_taken_back_once_its_client_knows_it() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let begun = Instant::now();
    of_directory(leasing(ONE, RH)).send(&mut ann, "dir").unwrap();
    asking(OplockLevel::None).send(&mut bob, r"dir\entry").unwrap();
    assert_eq!(broken(&mut ann, ONE), (RH, NONE, true));
    assert!(
        begun.elapsed() >= Duration::from_millis(200),
        "it has sent nothing since: {:?}",
        begun.elapsed()
    );
    assert_eq!(keep(&mut ann, ONE, NONE), NtStatus::SUCCESS);

    let begun = Instant::now();
    of_directory(leasing(TWO, RH)).send(&mut ann, "dir").unwrap();
    assert!(ann.is_alive());
    asking(OplockLevel::None).send(&mut bob, r"dir\other").unwrap();
    assert_eq!(broken(&mut ann, TWO), (RH, NONE, true));
    assert!(begun.elapsed() >= Duration::from_millis(10), "{:?}", begun.elapsed());
}

#[test]
fn a_directory_that_is_kept_for_later_makes_room() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let held = of_directory(leasing(ONE, RH)).send(&mut ann, "dir").unwrap();
    of_directory(asking(OplockLevel::None)).exclusive().start(&mut bob, "dir");
    assert_eq!(broken(&mut ann, ONE), (RH, R, true));
    ann.close(held.id).unwrap();
    finish(&mut bob).unwrap();
}

#[test]
fn an_nfs_client_removes_a_file_when_its_handle_is_given_back() {
    let server = impatient(Duration::from_secs(60), Duration::from_millis(20));
    let mut ann = client(&server, 1);
    leasing(ONE, RH).send(&mut ann, "file").unwrap();
    let root = server.share.root().clone();
    let remove = || by_nfs(server.share.remove(&nfs(), &root, b"file", false)).map(|_| ());
    assert_eq!(remove(), Err(Error::Delayed));
    assert_eq!(broken(&mut ann, ONE), (RH, R, true));
    assert_eq!(keep(&mut ann, ONE, R), NtStatus::SUCCESS);
    assert_eq!(remove(), Ok(()));
}

#[test]
fn a_file_that_is_to_go_is_kept_for_later_by_nobody() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    leasing(ONE, RH).send(&mut ann, "file").unwrap();
    let mut doomed = asking(OplockLevel::None);
    doomed.opening.options = CreateOptions::DELETE_ON_CLOSE;
    doomed.send(&mut bob, "file").unwrap(); // nobody waits
    assert_eq!(broken(&mut ann, ONE), (RH, R, true));
}

#[test]
fn who_has_not_logged_on_hears_nothing_whatever_guid_it_gives() {
    let server = TestServer::start(Config::default());
    let mut stranger = server.connect();
    stranger.client_guid = Guid([1; 16]);
    stranger.negotiate(&[Dialect::Smb311]);
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    leasing(ONE, RWH).send(&mut ann, "file").unwrap();
    asking(OplockLevel::None).start(&mut bob, "file");
    assert_eq!(broken(&mut ann, ONE), (RWH, RH, true));
    assert_eq!(keep(&mut ann, ONE, RH), NtStatus::SUCCESS);
    finish(&mut bob).unwrap();
}

#[test]
fn who_may_read_a_files_security_keeps_leases_from_being_exclusive_and_takes_none() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let held = leasing(ONE, RWH).send(&mut ann, "file").unwrap();
    let mut quiet = asking(OplockLevel::None);
    quiet.opening.access = AccessMask::READ_CONTROL | AccessMask::READ_ATTRIBUTES;
    let reader = quiet.send(&mut bob, "file").unwrap();
    assert_eq!(bob.close(reader.id), Ok(()));
    assert!(ann.is_alive(), "nobody was told of anything");
    ann.close(held.id).unwrap();
    for (access, granted) in [(AccessMask::READ_CONTROL, RH), (AccessMask::READ_ATTRIBUTES, RWH)] {
        quiet.opening.access = access;
        let reader = quiet.send(&mut bob, "file").unwrap();
        let got = leasing(ONE, RWH).send(&mut ann, "file").unwrap();
        assert_eq!(state(&got), granted, "{access:?}");
        ann.close(got.id).unwrap();
        bob.close(reader.id).unwrap();
    }
}

#[test]
fn a_lease_that_was_not_granted_has_the_epoch_of_its_client() {
    let server = TestServer::start(Config::default());
    let mut ann = client(&server, 1);
    let file = asking(OplockLevel::None).send(&mut ann, "file").unwrap();
    assert_eq!(lock(&mut ann, file.id, 0, (0, 1), EXCLUSIVE), NtStatus::SUCCESS);
    let lease = leasing(ONE, R).send(&mut ann, "file").unwrap().lease.unwrap();
    assert_eq!((lease.state, lease.v2.unwrap().epoch), (NONE, 10));
}

/// Renames what is open, and takes the answer later.
fn start_rename(client: &mut Client, file: FileId, name: &str) {
    let mut buffer = Vec::new();
    let rename = Rename { flags: RenameFlags::REPLACE_IF_EXISTS, root_directory: 0, name: name.into() };
    rename.encode_into(&mut buffer).unwrap();
    client.send(Command::SetInfo, &set_body(file, FileInfoClass::Rename, &buffer));
}

/// The answer to a request that may have been said to wait.
fn status(client: &mut Client) -> NtStatus {
    let reply = client.receive();
    if reply.status() == NtStatus::PENDING { client.receive().status() } else { reply.status() }
}

#[test]
fn a_client_is_asked_to_close_what_a_rename_would_replace() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let target = leasing(ONE, RWH).send(&mut ann, "target").unwrap();
    let source = asking(OplockLevel::None).send(&mut bob, "source").unwrap();
    start_rename(&mut bob, source.id, "target");
    assert_eq!(broken(&mut ann, ONE), (RWH, RW, true));
    assert_eq!(keep(&mut ann, ONE, RW), NtStatus::SUCCESS);
    assert_eq!(status(&mut bob), NtStatus::ACCESS_DENIED, "it is still open");
    start_rename(&mut bob, source.id, "target");
    assert_eq!(status(&mut bob), NtStatus::ACCESS_DENIED, "nobody is asked twice");
    ann.close(target.id).unwrap();
    let target = leasing(ONE, RWH).send(&mut ann, "target").unwrap();
    start_rename(&mut bob, source.id, "target");
    assert_eq!(broken(&mut ann, ONE), (RWH, RW, true));
    ann.close(target.id).unwrap();
    assert_eq!(status(&mut bob), NtStatus::SUCCESS);
}

#[test]
fn clients_are_asked_one_by_one_to_close_what_is_below_a_directory_that_moves() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let directory = of_directory(asking(OplockLevel::None)).send(&mut bob, "dir").unwrap();
    let open = |ann: &mut Client, key, name: &str| leasing(key, RH).send(ann, name).unwrap().id;
    let files = |ann: &mut Client| [(ONE, open(ann, ONE, r"dir\one")), (TWO, open(ann, TWO, r"dir\two"))];
    // Closes the file whose lease is broken, or keeps it.
    let answer = |ann: &mut Client, files: [([u8; 16], FileId); 2], closes| {
        let told = told(ann);
        assert_eq!((told.current_lease_state, told.new_lease_state), (RH, R));
        let (key, file) = files.into_iter().find(|(key, _)| *key == told.lease_key).unwrap();
        if closes { ann.close(file).unwrap() } else { assert_eq!(keep(ann, key, R), NtStatus::SUCCESS) }
    };
    let these = files(&mut ann);
    start_rename(&mut bob, directory.id, "moved");
    answer(&mut ann, these, false);
    assert_eq!(status(&mut bob), NtStatus::ACCESS_DENIED);
    assert!(ann.is_alive(), "the other lease is left alone");
    these.into_iter().for_each(|(_, file)| ann.close(file).unwrap());
    let these = files(&mut ann);
    start_rename(&mut bob, directory.id, "moved");
    answer(&mut ann, these, true);
    answer(&mut ann, these, true);
    assert_eq!(status(&mut bob), NtStatus::SUCCESS);
}

#[test]
fn the_lease_of_a_directory_is_named_by_its_key_whoever_names_it() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let mut listing = of_directory(leasing(ONE, RH));
    listing.opening.access = AccessMask::LIST_DIRECTORY;
    listing.send(&mut ann, "dir").unwrap();
    let below = leasing_below(ONE, TWO, RWH).send(&mut ann, r"dir\file").unwrap();
    start_rename(&mut ann, below.id, r"dir\moved");
    assert_eq!(status(&mut ann), NtStatus::SUCCESS);
    let mut link = Vec::new();
    let further = Rename { flags: RenameFlags::empty(), root_directory: 0, name: r"dir\linked".into() };
    further.encode_into(&mut link).unwrap();
    assert_eq!(set(&mut ann, below.id, FileInfoClass::Link, &link), Ok(()));
    ann.close(below.id).unwrap();
    let other = leasing_below(ONE, TWO, RWH).send(&mut bob, r"dir\other").unwrap();
    bob.write(other.id, 0, b"x").unwrap();
    bob.close(other.id).unwrap();
    assert!(ann.is_alive(), "nobody was told of anything");
    leasing_below(TWO, ONE, RWH).send(&mut bob, r"dir\third").unwrap();
    assert_eq!(broken(&mut ann, ONE), (RH, NONE, true));
}

#[test]
fn a_deletion_leaves_a_lease_alone_that_is_named_by_who_asked_for_it_and_by_who_closes_last() {
    let server = TestServer::start(Config::default());
    let mut ann = client(&server, 1);
    let directory = of_directory(leasing(ONE, RH)).send(&mut ann, "dir").unwrap();
    let doomed = |ann: &mut Client, name: &str, parent| {
        let first = leasing_below(ONE, TWO, R).send(ann, name).unwrap();
        let second = leasing_below(parent, [3; 16], R).send(ann, name).unwrap();
        assert_eq!(set(ann, first.id, FileInfoClass::Disposition, &[1]), Ok(()));
        ann.close(first.id).unwrap();
        assert!(ann.is_alive(), "nothing is deleted yet");
        second.id
    };
    let last = doomed(&mut ann, r"dir\same", ONE);
    assert_eq!(ann.close(last), Ok(()));
    assert!(ann.is_alive(), "nobody was told of anything");
    let last = doomed(&mut ann, r"dir\different", [4; 16]);
    ann.send(Command::Close, &close_body(last));
    let told = [ann.receive(), ann.receive()].map(|reply| reply.header.command);
    assert!(told.contains(&Command::Close) && told.contains(&Command::OplockBreak), "{told:?}");
    ann.close(directory.id).unwrap();
}

#[test]
fn a_client_is_asked_to_close_the_directory_that_a_rename_leads_to() {
    let server = TestServer::start(Config::default());
    let (mut ann, mut bob) = (client(&server, 1), client(&server, 2));
    let mut deleting = of_directory(leasing(ONE, RH));
    deleting.opening.access = AccessMask::DELETE;
    let directory = deleting.send(&mut ann, "dir").unwrap();
    let file = asking(OplockLevel::None).send(&mut bob, "file").unwrap();
    start_rename(&mut bob, file.id, r"dir\file");
    assert_eq!(broken(&mut ann, ONE), (RH, R, true));
    assert_eq!(keep(&mut ann, ONE, R), NtStatus::SUCCESS);
    assert_eq!(status(&mut bob), NtStatus::SHARING_VIOLATION, "it is still open for deleting");
    ann.close(directory.id).unwrap();
    let directory = deleting.send(&mut ann, "dir").unwrap();
    start_rename(&mut bob, file.id, r"dir\file");
    assert_eq!(broken(&mut ann, ONE), (RH, R, true));
    ann.close(directory.id).unwrap();
    assert_eq!(status(&mut bob), NtStatus::SUCCESS);
}

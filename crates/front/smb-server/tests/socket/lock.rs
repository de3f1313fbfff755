//! LOCK. [MS-SMB2] 3.3.5.14. (What waits, and CANCEL: `cancel`.)

use anabranch_smb_server::Config;
use smb_wire::create::{CreateAction, CreateDisposition};
use smb_wire::lock::{LockElement, LockFlags, Request};
use smb_wire::{AccessMask, Command, FileId, NtStatus};

use crate::client::{Client, TestServer};
use crate::opening::{Opening, make_file};

const SHARED: LockFlags = LockFlags::SHARED_LOCK.union(LockFlags::FAIL_IMMEDIATELY);
const EXCLUSIVE: LockFlags = LockFlags::EXCLUSIVE_LOCK.union(LockFlags::FAIL_IMMEDIATELY);
const UNLOCK: LockFlags = LockFlags::UNLOCK;
const WAIT: LockFlags = LockFlags::EXCLUSIVE_LOCK;

type Range = (u64, u64, LockFlags);

fn body(file_id: FileId, (index, number): (u32, u8), ranges: &[Range]) -> Vec<u8> {
    let element =
        |(offset, length, flags): &Range| LockElement { offset: *offset, length: *length, flags: *flags };
    let locks = ranges.iter().map(element).collect();
    let request = Request { lock_sequence_number: number, lock_sequence_index: index, file_id, locks };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    body
}

fn lock(client: &mut Client, file_id: FileId, ranges: &[Range]) -> NtStatus {
    client.call(Command::Lock, &body(file_id, (0, 0), ranges)).status()
}

/// A client with two opens of a file of 100 bytes.
fn two_opens(server: &TestServer) -> (Client, FileId, FileId) {
    let mut client = server.client();
    make_file(&mut client, "f", &[7; 100]);
    let opening = Opening::default();
    let one = opening.send(&mut client, "f").unwrap().id;
    let two = opening.send(&mut client, "f").unwrap().id;
    (client, one, two)
}

#[test]
fn elements_that_make_no_sense_are_refused() {
    let server = TestServer::start(Config::default());
    let (mut client, file, _) = two_opens(&server);
    let none = LockFlags::empty();
    let invalid: [&[Range]; 10] = [
        &[(0, 10, none)],
        &[(0, 10, LockFlags::FAIL_IMMEDIATELY)],
        &[(0, 10, LockFlags::from_bits_retain(!0x17))],
        &[(0, 10, SHARED | EXCLUSIVE)],
        &[(0, 10, UNLOCK | LockFlags::SHARED_LOCK)],
        &[(0, 10, UNLOCK | LockFlags::FAIL_IMMEDIATELY)],
        // Several may not wait, and nothing is locked and unlocked together.
        &[(0, 10, SHARED), (20, 10, LockFlags::SHARED_LOCK)],
        &[(0, 10, WAIT), (20, 10, EXCLUSIVE)],
        &[(0, 10, EXCLUSIVE), (20, 10, UNLOCK)],
        &[(0, 10, none), (20, 10, UNLOCK)],
    ];
    for ranges in invalid {
        assert_eq!(lock(&mut client, file, ranges), NtStatus::INVALID_PARAMETER, "{ranges:?}");
    }
    assert_eq!(lock(&mut client, file, &[(u64::MAX, 2, EXCLUSIVE)]), NtStatus::INVALID_LOCK_RANGE);
    assert_eq!(lock(&mut client, file, &[(u64::MAX, 2, UNLOCK)]), NtStatus::INVALID_LOCK_RANGE);
    // LockCount, 2 bytes into the body: none, and more than there are.
    for count in [0_u16, 2, 0xFFFF] {
        let mut body = body(file, (0, 0), &[(0, 10, EXCLUSIVE)]);
        body[2..4].copy_from_slice(&count.to_le_bytes());
        assert_eq!(client.call(Command::Lock, &body).status(), NtStatus::INVALID_PARAMETER, "{count}");
    }
    assert_eq!(lock(&mut client, file, &[(0, 100, EXCLUSIVE)]), NtStatus::SUCCESS, "nothing was locked");
}

#[test]
fn locks_exclude_each_other_and_the_io_of_others() {
    let server = TestServer::start(Config::default());
    let (mut client, one, two) = two_opens(&server);
    let client = &mut client;
    assert_eq!(lock(client, one, &[(0, 10, EXCLUSIVE)]), NtStatus::SUCCESS);
    for flags in [SHARED, EXCLUSIVE] {
        assert_eq!(lock(client, two, &[(5, 10, flags)]), NtStatus::LOCK_NOT_GRANTED);
    }
    assert_eq!(lock(client, one, &[(5, 10, EXCLUSIVE)]), NtStatus::LOCK_NOT_GRANTED, "not over one's own");
    assert_eq!(client.read(two, 9, 1), Err(NtStatus::FILE_LOCK_CONFLICT));
    assert_eq!(client.write(two, 0, b"x"), Err(NtStatus::FILE_LOCK_CONFLICT));
    assert_eq!((client.read(two, 10, 1), client.write(two, 10, b"x")), (Ok(vec![7]), Ok(())));
    assert_eq!((client.read(one, 0, 1), client.write(one, 0, b"x")), (Ok(vec![7]), Ok(())));
    assert_eq!(lock(client, two, &[(0, 10, UNLOCK)]), NtStatus::RANGE_NOT_LOCKED, "it is another's");
    assert_eq!(lock(client, one, &[(0, 9, UNLOCK)]), NtStatus::RANGE_NOT_LOCKED, "exactly the range");
    assert_eq!(lock(client, one, &[(0, 10, UNLOCK)]), NtStatus::SUCCESS);

    assert_eq!(lock(client, one, &[(0, 10, SHARED)]), NtStatus::SUCCESS);
    assert_eq!(lock(client, two, &[(0, 10, SHARED)]), NtStatus::SUCCESS);
    assert_eq!(client.read(two, 0, 10).map(|data| data.len()), Ok(10));
    assert_eq!(client.write(two, 0, b"x"), Err(NtStatus::FILE_LOCK_CONFLICT));
    assert_eq!(client.write(one, 0, b"x"), Err(NtStatus::FILE_LOCK_CONFLICT), "nor may the holder write");
    client.close(one).unwrap();
    assert_eq!(lock(client, two, &[(0, 10, UNLOCK)]), NtStatus::SUCCESS);
    assert_eq!(client.write(two, 0, b"x"), Ok(()), "locks end with their open");
}

#[test]
fn all_ranges_are_locked_or_none() {
    let server = TestServer::start(Config::default());
    let (mut client, one, two) = two_opens(&server);
    let client = &mut client;
    assert_eq!(lock(client, two, &[(40, 10, EXCLUSIVE)]), NtStatus::SUCCESS);
    let ranges = [(0, 10, EXCLUSIVE), (20, 10, SHARED), (45, 1, EXCLUSIVE)];
    assert_eq!(lock(client, one, &ranges), NtStatus::LOCK_NOT_GRANTED);
    assert_eq!(lock(client, two, &[(0, 30, EXCLUSIVE)]), NtStatus::SUCCESS);
    assert_eq!(lock(client, two, &[(0, 30, UNLOCK), (40, 10, UNLOCK)]), NtStatus::SUCCESS);
    assert_eq!(lock(client, one, &ranges), NtStatus::SUCCESS);
    // Unlocking goes as far as it gets.
    let unlock = [(0, 10, UNLOCK), (20, 9, UNLOCK), (45, 1, UNLOCK)];
    assert_eq!(lock(client, one, &unlock), NtStatus::RANGE_NOT_LOCKED);
    assert_eq!(lock(client, two, &[(0, 10, EXCLUSIVE)]), NtStatus::SUCCESS);
    assert_eq!(lock(client, two, &[(45, 1, EXCLUSIVE)]), NtStatus::LOCK_NOT_GRANTED);
    let mixed = [(45, 1, UNLOCK), (50, 1, EXCLUSIVE)];
    assert_eq!(lock(client, one, &mixed), NtStatus::INVALID_PARAMETER);
    assert_eq!(lock(client, two, &[(45, 1, EXCLUSIVE)]), NtStatus::SUCCESS, "the first was unlocked");
}

#[test]
fn a_lock_is_waited_for_and_ends_with_its_open() {
    let server = TestServer::start(Config::default());
    let (mut holder, held, _) = two_opens(&server);
    assert_eq!(lock(&mut holder, held, &[(0, 10, WAIT)]), NtStatus::SUCCESS, "nothing is in the way");
    let mut waiter = server.client();
    let file = Opening::default().send(&mut waiter, "f").unwrap().id;
    waiter.send(Command::Lock, &body(file, (0, 0), &[(5, 10, WAIT)]));
    assert_eq!(waiter.receive().status(), NtStatus::PENDING);
    assert_eq!(lock(&mut holder, held, &[(0, 10, UNLOCK)]), NtStatus::SUCCESS);
    assert_eq!(waiter.receive().status(), NtStatus::SUCCESS);
    assert_eq!(lock(&mut holder, held, &[(0, 10, EXCLUSIVE)]), NtStatus::LOCK_NOT_GRANTED);

    // Whoever closes the open that waits is told that nothing was locked (smbtorture's smb2.lock.cancel).
    holder.send(Command::Lock, &body(held, (0, 0), &[(0, 10, WAIT)]));
    assert_eq!(holder.receive().status(), NtStatus::PENDING);
    let mut close = Vec::new();
    smb_wire::close::Request { flags: smb_wire::close::CloseFlags::empty(), file_id: held }
        .encode(&mut close);
    holder.send(Command::Close, &close);
    let mut answers =
        [holder.receive(), holder.receive()].map(|reply| (reply.header.command, reply.status()));
    answers.sort_by_key(|(command, _)| *command != Command::Close);
    let expected = [(Command::Close, NtStatus::SUCCESS), (Command::Lock, NtStatus::RANGE_NOT_LOCKED)];
    assert_eq!(answers, expected);
}

#[test]
fn locked_files_can_be_overwritten() {
    let server = TestServer::start(Config::default());
    let (mut client, one, _) = two_opens(&server);
    assert_eq!(lock(&mut client, one, &[(0, 10, EXCLUSIVE)]), NtStatus::SUCCESS);
    // smbtorture's smb2.lock.truncate
    let overwrite = Opening::with(CreateDisposition::Overwrite);
    assert_eq!(overwrite.try_out(&mut client, "f"), Ok(CreateAction::Overwritten));
}

#[test]
fn only_data_can_be_locked() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let directory = Opening::directory().send(&mut client, "d").unwrap().id;
    assert_eq!(lock(&mut client, directory, &[(0, 1, SHARED)]), NtStatus::INVALID_PARAMETER);
    make_file(&mut client, "f", b"");
    let access = AccessMask::READ_ATTRIBUTES;
    let blind = Opening { access, ..Opening::default() }.send(&mut client, "f").unwrap().id;
    assert_eq!(lock(&mut client, blind, &[(0, 1, SHARED)]), NtStatus::ACCESS_DENIED);
}

#[test]
fn without_channels_sequences_say_nothing() {
    let server = TestServer::start(Config::default());
    let (mut client, file, _) = two_opens(&server);
    let again = body(file, (1, 1), &[(0, 10, EXCLUSIVE)]);
    assert_eq!(client.call(Command::Lock, &again).status(), NtStatus::SUCCESS);
    assert_eq!(client.call(Command::Lock, &again).status(), NtStatus::LOCK_NOT_GRANTED);
}

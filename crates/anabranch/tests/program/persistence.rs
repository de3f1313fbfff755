//! The program is killed and started again: persistent opens are there, with their locks, and so is each write, once.
//! [MS-SMB2] 3.3.1.10 (Open.IsPersistent), 3.3.5.9.12. So are the burst credits of shares.

use std::path::PathBuf;

use smb_wire::lock::LockFlags;
use smb_wire::negotiate::Capabilities;
use smb_wire::{Command, FileId, Guid, HeaderFlags, NtStatus};
use tempfile::TempDir;

use crate::persistent::{EXCLUSIVE, lock, open, open_persistent, reclaim};
use crate::raw::{Client, write_body};
use crate::server::{Server, flags, path, program};
use smb_proto::dialect::Dialect;

const BLOCK: usize = 4096;
const BLOCKS: u64 = 64;

fn serve(directory: &TempDir) -> Server {
    let mut flags = flags(directory);
    flags.extend(["--continuous-availability", "data"].map(str::to_owned));
    let arguments: Vec<&str> = flags.iter().map(String::as_str).collect();
    Server::start(&arguments)
}

fn client(server: &Server, guid: Guid, previous_session_id: u64) -> Client {
    let mut client = Client::connect(server.address("smb").parse().unwrap());
    client.capabilities |= Capabilities::PERSISTENT_HANDLES;
    client.client_guid = guid;
    client.previous_session_id = previous_session_id;
    client.negotiate(&[Dialect::Smb311]);
    client.log_in("anna", "hush-hush").unwrap();
    client.tree_connect("data").unwrap();
    client
}

fn block(number: u64, fill: u8) -> Vec<u8> {
    let mut block = vec![fill; BLOCK];
    block[..8].copy_from_slice(&number.to_le_bytes());
    block
}

/// Sends the writes of these blocks, all at once, and waits for so many answers: the blocks that were answered for.
fn write_blocks(
    client: &mut Client,
    file: FileId,
    blocks: &[u64],
    is_replay: bool,
    answers: usize,
) -> Vec<u64> {
    let mut sent = Vec::new();
    for &number in blocks {
        let mut header = client.header(Command::Write);
        header.flags.set(HeaderFlags::REPLAY_OPERATION, is_replay);
        client.send_with(&header, &write_body(file, number * BLOCK as u64, &block(number, 1)));
        sent.push((header.message_id, number));
    }
    let answered = (0..answers).map(|_| {
        let message_id = client.receive().ok().unwrap().header.message_id;
        sent.iter().find(|(id, _)| *id == message_id).unwrap().1
    });
    answered.collect()
}

#[test]
fn a_persistent_open_is_there_after_the_program_was_killed_and_so_is_each_write() {
    let directory = tempfile::tempdir().unwrap();
    let file: PathBuf = path(&directory, "data/f").into();
    let mut server = serve(&directory);
    let mut one = client(&server, Guid([1; 16]), 0);
    let mut id = open_persistent(&mut one);
    assert_eq!(lock(&mut one, id, EXCLUSIVE), NtStatus::SUCCESS);

    let mut missing: Vec<u64> = (0..BLOCKS).collect();
    for kill in 0..3 {
        // Some writes are answered for, the others are on their way when the program ends.
        let answered = write_blocks(&mut one, id, &missing, kill > 0, 10);
        assert_eq!(server.end_with("KILL"), None);
        let kept = std::fs::read(&file).unwrap();
        for &number in &answered {
            let start = usize::try_from(number).unwrap() * BLOCK;
            assert_eq!(kept[start..start + BLOCK], block(number, 1), "block {number} was acknowledged");
        }
        missing.retain(|number| !answered.contains(number));

        server = serve(&directory);
        let mut other = client(&server, Guid([2; 16]), 0);
        assert_eq!(
            open(&mut other, Vec::new()),
            Err(NtStatus::FILE_NOT_AVAILABLE),
            "before its client is back"
        );
        one = client(&server, Guid([1; 16]), one.session_id);
        let again = reclaim(&mut one, id).unwrap();
        assert_eq!(again.persistent, id.persistent);
        id = again;
        let (others, _) = open(&mut other, Vec::new()).unwrap();
        assert_eq!(other.read(others, 0, 1), Err(NtStatus::FILE_LOCK_CONFLICT));
        assert_eq!(lock(&mut other, others, EXCLUSIVE), NtStatus::LOCK_NOT_GRANTED);
    }
    write_blocks(&mut one, id, &missing, true, missing.len());
    // What came later stays: none of what was sent before takes effect again.
    one.write(id, 0, &block(0, 2)).unwrap();
    let mut whole: Vec<u8> = (0..BLOCKS).flat_map(|number| block(number, 1)).collect();
    whole[..BLOCK].copy_from_slice(&block(0, 2));
    assert!(std::fs::read(&file).unwrap() == whole);

    // What is unlocked and closed is so for the next one, too.
    assert_eq!(lock(&mut one, id, LockFlags::UNLOCK), NtStatus::SUCCESS);
    assert_eq!(server.end_with("KILL"), None);
    server = serve(&directory);
    one = client(&server, Guid([1; 16]), one.session_id);
    id = reclaim(&mut one, id).unwrap();
    let mut other = client(&server, Guid([2; 16]), 0);
    let (others, _) = open(&mut other, Vec::new()).unwrap();
    assert_eq!(lock(&mut other, others, EXCLUSIVE), NtStatus::SUCCESS);
    one.close(id).unwrap();
    assert_eq!(server.end_with("KILL"), None);
    server = serve(&directory);
    one = client(&server, Guid([1; 16]), one.session_id);
    assert_eq!(reclaim(&mut one, id), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    open(&mut client(&server, Guid([2; 16]), 0), Vec::new()).unwrap();
}

#[test]
fn a_server_that_stood_by_has_the_persistent_opens_of_one_that_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut owner = serve(&directory);
    let mut one = client(&owner, Guid([1; 16]), 0);
    let id = open_persistent(&mut one);
    assert_eq!(lock(&mut one, id, EXCLUSIVE), NtStatus::SUCCESS);
    one.write(id, 0, &block(0, 1)).unwrap();

    let log = path(&directory, "log");
    let to_log = std::fs::File::create(&log).unwrap();
    let mut flags = flags(&directory);
    flags.extend(["--continuous-availability", "data", "--wait-for-state"].map(str::to_owned));
    let standby = std::thread::spawn(move || {
        let arguments: Vec<&str> = flags.iter().map(String::as_str).collect();
        Server::start_logging(&arguments, to_log.into())
    });
    let stands_by = || std::fs::read_to_string(&log).unwrap().contains("standing by");
    let begun = std::time::Instant::now();
    while !stands_by() {
        assert!(begun.elapsed().as_secs() < 60, "it does not stand by");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(owner.end_with("KILL"), None);
    let server = standby.join().unwrap();

    let mut other = client(&server, Guid([2; 16]), 0);
    assert_eq!(open(&mut other, Vec::new()), Err(NtStatus::FILE_NOT_AVAILABLE), "before its client is back");
    one = client(&server, Guid([1; 16]), one.session_id);
    let again = reclaim(&mut one, id).unwrap();
    assert_eq!((again.persistent, one.read(again, 0, 8).unwrap()), (id.persistent, vec![0; 8]));
    let (others, _) = open(&mut other, Vec::new()).unwrap();
    assert_eq!(lock(&mut other, others, EXCLUSIVE), NtStatus::LOCK_NOT_GRANTED);
}

/// Burst credits that a share has, as the server that runs tells them.
fn credits(directory: &TempDir, name: &str) -> u64 {
    let state = path(directory, "state");
    let shown = program(&["share", "show", name, "--json", "--state", &state]).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    shown["activity"]["burst_credits"].as_u64().unwrap()
}

#[test]
fn burst_credits_are_there_after_a_restart_and_nobody_has_more_for_killing_the_program() {
    const MOST: u64 = 1_000_000;
    // What is held back: 990 above the baseline in each of 10 seconds. What accrues until a test looks: 10 in a second.
    const RESERVE: u64 = 9_900;
    const ACCRUED: u64 = 10 * 60;
    let directory = tempfile::tempdir().unwrap();
    let mut server = serve(&directory);
    std::fs::create_dir(path(&directory, "bursts")).unwrap();
    let (served, state) = (path(&directory, "bursts"), path(&directory, "state"));
    let plan = "custom iops=10 burst-iops=1000 burst-credits=1000000 io-unit=4KiB";
    let made =
        program(&["share", "create", "bursts", &served, "--plan", plan, "--state", &state]).output().unwrap();
    assert!(made.status.success());
    assert_eq!(credits(&directory, "bursts"), MOST);
    assert_eq!(server.end_with("KILL"), None);
    server = serve(&directory);
    let found = credits(&directory, "bursts");
    let expected = MOST - RESERVE..=MOST - RESERVE + ACCRUED;
    assert!(expected.contains(&found), "{found}: a share that is new has written it down");

    // More than what is held back is spent: so it was written down meanwhile.
    let mut client = client(&server, Guid([1; 16]), 0);
    client.tree_connect("bursts").unwrap();
    let (file, _) = open(&mut client, Vec::new()).unwrap();
    client.write(file, 0, &[1; 65_536]).unwrap();
    let before = credits(&directory, "bursts");
    let mut left = before;
    while left > before - RESERVE - 2_000 {
        for _ in 0..16 {
            client.read(file, 0, 65_536).unwrap();
        }
        left = credits(&directory, "bursts");
    }
    assert_eq!(server.end_with("KILL"), None);
    server = serve(&directory);
    let found = credits(&directory, "bursts");
    assert!((left - 2 * RESERVE..=left + ACCRUED).contains(&found), "{found} of {left}");

    // A clean end loses nothing.
    assert_eq!(server.end_with("TERM"), Some(0));
    let _server = serve(&directory);
    let after = credits(&directory, "bursts");
    assert!((found..=found + ACCRUED).contains(&after), "{after} of {found}");
}

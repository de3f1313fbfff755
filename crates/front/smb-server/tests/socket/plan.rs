//! What clients see of a share's plan: waiting, CANCEL, sizes, the largest file, the numbers of opens.

use std::time::{Duration, Instant, SystemTime};

use anabranch_smb_server::Config;
use smb_wire::create::CreateDisposition;
use smb_wire::fscc::fs_info::FullSize;
use smb_wire::fscc::{FileInfoClass, FsInfoClass};
use smb_wire::query_info::InfoType;
use smb_wire::{AccessMask, Command, FileId, NtStatus};

use crate::client::{Client, TestServer, read_body};
use crate::information::{Query, set};
use crate::opening::Opening;

const DEADLINE: Duration = Duration::from_secs(60);

fn server(plan: &str) -> TestServer {
    let server = TestServer::start(Config::default());
    server.share.set_plan(plan.parse().unwrap(), SystemTime::now()).unwrap();
    server
}

fn waits_until(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is() {
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A file of 64 KiB, and a share that is in debt: the next READ waits for a minute.
fn in_debt(server: &TestServer) -> (Client, FileId) {
    let mut client = server.client();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    client.write(file, 0, &[1; 65_536]).unwrap();
    server.share.set_plan("custom read=1KiB/s".parse().unwrap(), SystemTime::now()).unwrap();
    assert_eq!(
        client.read(file, 0, 65_536).unwrap().len(),
        65_536,
        "the first one passes, whatever its size"
    );
    (client, file)
}

#[test]
fn what_is_over_budget_waits_and_does_not_fail() {
    let server = server("custom iops=40");
    let mut client = server.client();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    client.write(file, 0, b"data").unwrap();
    let begun = Instant::now();
    // A quarter of a second's worth passes at once, ten operations.
    for _ in 0..40 {
        assert_eq!(client.read(file, 0, 4).unwrap(), b"data");
    }
    assert!(begun.elapsed() >= Duration::from_millis(700), "{:?}", begun.elapsed());
    let counts = server.share.accounting().total("smb", "Read");
    assert_eq!((counts.calls, counts.errors), (40, 0));
    assert!(!counts.limit.time.is_zero() && counts.limit.time <= counts.time, "{counts:?}");
}

#[test]
fn a_read_that_waits_is_cancelled() {
    let server = server("unlimited");
    let (mut client, file) = in_debt(&server);
    client.send(Command::Read, &read_body(file, 0, 4096));
    // [MS-SMB2] 3.3.4.2: what takes long is told of.
    let interim = client.receive();
    assert_eq!(interim.status(), NtStatus::PENDING);
    assert_eq!(server.share.limits_status().waiting, 1);
    let mut cancel = client.header(Command::Cancel);
    client.next_message_id -= 1; // CANCEL uses no identifier
    (cancel.message_id, cancel.target) = (0, interim.header.target);
    client.send_with(&cancel, &[4, 0, 0, 0]);
    let answer = client.receive();
    assert_eq!(answer.status(), NtStatus::CANCELLED);
    assert_eq!(answer.header.message_id, interim.header.message_id);
    waits_until("its place is free", || server.share.limits_status().waiting == 0);
    client.close(file).unwrap();
}

#[test]
fn a_client_that_goes_away_frees_its_place() {
    let server = server("unlimited");
    let (mut client, file) = in_debt(&server);
    for _ in 0..3 {
        client.send(Command::Read, &read_body(file, 0, 4096));
    }
    waits_until("three wait", || server.share.limits_status().waiting == 3);
    drop(client);
    waits_until("nobody waits", || server.share.limits_status().waiting == 0);
}

#[test]
fn the_size_of_the_share_is_told_and_held() {
    let server = server("custom capacity=100KiB");
    let mut client = server.client();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    let size = Query {
        info_type: InfoType::FileSystem,
        class: FsInfoClass::FullSize.into(),
        additional: 0,
        limit: 4096,
    };
    // This begins the count. A file that is written meanwhile might be counted twice for a moment.
    size.get(&mut client, file).unwrap();
    waits_until("what is used is counted", || server.share.limits_status().used == Some(0));
    client.write(file, 0, &[1; 60 * 1024]).unwrap();
    let size = FullSize::decode(&size.get(&mut client, file).unwrap()).unwrap();
    let unit = u64::from(size.sectors_per_allocation_unit * size.bytes_per_sector);
    assert_eq!(size.total_allocation_units * unit, 100 * 1024);
    assert_eq!(size.caller_available_allocation_units * unit, 40 * 1024);

    let full = Err(NtStatus::DISK_FULL);
    assert_eq!(client.write(file, 60 * 1024, &[2; 40 * 1024 + 1]), full);
    assert_eq!(client.read(file, 0, 65_536).unwrap(), [1; 60 * 1024], "nothing of it is written");
    client.write(file, 60 * 1024, &[2; 40 * 1024]).unwrap();
    assert_eq!(client.write(file, 100 * 1024, &[3; 1]), full);
    client.write(file, 0, &[4; 1000]).unwrap();
    let other = client.create("empty", CreateDisposition::Create).unwrap();
    assert_eq!(client.write(other, 0, b"x"), full);
    assert_eq!(set(&mut client, other, FileInfoClass::EndOfFile, &1_u64.to_le_bytes()), full);
    set(&mut client, file, FileInfoClass::EndOfFile, &10_u64.to_le_bytes()).unwrap();
    client.write(other, 0, b"x").unwrap();
}

#[test]
fn the_largest_file_is_as_large_as_the_plan_says() {
    let server = server("custom file-size=64KiB");
    let mut client = server.client();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    let refused = Err(NtStatus::FILE_SYSTEM_LIMITATION);
    client.write(file, 0, &[1; 1000]).unwrap();
    assert_eq!(client.write(file, 65_535, b"ab"), refused);
    assert_eq!(set(&mut client, file, FileInfoClass::EndOfFile, &65_537_u64.to_le_bytes()), refused);
    assert_eq!(client.read(file, 0, 65_536).unwrap(), [1; 1000], "nothing of it is written");
    set(&mut client, file, FileInfoClass::EndOfFile, &65_536_u64.to_le_bytes()).unwrap();
    client.write(file, 65_535, b"a").unwrap();
    // A file that is larger than a new plan allows may be changed, and does not grow.
    server.share.set_plan("custom file-size=1KiB".parse().unwrap(), SystemTime::now()).unwrap();
    client.write(file, 60_000, b"changed").unwrap();
    assert_eq!(client.write(file, 65_536, b"x"), refused);
}

#[test]
fn as_many_opens_as_the_plan_says() {
    let server = server("custom root-handles=1 file-handles=2 handles=4");
    let mut client = server.client();
    let mut other = server.client();
    let refused = Err(NtStatus::QUOTA_EXCEEDED);
    let first = client.create("f", CreateDisposition::Create).unwrap();
    other.create("f", CreateDisposition::Open).unwrap();
    assert_eq!(client.create("f", CreateDisposition::Open), refused, "of whatever client");
    let look = Opening { access: AccessMask::READ_DATA, ..Opening::default() };
    let root = |client: &mut Client| look.send(client, "").map(drop);
    root(&mut client).unwrap();
    assert_eq!(root(&mut other), Err(NtStatus::QUOTA_EXCEEDED));
    client.create("g", CreateDisposition::Create).unwrap();
    assert_eq!(other.create("g", CreateDisposition::Open), refused, "four of the share");
    client.close(first).unwrap();
    client.create("f", CreateDisposition::Open).unwrap();
    server.share.set_plan("unlimited".parse().unwrap(), SystemTime::now()).unwrap();
    client.create("f", CreateDisposition::Open).unwrap();
}

//! A client of NFSv4.1 that holds files open and a lock in each, and writes numbers to the first, whatever becomes of its server. At the
//! end, each number whose writing was acknowledged is read.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::lock::{self, LockType, Locker};
use nfs_wire::v4::open::ShareDeny;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ClientId, OwnerId, StableHow, StateOwner};
use nfs_wire::v4::{read, write};

use crate::nfs4::{Nfs4, Opened, put, results, status};

const EVERY: Duration = Duration::from_millis(10);
/// For a server that is there and does not answer, as one whose process is stopped.
const SILENT: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(30);
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// The client of this name has a server whose session with the storage is ended: it gets errors until the server notices.
const EVICTED: &str = "evicted";
const NUMBER_BYTES: u64 = 8;

/// Writes for so long, and prints each gap between two answers in which the server was lost, and how long until all files and locks were
/// back.
pub(crate) fn hold(address: &str, name: &str, length: Duration, files: usize) {
    let is_evicted = name == EVICTED;
    let mut client = Nfs4::start(SOURCE, address, name);
    client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let top = client.top("data").unwrap();
    let mut held: Vec<_> =
        (0..files).map(|number| opened_after_grace(&mut client, &top, &file_name(name, number))).collect();
    for opened in &held {
        lock(&mut client, opened, name, false).unwrap().unwrap();
    }
    println!("writing");
    let (begun, mut answered, mut number, mut is_lost) = (Instant::now(), Instant::now(), 0_u64, false);
    let mut longest = Duration::ZERO;
    // It ends with an answer, however long that takes.
    while begun.elapsed() < length || is_lost {
        client.stream.set_read_timeout(Some(SILENT)).unwrap();
        match put_number(&mut client, &held[0], number) {
            Ok(Ok(())) => {
                if std::mem::take(&mut is_lost) {
                    println!("gap {} ms", answered.elapsed().as_millis());
                }
                longest = longest.max(answered.elapsed());
                (number, answered) = (number + 1, Instant::now());
            }
            // The server has yet to notice that its session with the storage has ended.
            Ok(Err(Status::Io)) if is_evicted && answered.elapsed() < 2 * PATIENCE => {}
            lost => {
                assert!(answered.elapsed() < 2 * PATIENCE, "nobody serves: {lost:?}");
                if !is_lost {
                    println!("lost after {} ms: {lost:?}", begun.elapsed().as_millis());
                }
                (client, held) = again(address, name, &held);
                println!("all back after {} ms", answered.elapsed().as_millis());
                is_lost = true;
            }
        }
        std::thread::sleep(EVERY);
    }
    println!("longest wait {} ms", longest.as_millis());
    client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut other = Nfs4::start(SOURCE, address, &format!("{name} too"));
    for file in 0..files {
        let opened = opened_after_grace(&mut other, &top, &file_name(name, file));
        let locked = lock(&mut other, &opened, "other", false).unwrap();
        assert_eq!(locked, Err(Status::Denied), "the lock of {file} is not held");
    }
    for expected in 0..number {
        let found = number_at(&mut client, &held[0], expected);
        assert_eq!(found, expected, "what was acknowledged is not there");
    }
    println!("{number} numbers are there, and the locks are held: {files}");
}

fn file_name(name: &str, number: usize) -> String {
    format!("{name}-{number}")
}

/// Opens the file, when what others had before may be reclaimed no more.
fn opened_after_grace(client: &mut Nfs4, top: &[u8], name: &str) -> Opened {
    let begun = Instant::now();
    loop {
        match client.open(top, name, ShareDeny::NONE) {
            Ok(opened) => return opened,
            Err(status) => assert!(status == Status::Grace && begun.elapsed() < PATIENCE, "{status:?}"),
        }
        std::thread::sleep(EVERY);
    }
}

fn put_number(client: &mut Nfs4, (file, stateid): &Opened, number: u64) -> io::Result<Result<(), Status>> {
    let data = number.to_be_bytes();
    let write = write::Args {
        stateid: *stateid,
        offset: number * NUMBER_BYTES,
        stable: StableHow::FileSync,
        data: &data,
    };
    Ok(status(&client.try_compound(&[put(file), ArgOp::Write(write)])?))
}

fn number_at(client: &mut Nfs4, (file, stateid): &Opened, number: u64) -> u64 {
    let read = read::Args { stateid: *stateid, offset: number * NUMBER_BYTES, count: 8 };
    let body = client.compound(&[put(file), ArgOp::Read(read)]);
    let Some(ResOp::Read(Ok(found))) = results(&body).pop() else { panic!("{body:?}") };
    u64::from_be_bytes(found.data.try_into().unwrap())
}

/// Locks the first numbers, if the connection is there until the reply.
fn lock(
    client: &mut Nfs4,
    (file, open_stateid): &Opened,
    owner: &str,
    reclaim: bool,
) -> io::Result<Result<(), Status>> {
    let owner = StateOwner { client_id: ClientId(0), owner: OwnerId(owner.as_bytes()) };
    let locker = Locker::New { open_seqid: 0, open_stateid: *open_stateid, lock_seqid: 0, owner };
    let lock_type = LockType::Write;
    let args = lock::Args { lock_type, reclaim, offset: 0, length: 64, locker };
    Ok(status(&client.try_compound(&[put(file), ArgOp::Lock(args)])?))
}

/// Connects until somebody answers, and reclaims the files and the locks.
fn again(address: &str, name: &str, held: &[Opened]) -> (Nfs4, Vec<Opened>) {
    let begun = Instant::now();
    loop {
        match reclaimed(address, name, held) {
            Ok(found) => return found,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "nobody serves: {error}"),
        }
        std::thread::sleep(EVERY);
    }
}

fn reclaimed(address: &str, name: &str, before: &[Opened]) -> io::Result<(Nfs4, Vec<Opened>)> {
    let mut client = Nfs4::try_reclaiming_within(SILENT, SOURCE, address, name)?;
    client.stream.set_read_timeout(Some(PATIENCE))?;
    let mut held = Vec::new();
    for (file, _) in before {
        match client.try_reclaim(file, ShareDeny::NONE)? {
            Ok(opened) => {
                lock(&mut client, &opened, name, true)?.unwrap();
                held.push(opened);
            }
            // The server was slow, and has what the client had.
            Err(Status::NoGrace) if held.is_empty() => return Ok((client, before.to_vec())),
            Err(status) => panic!("the file cannot be reclaimed: {status:?}"),
        }
    }
    client.try_complete()?;
    Ok((client, held))
}

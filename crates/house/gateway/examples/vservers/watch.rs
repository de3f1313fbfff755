//! A client of NFSv4.1 that holds a file open, and writes to it whatever becomes of its server.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use nfs_wire::v4::open::ShareDeny;

use crate::nfs4::{Nfs4, Opened};

const EVERY: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(30);
const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const NAME: &str = "watch";

/// Writes every 10 ms for so long, and prints each gap between two answers in which the connection was lost. The open file keeps others
/// from writing, so that it must have been reclaimed.
pub(crate) fn watch(address: &str, length: Duration) {
    let mut client = Nfs4::start(HOME, address, NAME);
    let top = client.top("data").unwrap();
    let mut held = client.open(&top, "watched", ShareDeny::WRITE).unwrap();
    println!("writing");
    let (begun, mut answered, mut writes) = (Instant::now(), Instant::now(), 0_u32);
    while begun.elapsed() < length {
        if let Ok(written) = client.try_write(&held) {
            written.unwrap();
            (answered, writes) = (Instant::now(), writes + 1);
        } else {
            (client, held) = again(address, &held);
            client.write(&held).unwrap();
            println!("gap {} ms", answered.elapsed().as_millis());
            (answered, writes) = (Instant::now(), writes + 1);
        }
        std::thread::sleep(EVERY);
    }
    println!("wrote {writes}");
}

/// Connects until somebody answers, and reclaims the file.
fn again(address: &str, held: &Opened) -> (Nfs4, Opened) {
    let begun = Instant::now();
    loop {
        match reclaimed(address, held) {
            Ok(found) => return found,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "nobody serves: {error}"),
        }
        std::thread::sleep(EVERY);
    }
}

fn reclaimed(address: &str, (file, _): &Opened) -> io::Result<(Nfs4, Opened)> {
    let mut client = Nfs4::try_reclaiming(HOME, address, NAME)?;
    let held = client.reclaim(file, ShareDeny::WRITE).unwrap();
    client.complete();
    Ok((client, held))
}

//! Random histories of shares on Btrfs against a model: changes over SMB and NFS, streams, access control lists, snapshots,
//! restores, reverts, and a server that is killed meanwhile (docs/measured/histories.md).
//!
//! `HISTORIES=500 SEED=1 JOBS=4 cargo test -p anabranch --test histories -- --nocapture` runs more than a few. Each history has the
//! seed that is told if it fails.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod chance;
#[allow(dead_code, reason = "the tests of SMB use the rest")]
mod client;
#[allow(dead_code, reason = "the tests of the program use the rest")]
#[path = "../program/disk/mod.rs"]
mod disk;
mod history;
#[allow(dead_code, reason = "the tests of SMB use the rest")]
#[path = "../../../front/smb-server/tests/socket/information.rs"]
mod information;
mod model;
#[path = "../program/needs/mod.rs"]
mod needs;
mod nfs;
mod nfs4;
#[allow(dead_code, reason = "the tests of SMB use the rest")]
#[path = "../../../front/smb-server/tests/socket/opening.rs"]
mod opening;
mod plan;
#[allow(dead_code, reason = "the tests of the program use the rest")]
#[path = "../program/server/mod.rs"]
mod server;
#[allow(dead_code, reason = "the tests of the program use the rest")]
#[path = "../program/nfs4/mod.rs"]
mod session;
mod smb;
#[allow(dead_code, reason = "the tests of the program use the rest")]
#[path = "../program/subvolume/mod.rs"]
mod subvolume;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::history::Counts;
use crate::subvolume::Machine;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

#[test]
fn histories_are_as_the_model_says() {
    let (first, count) = (number("SEED", 1), number("HISTORIES", 8));
    let (next, all, begun) = (AtomicU64::new(first), Mutex::new(Vec::new()), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..number("JOBS", 1) {
            let work = || {
                let Some(mut machine) = Machine::serving() else { return };
                let mut counts = Counts::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    history::run(&mut machine, seed, &mut counts);
                    println!("history {seed} after {:.0?}", begun.elapsed());
                }
                all.lock().unwrap().push(counts);
            };
            let name = "histories_are_as_the_model_says".to_owned();
            std::thread::Builder::new().name(name).spawn_scoped(scope, work).unwrap();
        }
    });
    println!("{count} histories from {first} in {:.0?}: {:?}", begun.elapsed(), all.into_inner().unwrap());
}

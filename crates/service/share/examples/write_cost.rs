//! What quotas and the ransomware alarm cost a write of 4 KiB: processor time of [`Share::write`] with and without them, in turns.
//!
//!     cargo run --release -p anabranch-share --example write_cost -- [DIRECTORY] [ROUNDS]
//!
//! The server spends more on a write than this (the protocol, the network, its protection), so its share of the server's time is less
//! than what is printed.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for developers")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_share::{
    Call, Caller, Case, DirectoryReport, File, Front, Identity, NewObject, Opener, Operation, Patience,
    Proof, RansomwareRule, Settings, Share, ShareId,
};
use nix::sys::resource::{UsageWho, getrusage};
use storage::{Device, FileKind, SetAttributes, Stability, Want};
use storage_local::{LocalOptions, LocalStore};

const BLOCK: u64 = 4096;
/// Blocks of the file that is written over and over.
const BLOCKS: u64 = 4096;
/// Writes of one turn.
const WRITES: u64 = 20_000;

static FRONT: Front =
    Front { name: "bench", patience: Patience::UntilRetry, directories: DirectoryReport::Nothing };
static WRITE: Operation = Operation::new(&FRONT, 1, "Write");

/// A share with one file, in a directory of its own.
struct Place {
    share: Arc<Share>,
    file: File,
    directory: PathBuf,
}

fn call() -> Call {
    let caller = Caller::new(Identity::unix(1000, 1000, vec![]), Proof::Stated);
    let call = Call::new(&WRITE, caller.counted_for(Opener::named("client")), Instant::now());
    call.needs_no_turn();
    call
}

impl Place {
    async fn new(top: &Path, name: &str) -> Self {
        let directory = top.join(format!("write-cost-{}-{name}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let store = LocalStore::open(&directory, LocalOptions::default()).unwrap();
        let share = Share::new(ShareId(1), Settings::new(name), Arc::new(store));
        let new = NewObject {
            kind: FileKind::Regular,
            target: Vec::new(),
            device: Device::default(),
            mode: 0o666,
            umask: 0,
            set: SetAttributes::default(),
            want: Want::empty(),
            security: None,
            mode_bounds: false,
        };
        let root =
            Call::new(&WRITE, Caller::new(Identity::unix(0, 0, vec![]), Proof::Stated), Instant::now());
        root.needs_no_turn();
        let made = share.create(&root, share.root(), b"file", Case::Sensitive, new).await.unwrap();
        let place = Self { share, file: File::Stateless(made.found.node), directory };
        place.write(0, BLOCKS).await;
        place
    }

    /// Writes so many blocks, one after the other.
    async fn write(&self, first: u64, count: u64) {
        for block in first..first + count {
            let data = [7; 4096];
            let at = block * BLOCK;
            self.share.write(&call(), &self.file, at, data, Stability::Unstable).await.unwrap();
        }
    }

    async fn cut(&self, size: u64) {
        let set = SetAttributes { size: Some(size), ..SetAttributes::default() };
        let root = Caller::new(Identity::unix(0, 0, vec![]), Proof::Stated);
        let root = Call::new(&WRITE, root, Instant::now());
        root.needs_no_turn();
        self.share.set_attributes(&root, &self.file, &set, None).await.unwrap();
    }

    /// The processor time of a turn of writes over what is there.
    async fn overwrite(&self) -> Duration {
        let begun = used();
        for _ in 0..WRITES / BLOCKS {
            self.write(0, BLOCKS).await;
        }
        used() - begun
    }

    /// The processor time of a turn of writes at the end of the file.
    async fn append(&self) -> Duration {
        self.cut(0).await;
        let begun = used();
        self.write(0, WRITES).await;
        let took = used() - begun;
        self.cut(BLOCKS * BLOCK).await;
        self.write(0, BLOCKS).await;
        took
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The processor time of this process, with that of the threads that count.
fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let time = |of: nix::sys::time::TimeVal| {
        Duration::new(of.tv_sec().try_into().unwrap(), u32::try_from(of.tv_usec()).unwrap() * 1000)
    };
    time(usage.user_time()) + time(usage.system_time())
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Prints what a write costs in one place and in the other.
async fn compare(plain: &Place, other: &Place, what: &str, rounds: usize) {
    for is_append in [false, true] {
        let (mut ratios, mut without) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let mut times = [0.0; 2];
            for turn in 0..2 {
                let which = (round + turn) % 2;
                let place = if which == 0 { plain } else { other };
                let took = if is_append { place.append().await } else { place.overwrite().await };
                times[which] = took.as_secs_f64();
            }
            ratios.push(times[1] / times[0]);
            without.push(times[0]);
        }
        let place = if is_append { "at the end" } else { "over what is there" };
        let nanos =
            median(without) / (if is_append { WRITES } else { WRITES / BLOCKS * BLOCKS }) as f64 * 1e9;
        let (least, most) =
            (ratios.iter().copied().fold(f64::MAX, f64::min), ratios.iter().copied().fold(0.0, f64::max));
        let ratio = median(ratios);
        println!("4 KiB {place}: {nanos:.0} ns, {ratio:.3} times that ({least:.3} to {most:.3}) with {what}");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut given = std::env::args().skip(1);
    let top = given.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let rounds: usize = given.next().map_or(21, |rounds| rounds.parse().unwrap());
    let (plain, limited) = (Place::new(&top, "plain").await, Place::new(&top, "limited").await);
    let owner = limited.share.attributes(&call(), limited.file.node(), Want::empty()).await.unwrap().uid;
    let quotas =
        [format!("{owner} soft=1TiB hard=2TiB"), "@* hard=2TiB".to_owned(), "/ hard=2TiB".to_owned()];
    limited.share.set_quota_rules(quotas.iter().map(|quota| quota.parse().unwrap()).collect());
    while limited.share.quota_status().await.unwrap().unwrap().counted.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    compare(&plain, &limited, "three quotas", rounds).await;
    drop(limited);
    let watched = Place::new(&top, "watched").await;
    watched.share.set_ransomware_rule(Some(RansomwareRule::default()));
    compare(&plain, &watched, "the ransomware alarm", rounds).await;
}

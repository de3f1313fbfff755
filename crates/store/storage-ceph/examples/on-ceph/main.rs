//! The checks that every store passes, on a Ceph cluster that is there: a test cannot start one.
//!
//! `on-ceph CONFIGURATION USER conformance [CHECK]`: all checks, or those whose names begin so. `limits POOL`: a quota, and a pool for
//! the data of one store. `model ROUNDS`: random calls, compared with the in-memory store. `copies`: streams of an
//! object that others copy meanwhile. `snapshots`: those that others make and remove meanwhile. `snapshot-limit FILES`: as many snapshots
//! of so many files as there can be, and how long they take. `alone`: a directory is served by one gateway alone. `work`: works until the end of the input,
//! whatever happens to the cluster.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints what it has found")]

use std::io::IoSlice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_storage_ceph::{CephOptions, CephStore, Mount, Place};
use proptest::test_runner::{Config, TestRunner};
use storage::conformance::snapshots::CHECKS as SNAPSHOT_CHECKS;
use storage::conformance::{CHECKS, MAY, Subject};
use storage::{
    Error, Name, NewKind, NewNode, Node, NodeRef, Replace, Result, SetAttributes, SetTime, Stability,
    Storage, StreamName, View, Wait,
};

#[path = "../../../storage-local/tests/model/mod.rs"]
mod model;
mod snapshots;

/// How many checks run at the same time.
const SIDE_BY_SIDE: usize = 6;

/// A store in a directory of its own.
struct OnCeph {
    place: Place,
    path: String,
    store: Option<CephStore>,
}

impl OnCeph {
    fn new(place: &Place, mount: &Arc<Mount>, path: String) -> Self {
        let shared = CephOptions { is_exclusive: false, ..options() };
        made(&*CephStore::open(mount, "", &shared).unwrap().root(), &path, NewKind::Directory);
        let store = CephStore::open(mount, &path, &options()).unwrap();
        Self { place: place.clone(), path, store: Some(store) }
    }
}

fn options() -> CephOptions {
    CephOptions { handle_key: [7; 16], is_exclusive: true, nodes_max: 10_000, reserved_names: Vec::new() }
}

/// An identity that nobody else has.
fn new_identity() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("on-ceph-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn mounted(place: &Place, identity: &str) -> Arc<Mount> {
    Mount::new(place, identity).unwrap()
}

/// Opens a store as soon as nobody else has its directory.
fn soon(open: impl Fn() -> Result<CephStore>) -> CephStore {
    let mut tries = (0..600).map(|_| open()).inspect(|_| std::thread::sleep(Duration::from_millis(50)));
    tries.find(|tried| !matches!(tried, Err(Error::Busy))).unwrap().unwrap()
}

impl Subject for OnCeph {
    fn store(&self) -> &dyn Storage {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.store = None;
        let mount = mounted(&self.place, &new_identity());
        // The earlier store lets go of its directory soon.
        self.store = Some(soon(|| CephStore::open(&mount, &self.path, &options())));
    }

    fn at_once(&self, jobs: &[&(dyn Fn() + Sync)]) {
        std::thread::scope(|scope| jobs.iter().for_each(|job| _ = scope.spawn(job)));
    }
}

/// Runs the checks whose names begin so.
fn checks(place: &Place, mount: &Arc<Mount>, begins: &str) -> ExitCode {
    let all = CHECKS.iter().chain(SNAPSHOT_CHECKS);
    let checks: Vec<_> = all.filter(|(name, _)| name.starts_with(begins)).collect();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, check)) = checks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let path = format!("{}-{}", name.replace("::", "-"), std::process::id());
            let run = || check(&mut OnCeph::new(place, mount, path));
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(()) => println!("ok {name}"),
                Err(_) => failed.lock().unwrap().push(*name),
            }
        }
    };
    std::thread::scope(|scope| (0..SIDE_BY_SIDE).for_each(|_| _ = scope.spawn(work)));
    let failed = failed.into_inner().unwrap();
    failed.iter().for_each(|name| println!("FAILED {name}"));
    println!("{} checks passed, {} failed", checks.len() - failed.len(), failed.len());
    if failed.is_empty() && !checks.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn made(dir: &dyn Node, name: &str, kind: NewKind<'_>) -> NodeRef {
    let new = NewNode { kind, mode: 0o755, uid: 0, gid: 0 };
    dir.create(Name::new(name.as_bytes()).unwrap(), &new, MAY).unwrap()
}

/// A quota and a pool of the store's own.
fn limits(place: &Place, mount: &Arc<Mount>, pool: &str) -> ExitCode {
    const QUOTA: u64 = 8 << 20;
    const PIECES_MAX: u64 = 200;
    let subject = OnCeph::new(place, mount, format!("limits-{}", std::process::id()));
    let store = subject.store.as_ref().unwrap();
    assert_eq!(store.set_data_pool("none"), Err(Error::InvalidArgument));
    store.set_data_pool(pool).unwrap();
    store.set_quota(QUOTA).unwrap();
    let space = store.space(MAY).unwrap();
    assert_eq!((space.total, space.free), (QUOTA, QUOTA), "{space:?}");
    let file = made(&*store.root(), "file", NewKind::Regular);
    assert_eq!(store.data_pool(&*file, MAY).as_deref(), Ok(pool));
    let piece = vec![7; 1 << 20];
    // CephFS learns late of what is written: some pieces more than the quota fit.
    let refused = (0..PIECES_MAX).map(|number| {
        let written = file.write(number << 20, &[IoSlice::new(&piece)], Stability::File, Wait::May(MAY));
        std::thread::sleep(Duration::from_millis(200));
        written
    });
    let refused = refused.take_while(Result::is_ok).count() as u64;
    println!("refused after {refused} MiB with a quota of {} MiB", QUOTA >> 20);
    assert!((QUOTA >> 20..PIECES_MAX).contains(&refused));
    let written = file.write(0, &[IoSlice::new(&piece)], Stability::File, Wait::May(MAY));
    let more = file.write(PIECES_MAX << 20, &[IoSlice::new(&piece)], Stability::File, Wait::May(MAY));
    println!("over what is there: {written:?}, more: {more:?}");
    assert_eq!(more, Err(Error::QuotaExceeded));
    ExitCode::SUCCESS
}

/// Random calls on stores of their own and on the model.
fn against_model(place: &Place, mount: &Arc<Mount>, rounds: u32) -> ExitCode {
    let mut runner =
        TestRunner::new(Config { cases: rounds, failure_persistence: None, ..Config::default() });
    let number = AtomicUsize::new(0);
    let ran = runner.run(&model::ops(), |ops| {
        let path = format!("model-{}-{}", number.fetch_add(1, Ordering::Relaxed), std::process::id());
        let subject = OnCeph::new(place, mount, path);
        model::compare(subject.store(), &kept_to(&ops));
        Ok(())
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The calls without what is otherwise on CephFS: it reserves no space, has no times before 1970, and takes set-user-id and
/// set-group-id bits away when data is written, whoever writes.
fn kept_to(ops: &[model::Op]) -> Vec<model::Op> {
    const SET_ID: u32 = 0o6000;
    let has = |op: &&model::Op| match op {
        model::Op::Allocate(..) => false,
        model::Op::Create(_, _, _, mode) => mode & SET_ID == 0,
        model::Op::Set(_, SetAttributes { mode: Some(mode), .. }) if mode & SET_ID != 0 => false,
        model::Op::Set(_, set) => !matches!(set.mtime, Some(SetTime::To(time)) if time.secs < 0),
        _ => true,
    };
    ops.iter().filter(has).cloned().collect()
}

/// Streams of an object that others copy with all its attributes: waits for a line of input after `a`, which has a stream, and
/// `b` were made. Then `b` carries the number of `a`.
fn copies(place: &Place, mount: &Arc<Mount>) -> ExitCode {
    let mut subject = OnCeph::new(place, mount, format!("copies-{}", std::process::id()));
    let stream = StreamName::new(b"stream").unwrap();
    {
        let root = subject.store().root();
        let (a, _) = (made(&*root, "a", NewKind::Regular), made(&*root, "b", NewKind::Regular));
        let made = a.create_stream(stream, MAY).unwrap();
        made.write(0, &[IoSlice::new(b"of a")], Stability::File, Wait::May(MAY)).unwrap();
    }
    println!("made {}", subject.path);
    let _ = std::io::stdin().read_line(&mut String::new());
    subject.restart();
    let root = subject.store().root();
    let find = |name: &str| root.lookup(Name::new(name.as_bytes()).unwrap(), Wait::May(MAY)).unwrap();
    let data = |node: &NodeRef| {
        let mut read = [0; 16];
        let count = node.stream(stream, MAY)?.read(0, &mut read, Wait::May(MAY))?;
        Ok::<_, Error>(read[..count].to_vec())
    };
    let (a, b) = (find("a"), find("b"));
    assert_eq!(data(&b), Ok(b"of a".to_vec()), "the copy has the streams of what it is a copy of");
    let of_b = b.stream(stream, MAY).unwrap();
    of_b.write(0, &[IoSlice::new(b"of b")], Stability::File, Wait::May(MAY)).unwrap();
    assert_eq!((data(&a), data(&b)), (Ok(b"of a".to_vec()), Ok(b"of b".to_vec())), "each has its own");
    root.remove_file(Name::new(b"a").unwrap(), MAY).unwrap();
    assert_eq!(data(&b), Ok(b"of b".to_vec()), "and keeps them");
    ExitCode::SUCCESS
}

/// A directory is served by one gateway alone, until that ends or another process has its identity.
fn alone(place: &Place, mount: &Arc<Mount>) -> ExitCode {
    let shared = CephOptions { is_exclusive: false, ..options() };
    let (top, inner) =
        (format!("alone-{}", std::process::id()), format!("alone-{}/in/inner", std::process::id()));
    let whole = CephStore::open(mount, "", &shared).unwrap();
    let of_top = made(&*whole.root(), &top, NewKind::Directory);
    let within = made(&*of_top, "in", NewKind::Directory);
    made(&*within, "inner", NewKind::Directory);
    made(&*of_top, "beside", NewKind::Directory);
    let identity = new_identity();
    let (first, second) = (mounted(place, &identity), mounted(place, &new_identity()));
    let open = |mount: &Arc<Mount>, path: &str| CephStore::open(mount, path, &options());
    let refused = |path: &str| assert_eq!(open(&second, path).map(drop), Err(Error::Busy), "{path:?}");
    let held = open(&first, &inner).unwrap();
    ["", &top, &inner].into_iter().for_each(refused);
    let beside = open(&second, &format!("{top}/beside")).unwrap();
    assert_eq!(open(&first, &format!("{top}/beside")).map(drop), Err(Error::Busy));
    CephStore::open(&second, &inner, &shared).unwrap();
    drop(held);
    let held = soon(|| open(&second, &inner));
    drop(held);
    let held = soon(|| open(&first, &inner));
    let file = made(&*held.root(), "file", NewKind::Regular);
    let restarted = mounted(place, &identity);
    let again = open(&restarted, &inner).unwrap();
    let written = file.write(0, &[IoSlice::new(b"late")], Stability::File, Wait::May(MAY));
    println!("the session that was ended wrote: {written:?}");
    assert!(written.is_err());
    let new = made(&*again.root(), "new", NewKind::Regular);
    drop((beside, held));
    // What is in memory counts as long as the store is alone, and no longer.
    let read = |file: &dyn Node, wait: Wait<'_>| {
        let mut data = [0; 3];
        file.read(0, &mut data, wait).map(|count| data[..count].to_vec())
    };
    let write = |file: &dyn Node, data| file.write(0, &[IoSlice::new(data)], Stability::File, Wait::May(MAY));
    assert_eq!(write(&*new, b"old"), Ok(3));
    assert_eq!(read(&*new, Wait::May(MAY)).as_deref(), Ok(b"old".as_slice()));
    assert_eq!(read(&*new, Wait::Never(View::FRESH)).as_deref(), Ok(b"old".as_slice()));
    let other = CephStore::open(&second, &inner, &shared).unwrap();
    let theirs = other.root().lookup(Name::new(b"new").unwrap(), Wait::May(MAY)).unwrap();
    assert_eq!(write(&*theirs, b"new"), Ok(3));
    again.end_exclusive();
    assert_eq!(read(&*new, Wait::Never(View::FRESH)), Err(Error::WouldBlock));
    assert_eq!(read(&*new, Wait::May(MAY)).as_deref(), Ok(b"new".as_slice()));
    ExitCode::SUCCESS
}

/// Makes, writes, reads, renames and removes files until the end of the input, and prints a line for each. Whatever happens to
/// the cluster meanwhile, nothing fails.
fn work(place: &Place, mount: &Arc<Mount>) -> ExitCode {
    let subject = OnCeph::new(place, mount, format!("work-{}", std::process::id()));
    let root = subject.store().root();
    let done = AtomicBool::new(false);
    let one = |number: u64| -> Result<()> {
        let (first, second) = (format!("a{number}"), format!("b{number}"));
        let (first, second) = (Name::new(first.as_bytes())?, Name::new(second.as_bytes())?);
        let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 1, gid: 1 };
        let file = root.create(first, &new, MAY)?;
        let data = number.to_le_bytes();
        file.write(0, &[IoSlice::new(&data)], Stability::File, Wait::May(MAY))?;
        root.rename(first, &*root, second, Replace::Never, MAY)?;
        let mut read = [0; 8];
        root.lookup(second, Wait::May(MAY))?.read(0, &mut read, Wait::May(MAY))?;
        assert_eq!(read, data, "what was written is read");
        root.remove_file(second, MAY)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_line(&mut String::new());
            done.store(true, Ordering::Relaxed);
        });
        for number in 0.. {
            if done.load(Ordering::Relaxed) {
                return ExitCode::SUCCESS;
            }
            match one(number) {
                Ok(()) => println!("done {number}"),
                Err(error) => println!("error {number}: {error}"),
            }
        }
        ExitCode::FAILURE
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [configuration, user, what @ ..] = arguments.as_slice() else {
        eprintln!(
            "on-ceph CONFIGURATION USER conformance [CHECK] | limits POOL | model ROUNDS | copies | snapshots | \
             snapshot-limit FILES | alone | work"
        );
        return ExitCode::from(2);
    };
    let place = Place { configuration: configuration.into(), user: (*user).to_owned(), file_system: None };
    let mount = match Mount::new(&place, &new_identity()) {
        Ok(mount) => mount,
        Err(error) => {
            eprintln!("{error}\n{}", error.advice());
            return ExitCode::FAILURE;
        }
    };
    match what {
        ["conformance"] => checks(&place, &mount, ""),
        ["conformance", begins] => checks(&place, &mount, begins),
        ["limits", pool] => limits(&place, &mount, pool),
        ["model", rounds] => against_model(&place, &mount, rounds.parse().unwrap()),
        ["copies"] => copies(&place, &mount),
        ["snapshots"] => snapshots::of_others(&place, &mount),
        ["snapshot-limit", files] => snapshots::limit(&place, &mount, files.parse().unwrap()),
        ["alone"] => alone(&place, &mount),
        ["work"] => work(&place, &mount),
        _ => ExitCode::from(2),
    }
}

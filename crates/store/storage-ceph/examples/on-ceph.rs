//! The checks that every store passes, on a Ceph cluster that is there: a test cannot start one.
//!
//! `on-ceph CONFIGURATION USER [CHECK]`: all checks, or those whose names begin so.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints what it has found")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anabranch_storage_ceph::{CephOptions, CephStore, Mount, Place};
use storage::conformance::{CHECKS, MAY, Subject};
use storage::{Name, NewKind, NewNode, Storage};

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
        let top = CephStore::open(mount, "", &options()).unwrap();
        let new = NewNode { kind: NewKind::Directory, mode: 0o755, uid: 0, gid: 0 };
        top.root().create(Name::new(path.as_bytes()).unwrap(), &new, MAY).unwrap();
        let store = CephStore::open(mount, &path, &options()).unwrap();
        Self { place: place.clone(), path, store: Some(store) }
    }
}

fn options() -> CephOptions {
    CephOptions { handle_key: [7; 16], is_exclusive: true, nodes_max: 10_000, reserved_names: Vec::new() }
}

impl Subject for OnCeph {
    fn store(&self) -> &dyn Storage {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.store = None;
        let mount = Mount::new(&self.place).unwrap();
        self.store = Some(CephStore::open(&mount, &self.path, &options()).unwrap());
    }

    fn at_once(&self, jobs: &[&(dyn Fn() + Sync)]) {
        std::thread::scope(|scope| jobs.iter().for_each(|job| _ = scope.spawn(job)));
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [configuration, user, begins @ ..] = arguments.as_slice() else {
        eprintln!("on-ceph CONFIGURATION USER [CHECK]");
        return ExitCode::from(2);
    };
    let place = Place { configuration: configuration.into(), user: user.clone(), file_system: None };
    let mount = match Mount::new(&place) {
        Ok(mount) => mount,
        Err(error) => {
            eprintln!("{error}\n{}", error.advice());
            return ExitCode::FAILURE;
        }
    };
    let wanted = |name: &str| begins.first().is_none_or(|begin| name.starts_with(begin.as_str()));
    let checks: Vec<_> = CHECKS.iter().filter(|(name, _)| wanted(name)).collect();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((name, check)) = checks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let path = format!("{}-{}", name.replace("::", "-"), std::process::id());
            let run = || check(&mut OnCeph::new(&place, &mount, path));
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(()) => println!("ok {name}"),
                Err(_) => failed.lock().unwrap().push(*name),
            }
        }
    };
    std::thread::scope(|scope| (0..SIDE_BY_SIDE).for_each(|_| _ = scope.spawn(work)));
    let failed = failed.into_inner().unwrap();
    failed.iter().for_each(|name| println!("FAILED {name}"));
    println!("{} passed, {} failed", checks.len() - failed.len(), failed.len());
    if failed.is_empty() && !checks.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

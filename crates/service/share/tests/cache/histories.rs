//! Histories of changes by clients and by others, from seeds, compared with the in-memory store.

use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anabranch_share::{Case, Error, File, Location, RenameHow};
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{
    Attributes, Error as StorageError, FileKind, Name, NewKind, NewNode, NodeRef, Replace, SetAttributes,
    SetTime, Storage, Timestamp, Wait, Want,
};

use super::{Server, newest, object, root};

// --- the model ---

/// The in-memory store, where the same happens.
struct Model(MemoryStore);

impl Model {
    fn find(&self, path: &str) -> storage::Result<NodeRef> {
        let mut node = self.0.root();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            node = node.lookup(Name::new(part.as_bytes())?, Wait::May(MAY))?;
        }
        Ok(node)
    }

    fn parent<'a>(&self, path: &'a str) -> storage::Result<(NodeRef, Name<'a>)> {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.find(dir)?, Name::new(name.as_bytes())?))
    }

    fn create(&self, path: &str, kind: NewKind<'_>) -> storage::Result<()> {
        let (dir, name) = self.parent(path)?;
        let mode = if kind == NewKind::Directory { 0o755 } else { 0o644 };
        dir.create(name, &NewNode { kind, mode, uid: 0, gid: 0 }, MAY).map(drop)
    }

    fn names(&self, path: &str) -> storage::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        self.find(path)?.read_dir(0, MAY, &mut |entry| {
            names.push(entry.name.to_vec());
            ControlFlow::Continue(())
        })?;
        names.sort();
        Ok(names)
    }

    /// The names that a walk without regard to case may end at.
    fn alike(&self, path: &str) -> storage::Result<Vec<Vec<u8>>> {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let names = self.names(dir)?;
        if names.iter().any(|other| other == name.as_bytes()) {
            return Ok(vec![name.as_bytes().to_vec()]);
        }
        Ok(names.into_iter().filter(|other| other.eq_ignore_ascii_case(name.as_bytes())).collect())
    }
}

// --- histories ---

/// A xorshift generator: the same history for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn path(&mut self, top: &str) -> String {
        const NAMES: [&str; 4] = ["a", "B", "d", "D"];
        let depth = 1 + self.roll(3);
        let parts: Vec<&str> = (0..depth).map(|_| NAMES[self.roll(NAMES.len())]).collect();
        format!("{top}/{}", parts.join("/"))
    }
}

#[derive(Debug)]
pub(super) enum Deed {
    File(String, usize),
    Dir(String),
    RemoveFile(String),
    RemoveDir(String),
    Rename(String, String),
    Link(String, String),
    Mode(String, u32),
    Time(String, i64),
}

impl Deed {
    fn random(dice: &mut Dice, top: &str) -> Self {
        let path = dice.path(top);
        match dice.roll(12) {
            0..3 => Self::File(path, dice.roll(100)),
            3..6 => Self::Dir(path),
            6 => Self::RemoveFile(path),
            7 => Self::RemoveDir(path),
            8 => Self::Rename(path, dice.path(top)),
            9 => Self::Link(path, dice.path(top)),
            10 => Self::Mode(path, 0o700 + u32::try_from(dice.roll(0o100)).unwrap()),
            _ => Self::Time(path, i64::try_from(1000 + dice.roll(1000)).unwrap()),
        }
    }

    /// By a program of this machine. Whether it worked.
    fn locally(&self, server: &Server) -> bool {
        let at = |path: &str| server.at(path);
        match self {
            Self::File(path, size) => std::fs::write(at(path), vec![0; *size]).is_ok(),
            Self::Dir(path) => std::fs::create_dir(at(path)).is_ok(),
            Self::RemoveFile(path) => std::fs::remove_file(at(path)).is_ok(),
            Self::RemoveDir(path) => std::fs::remove_dir(at(path)).is_ok(),
            Self::Rename(from, to) => std::fs::rename(at(from), at(to)).is_ok(),
            Self::Link(from, to) => std::fs::hard_link(at(from), at(to)).is_ok(),
            Self::Mode(path, mode) => {
                std::fs::set_permissions(at(path), PermissionsExt::from_mode(*mode)).is_ok()
            }
            Self::Time(path, secs) => {
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(*secs).unwrap());
                let open = |path: PathBuf| std::fs::File::open(path);
                open(at(path)).and_then(|file| file.set_modified(time)).is_ok()
            }
        }
    }

    /// By a client.
    pub(super) fn served(&self, server: &Server) -> bool {
        self.serve(server).is_ok()
    }

    fn serve(&self, server: &Server) -> Result<(), Error> {
        let place = |path: &str| {
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
            let parent = server.walk(dir, Case::Sensitive)?.node;
            Ok::<_, Error>(Location { parent, name: name.as_bytes().to_vec() })
        };
        let share = &server.share;
        let make = |path: &str, kind| {
            let Location { parent, name } = place(path)?;
            server.run(share.create(&root(), &parent, &name, Case::Sensitive, object(kind))).map(drop)
        };
        let set = |path: &str, set: SetAttributes| {
            let file = File::Stateless(server.walk(path, Case::Sensitive)?.node);
            server.run(share.set_attributes(&root(), &file, &set, None)).map(drop)
        };
        let remove = |path: &str, is_dir| {
            let Location { parent, name } = place(path)?;
            server.run(share.remove(&root(), &parent, &name, is_dir)).map(drop)
        };
        match self {
            Self::File(path, size) => {
                match make(path, FileKind::Regular) {
                    Ok(()) | Err(Error::Storage(StorageError::Exists)) => {}
                    Err(e) => return Err(e),
                }
                set(path, SetAttributes { size: Some(*size as u64), ..SetAttributes::default() })
            }
            Self::Dir(path) => make(path, FileKind::Directory),
            Self::RemoveFile(path) => remove(path, false),
            Self::RemoveDir(path) => remove(path, true),
            Self::Rename(from, to) => {
                let how = RenameHow { replace: Replace::Yes, case: Case::Sensitive, opened: None };
                server.run(share.rename(&root(), place(from)?, place(to)?, how)).map(drop)
            }
            Self::Link(from, to) => {
                let target = server.walk(from, Case::Sensitive)?.node;
                let Location { parent, name } = place(to)?;
                server.run(share.link(&root(), &target, &parent, &name, Case::Sensitive, None)).map(drop)
            }
            Self::Mode(path, mode) => {
                set(path, SetAttributes { mode: Some(*mode), ..SetAttributes::default() })
            }
            Self::Time(path, secs) => {
                let mtime = Some(SetTime::To(Timestamp { secs: *secs, nanos: 0 }));
                set(path, SetAttributes { mtime, ..SetAttributes::default() })
            }
        }
    }

    /// In the model.
    fn modelled(&self, model: &Model) -> bool {
        let set = |path: &str, set: SetAttributes| model.find(path)?.set_attributes(&set, MAY).map(drop);
        let outcome = match self {
            Self::File(path, size) => match model.create(path, NewKind::Regular) {
                Ok(()) | Err(StorageError::Exists) => {
                    set(path, SetAttributes { size: Some(*size as u64), ..SetAttributes::default() })
                }
                Err(e) => Err(e),
            },
            Self::Dir(path) => model.create(path, NewKind::Directory),
            Self::RemoveFile(path) => model.parent(path).and_then(|(dir, name)| dir.remove_file(name, MAY)),
            Self::RemoveDir(path) => model.parent(path).and_then(|(dir, name)| dir.remove_dir(name, MAY)),
            Self::Rename(from, to) => model.parent(from).and_then(|(dir, name)| {
                let (to_dir, to_name) = model.parent(to)?;
                dir.rename(name, &*to_dir, to_name, Replace::Yes, MAY)
            }),
            Self::Link(from, to) => model.find(from).and_then(|target| {
                let (dir, name) = model.parent(to)?;
                dir.link(name, &*target, MAY)
            }),
            Self::Mode(path, mode) => {
                set(path, SetAttributes { mode: Some(*mode), ..SetAttributes::default() })
            }
            Self::Time(path, secs) => {
                let mtime = Some(SetTime::To(Timestamp { secs: *secs, nanos: 0 }));
                set(path, SetAttributes { mtime, ..SetAttributes::default() })
            }
        };
        outcome.is_ok()
    }
}

/// What must be the same of an object in the share and in the model.
fn essence(attributes: &Attributes) -> (FileKind, u32, Option<(u32, u64)>, Option<i64>) {
    let is_file = attributes.kind == FileKind::Regular;
    // A time that was set; the present time is not the same.
    let set = Some(attributes.mtime.secs).filter(|secs| *secs < 10_000);
    (attributes.kind, attributes.mode & 0o777, is_file.then_some((attributes.links, attributes.size)), set)
}

fn compare(server: &Server, model: &Model, path: &str) {
    let truth = model.find(path).and_then(|node| node.attributes(Want::empty(), Wait::May(MAY)));
    let seen = server.walk(path, Case::Sensitive);
    match (&truth, &seen) {
        (Ok(truth), Ok(seen)) => assert_eq!(essence(&seen.attributes), essence(truth), "{path}"),
        (Err(_), Err(_)) => {}
        _ => panic!("{path}: {truth:?} is {:?}", seen.map(|found| found.attributes)),
    }
    // The same whatever the case of the last name.
    let (dir, name) = path.rsplit_once('/').unwrap();
    let other: String = name.chars().map(|c| char::from(c as u8 ^ 0x20)).collect();
    let other = format!("{dir}/{other}");
    let alike = model.alike(&other).unwrap_or_default();
    match server.walk(dir, Case::Sensitive).and_then(|_| server.walk(&other, Case::Insensitive)) {
        Ok(found) => assert!(alike.contains(&found.name), "{other}: {alike:?} is {:?}", found.name),
        Err(e) => assert!(alike.is_empty(), "{other}: {alike:?} is {e}"),
    }
    match (model.names(dir), server.names(dir)) {
        (Ok(truth), Ok(seen)) => assert_eq!(seen, truth, "{dir}"),
        (Err(_), Err(_)) => {}
        (truth, seen) => panic!("{dir}: {truth:?} is {seen:?}"),
    }
}

fn live_through(server: &Server, seed: u64, deeds: usize) {
    live_through_with(server, seed, deeds, |_| ());
}

/// With something else after each deed that is done, which leaves all names as they are.
fn live_through_with(server: &Server, seed: u64, deeds: usize, mut between: impl FnMut(&Deed)) {
    let (top, mut dice) = (format!("h{seed}"), Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
    let model = Model(MemoryStore::new());
    let begin = Deed::Dir(top.clone());
    assert!(begin.locally(server) && begin.modelled(&model));
    for step in 0..deeds {
        let deed = Deed::random(&mut dice, &top);
        let is_local = dice.roll(3) != 0;
        let is_done = if is_local { deed.locally(server) } else { deed.served(server) };
        // What fails here (a share forbids more than POSIX does) does not happen there.
        if is_done {
            assert!(deed.modelled(&model), "history {seed}, step {step}: {deed:?}");
            between(&deed);
        }
        let (Deed::File(path, _)
        | Deed::Dir(path)
        | Deed::RemoveFile(path)
        | Deed::RemoveDir(path)
        | Deed::Rename(_, path)
        | Deed::Link(path, _)
        | Deed::Mode(path, _)
        | Deed::Time(path, _)) = &deed;
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            compare(server, &model, path);
            for _ in 0..2 {
                compare(server, &model, &dice.path(&top));
            }
        }));
        assert!(told.is_ok(), "history {seed}, step {step}: {deed:?}, by a client: {}", !is_local);
    }
}

#[test]
fn a_thousand_histories_of_changes_by_others_and_by_clients() {
    let server = Server::new();
    for seed in 0..1000 {
        live_through(&server, seed, 30);
        std::fs::remove_dir_all(server.at(&format!("h{seed}"))).unwrap();
    }
    let counts = server.counts();
    assert!(counts.names.hits > 10_000 && counts.absent > 1000, "{counts:?}");
    assert!(counts.attributes.hits > 10_000 && counts.listings.hits > 1000, "{counts:?}");
    assert!(counts.bytes < 64 << 20 && counts.directories < 10_000, "{counts:?}");
}

/// Without the cache the index of names is told what changes all the same.
#[test]
fn histories_without_the_cache() {
    let server = Server::with(|settings| settings.metadata_cache = false);
    for seed in 2000..2300 {
        live_through(&server, seed, 30);
    }
    assert_eq!(server.share.cache_counts(), None);
}

/// Makes and removes so many files, by a client that looks for none of them, while the store is quick.
pub(super) fn churn(server: &Server, dir: &str, files: usize) {
    for n in 0..files {
        let path = format!("{dir}/new {n}");
        assert!(Deed::File(path.clone(), 0).served(server) && Deed::RemoveFile(path).served(server));
    }
}

/// Nothing is kept of their directory for a while each time, and then again.
#[test]
fn histories_of_a_directory_that_changes_too_often_to_be_kept() {
    let server = Server::new();
    let mut dice = Dice(99);
    for seed in 3000..3060 {
        live_through_with(&server, seed, 30, |deed| {
            if let (Deed::Dir(path), 0) = (deed, dice.roll(2)) {
                churn(&server, path, 20 + dice.roll(60));
            }
        });
        if seed % 20 == 0 {
            std::thread::sleep(Duration::from_millis(1100));
        }
    }
}

/// While other clients ask for the same names all the time, and so fill the cache at any moment.
#[test]
fn histories_while_others_read() {
    let server = Server::new();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                let mut dice = Dice(77 + thread);
                let mut seed = 0;
                while !is_over.load(Ordering::Relaxed) {
                    seed = if dice.roll(50) == 0 { newest(&server.directory) } else { seed };
                    let path = dice.path(&format!("h{seed}"));
                    let case = if dice.roll(2) == 0 { Case::Sensitive } else { Case::Insensitive };
                    let _ = server.walk(&path, case);
                    let _ = server.names(&path);
                }
            });
        }
        let over = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (5000..5060).for_each(|seed| live_through(&server, seed, 30));
        }));
        is_over.store(true, Ordering::Relaxed);
        assert!(over.is_ok());
    });
}

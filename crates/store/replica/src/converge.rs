//! The store of the destination becomes like a snapshot of the source.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use replica_wire::{Directory, Entry, Kind, Number, Record, Version, Wanted, WantedObject};
use storage::{Handle, MayWait, Name, NodeRef, ObjectId, SetAttributes, Storage, Wait};

use crate::apply::{Taking, unexpected};
use crate::attributes::times;
use crate::failure::{Failure, Result};
use crate::folder::Folder;
use crate::note::Note;
use crate::settle::Unsettled;
use crate::tree::{names, walk};
use crate::{Records, Source};

/// So many objects are asked for at a time.
const ASKED_AT_ONCE: usize = 256;

/// The store of a destination that is to become like a snapshot of a source.
pub struct Convergence<'a> {
    /// The store, which nobody else changes meanwhile.
    pub store: &'a Arc<dyn Storage>,
    /// Tells this replication from others that the store may have had.
    pub replication: u64,
    /// Whether it has nothing of this replication yet: what it has in the places of the source's objects is made like these.
    pub adopts: bool,
    /// What it takes of the source.
    pub takes: Takes,
    /// How far it is.
    pub progress: &'a Progress,
    /// It waits.
    pub may: MayWait<'a>,
}

/// What a destination takes of its source, apart from what it always takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takes {
    /// Block and character devices, if the server may make them. Others are left out.
    pub devices: bool,
    /// The set-id bits of the modes of files.
    pub set_id: bool,
}

/// How far it is, for those who ask meanwhile.
#[derive(Debug, Default)]
pub struct Progress {
    stop: AtomicBool,
    directories: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
    left_out: AtomicU64,
    too_deep: AtomicU64,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Converged {
    /// Directories that were compared.
    pub directories: u64,
    /// Files that were taken over: all objects that are no directories.
    pub files: u64,
    /// Bytes of their data.
    pub bytes: u64,
    /// Devices that were left out.
    pub left_out: u64,
    /// Directories that were left out, with all that is in them, because [`DEPTH_MAX`](replica_wire::DEPTH_MAX) are in each other.
    pub too_deep: u64,
}

impl Progress {
    /// Has it stop before the next piece of data.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether it is to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// How far it is.
    pub fn figures(&self) -> Converged {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Converged {
            directories: read(&self.directories),
            files: read(&self.files),
            bytes: read(&self.bytes),
            left_out: read(&self.left_out),
            too_deep: read(&self.too_deep),
        }
    }

    pub(crate) fn left_out(&self) {
        self.left_out.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn too_deep(&self) {
        self.too_deep.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What is asked for.
pub(crate) enum Want {
    /// A file, which is made in the folder if it is to be placed.
    File { entry: Entry, node: NodeRef, has: Option<Version>, place: Option<NodeRef> },
    /// Something without data, in this directory.
    Special { entry: Entry, dir: NodeRef },
    /// What belongs to a directory itself.
    Directory { number: Number, handle: Vec<u8>, node: NodeRef },
}

impl Want {
    fn wanted(&self) -> WantedObject {
        let (handle, has) = match self {
            Self::File { entry, has, .. } => (&entry.handle, *has),
            Self::Special { entry, .. } => (&entry.handle, None),
            Self::Directory { handle, .. } => (handle, None),
        };
        WantedObject { handle: handle.clone(), has }
    }
}

/// It while it goes on.
pub(crate) struct Run<'a> {
    pub(crate) store: &'a dyn Storage,
    pub(crate) replication: u64,
    pub(crate) adopts: bool,
    pub(crate) folder: Folder<'a>,
    pub(crate) taking: Taking<'a>,
    pub(crate) may: MayWait<'a>,
    pub(crate) wanted: Vec<Want>,
    pub(crate) unsettled: Unsettled,
    /// Files with several names that have one already.
    pub(crate) linked: HashMap<Number, Handle>,
    /// Objects without data that were there already, and which object of the source each is.
    pub(crate) claimed: HashMap<ObjectId, Number>,
    /// The directories that were made: all that is in them has to be said.
    pub(crate) made: HashSet<Number>,
    pub(crate) path: Vec<Vec<u8>>,
    /// The times of the root, which the folder changes.
    root_times: Option<SetAttributes>,
}

impl Convergence<'_> {
    /// Carries the changes out. What is complete has the times of the source; the store is like the snapshot then. If this fails, or
    /// the server is killed, it can be begun again, with these changes or with all that are needed from a snapshot that the store was
    /// like before, or with everything.
    ///
    /// # Errors
    /// Why it could not go on.
    pub fn run(&self, changes: &mut dyn Records, source: &mut dyn Source) -> Result<()> {
        let taking = Taking {
            store: self.store.capabilities(),
            takes: self.takes,
            progress: self.progress,
            may: self.may,
        };
        let mut run = Run {
            store: &**self.store,
            replication: self.replication,
            adopts: self.adopts,
            folder: Folder::open(&**self.store, self.may)?,
            taking,
            may: self.may,
            wanted: Vec::new(),
            unsettled: Unsettled::default(),
            linked: HashMap::new(),
            claimed: HashMap::new(),
            made: HashSet::new(),
            path: Vec::new(),
            root_times: None,
        };
        let done = run.go_through(changes, source);
        if !matches!(done, Err(Failure::Store { .. })) {
            // What was received counts, whatever became of the rest.
            run.unsettled.settle(run.store, run.may).or_else(|e| done.clone().and(Err(e)))?;
        }
        done?;
        run.folder.remove()?;
        if let Some(times) = &run.root_times {
            self.store.root().set_attributes(times, self.may)?;
        }
        Ok(())
    }
}

impl Run<'_> {
    fn go_through(&mut self, changes: &mut dyn Records, source: &mut dyn Source) -> Result<()> {
        loop {
            if self.taking.progress.is_stopped() {
                return Err(Failure::Stopped);
            }
            match changes.next()? {
                Record::Departed { path, number } => {
                    self.depart(&path, number).map_err(|failure| failure.at(&path))?;
                }
                Record::Directory(directory) => {
                    self.path.clone_from(&directory.path);
                    let done = self.directory(directory, changes, source);
                    done.map_err(|failure| failure.at(&self.path))?;
                }
                Record::End => break,
                other => return Err(unexpected(&other)),
            }
        }
        self.ask(source)
    }

    /// Keeps what has left its place.
    fn depart(&mut self, path: &[Vec<u8>], number: Number) -> Result<()> {
        let Some((name, above)) = path.split_last() else { return Ok(()) };
        let found = walk(&self.store.root(), above, self.may).and_then(|dir| {
            let node = dir.lookup(Name::new(name)?, Wait::May(self.may))?;
            Ok((dir, node))
        });
        let (dir, node) = match found {
            // It has left already.
            Err(e) if storage::is_nowhere(e) => return Ok(()),
            found => found?,
        };
        let is_it = Note::of(&*node, self.replication, self.may)?.is_some_and(|note| note.number == number);
        if is_it { self.folder.take_in(&dir, Name::new(name)?, Some(number)) } else { Ok(()) }
    }

    /// Makes a directory have these entries, and all others that it has, or no others.
    fn directory(
        &mut self,
        directory: Directory,
        changes: &mut dyn Records,
        source: &mut dyn Source,
    ) -> Result<()> {
        let Directory { path, number, handle } = directory;
        let dir = walk(&self.store.root(), &path, self.may)?;
        let is_root = path.is_empty();
        let note = Note::of(&*dir, self.replication, self.may)?;
        if !is_root && note.is_none_or(|note| note.number != number) {
            return Err(Failure::Nonsense("a directory that was not said to be there".to_owned()));
        }
        let mut said = HashSet::new();
        loop {
            match changes.next()? {
                Record::Entry(entry) if is_root && entry.name == crate::FOLDER.as_bytes() => {}
                Record::Entry(entry) => {
                    said.insert(entry.name.clone());
                    self.enter(&dir, entry)?;
                    if self.wanted.len() >= ASKED_AT_ONCE {
                        self.ask(source)?;
                    }
                }
                Record::Left { name } => self.leave(&dir, Name::new(&name)?)?,
                Record::Rest if self.made.contains(&number) => {
                    return Err(Failure::Nonsense("that a directory was there which was not".to_owned()));
                }
                Record::Rest => break,
                Record::DirectoryEnd => {
                    let present = names(&dir, is_root, self.may)?.into_iter().map(|named| named.name);
                    for name in present.filter(|name| !said.contains(name)) {
                        self.leave(&dir, Name::new(&name)?)?;
                    }
                    break;
                }
                other => return Err(unexpected(&other)),
            }
        }
        self.wanted.push(Want::Directory { number, handle, node: dir });
        self.taking.progress.directories.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Asks for what is wanted, and takes it over. Directories get their times when all else is in its place.
    fn ask(&mut self, source: &mut dyn Source) -> Result<()> {
        let wanted = std::mem::take(&mut self.wanted);
        let mut dirs: Vec<(NodeRef, SetAttributes)> = Vec::new();
        for some in wanted.chunks(ASKED_AT_ONCE) {
            let objects = some.iter().map(Want::wanted).collect();
            let mut records = source.objects(&Wanted { objects })?;
            for want in some {
                if self.taking.progress.is_stopped() {
                    return Err(Failure::Stopped);
                }
                dirs.extend(self.take_over(want, &mut *records)?);
            }
            match records.next()? {
                Record::End => {}
                other => return Err(unexpected(&other)),
            }
            drop(records);
            if self.unsettled.are_many() {
                self.unsettled.settle(self.store, self.may)?;
            }
        }
        let root = self.store.root().id();
        for (dir, times) in dirs {
            if dir.id() == root {
                self.root_times = Some(times);
            }
            dir.set_attributes(&times, self.may)?;
        }
        Ok(())
    }

    /// Takes one over. Returns the times that are yet to be set.
    fn take_over(
        &mut self,
        want: &Want,
        records: &mut dyn Records,
    ) -> Result<Option<(NodeRef, SetAttributes)>> {
        let object = match records.next()? {
            Record::Object(object) => object,
            other => return Err(unexpected(&other)),
        };
        let other_kind = || Failure::Nonsense("an object of another kind".to_owned());
        match want {
            Want::Directory { number, node, .. } => {
                if object.kind != Kind::Directory {
                    return Err(other_kind());
                }
                self.taking.plain(node, false, &object, records)?;
                Note { replication: self.replication, number: *number, complete: None }
                    .set(node, self.may)?;
                return Ok(Some((NodeRef::clone(node), times(&object, self.taking.store))));
            }
            Want::File { entry, .. } | Want::Special { entry, .. } if object.kind != entry.kind => {
                return Err(other_kind());
            }
            Want::File { entry, node, has, place } => {
                self.file(entry, (node, *has), place.as_ref(), &object, records)?;
            }
            Want::Special { entry, dir } => {
                match records.next()? {
                    Record::ObjectEnd => {}
                    other => return Err(unexpected(&other)),
                }
                self.special(entry, dir, &object)?;
            }
        }
        self.taking.progress.files.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    }
}

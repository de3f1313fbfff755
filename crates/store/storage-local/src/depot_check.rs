//! What in a depot of named streams leads nowhere.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open, openat2};
use rustix::io::Errno;
use storage::depot::{DEPOT_NAME, STREAM_DEPTH_MAX, StreamsNumber};
use storage::{Result, StreamEntry};

use crate::attributes::stat;
use crate::carriers::{Carriers, find_carriers};
use crate::depot::{entries, number_of_root, open_directory};
use crate::errno::from_errno;
use crate::kernel_handle::{self, KernelHandle};
use crate::old_depot;
use crate::resolve::{BELOW, PIN};
use crate::stream_folder::number_of_copying;
use crate::streams::push_streams;
use crate::streams_number::{handle_of_owner, number_of, owner_of};

/// Both attributes: the check need not have the privileges of the server.
const XATTRS: [&str; 2] = [StreamsNumber::TRUSTED_XATTR, StreamsNumber::USER_XATTR];

/// What was found below the directory of a share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamsCheck {
    /// How many files and directories have streams.
    pub objects: usize,
    /// Directories of streams that belong to nothing, sorted by their paths.
    pub without_object: Vec<OrphanedStreams>,
    /// The paths, below the root, of objects whose number leads to nothing, sorted.
    pub without_streams: Vec<Vec<u8>>,
    /// Whether everything could be looked at. If not, there may be more, and what belongs to nothing may belong to what
    /// could not be looked at.
    pub is_whole: bool,
}

/// A directory of streams that belongs to nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrphanedStreams {
    /// Its path below the root.
    pub path: Vec<u8>,
    /// How many streams are in it.
    pub streams: usize,
    /// The size of these streams, in bytes.
    pub bytes: u64,
}

/// Looks for directories of streams without an object, and for objects whose streams are missing, in the directory of a
/// share. Nothing is changed. What is renamed meanwhile may be missed and told wrongly.
///
/// # Errors
/// The directory or its depot cannot be read.
pub fn check_streams(directory: &Path) -> Result<StreamsCheck> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open(directory, flags, Mode::empty()).map_err(from_errno)?;
    let mut check = Check {
        root_number: kernel_handle::name_to_handle(root.as_fd())
            .map_or(Ok(0), |h| stat(&root).map(|s| number_of_root(&h, &s)))?,
        depot: open_directory(&root, DEPOT_NAME.as_bytes())?,
        root,
        folders: HashMap::new(),
        carried: HashSet::new(),
        missing: Vec::new(),
        check: StreamsCheck::default(),
    };
    check.run()?;
    Ok(check.check)
}

struct Check {
    root: OwnedFd,
    root_number: u64,
    depot: Option<OwnedFd>,
    /// The directories of the depot by their numbers; whether the directory is being filled.
    folders: HashMap<StreamsNumber, bool>,
    carried: HashSet<StreamsNumber>,
    /// Objects that carry numbers without directories.
    missing: Vec<Vec<u8>>,
    check: StreamsCheck,
}

impl Check {
    fn run(&mut self) -> Result<()> {
        let names = self.depot.as_ref().map_or_else(|| Ok(Vec::new()), entries)?;
        for name in &names {
            if let Some(number) = number_of_copying(name) {
                self.folders.insert(number, true);
            }
        }
        for name in &names {
            if let Some(number) = StreamsNumber::of_folder(name) {
                self.folders.insert(number, false);
            }
        }
        let root = self.root.try_clone().map_err(|_| storage::Error::OutOfResources)?;
        self.check.is_whole = find_carriers(&root, &XATTRS, self)?;
        let Some(depot) = self.depot.take() else {
            self.check.without_streams = std::mem::take(&mut self.missing);
            self.check.without_streams.sort();
            return Ok(());
        };
        for (number, _) in self.folders.iter().filter(|(_, is_copy)| !**is_copy) {
            let name = number.folder_name();
            if !self.carried.contains(number)
                && let Some(folder) = open_directory(&depot, name.as_bytes())?
                && !self.owner_carries(&folder, *number)?
            {
                note(&mut self.check.without_object, &folder, name.as_bytes())?;
            }
        }
        for name in names.iter().filter(|name| old_depot::is_root_name(name)) {
            self.look_into_old(&depot, name)?;
        }
        let missing = std::mem::take(&mut self.missing);
        self.check.without_streams = missing.into_iter().filter(|path| !self.has_old(&depot, path)).collect();
        self.check.without_streams.sort();
        self.check.without_object.sort();
        Ok(())
    }

    /// Whether the owner of a directory carries its number: it was moved during the search. Where handles cannot be
    /// used, it is not known.
    fn owner_carries(&self, folder: &OwnedFd, number: StreamsNumber) -> Result<bool> {
        let owner = owner_of(folder)?.filter(|owner| owner.root == self.root_number);
        let Some(handle) = owner.as_ref().and_then(handle_of_owner) else { return Ok(false) };
        let Ok(object) = kernel_handle::open_by_handle(self.root.as_fd(), &handle) else { return Ok(false) };
        if stat(&object)?.stx_nlink == 0 {
            return Ok(false);
        }
        Ok(XATTRS.iter().any(|xattr| number_of(&object, xattr) == Ok(Some(number))))
    }

    /// Directories of the old naming, for this root or another one.
    fn look_into_old(&mut self, depot: &OwnedFd, root_name: &[u8]) -> Result<()> {
        let Some(old) = open_directory(depot, root_name)? else { return Ok(()) };
        let is_own = root_name == old_depot::root_name(self.root_number).as_bytes();
        for name in entries(&old)? {
            let Some(handle) = old_depot::handle_of_folder(&name) else { continue };
            let Some(folder) = open_directory(&old, &name)? else { continue };
            if !is_own || self.is_gone(&handle) {
                note(&mut self.check.without_object, &folder, &[root_name, b"/", &name].concat())?;
            } else {
                self.check.objects += 1;
            }
        }
        Ok(())
    }

    fn is_gone(&self, handle: &KernelHandle) -> bool {
        match kernel_handle::open_by_handle(self.root.as_fd(), handle) {
            Ok(object) => stat(&object).is_ok_and(|stat| stat.stx_nlink == 0),
            Err(errno) => errno == Errno::STALE,
        }
    }

    /// Whether an object has a directory of the old naming.
    fn has_old(&self, depot: &OwnedFd, path: &[u8]) -> bool {
        let at: &[u8] = if path.is_empty() { b"." } else { path };
        let Ok(object) = openat2(&self.root, at, PIN, Mode::empty(), BELOW) else { return false };
        let Ok(handle) = kernel_handle::name_to_handle(object.as_fd()) else { return false };
        let folder = old_depot::folder_path(self.root_number, &handle);
        open_directory(depot, folder.as_bytes()).is_ok_and(|folder| folder.is_some())
    }
}

/// Notes a directory that belongs to nothing, unless it is empty.
fn note(orphaned: &mut Vec<OrphanedStreams>, folder: &OwnedFd, name: &[u8]) -> Result<()> {
    let mut streams: Vec<StreamEntry> = Vec::new();
    push_streams(folder, b"", STREAM_DEPTH_MAX, &mut streams)?;
    if !streams.is_empty() {
        let path = [DEPOT_NAME.as_bytes(), b"/", name].concat();
        let bytes = streams.iter().fold(0, |sum: u64, stream| sum.saturating_add(stream.size));
        orphaned.push(OrphanedStreams { path, streams: streams.len(), bytes });
    }
    Ok(())
}

impl Carriers for Check {
    fn found(&mut self, path: &[u8], number: StreamsNumber) {
        if self.folders.contains_key(&number) {
            self.carried.insert(number);
            self.check.objects += 1;
        } else {
            self.missing.push(path.to_vec());
        }
    }

    fn goes_on(&self) -> bool {
        true
    }
}

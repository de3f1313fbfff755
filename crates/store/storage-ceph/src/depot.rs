//! The directories of the depot (see [`storage::depot`]), in which the streams of objects are files.
//!
//! An object leads to its directory by a number that it carries. The directory says which object it belongs to. When another
//! object carries the same number, it gets a copy of the streams and a number of its own if the owner exists; otherwise it is
//! what a restore or a revert has put in the owner's place, and becomes the owner.
//!
//! All of an object's directory is worked on by one caller at a time, who holds the object's lock `changing`.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use rustix::io::Errno;
use storage::depot::{DEPOT_NAME, STREAM_DEPTH_MAX, StreamsNumber, StreamsOwner};
use storage::{Error, FileKind, ObjectId, Result};

use crate::attributes::kind_of;
use crate::errno::from_errno;
use crate::inode::{Inode, Make};
use crate::library::CStat;
use crate::listing::Listing;
use crate::node::CephNode;
use crate::place::text;
use crate::store::Shared;

/// The attribute of an object that holds its number. Only programs with the rights of root can change it.
const NUMBER_XATTR: &CStr = c"trusted.anabranch.streams";
/// The attribute of a directory that holds its owner.
const OWNER_XATTR: &CStr = c"user.anabranch.owner";
/// Only the server may look inside.
const PRIVATE: u32 = 0o700;
/// The mode of a stream's file.
pub(crate) const STREAM_MODE: u32 = 0o600;
/// To whom the depot belongs.
const ROOT: (u32, u32) = (0, 0);
/// How much of a stream is in memory at a time while it is copied, in bytes.
const COPY_BYTES: usize = 4 << 20;

/// The object with a name in a directory; None if there is none.
pub(crate) fn entry(dir: &Inode, name: &[u8]) -> Result<Option<(Inode, CStat)>> {
    match dir.lookup(&text(name)?) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(from_errno(errno)),
    }
}

/// A directory of the depot, which is made unless it exists.
pub(crate) fn directory(dir: &Inode, name: &[u8]) -> Result<Inode> {
    let name = text(name)?;
    match dir.make(&name, &Make::Directory, PRIVATE, ROOT) {
        Err(Errno::EXIST) => dir.lookup(&name),
        made => made,
    }
    .map(|(inode, _)| inode)
    .map_err(from_errno)
}

/// The names in a directory of the depot.
pub(crate) fn entries(dir: &Inode) -> Result<Vec<Vec<u8>>> {
    let mut listing = Listing::behind(dir, 0).map_err(from_errno)?;
    let mut names = Vec::new();
    while let Some(entry) = listing.next().map_err(from_errno)? {
        if !matches!(entry.name(), b"." | b"..") {
            names.push(entry.name().to_vec());
        }
    }
    Ok(names)
}

fn value(inode: &Inode, name: &CStr) -> Result<Option<Vec<u8>>> {
    match inode.xattr(name) {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(from_errno(errno)),
    }
}

fn number_of(inode: &Inode) -> Result<Option<StreamsNumber>> {
    Ok(value(inode, NUMBER_XATTR)?.and_then(|value| StreamsNumber::decode(&value)))
}

fn owner_of(folder: &Inode) -> Result<Option<StreamsOwner>> {
    Ok(value(folder, OWNER_XATTR)?.and_then(|value| StreamsOwner::decode(&value)))
}

fn set(inode: &Inode, name: &CStr, value: &[u8]) -> Result<()> {
    inode.set_xattr(name, value, 0).map_err(from_errno)
}

fn new_number() -> Result<StreamsNumber> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| Error::OutOfResources)?;
    Ok(StreamsNumber::new(random))
}

/// The name of a directory that is being filled with copies of streams.
fn copying_name(number: StreamsNumber) -> String {
    number.folder_name() + ".new"
}

/// Copies the streams of one directory into another one, onto stable storage.
fn copy_streams(from: &Inode, to: &Inode, owner: (u32, u32), depth: usize) -> Result<()> {
    for name in entries(from)? {
        let Some((old, stat)) = entry(from, &name)? else { continue };
        match kind_of(&stat) {
            FileKind::Regular => copy_file(&old, to, &text(&name)?, owner)?,
            FileKind::Directory if depth > 0 => {
                copy_streams(&old, &directory(to, &name)?, owner, depth.saturating_sub(1))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn copy_file(from: &Inode, to: &Inode, name: &CStr, owner: (u32, u32)) -> Result<()> {
    let from = from.open(false).map_err(from_errno)?;
    let (_, to) = to.create(name, STREAM_MODE, owner).map_err(from_errno)?;
    let mut piece = vec![0; COPY_BYTES];
    let mut at = 0_i64;
    loop {
        let count = from.read(at, &mut piece).map_err(from_errno)?;
        if count == 0 {
            return to.sync().map_err(from_errno);
        }
        to.write(at, piece.get(..count).unwrap_or_default()).map_err(from_errno)?;
        at = at.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

impl Shared {
    /// The depot; None when there is none and `make` is not set.
    pub(crate) fn depot(&self, make: bool) -> Result<Option<&Inode>> {
        if let Some(depot) = self.depot.get() {
            return Ok(Some(depot));
        }
        if !make {
            return Ok(None);
        }
        let depot = directory(&self.root, DEPOT_NAME.as_bytes())?;
        Ok(Some(self.depot.get_or_init(|| depot)))
    }

    fn owner(&self, id: ObjectId) -> StreamsOwner {
        StreamsOwner { root: self.root_id.number, object: id.number.to_le_bytes().to_vec() }
    }

    /// Whether a directory's owner exists and carries the directory's number.
    fn is_owned(&self, number: StreamsNumber, owner: &StreamsOwner) -> Result<bool> {
        let Ok(object) = <[u8; 8]>::try_from(owner.object.as_slice()) else { return Ok(true) };
        if owner.root != self.root_id.number {
            return Ok(false);
        }
        match Inode::of_number(&self.mount, u64::from_le_bytes(object)) {
            Ok(object) => {
                Ok(object.stat().map_err(from_errno)?.links > 0 && number_of(&object)? == Some(number))
            }
            Err(Errno::NOENT | Errno::STALE) => Ok(false),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    /// Removes everything in a directory of the depot, and the directory. Streams that somebody holds keep their data.
    fn remove_folder(self: &Arc<Self>, dir: &Inode, name: &[u8], depth: usize) -> Result<()> {
        let Some((folder, _)) = entry(dir, name)? else { return Ok(()) };
        for below in entries(&folder)? {
            let Some((inode, stat)) = entry(&folder, &below)? else { continue };
            if kind_of(&stat) != FileKind::Directory {
                self.end_stream(&folder, &below, &self.adopt(inode, &stat))?;
            } else if depth > 0 {
                self.remove_folder(&folder, &below, depth.saturating_sub(1))?;
            }
        }
        dir.remove(&text(name)?, true).map_err(from_errno)
    }

    /// Removes the file of a stream.
    pub(crate) fn end_stream(&self, dir: &Inode, name: &[u8], stream: &Arc<CephNode>) -> Result<()> {
        stream.keep_data_if_held();
        dir.remove(&text(name)?, false).map_err(from_errno)?;
        self.cache.release(stream.id);
        Ok(())
    }
}

impl CephNode {
    fn check_exists(&self, stat: &CStat) -> Result<()> {
        if stat.links == 0 || self.is_removed() { Err(Error::Stale) } else { Ok(()) }
    }

    /// The number of the object's streams, if it may have any. Asked before its last name is removed, since the library knows
    /// it then.
    pub(crate) fn streams_number(&self) -> Option<StreamsNumber> {
        self.store.depot.get()?;
        if !self.carries_xattrs() {
            return None;
        }
        number_of(&self.inode).unwrap_or_else(|error| {
            tracing::warn!("streams of an object that is being removed stay: {error}");
            None
        })
    }

    /// Removes the streams of the object, which has lost its last name, but not those of another one with the same number.
    pub(crate) fn end_streams(&self, number: StreamsNumber) {
        let _changing = self.changing.lock();
        let ended = || {
            let Some(depot) = self.store.depot(false)? else { return Ok(()) };
            let name = number.folder_name();
            let Some((folder, _)) = entry(depot, name.as_bytes())? else { return Ok(()) };
            if owner_of(&folder)? != Some(self.store.owner(self.id)) {
                return Ok(());
            }
            self.store.remove_folder(depot, name.as_bytes(), STREAM_DEPTH_MAX)
        };
        if let Err(error) = ended() {
            let error: Error = error;
            tracing::warn!("streams of an object that is gone stay: {error}");
        }
    }

    /// The directory of the object's streams; None when there is none and `make` is not set. The caller holds `changing`.
    pub(crate) fn stream_folder(&self, make: bool) -> Result<Option<Arc<Inode>>> {
        Ok(self.folder(make)?.map(Arc::new))
    }

    fn folder(&self, make: bool) -> Result<Option<Inode>> {
        self.check_carries_xattrs()?;
        let Some(depot) = self.store.depot(make)? else { return Ok(None) };
        match number_of(&self.inode)? {
            Some(number) if self.store.snapshot.is_some() => Self::folder_then(depot, number),
            None if !make => Ok(None),
            None => {
                let number = new_number()?;
                let folder = self.new_folder(depot, &number.folder_name())?;
                set(&self.inode, NUMBER_XATTR, &number.encode())?;
                Ok(Some(folder))
            }
            Some(number) => match entry(depot, number.folder_name().as_bytes())? {
                Some((folder, _)) => self.claim(depot, number, folder).map(Some),
                None => self.without_folder(depot, number, make),
            },
        }
    }

    /// The directory of a number in a snapshot, to whomever it belonged: nothing can be put right there.
    fn folder_then(depot: &Inode, number: StreamsNumber) -> Result<Option<Inode>> {
        let found = match entry(depot, number.folder_name().as_bytes())? {
            None => entry(depot, copying_name(number).as_bytes())?,
            found => found,
        };
        Ok(found.map(|(folder, _)| folder))
    }

    /// Makes a directory that belongs to the object.
    fn new_folder(&self, depot: &Inode, name: &str) -> Result<Inode> {
        self.check_exists(&self.stat()?)?;
        let folder = directory(depot, name.as_bytes())?;
        self.own(&folder)?;
        Ok(folder)
    }

    fn own(&self, folder: &Inode) -> Result<()> {
        set(folder, OWNER_XATTR, &self.store.owner(self.id).encode())
    }

    /// The number leads to nothing: a gateway that was killed has not renamed the directory, or there is none.
    fn without_folder(&self, depot: &Inode, number: StreamsNumber, make: bool) -> Result<Option<Inode>> {
        let name = copying_name(number);
        if let Some((folder, _)) = entry(depot, name.as_bytes())? {
            self.enter(depot, &name, number)?;
            return Ok(Some(folder));
        }
        if make { self.new_folder(depot, &number.folder_name()).map(Some) } else { Ok(None) }
    }

    /// Gives a directory that was filled its name.
    fn enter(&self, depot: &Inode, name: &str, number: StreamsNumber) -> Result<()> {
        let (name, to) = (text(name.as_bytes())?, text(number.folder_name().as_bytes())?);
        depot.rename(&name, depot, &to).map_err(from_errno)
    }

    /// The directory of the object's number exists: it is the object's, or becomes it, or is copied.
    fn claim(&self, depot: &Inode, number: StreamsNumber, folder: Inode) -> Result<Inode> {
        let owner = owner_of(&folder)?;
        if owner == Some(self.store.owner(self.id)) {
            return Ok(folder);
        }
        if owner.is_some_and(|owner| self.store.is_owned(number, &owner).unwrap_or(true)) {
            return self.copy(depot, &folder);
        }
        self.own(&folder)?;
        Ok(folder)
    }

    /// Gives the object a number of its own, and a copy of these streams.
    fn copy(&self, depot: &Inode, from: &Inode) -> Result<Inode> {
        let number = new_number()?;
        let name = copying_name(number);
        let stat = self.stat()?;
        let folder = self.new_folder(depot, &name)?;
        copy_streams(from, &folder, (stat.uid, stat.gid), STREAM_DEPTH_MAX)?;
        set(&self.inode, NUMBER_XATTR, &number.encode())?;
        self.enter(depot, &name, number)?;
        Ok(folder)
    }

    /// Removes the directory of the object's streams if it is empty, and then the number.
    pub(crate) fn tidy_folder(&self) -> Result<()> {
        let (Some(depot), Some(number)) = (self.store.depot(false)?, number_of(&self.inode)?) else {
            return Ok(());
        };
        let name = CString::new(number.folder_name()).map_err(|_| Error::InvalidName)?;
        match depot.remove(&name, true) {
            Ok(()) => self.inode.remove_xattr(NUMBER_XATTR).map_err(from_errno),
            // It is not empty, or there is none.
            Err(_) => Ok(()),
        }
    }
}

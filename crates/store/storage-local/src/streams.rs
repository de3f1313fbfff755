//! Named streams: files in the depot's directory for their object (see [`storage::depot`]).

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, fstat, openat2, renameat_with, unlinkat};
use storage::depot::{STREAM_DEPTH_MAX, StreamPath};
use storage::{Capabilities, Error, FileKind, ObjectId, Replace, Result, StreamEntry, StreamName};

use crate::attributes::{kind_of, stat, stat_name};
use crate::depot::{entries, make_directory, open_directory};
use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::resolve::BELOW;

/// How often to recreate a directory that another call has just removed because it was empty.
const ATTEMPTS_MAX: usize = 16;
const NEW_FILE: OFlags =
    OFlags::CREATE.union(OFlags::EXCL).union(OFlags::RDWR).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

fn make_directories(place: &StreamPath, folder: &OwnedFd) -> Result<()> {
    place.directories.iter().try_for_each(|dir| make_directory(folder, dir))
}

/// Removes the directories on the way to a stream that are now empty.
fn tidy(place: &StreamPath, folder: &OwnedFd) {
    for dir in place.directories.iter().rev() {
        // Both failures are fine: the directory is not empty, or has been removed already.
        let _ = unlinkat(folder, dir.as_slice(), AtFlags::REMOVEDIR);
    }
}

/// Adds the streams below a directory. `name` is the part of the stream's name that leads there.
pub(crate) fn push_streams(
    dir: &OwnedFd,
    name: &[u8],
    depth: usize,
    into: &mut Vec<StreamEntry>,
) -> Result<()> {
    for entry in entries(dir)? {
        let name = [name, StreamPath::piece_of(&entry)].concat();
        let stat = match stat_name(dir, entry.as_slice()) {
            Err(Error::NotFound) => continue,
            known => known?,
        };
        match kind_of(&stat) {
            FileKind::Regular => {
                let allocated = stat.stx_blocks.saturating_mul(512);
                into.push(StreamEntry { name, size: stat.stx_size, allocated });
            }
            FileKind::Directory if depth > 0 => {
                if let Some(below) = open_directory(dir, &entry)? {
                    push_streams(&below, &name, depth.saturating_sub(1), into)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl LocalNode {
    pub(crate) fn list_streams(&self) -> Result<Vec<StreamEntry>> {
        let mut streams = Vec::new();
        if let Some(folder) = self.stream_folder(false)? {
            push_streams(&folder, b"", STREAM_DEPTH_MAX, &mut streams)?;
        }
        Ok(streams)
    }

    pub(crate) fn find_stream(&self, name: StreamName<'_>) -> Result<Arc<Self>> {
        let folder = self.stream_folder(false)?.ok_or(Error::NotFound)?;
        let fd = self.store.pin(&folder, &StreamPath::of(name).path, ResolveFlags::empty())?;
        let node = self.store.adopt(fd, false)?;
        if node.kind == FileKind::Regular { Ok(node) } else { Err(Error::NotFound) }
    }

    pub(crate) fn make_stream(&self, name: StreamName<'_>) -> Result<Arc<Self>> {
        let place = StreamPath::of(name);
        let (folder, fd) = self.in_folder(&place, |folder| {
            self.store.with_descriptor(|| openat2(folder, &place.path, NEW_FILE, PRIVATE, BELOW))
        })?;
        let made = self.complete_stream(fd);
        if made.is_err() {
            // The stream is incomplete and must not stay.
            let _ = unlinkat(&folder, place.path.as_slice(), AtFlags::empty());
            tidy(&place, &folder);
            self.tidy_folder();
        }
        made
    }

    /// Gives a new stream its object's owner, who pays for the space, and checks that the object still exists: a call
    /// that removes the last name looks for streams after that.
    fn complete_stream(&self, fd: OwnedFd) -> Result<Arc<Self>> {
        let object = fstat(&self.fd).map_err(from_errno)?;
        if object.st_nlink == 0 {
            return Err(Error::Stale);
        }
        let known = stat(&fd)?;
        let node = Self::new(&self.store, fd, true, &known);
        if self.store.capabilities.contains(Capabilities::OWNERS) {
            node.set_owner(Some(object.st_uid), Some(object.st_gid))?;
        }
        Ok(self.store.cache.enter(node))
    }

    /// Runs a call at a place in this object's directory. The directory is created if it is missing, and again if
    /// another call has removed it meanwhile because it was empty.
    fn in_folder<T>(&self, place: &StreamPath, call: impl Fn(&OwnedFd) -> Result<T>) -> Result<(OwnedFd, T)> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(folder) = self.stream_folder(true)? else { continue };
            match make_directories(place, &folder).and_then(|()| call(&folder)) {
                Err(Error::NotFound) => {}
                done => return done.map(|done| (folder, done)),
            }
        }
        Err(Error::Busy)
    }

    pub(crate) fn delete_stream(&self, name: StreamName<'_>) -> Result<()> {
        let place = StreamPath::of(name);
        let folder = self.stream_folder(false)?.ok_or(Error::NotFound)?;
        let stat = stat_name(&folder, place.path.as_slice())?;
        if kind_of(&stat) != FileKind::Regular {
            return Err(Error::NotFound);
        }
        unlinkat(&folder, place.path.as_slice(), AtFlags::empty()).map_err(from_errno)?;
        self.store.cache.release(ObjectId::live(stat.stx_ino));
        tidy(&place, &folder);
        self.tidy_folder();
        Ok(())
    }

    pub(crate) fn move_stream(
        &self,
        name: StreamName<'_>,
        to: StreamName<'_>,
        replace: Replace,
    ) -> Result<()> {
        let (from, to) = (StreamPath::of(name), StreamPath::of(to));
        let folder = self.stream_folder(false)?.ok_or(Error::NotFound)?;
        stat_name(&folder, from.path.as_slice())?;
        let replaced = stat_name(&folder, to.path.as_slice()).ok();
        let flags = if replace == Replace::Never { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        let moved = || renameat_with(&folder, from.path.as_slice(), &folder, to.path.as_slice(), flags);
        make_directories(&to, &folder)?;
        moved().map_err(from_errno)?;
        if let Some(stat) = replaced.filter(|_| from != to) {
            self.store.cache.release(ObjectId::live(stat.stx_ino));
        }
        tidy(&from, &folder);
        Ok(())
    }
}

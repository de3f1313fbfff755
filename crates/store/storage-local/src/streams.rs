//! Named streams: files in the depot's directory for their object.
//!
//! A stream's file has the stream's name, unless the name is too long for a file or is `.` or `..`. Stream names
//! contain no colon, so a leading colon marks a name that is encoded: a name of more than 254 bytes is cut into pieces
//! of 254, each of which but the last is a directory `:PIECE`; `.` becomes `:.`. So creating, renaming and removing a
//! stream is one call each, which is atomic.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, fstat, openat2, renameat_with, unlinkat};
use storage::{Capabilities, Error, FileKind, ObjectId, Replace, Result, StreamEntry, StreamName};

use crate::attributes::{kind_of, stat, stat_name};
use crate::depot::{entries, make_directory, open_directory};
use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::resolve::BELOW;

/// How much of a name fits into one component after the colon, in bytes.
const PIECE_BYTES: usize = 254;
/// How often to recreate a directory that another call has just removed because it was empty.
const ATTEMPTS_MAX: usize = 16;
/// As deep as the longest name needs.
const DEPTH_MAX: usize = 4;
const NEW_FILE: OFlags =
    OFlags::CREATE.union(OFlags::EXCL).union(OFlags::RDWR).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The place of a stream's file below its object's directory.
#[derive(Debug, PartialEq, Eq)]
struct StreamPath {
    /// The directories on the way, from the top, as paths.
    directories: Vec<Vec<u8>>,
    path: Vec<u8>,
}

impl StreamPath {
    fn of(name: StreamName<'_>) -> Self {
        let (mut directories, mut path) = (Vec::new(), Vec::new());
        let mut rest = name.as_bytes();
        while let Some((piece, behind)) = rest.split_at_checked(PIECE_BYTES).filter(|(_, b)| !b.is_empty()) {
            path.push(b':');
            path.extend_from_slice(piece);
            directories.push(path.clone());
            path.push(b'/');
            rest = behind;
        }
        if matches!(rest, b"." | b"..") {
            path.push(b':');
        }
        path.extend_from_slice(rest);
        Self { directories, path }
    }

    fn make_directories(&self, folder: &OwnedFd) -> Result<()> {
        self.directories.iter().try_for_each(|dir| make_directory(folder, dir))
    }

    /// Removes the directories on the way that are now empty.
    fn tidy(&self, folder: &OwnedFd) {
        for dir in self.directories.iter().rev() {
            // Both failures are fine: the directory is not empty, or has been removed already.
            let _ = unlinkat(folder, dir.as_slice(), AtFlags::REMOVEDIR);
        }
    }
}

/// Adds the streams below a directory. `name` is the part of the stream's name that leads there.
fn push_streams(dir: &OwnedFd, name: &[u8], depth: usize, into: &mut Vec<StreamEntry>) -> Result<()> {
    for entry in entries(dir)? {
        let piece = entry.strip_prefix(b":").unwrap_or(&entry);
        let name = [name, piece].concat();
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
            push_streams(&folder, b"", DEPTH_MAX, &mut streams)?;
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
            place.tidy(&folder);
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
            match place.make_directories(&folder).and_then(|()| call(&folder)) {
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
        place.tidy(&folder);
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
        to.make_directories(&folder)?;
        moved().map_err(from_errno)?;
        if let Some(stat) = replaced.filter(|_| from != to) {
            self.store.cache.release(ObjectId::live(stat.stx_ino));
        }
        from.tidy(&folder);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &[u8]) -> Vec<u8> {
        StreamPath::of(StreamName::new(name).unwrap()).path
    }

    #[test]
    fn names_are_cut_into_pieces_that_fit() {
        assert_eq!(path(b"a"), b"a");
        assert_eq!(path(&[b'a'; 254]), [b'a'; 254]);
        assert_eq!(path(b"."), b":.");
        assert_eq!(path(b".."), b":..");
        let long = [&[b'a'; 254][..], b"."].concat();
        let place = StreamPath::of(StreamName::new(&long).unwrap());
        assert_eq!(place.directories, [[b":", &[b'a'; 254][..]].concat()]);
        assert_eq!(place.path, [b":", &[b'a'; 254][..], b"/:."].concat());
        let longest = StreamPath::of(StreamName::new(&[b'a'; 765]).unwrap());
        assert_eq!(longest.directories.len(), 3);
        assert!(longest.path.split(|b| *b == b'/').all(|piece| piece.len() <= 255));
    }
}

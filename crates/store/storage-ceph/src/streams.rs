//! Named streams: files in the depot's directory for their object.

use std::sync::Arc;

use storage::depot::{STREAM_DEPTH_MAX, StreamPath};
use storage::{Error, FileKind, Replace, Result, StreamEntry, StreamName};

use crate::attributes::kind_of;
use crate::data::Files;
use crate::depot::{STREAM_MODE, directory, entries, entry};
use crate::errno::from_errno;
use crate::inode::Inode;
use crate::node::CephNode;
use crate::place::text;

/// The directory in which a stream's file is, and the file's name there.
type File<'a> = (Arc<Inode>, &'a [u8]);

/// Where the file of a stream is; None if a directory on the way is missing and `make` is not set.
fn file_of<'a>(folder: &Arc<Inode>, path: &'a StreamPath, make: bool) -> Result<Option<File<'a>>> {
    let mut dir = Arc::clone(folder);
    let mut rest = path.path.as_slice();
    while let Some(slash) = rest.iter().position(|byte| *byte == b'/') {
        let (piece, behind) =
            (rest.get(..slash).unwrap_or_default(), rest.get(slash + 1..).unwrap_or_default());
        dir = match entry(&dir, piece)? {
            Some((below, _)) => Arc::new(below),
            None if make => Arc::new(directory(&dir, piece)?),
            None => return Ok(None),
        };
        rest = behind;
    }
    Ok(Some((dir, rest)))
}

/// Removes the directories on the way to a stream that are now empty.
fn tidy(folder: &Arc<Inode>, path: &StreamPath) -> Result<()> {
    for way in path.directories.iter().rev() {
        let as_path = StreamPath { directories: Vec::new(), path: way.clone() };
        let Some((dir, name)) = file_of(folder, &as_path, false)? else { continue };
        // Both failures are fine: the directory is not empty, or there is none.
        let _ = dir.remove(&text(name)?, true);
    }
    Ok(())
}

/// Adds the streams below a directory. `name` is the part of the stream's name that leads there.
fn push_streams(dir: &Inode, name: &[u8], depth: usize, into: &mut Vec<StreamEntry>) -> Result<()> {
    for called in entries(dir)? {
        let name = [name, StreamPath::piece_of(&called)].concat();
        let Some((inode, stat)) = entry(dir, &called)? else { continue };
        match kind_of(&stat) {
            FileKind::Regular => {
                let allocated = stat.blocks.saturating_mul(512);
                into.push(StreamEntry { name, size: stat.size, allocated });
            }
            FileKind::Directory if depth > 0 => push_streams(&inode, &name, depth.saturating_sub(1), into)?,
            _ => {}
        }
    }
    Ok(())
}

impl CephNode {
    pub(crate) fn list_streams(&self) -> Result<Vec<StreamEntry>> {
        let _changing = self.changing.lock();
        let mut streams = Vec::new();
        if let Some(folder) = self.stream_folder(false)? {
            push_streams(&folder, b"", STREAM_DEPTH_MAX, &mut streams)?;
        }
        Ok(streams)
    }

    pub(crate) fn find_stream(&self, name: StreamName<'_>) -> Result<Arc<Self>> {
        let _changing = self.changing.lock();
        self.stream_in(self.stream_folder(false)?.as_ref(), &StreamPath::of(name))
    }

    /// The stream in the object's directory, if there is one.
    fn stream_in(&self, folder: Option<&Arc<Inode>>, path: &StreamPath) -> Result<Arc<Self>> {
        let (dir, called) = file_of(folder.ok_or(Error::NotFound)?, path, false)?.ok_or(Error::NotFound)?;
        let (inode, stat) = entry(&dir, called)?.ok_or(Error::NotFound)?;
        if kind_of(&stat) != FileKind::Regular {
            return Err(Error::NotFound);
        }
        let stream = self.store.adopt(inode, &stat);
        if self.store.snapshot.is_some() {
            // While the library knows its name.
            stream.keep_data()?;
        }
        Ok(stream)
    }

    pub(crate) fn make_stream(&self, name: StreamName<'_>) -> Result<Arc<Self>> {
        let _changing = self.changing.lock();
        let path = StreamPath::of(name);
        let object = self.stat()?;
        if object.links == 0 || self.is_removed() {
            return Err(Error::Stale);
        }
        let folder = self.stream_folder(true)?.ok_or(Error::NotSupported)?;
        let (dir, called) = file_of(&folder, &path, true)?.ok_or(Error::NotFound)?;
        // The object's owner pays for the space.
        let made = dir.create(&text(called)?, STREAM_MODE, (object.uid, object.gid));
        let ((inode, stat), file) = made.map_err(from_errno)?;
        Ok(self.store.adopt_with(inode, &stat, Files::made(file)))
    }

    pub(crate) fn delete_stream(&self, name: StreamName<'_>) -> Result<()> {
        let _changing = self.changing.lock();
        let path = StreamPath::of(name);
        let folder = self.stream_folder(false)?.ok_or(Error::NotFound)?;
        let stream = self.stream_in(Some(&folder), &path)?;
        let (dir, called) = file_of(&folder, &path, false)?.ok_or(Error::NotFound)?;
        self.store.end_stream(&dir, called, &stream)?;
        tidy(&folder, &path)?;
        self.tidy_folder()
    }

    pub(crate) fn move_stream(
        &self,
        name: StreamName<'_>,
        to: StreamName<'_>,
        replace: Replace,
    ) -> Result<()> {
        let _changing = self.changing.lock();
        let (from, to) = (StreamPath::of(name), StreamPath::of(to));
        let folder = self.stream_folder(false)?.ok_or(Error::NotFound)?;
        self.stream_in(Some(&folder), &from)?;
        let replaced = self.stream_in(Some(&folder), &to).ok();
        if replace == Replace::Never && replaced.is_some() {
            return Err(Error::Exists);
        }
        if from == to {
            return Ok(());
        }
        let (dir, called) = file_of(&folder, &from, false)?.ok_or(Error::NotFound)?;
        let (to_dir, to_called) = file_of(&folder, &to, true)?.ok_or(Error::NotFound)?;
        if let Some(replaced) = &replaced {
            replaced.keep_data_if_held();
        }
        dir.rename(&text(called)?, &to_dir, &text(to_called)?).map_err(from_errno)?;
        if let Some(replaced) = replaced {
            self.store.cache.release(replaced.id);
        }
        tidy(&folder, &from)
    }
}

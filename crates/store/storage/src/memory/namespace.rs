//! Names: creating, linking, removing and renaming, with the checks in the order of Linux.

use super::State;
use super::directory::Directory;
use super::file_systems::check_live;
use super::object::{Content, Object};
use crate::{Error, NewKind, NewNode, ObjectId, Replace, Result, Timestamp};

/// The longest text of a symbolic link, as on Linux (PATH_MAX less the final zero).
const SYMLINK_BYTES_MAX: usize = 4095;

impl State {
    /// The object that a name stands for.
    pub(super) fn find(&self, dir: ObjectId, name: &[u8]) -> Result<&Object> {
        let id = self.object(dir)?.directory()?.find(name).ok_or(Error::NotFound)?;
        self.object(id)
    }

    /// Checks that the directory can take an entry: it must not have been removed.
    pub(super) fn check_enters(&self, dir: ObjectId) -> Result<&Directory> {
        let object = self.object(dir)?;
        let directory = object.directory()?;
        if object.names.is_empty() && !self.is_top(dir) { Err(Error::Stale) } else { Ok(directory) }
    }

    pub(super) fn create(&mut self, dir: ObjectId, name: &[u8], new: &NewNode<'_>) -> Result<ObjectId> {
        check_live(dir)?;
        self.object(dir)?.directory()?;
        let content = match new.kind {
            NewKind::Regular => Content::Data(super::data::Data::default()),
            NewKind::Directory => Content::Directory(Directory::default()),
            NewKind::Symlink([]) => return Err(Error::InvalidArgument),
            NewKind::Symlink(text) if text.contains(&0) => return Err(Error::InvalidArgument),
            NewKind::Symlink(text) if text.len() > SYMLINK_BYTES_MAX => return Err(Error::NameTooLong),
            NewKind::Symlink(text) => Content::Symlink(text.to_vec()),
            NewKind::Fifo => Content::Fifo,
            NewKind::Socket => Content::Socket,
            NewKind::BlockDevice(device) => Content::Block(device),
            NewKind::CharDevice(device) => Content::Char(device),
        };
        if self.check_enters(dir)?.find(name).is_some() {
            return Err(Error::Exists);
        }
        let id = self.new_id(dir)?;
        let mut object = Object::new(id, content, self.now());
        let is_symlink = matches!(new.kind, NewKind::Symlink(_));
        object.mode = if is_symlink { 0o777 } else { new.mode & 0o7777 };
        (object.uid, object.gid) = (new.uid, new.gid);
        self.objects.insert(id, object);
        self.enter(dir, name, id)?;
        Ok(id)
    }

    pub(super) fn link(&mut self, dir: ObjectId, name: &[u8], target: ObjectId) -> Result<()> {
        check_live(dir).and_then(|()| check_live(target))?;
        self.object(dir)?.directory()?;
        let object = self.object(target)?;
        if object.is_directory() {
            return Err(Error::IsDirectory);
        }
        let is_removed = object.names.is_empty();
        if self.check_enters(dir)?.find(name).is_some() {
            return Err(Error::Exists);
        }
        if target.fs != dir.fs {
            return Err(Error::CrossDevice);
        }
        if is_removed {
            return Err(Error::Stale);
        }
        self.enter(dir, name, target)
    }

    /// Removes a name. Returns the number of its object, which may have to be freed.
    pub(super) fn remove(&mut self, dir: ObjectId, name: &[u8], directory: bool) -> Result<()> {
        check_live(dir)?;
        let object = self.find(dir, name)?;
        check_live(object.id)?;
        match (&object.content, directory) {
            (Content::Directory(_), false) => return Err(Error::IsDirectory),
            (Content::Directory(d), true) if !d.is_empty() => return Err(Error::NotEmpty),
            (Content::Directory(_), true) | (_, false) => {}
            (_, true) => return Err(Error::NotDirectory),
        }
        let id = object.id;
        self.leave(dir, name, id)?;
        self.free_unused(id);
        Ok(())
    }

    pub(super) fn rename(
        &mut self,
        (dir, name): (ObjectId, &[u8]),
        (to_dir, to_name): (ObjectId, &[u8]),
        replace: Replace,
    ) -> Result<()> {
        check_live(dir).and_then(|()| check_live(to_dir))?;
        self.object(to_dir)?.directory()?;
        let moved = self.find(dir, name)?;
        let (id, moves_directory) = (moved.id, moved.is_directory());
        check_live(id)?;
        let replaced = self.check_enters(to_dir).map_err(|_| Error::NotFound)?.find(to_name);
        if replaced.is_some() && replace == Replace::Never {
            return Err(Error::Exists);
        }
        if dir.fs != to_dir.fs {
            return Err(Error::CrossDevice);
        }
        if self.is_above(id, to_dir) {
            return Err(Error::InvalidArgument);
        }
        if let Some(old) = replaced {
            if self.is_above(old, dir) {
                return Err(Error::NotEmpty);
            }
            if old == id {
                return Ok(());
            }
            self.check_replaces(moves_directory, old)?;
            self.leave(to_dir, to_name, old)?;
            self.free_unused(old);
        }
        self.leave(dir, name, id)?;
        self.enter(to_dir, to_name, id)?;
        self.changes.tell_moved(id);
        Ok(())
    }

    fn check_replaces(&self, moves_directory: bool, old: ObjectId) -> Result<()> {
        check_live(old)?;
        match (moves_directory, &self.object(old)?.content) {
            (true, Content::Directory(d)) if !d.is_empty() => Err(Error::NotEmpty),
            (true, Content::Directory(_)) => Ok(()),
            (true, _) => Err(Error::NotDirectory),
            (false, Content::Directory(_)) => Err(Error::IsDirectory),
            (false, _) => Ok(()),
        }
    }

    /// Whether `above` is `below` or a directory that contains it.
    fn is_above(&self, above: ObjectId, below: ObjectId) -> bool {
        let mut at = Some(below);
        while let Some(id) = at {
            if id == above {
                return true;
            }
            at = self.objects.get(&id).and_then(|o| o.names.first()).map(|(dir, _)| *dir);
        }
        false
    }

    pub(super) fn enter(&mut self, dir: ObjectId, name: &[u8], id: ObjectId) -> Result<()> {
        let now = self.now();
        let object = self.object_mut(id)?;
        object.names.push((dir, name.to_vec()));
        object.ctime = now;
        let is_directory = object.is_directory();
        self.list(dir, name, (id, is_directory), now)
    }

    /// Adds the entry alone: the object has the name already.
    pub(super) fn list(
        &mut self,
        dir: ObjectId,
        name: &[u8],
        (id, is_directory): (ObjectId, bool),
        now: Timestamp,
    ) -> Result<()> {
        let parent = self.object_mut(dir)?;
        (parent.mtime, parent.ctime) = (now, now);
        let directory = parent.directory_mut()?;
        directory.insert(name, id);
        directory.directories += u32::from(is_directory);
        self.changes.tell_name(dir, name, false);
        Ok(())
    }

    fn leave(&mut self, dir: ObjectId, name: &[u8], id: ObjectId) -> Result<()> {
        let now = self.now();
        let object = self.object_mut(id)?;
        object.names.retain(|(d, n)| (*d, n.as_slice()) != (dir, name));
        object.ctime = now;
        let is_directory = object.is_directory();
        let parent = self.object_mut(dir)?;
        (parent.mtime, parent.ctime) = (now, now);
        let directory = parent.directory_mut()?;
        directory.remove(name);
        directory.directories = directory.directories.saturating_sub(u32::from(is_directory));
        self.changes.tell_name(dir, name, is_directory);
        Ok(())
    }

    /// The path of an object below the root, by one of its names.
    pub(super) fn path(&self, id: ObjectId) -> Result<Vec<u8>> {
        let (mut names, mut at) = (Vec::new(), id);
        while !self.is_top(at) {
            let (dir, name) = self.object(at)?.names.first().ok_or(Error::Stale)?;
            names.push(name.as_slice());
            at = *dir;
        }
        names.reverse();
        Ok(names.join(&b'/'))
    }
}

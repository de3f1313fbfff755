//! File systems beside the one that holds the root, and snapshots of that one.

use super::directory::Directory;
use super::node::MemoryNode;
use super::object::{Content, Object};
use super::{MemoryStore, ROOT, State};
use crate::{Error, FileKind, Handle, Name, NodeRef, ObjectId, Result};

/// The first byte of the handle of an object in the present state of the first file system.
const PLAIN: u8 = b'M';
/// The first byte of the handle of any other object.
const FULL: u8 = b'N';

impl MemoryStore {
    /// Puts a further file system, which is empty, in the root under this name. Returns its top. Its numbers are those of
    /// the first file system all over again.
    ///
    /// # Errors
    /// [`Error::Exists`].
    pub fn add_file_system(&self, name: Name<'_>) -> Result<NodeRef> {
        let mut state = self.shared.state.lock();
        let top = state.add_file_system(name.as_bytes())?;
        Ok(MemoryNode::pin(&self.shared, &mut state, top, FileKind::Directory))
    }

    /// Puts a snapshot of the file system that holds the root in the root under this name. Returns its top. The objects of
    /// the snapshot have the numbers of those that they are pictures of; they can be read, and everything else fails with
    /// [`Error::ReadOnly`].
    ///
    /// # Errors
    /// [`Error::Exists`].
    pub fn add_snapshot(&self, name: Name<'_>) -> Result<NodeRef> {
        let mut state = self.shared.state.lock();
        let top = state.add_snapshot(name.as_bytes())?;
        Ok(MemoryNode::pin(&self.shared, &mut state, top, FileKind::Directory))
    }
}

impl State {
    fn add_file_system(&mut self, name: &[u8]) -> Result<ObjectId> {
        if self.check_enters(ROOT)?.find(name).is_some() {
            return Err(Error::Exists);
        }
        let fs = u32::try_from(self.last_numbers.len()).map_err(|_| Error::OutOfResources)?;
        self.last_numbers.push(ROOT.number);
        let top = ObjectId { fs, ..ROOT };
        let mut object = Object::new(top, Content::Directory(Directory::default()), self.now());
        object.mode = 0o777;
        self.objects.insert(top, object);
        self.enter(ROOT, name, top)?;
        Ok(top)
    }

    fn add_snapshot(&mut self, name: &[u8]) -> Result<ObjectId> {
        if self.check_enters(ROOT)?.find(name).is_some() {
            return Err(Error::Exists);
        }
        let snapshot = self.add_pictures();
        let top = ObjectId { snapshot, ..ROOT };
        self.objects.get_mut(&top).ok_or(Error::Stale)?.names = vec![(ROOT, name.to_vec())];
        let now = self.now();
        self.list(ROOT, name, (top, true), now)?;
        Ok(top)
    }

    /// Adds a picture of each object of the first file system. Returns the number of the snapshot. Neither other file systems
    /// nor earlier snapshots are in it.
    pub(super) fn add_pictures(&mut self) -> u32 {
        self.last_snapshot += 1;
        let snapshot = self.last_snapshot;
        let picture =
            |id: ObjectId| (id.is_live() && id.fs == ROOT.fs).then_some(ObjectId { snapshot, ..id });
        let is_reachable = |object: &&Object| object.id == ROOT || !object.names.is_empty();
        let pictures: Vec<Object> = self
            .objects
            .values()
            .filter(is_reachable)
            .filter_map(|object| Some(object.as_of(picture(object.id)?, picture)))
            .collect();
        for object in pictures {
            self.pages += object.pages();
            self.objects.insert(object.id, object);
        }
        snapshot
    }

    /// A new number in the file system of this object, which holds or names what is made.
    pub(super) fn new_id(&mut self, beside: ObjectId) -> Result<ObjectId> {
        let last = usize::try_from(beside.fs).ok().and_then(|fs| self.last_numbers.get_mut(fs));
        let last = last.ok_or(Error::Stale)?;
        *last += 1;
        Ok(ObjectId { number: *last, ..beside })
    }

    /// Whether an object has or had this identity.
    pub(super) fn may_have_made(&self, id: ObjectId) -> bool {
        let last = usize::try_from(id.fs).ok().and_then(|fs| self.last_numbers.get(fs));
        last.is_some_and(|last| (1..=*last).contains(&id.number)) && id.snapshot <= self.last_snapshot
    }
}

impl Object {
    /// The picture of the object, where `id` stands for it and `picture` says what stands for others.
    pub(super) fn as_of(&self, id: ObjectId, picture: impl Fn(ObjectId) -> Option<ObjectId> + Copy) -> Self {
        let mut object = self.clone();
        (object.id, object.held) = (id, 0);
        if let Content::Directory(directory) = &self.content {
            object.content = Content::Directory(directory.as_of(picture));
        }
        let named = |(dir, name): &(ObjectId, Vec<u8>)| Some((picture(*dir)?, name.clone()));
        object.names = self.names.iter().filter_map(named).collect();
        let streams = |(name, stream): (&Vec<u8>, &ObjectId)| Some((name.clone(), picture(*stream)?));
        object.streams = self.streams.iter().filter_map(streams).collect();
        object
    }
}

/// Refuses to change an object of a snapshot.
pub(super) fn check_live(id: ObjectId) -> Result<()> {
    if id.is_live() { Ok(()) } else { Err(Error::ReadOnly) }
}

/// The handle of an object.
pub(super) fn handle_of(id: ObjectId) -> Result<Handle> {
    let is_plain = id == ObjectId::live(id.number);
    let mut bytes = vec![if is_plain { PLAIN } else { FULL }];
    bytes.extend(id.number.to_le_bytes());
    if !is_plain {
        bytes.extend(id.fs.to_le_bytes());
        bytes.extend(id.snapshot.to_le_bytes());
    }
    Handle::new(&bytes)
}

/// The object that a handle names.
pub(super) fn id_of(handle: &Handle) -> Result<ObjectId> {
    let (format, rest) = handle.as_bytes().split_first().ok_or(Error::BadHandle)?;
    let (number, rest) = rest.split_first_chunk().ok_or(Error::BadHandle)?;
    let plain = ObjectId::live(u64::from_le_bytes(*number));
    match (*format, rest.split_first_chunk()) {
        (PLAIN, None) if rest.is_empty() => Ok(plain),
        (FULL, Some((fs, snapshot))) => {
            let snapshot = snapshot.try_into().map_err(|_| Error::BadHandle)?;
            Ok(ObjectId { fs: u32::from_le_bytes(*fs), snapshot: u32::from_le_bytes(snapshot), ..plain })
        }
        _ => Err(Error::BadHandle),
    }
}

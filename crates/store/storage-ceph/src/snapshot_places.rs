//! Where the objects of a snapshot are. Ceph's library uses an object of a snapshot by its name and that of the directories above it:
//! one that it has found by its number it takes for the object of now, or waits for ever (16.2). So an object of which there is only a
//! handle is found by names again, from the top of the snapshot down.
//!
//! The names are those by which objects were found lately, or those of the directories that the handle and the present state name: a
//! directory that was not moved since is still where it was.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;
use storage::{Error, Name, ObjectId, Result};

use crate::errno::from_errno;
use crate::inode::Inode;
use crate::node::CephNode;
use crate::store::Shared;

/// How many directories, and how many other objects, of a snapshot are known: some megabytes with long names.
const KNOWN_MAX: usize = 8192;

/// The number of a directory, and a name in it.
type Entry = (u64, Box<[u8]>);

/// Where objects of a snapshot were found, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct SnapshotPlaces {
    /// Guards the places of directories. When there are too many, no more are noted.
    directories: Mutex<HashMap<u64, Entry>>,
    /// Guards those of all other objects. When there are too many, all are forgotten: their directories lead to them.
    others: Mutex<HashMap<u64, Entry>>,
}

impl SnapshotPlaces {
    /// Notes that an object was found in a directory.
    pub(crate) fn note(&self, number: u64, directory: u64, name: &[u8], is_directory: bool) {
        let mut known = if is_directory { self.directories.lock() } else { self.others.lock() };
        if known.get(&number).is_some_and(|(known, called)| *known == directory && **called == *name) {
            return;
        }
        if known.len() >= KNOWN_MAX {
            if is_directory {
                return;
            }
            known.clear();
        }
        known.insert(number, (directory, name.into()));
    }

    fn of(&self, number: u64) -> Option<Entry> {
        let directory = self.directories.lock().get(&number).cloned();
        directory.or_else(|| self.others.lock().get(&number).cloned())
    }
}

/// The number of the directory that holds a directory now.
fn directory_now(of: &Shared, number: u64) -> Result<u64> {
    let found = Inode::of_number(&of.mount, number).and_then(|dir| dir.lookup(c".."));
    match found {
        Ok((_, above)) if above.number != number => Ok(above.number),
        // The top of the file system, which is above the top of the snapshot; or something that is gone, or no directory.
        Ok(_) | Err(Errno::NOENT | Errno::STALE | Errno::NOTDIR) => Err(Error::Stale),
        Err(errno) => Err(from_errno(errno)),
    }
}

impl Shared {
    /// The object of a snapshot with this number. `directory`: the number of the directory in which it was found, if it was found in
    /// one.
    ///
    /// # Errors
    /// [`Error::Stale`] if it is not known where it was: it was not used lately, and a directory above it was moved or removed since.
    pub(crate) fn find_then(
        self: &Arc<Self>,
        places: &SnapshotPlaces,
        id: ObjectId,
        directory: Option<u64>,
    ) -> Result<Arc<CephNode>> {
        let mut way: Vec<(u64, Option<Box<[u8]>>)> = Vec::new();
        let mut at = id.number;
        let mut node = loop {
            if let Some(node) = self.cache.get(ObjectId::live(at)) {
                break node;
            }
            if way.iter().any(|(number, _)| *number == at) {
                // What is known of then and of now does not go together.
                return Err(Error::Stale);
            }
            let told = directory.filter(|_| way.is_empty());
            let (above, name) = match (places.of(at), told) {
                (Some((above, name)), _) => (above, Some(name)),
                (None, Some(above)) => (above, None),
                (None, None) => (directory_now(self, at)?, None),
            };
            way.push((at, name));
            at = above;
        };
        for (number, name) in way.into_iter().rev() {
            let name = name.map_or_else(|| node.name_of(number), Ok)?;
            let (found, _) = node.find(Name::new(&name)?).map_err(|error| match error {
                Error::NotFound | Error::NotDirectory => Error::Stale,
                error => error,
            })?;
            if found.id.number != number {
                return Err(Error::Stale);
            }
            node = found;
        }
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_known_than_there_is_room_for() {
        let places = SnapshotPlaces::default();
        let most = u64::try_from(KNOWN_MAX).unwrap();
        (0..most + 5).for_each(|number| places.note(number, 1000, b"directory", true));
        (most + 5..2 * most + 10).for_each(|number| places.note(number, 1001, b"file", false));
        assert_eq!((places.directories.lock().len(), places.others.lock().len()), (KNOWN_MAX, 5));
        let of = |number| places.of(number).map(|(directory, name)| (directory, name.to_vec()));
        assert_eq!(of(most - 1), Some((1000, b"directory".to_vec())));
        assert_eq!((of(most), of(most + 5)), (None, None), "one too many, and one that was forgotten");
        assert_eq!(of(2 * most + 9), Some((1001, b"file".to_vec())));
        places.note(2 * most + 9, 1002, b"link", false);
        assert_eq!(of(2 * most + 9), Some((1002, b"link".to_vec())));
    }
}

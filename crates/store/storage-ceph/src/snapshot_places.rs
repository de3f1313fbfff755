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

/// How many objects of a snapshot are known: some megabytes with long names.
const KNOWN_MAX: usize = 16_384;

/// Where objects of a snapshot were found.
#[derive(Debug, Default)]
pub(crate) struct SnapshotPlaces {
    /// Guards the places, by the objects' numbers.
    known: Mutex<HashMap<u64, Known>>,
}

#[derive(Debug)]
struct Known {
    directory: u64,
    name: Box<[u8]>,
    is_directory: bool,
}

impl SnapshotPlaces {
    /// Notes that an object was found in a directory. When there are too many, files are forgotten: their directories lead to them.
    pub(crate) fn note(&self, number: u64, directory: u64, name: &[u8], is_directory: bool) {
        let mut known = self.known.lock();
        if known.get(&number).is_some_and(|known| known.directory == directory && *known.name == *name) {
            return;
        }
        if known.len() >= KNOWN_MAX {
            known.retain(|_, known| known.is_directory);
        }
        if known.len() < KNOWN_MAX {
            known.insert(number, Known { directory, name: name.into(), is_directory });
        }
    }

    fn of(&self, number: u64) -> Option<(u64, Option<Box<[u8]>>)> {
        self.known.lock().get(&number).map(|known| (known.directory, Some(known.name.clone())))
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
            let told = directory.filter(|_| way.is_empty()).map(|directory| (directory, None));
            let (above, name) = match places.of(at).or(told) {
                Some(place) => place,
                None => (directory_now(self, at)?, None),
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
    fn files_are_forgotten_before_directories() {
        let places = SnapshotPlaces::default();
        for number in 0..10 {
            places.note(number, 1000, b"directory", true);
        }
        let most = u64::try_from(KNOWN_MAX).unwrap();
        for number in 10..most + 5 {
            places.note(number, 1001, b"file", false);
        }
        assert_eq!(places.known.lock().len(), 15);
        assert_eq!(places.of(9), Some((1000, Some(b"directory"[..].into()))));
        assert_eq!((places.of(10), places.of(most).map(|(directory, _)| directory)), (None, Some(1001)));
        for number in 0..2 * most {
            places.note(number, 1000, b"directory", true);
        }
        assert_eq!(places.known.lock().len(), KNOWN_MAX);
        places.note(0, 2000, b"link", true);
        assert_eq!(places.known.lock().len(), KNOWN_MAX);
    }
}

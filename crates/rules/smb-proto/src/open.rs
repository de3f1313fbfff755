//! Opens and their identifiers. [MS-SMB2] 2.2.14.1, 3.3.1.10.
//!
//! The server decides what an open holds. This module has its identifiers, its table and their limits.

use std::collections::HashMap;

use smb_wire::FileId;

/// The table is full: STATUS_INSUFFICIENT_RESOURCES.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many opens")]
pub struct TooManyOpens;

/// Session.OpenTable: the opens of one session by their volatile identifiers.
#[derive(Debug)]
pub struct OpenTable<T> {
    opens: HashMap<u64, (u64, T)>,
    opens_max: usize,
}

/// Allocates identifiers of opens, for the whole server: Open.FileId is unique within a session, Open.DurableFileId
/// within the server.
#[derive(Debug)]
pub struct FileIds {
    next: u64,
}

impl FileIds {
    /// Starts after `first`, which is random, or greater than any persistent identifier that is still in use from an
    /// earlier run.
    pub fn new(first: u64) -> Self {
        Self { next: first }
    }

    /// The next identifier. Neither half is 0 or all ones, and neither is ever repeated.
    pub fn allocate(&mut self) -> FileId {
        self.next = self.next.wrapping_add(1);
        while self.next == 0 || self.next == u64::MAX {
            self.next = self.next.wrapping_add(1);
        }
        // the halves differ, so that code that confuses them is found
        FileId { persistent: self.next, volatile: self.next.rotate_left(32) }
    }
}

impl<T> OpenTable<T> {
    /// An empty table of at most `opens_max` opens.
    pub fn new(opens_max: usize) -> Self {
        Self { opens: HashMap::new(), opens_max }
    }

    /// Enters an open.
    ///
    /// # Errors
    /// [`TooManyOpens`] at the limit, with the table unchanged.
    pub fn insert(&mut self, id: FileId, open: T) -> Result<(), TooManyOpens> {
        if self.opens.len() >= self.opens_max {
            return Err(TooManyOpens);
        }
        self.opens.insert(id.volatile, (id.persistent, open));
        Ok(())
    }

    /// The open with this identifier. Both halves must match ([MS-SMB2] 3.3.5.10 and others; if not,
    /// STATUS_FILE_CLOSED).
    pub fn find(&self, id: FileId) -> Option<&T> {
        let (persistent, open) = self.opens.get(&id.volatile)?;
        (*persistent == id.persistent).then_some(open)
    }

    /// Removes an open from the table.
    pub fn remove(&mut self, id: FileId) -> Option<T> {
        self.find(id)?;
        self.opens.remove(&id.volatile).map(|(_, open)| open)
    }

    /// Every open, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &T)> {
        self.opens.iter().map(|(volatile, (persistent, open))| {
            (FileId { persistent: *persistent, volatile: *volatile }, open)
        })
    }

    /// Empties the table, for a session that ends.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.opens.drain().map(|(_, (_, open))| open)
    }

    /// How many opens there are.
    pub fn len(&self) -> usize {
        self.opens.len()
    }

    /// Whether there are no opens.
    pub fn is_empty(&self) -> bool {
        self.opens.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_unique_and_never_special() {
        let mut ids = FileIds::new(u64::MAX - 3);
        let given: Vec<FileId> = (0..6).map(|_| ids.allocate()).collect();
        for (index, id) in given.iter().enumerate() {
            for half in [id.persistent, id.volatile] {
                assert!(half != 0 && half != u64::MAX, "{id:?}");
            }
            assert!(!given[..index].iter().any(|earlier| earlier.volatile == id.volatile));
        }
    }

    #[test]
    fn an_open_is_found_only_with_both_halves() {
        let mut table = OpenTable::new(2);
        let (one, two) = (FileId { persistent: 1, volatile: 7 }, FileId { persistent: 2, volatile: 8 });
        table.insert(one, "one").unwrap();
        table.insert(two, "two").unwrap();
        assert_eq!(table.insert(FileId { persistent: 3, volatile: 9 }, "three"), Err(TooManyOpens));
        assert_eq!(table.find(two), Some(&"two"));
        let mixed = FileId { persistent: 2, volatile: 7 };
        assert_eq!(table.find(mixed), None);
        assert_eq!(table.remove(mixed), None);
        assert_eq!(table.find(FileId::ANY), None);
        assert_eq!(table.remove(one), Some("one"));
        assert_eq!((table.remove(one), table.len()), (None, 1));
        assert_eq!(table.iter().collect::<Vec<_>>(), [(two, &"two")]);
        assert_eq!(table.drain().collect::<Vec<_>>(), ["two"]);
        assert!(table.is_empty());
    }
}

//! The entries of a directory.

use std::collections::BTreeMap;

use crate::ObjectId;

/// Names and the objects that they stand for. Each entry has a cookie that is never reused, so a listing can continue
/// after any entry, whatever was added and removed meanwhile.
#[derive(Debug, Clone, Default)]
pub(super) struct Directory {
    by_name: BTreeMap<Vec<u8>, NameEntry>,
    by_cookie: BTreeMap<u64, Vec<u8>>,
    last_cookie: u64,
    /// How many of the entries are directories.
    pub(super) directories: u32,
}

#[derive(Debug, Clone, Copy)]
struct NameEntry {
    id: ObjectId,
    cookie: u64,
}

/// An entry as a listing shows it.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: Vec<u8>,
    pub(super) id: ObjectId,
    pub(super) cookie: u64,
}

impl Directory {
    pub(super) fn find(&self, name: &[u8]) -> Option<ObjectId> {
        self.by_name.get(name).map(|entry| entry.id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The same entries in the same order, each for the picture of its object. What has no picture is the top of a file
    /// system or of a snapshot, and its entry is left out.
    pub(super) fn as_of(&self, picture: impl Fn(ObjectId) -> Option<ObjectId>) -> Self {
        let mut directory = self.clone();
        for (name, entry) in &self.by_name {
            if let Some(id) = picture(entry.id) {
                directory.by_name.insert(name.clone(), NameEntry { id, ..*entry });
            } else {
                directory.remove(name);
                directory.directories = directory.directories.saturating_sub(1);
            }
        }
        directory
    }

    /// Adds a name that does not exist yet.
    pub(super) fn insert(&mut self, name: &[u8], id: ObjectId) {
        self.last_cookie += 1;
        let cookie = self.last_cookie;
        self.by_cookie.insert(cookie, name.to_vec());
        self.by_name.insert(name.to_vec(), NameEntry { id, cookie });
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some(entry) = self.by_name.remove(name) {
            self.by_cookie.remove(&entry.cookie);
        }
    }

    /// Up to `count` entries after `cookie`.
    pub(super) fn behind(&self, cookie: u64, count: usize) -> Vec<Listed> {
        let Some(from) = cookie.checked_add(1) else { return Vec::new() };
        let listed = self.by_cookie.range(from..).take(count);
        let entry = |(cookie, name): (&u64, &Vec<u8>)| {
            let id = self.find(name)?;
            Some(Listed { name: name.clone(), id, cookie: *cookie })
        };
        listed.filter_map(entry).collect()
    }
}

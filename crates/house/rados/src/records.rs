//! The records of a group under the epoch of an owner.

use std::ffi::CString;
use std::sync::Arc;

use rustix::io::Errno;
use state::cluster::{NotOwner, Owner};
use state::store::{Batch, Change, KeyValue, Store, StoreError, Table};

use crate::gateway::{OWNER, owner_of, trouble};
use crate::keys;
use crate::pool::{Pool, Step};

/// The records of a group. Each call is one operation on one object, in which the OSD compares the owner first.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) pool: Arc<Pool>,
    pub(crate) object: CString,
    pub(crate) group: String,
    pub(crate) owner: Owner,
}

/// A [`Change`] with its key and value as they are kept.
enum Kept {
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Drop([Vec<u8>; 2]),
}

impl Kept {
    fn put(&self) -> Option<(&[u8], &[u8])> {
        if let Self::Put(key, value) = self { Some((key, value)) } else { None }
    }

    fn removed(&self) -> Option<&[u8]> {
        if let Self::Remove(key) = self { Some(key) } else { None }
    }

    fn is_in(&self, [first, end]: &[Vec<u8>; 2]) -> bool {
        match self {
            Self::Put(key, _) | Self::Remove(key) => first <= key && key < end,
            Self::Drop(_) => false,
        }
    }
}

impl Records {
    /// The error of an operation. None: the owner is still this one, so that something else was not as expected.
    fn refused(&self, error: Errno) -> Result<Option<StoreError>, StoreError> {
        match error {
            Errno::CANCELED | Errno::NOENT => {
                let now = owner_of(&self.pool, &self.object)?;
                let is_over = now.as_ref() != Some(&self.owner);
                let (group, epoch) = (self.group.clone(), self.owner.epoch);
                Ok(is_over.then(|| NotOwner { group, epoch, now }.into()))
            }
            _ => Err(trouble(error)),
        }
    }

    /// The error of a reading.
    fn unread(&self, error: Errno) -> StoreError {
        self.refused(error).unwrap_or_else(Some).unwrap_or_else(|| trouble(error))
    }
}

impl Store for Records {
    fn read(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let owner = self.owner.kept();
        let found = self.pool.record(&self.object, (OWNER, &owner), &keys::of_record(table, key));
        found.map_err(|e| self.unread(e))?.map(|kept| value_of(table, &kept)).transpose()
    }

    fn scan(&self, table: Table) -> Result<Vec<KeyValue>, StoreError> {
        let owner = self.owner.kept();
        let beginning = c_string(keys::beginning(table))?;
        let (mut found, mut after) = (Vec::new(), CString::default());
        loop {
            let page = self.pool.page(&self.object, (OWNER, &owner), &after, &beginning);
            let (records, more) = page.map_err(|e| self.unread(e))?;
            let last = records.last().map(|(key, _)| key.clone());
            for (key, kept) in records {
                let key = keys::key_in(table, &key).ok_or_else(|| damaged(table))?;
                found.push((key, value_of(table, &kept)?));
            }
            match last {
                Some(last) if more => after = c_string(last)?,
                _ => return Ok(found),
            }
        }
    }

    fn write(&self, batch: &Batch) -> Result<bool, StoreError> {
        let owner = self.owner.kept();
        let expected: Vec<_> = batch
            .expected
            .iter()
            .map(|expected| {
                let value = expected.value.as_deref().map(keys::kept).unwrap_or_default();
                (keys::of_record(expected.table, &expected.key), value)
            })
            .collect();
        let changes = kept(&batch.changes);
        // The attribute is written again, so that the operation is one that changes something whatever the batch is.
        let mut steps = vec![Step::CompareAttribute(OWNER, &owner), Step::SetAttribute(OWNER, &owner)];
        steps.extend(expected.iter().map(|(key, value)| Step::CompareRecord(key, value)));
        steps.extend(changes.chunk_by(is_alike).map(step));
        match self.pool.change(&self.object, &steps) {
            Ok(()) => Ok(true),
            Err(error) => self.refused(error)?.map_or(Ok(false), Err),
        }
    }
}

/// Changes as they are kept. An OSD removes a range of what it has already, and not what the same operation sets: so what is set before it
/// in the range is left out.
fn kept(changes: &[Change]) -> Vec<Kept> {
    let mut found = Vec::new();
    for change in changes {
        let next = match change {
            Change::Put { table, key, value } => Kept::Put(keys::of_record(*table, key), keys::kept(value)),
            Change::Remove { table, key } => Kept::Remove(keys::of_record(*table, key)),
            Change::Drop { table } => {
                let range = keys::range(table);
                found.retain(|earlier: &Kept| !earlier.is_in(&range));
                Kept::Drop(range)
            }
        };
        found.push(next);
    }
    found
}

/// Whether one step makes both changes.
fn is_alike(first: &Kept, second: &Kept) -> bool {
    matches!((first, second), (Kept::Put(..), Kept::Put(..)) | (Kept::Remove(_), Kept::Remove(_)))
}

/// The step that makes changes that are alike, in one pass of the OSD.
fn step(changes: &[Kept]) -> Step<'_> {
    if let [Kept::Drop([first, end]), ..] = changes {
        return Step::RemoveRange(first, end);
    }
    let put: Vec<_> = changes.iter().filter_map(Kept::put).collect();
    if put.is_empty() {
        Step::RemoveRecords(changes.iter().filter_map(Kept::removed).collect())
    } else {
        Step::SetRecords(put)
    }
}

fn c_string(bytes: Vec<u8>) -> Result<CString, StoreError> {
    Ok(CString::new(bytes)?)
}

fn value_of(table: Table, kept: &[u8]) -> Result<Vec<u8>, StoreError> {
    keys::value_of(kept).ok_or_else(|| damaged(table))
}

fn damaged(table: Table) -> StoreError {
    format!("a record of the table {} is not readable", table.name).into()
}

/// The object of this name, such as a group's.
pub(crate) fn object(kind: &str, name: &str) -> Result<CString, StoreError> {
    c_string(format!("{kind}.{name}").into_bytes())
}

#[cfg(test)]
mod tests {
    use state::store::Form;

    use super::*;

    #[test]
    fn what_a_range_removes_is_not_set_before() {
        let [near, far] = ["near", "far"].map(|name| Table { name, form: Form::TextToBytes });
        let dropped = Change::Drop { table: "near".into() };
        let batch =
            [near.put(b"k", b"1"), far.put(b"k", b"2"), near.remove(b"l"), dropped, near.put(b"k", b"3")];
        let kept = kept(&batch);
        let [Kept::Put(first, _), Kept::Drop(_), Kept::Put(last, value)] = &kept[..] else {
            panic!("{} changes", kept.len())
        };
        assert_eq!((first, last), (&keys::of_record(far, b"k"), &keys::of_record(near, b"k")));
        assert_eq!(*value, keys::kept(b"3"));
    }
}

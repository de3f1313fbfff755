//! What may be different between two snapshots of a subvolume: found in the tree of the later one, without a look at what is not.
//!
//! Btrfs never writes to a block of a tree that an earlier transaction has written: a change makes a new block, and new ones for all
//! above it, and each block has the number of its transaction (btrfs(5), "copy on write"; `btrfs send` and `find-new` rest on
//! it). A snapshot is made at the end of a transaction, so a block with a lower number than that was in the snapshot as it is.
//! A search can leave out blocks that are older than a transaction. So each object whose inode item is in no block of the later tree
//! that is at least as young as the earlier snapshot has the inode item that it had: its change time, and with that its names, its
//! data, its extended attributes and, of a directory, what is in it. Blocks have many items, so more is found than was changed.
//!
//! Named streams are files of their own, in the depot. Which objects carry the numbers of directories in which something may have
//! changed is found by a search through the whole tree.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use storage::depot::{DEPOT_NAME, StreamsNumber};
use storage::{Error, Result};

use crate::attributes::stat_name;
use crate::btrfs::{self, SearchKey, Subvolume};
use crate::depot::{entries, open_directory};
use crate::errno::from_errno;
use crate::stream_folder::number_of_copying;
use crate::tree_items::{Item, LAST, WHATEVER, bytes, each_item, number};

/// `BTRFS_INODE_ITEM_KEY`, `BTRFS_INODE_REF_KEY`, `BTRFS_INODE_EXTREF_KEY`, `BTRFS_XATTR_ITEM_KEY`.
const INODE_ITEM: u32 = 1;
const INODE_REF: u32 = 12;
const INODE_EXTREF: u32 = 13;
const XATTR_ITEM: u32 = 24;
/// The highest type of an item.
const LAST_KIND: u32 = 255;
/// So many objects are remembered. If there are more, a walk through the snapshots costs little more.
const TOUCHED_MAX: usize = 4_000_000;

/// The numbers of the objects of which anything may be different, and those of the directories above them. None: that is not known, or
/// the search does not go on. Both are top directories of snapshots.
pub(crate) fn touched(
    earlier: &OwnedFd,
    later: &OwnedFd,
    goes_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Option<HashSet<u64>>> {
    let of = |top| btrfs::subvolume_of(top).map_err(from_errno);
    let (from, to) = (of(earlier)?, of(later)?);
    if !are_of_one(&from, &to) {
        return Ok(None);
    }
    let mut search = Search { tree: later, found: HashSet::from([btrfs::TOP]), goes_on };
    let found = search.since(from.made_in).and_then(|()| match search.numbers(earlier)? {
        Some(numbers) if numbers.is_empty() => Ok(true),
        Some(numbers) => search.carriers(&numbers).map(|()| true),
        None => Ok(false),
    });
    match found {
        Ok(true) => Ok(Some(search.found)),
        Ok(false) | Err(Error::NotPermitted | Error::TooLarge | Error::Busy) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether both are snapshots of one subvolume, which nobody has written to. What was made so before the other is the earlier.
fn are_of_one(earlier: &Subvolume, later: &Subvolume) -> bool {
    let of = later.parent_uuid;
    of != [0; 16]
        && earlier.parent_uuid == of
        && earlier.is_read_only
        && later.is_read_only
        && earlier.made_in <= later.made_in
}

/// A search in the later tree.
struct Search<'a> {
    tree: &'a OwnedFd,
    found: HashSet<u64>,
    goes_on: &'a mut dyn FnMut() -> ControlFlow<()>,
}

impl Search<'_> {
    /// # Errors
    /// [`Error::Busy`] if the search does not go on.
    fn each(&mut self, key: SearchKey, mut each: impl FnMut(&Item<'_>)) -> Result<()> {
        let goes_on = &mut *self.goes_on;
        let step = |item: &Item<'_>| {
            each(item);
            goes_on()
        };
        each_item(self.tree, key, step).map_err(|errno| match errno {
            Errno::PERM => Error::NotPermitted,
            Errno::OVERFLOW => Error::TooLarge,
            Errno::CANCELED => Error::Busy,
            errno => from_errno(errno),
        })
    }

    /// Finds what is in blocks that are as young as this transaction.
    fn since(&mut self, transaction: u64) -> Result<()> {
        let key = SearchKey { min_transid: transaction, ..everything() };
        let (mut objects, mut is_too_much) = (Vec::new(), false);
        self.each(key, |item| {
            is_too_much |= objects.len() >= TOUCHED_MAX;
            if item.kind == INODE_ITEM && !is_too_much {
                objects.push(item.object);
            }
        })?;
        if is_too_much {
            return Err(Error::TooLarge);
        }
        objects.into_iter().try_for_each(|object| self.enter(object))
    }

    /// Notes an object, and the directories above it.
    fn enter(&mut self, object: u64) -> Result<()> {
        let mut rest = vec![object];
        while let Some(object) = rest.pop() {
            if self.found.insert(object) {
                rest.extend(self.directories_of(object)?);
            }
        }
        if self.found.len() > TOUCHED_MAX { Err(Error::TooLarge) } else { Ok(()) }
    }

    /// The directories in which an object has names.
    fn directories_of(&mut self, object: u64) -> Result<Vec<u64>> {
        let key = SearchKey {
            min_object: object,
            max_object: object,
            min_type: INODE_REF,
            max_type: INODE_EXTREF,
            ..WHATEVER
        };
        let (mut directories, mut is_legible) = (Vec::new(), true);
        self.each(key, |item| match item.kind {
            INODE_REF => directories.push(item.offset),
            _ => match further_names(item.data) {
                Some(found) => directories.extend(found),
                None => is_legible = false,
            },
        })?;
        if is_legible { Ok(directories) } else { Err(Error::TooLarge) }
    }

    /// The numbers of the directories of the depot in which something may be different. None: not all are known.
    fn numbers(&mut self, earlier: &OwnedFd) -> Result<Option<BTreeSet<StreamsNumber>>> {
        let then = Folders::of(earlier, self.goes_on)?;
        let now = Folders::of(self.tree, self.goes_on)?;
        if then.depot == now.depot && now.depot.is_none_or(|depot| !self.found.contains(&depot)) {
            return Ok(Some(BTreeSet::new()));
        }
        let is_same = |name: &Vec<u8>, folder: &u64| {
            then.folders.get(name) == Some(folder) && !self.found.contains(folder)
        };
        let new = now.folders.iter().filter(|(name, folder)| !is_same(name, folder)).map(|(name, _)| name);
        let gone = then.folders.keys().filter(|name| !now.folders.contains_key(*name));
        // One that has no number is of an old version, whose owner is not looked for here.
        let number = |name| StreamsNumber::of_folder(name).or_else(|| number_of_copying(name));
        Ok(new.chain(gone).map(|name| number(name)).collect())
    }

    /// Finds the objects that carry one of these numbers.
    fn carriers(&mut self, numbers: &BTreeSet<StreamsNumber>) -> Result<()> {
        let mut carriers = Vec::new();
        self.each(everything(), |item| {
            if item.kind == XATTR_ITEM && may_have(item.data, numbers) {
                carriers.push(item.object);
            }
        })?;
        carriers.into_iter().try_for_each(|object| self.enter(object))
    }
}

fn everything() -> SearchKey {
    SearchKey { min_object: btrfs::TOP, max_object: LAST, max_type: LAST_KIND, ..WHATEVER }
}

/// The directories of a depot.
#[derive(Default)]
struct Folders {
    depot: Option<u64>,
    folders: HashMap<Vec<u8>, u64>,
}

impl Folders {
    fn of(top: &OwnedFd, goes_on: &mut dyn FnMut() -> ControlFlow<()>) -> Result<Self> {
        let Some(depot) = open_directory(top, DEPOT_NAME.as_bytes())? else { return Ok(Self::default()) };
        let number = stat_name(top, DEPOT_NAME.as_bytes())?.stx_ino;
        let mut folders = HashMap::new();
        for name in entries(&depot)? {
            if goes_on().is_break() {
                return Err(Error::Busy);
            }
            let folder = stat_name(&depot, name.as_slice())?.stx_ino;
            folders.insert(name, folder);
        }
        Ok(Self { depot: Some(number), folders })
    }
}

/// The directories of further names (`struct btrfs_inode_extref`); None for what is not understood.
fn further_names(mut data: &[u8]) -> Option<Vec<u64>> {
    let mut directories = Vec::new();
    // An item that a search has no room for has no data.
    while !data.is_empty() || directories.is_empty() {
        directories.push(number(data, 0)?);
        let name = usize::from(bytes(data, 16).map(u16::from_le_bytes)?);
        data = data.get(18..)?.get(name..)?;
    }
    Some(directories)
}

/// Whether one of these extended attributes (`struct btrfs_dir_item`) may hold one of these numbers: it does, or they are not understood.
fn may_have(mut data: &[u8], numbers: &BTreeSet<StreamsNumber>) -> bool {
    let mut is_first = true;
    while !data.is_empty() || is_first {
        let Some((name, value, rest)) = first_attribute(data) else { return true };
        let names = [StreamsNumber::TRUSTED_XATTR, StreamsNumber::USER_XATTR];
        if names.iter().any(|one| one.as_bytes() == name)
            && StreamsNumber::decode(value).is_none_or(|number| numbers.contains(&number))
        {
            return true;
        }
        (data, is_first) = (rest, false);
    }
    false
}

/// Name and value of the first attribute, and what follows.
fn first_attribute(data: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let length = |at| bytes(data, at).map(u16::from_le_bytes).map(usize::from);
    let (name, rest) = data.get(30..)?.split_at_checked(length(27)?)?;
    let (value, rest) = rest.split_at_checked(length(25)?)?;
    Some((name, value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(name: &str, value: &[u8]) -> Vec<u8> {
        let length = |bytes: usize| u16::try_from(bytes).unwrap().to_le_bytes();
        let head = [&[0; 25][..], &length(value.len()), &length(name.len()), &[8]].concat();
        [&head, name.as_bytes(), value].concat()
    }

    #[test]
    fn attributes_that_hold_a_number() {
        let (number, other) = (StreamsNumber::new([7; 16]), StreamsNumber::new([8; 16]));
        let numbers = BTreeSet::from([number]);
        let has = attribute(StreamsNumber::TRUSTED_XATTR, &number.encode());
        assert!(may_have(&has, &numbers));
        assert!(!may_have(&attribute(StreamsNumber::USER_XATTR, &other.encode()), &numbers));
        assert!(!may_have(&attribute("user.other", &number.encode()), &numbers));
        assert!(may_have(&[attribute("user.other", b""), has.clone()].concat(), &numbers), "of one hash");
        assert!(may_have(&attribute(StreamsNumber::USER_XATTR, b"damaged"), &numbers));
        assert!(may_have(&[], &numbers) && may_have(&has[..29], &numbers), "cut off");
    }

    #[test]
    fn further_names_of_one_hash() {
        let name = |directory: u64, name: &[u8]| {
            let length = u16::try_from(name.len()).unwrap().to_le_bytes();
            [&directory.to_le_bytes()[..], &[0; 8], &length, name].concat()
        };
        let data = [name(300, b"a"), name(400, b"bc")].concat();
        assert_eq!(further_names(&data), Some(vec![300, 400]));
        assert_eq!((further_names(&[]), further_names(&data[..data.len() - 1])), (None, None));
    }

    #[test]
    fn only_snapshots_of_one_subvolume_are_compared() {
        let made = storage::Timestamp::default();
        let of = |parent: u8, made_in| Subvolume {
            id: 1,
            uuid: [1; 16],
            parent_uuid: [parent; 16],
            is_read_only: true,
            made_in,
            made,
        };
        assert!(are_of_one(&of(7, 5), &of(7, 5)) && are_of_one(&of(7, 5), &of(7, 6)));
        assert!(!are_of_one(&of(7, 6), &of(7, 5)), "the other way round");
        assert!(!are_of_one(&of(7, 5), &of(8, 6)), "a share that went back to a snapshot");
        assert!(!are_of_one(&of(0, 5), &of(0, 6)), "subvolumes that are no snapshots");
        assert!(!are_of_one(&of(7, 5), &Subvolume { is_read_only: false, ..of(7, 6) }));
    }
}

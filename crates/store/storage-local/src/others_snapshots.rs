//! Snapshots that other programs made of a subvolume (snapper, btrbk, `btrfs subvolume snapshot -r`): all subvolumes of the
//! file system that are read-only and whose parent it is. The file system's tree of roots says which these are; only the
//! administrator of the machine may search it (CAP_SYS_ADMIN).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use storage::{Error, FoundSnapshot, Result, SnapshotId, Timestamp};

use crate::btrfs::{self, SearchKey};
use crate::errno::from_errno;
use crate::kernel_handle::{self, KernelHandle};
use crate::tree_items::{LAST, WHATEVER, bytes, each_item, number};

/// `BTRFS_ROOT_TREE_OBJECTID`, `BTRFS_ROOT_ITEM_KEY`, `BTRFS_ROOT_BACKREF_KEY`.
const ROOT_TREE: u64 = 1;
const ROOT_ITEM: u32 = 132;
const ROOT_BACKREF: u32 = 144;
/// Where the number of the subvolume is in a handle of Btrfs (`struct btrfs_fid`, fs/btrfs/export.h).
const SUBVOLUME_IN_HANDLE: std::ops::Range<usize> = 8..16;

/// What the tree of roots says about a subvolume (`struct btrfs_root_item`).
#[derive(Debug, PartialEq, Eq)]
struct Root {
    uuid: [u8; 16],
    parent_uuid: [u8; 16],
    is_read_only: bool,
    /// False for one that is being removed.
    is_there: bool,
    made: Timestamp,
}

/// Where a subvolume is (`struct btrfs_root_ref`).
#[derive(Debug, PartialEq, Eq)]
struct Place {
    tree: u64,
    directory: u64,
    name: Vec<u8>,
}

impl Root {
    fn read(data: &[u8]) -> Option<Self> {
        Some(Self {
            is_read_only: number(data, 208)? & btrfs::RECORDED_READ_ONLY != 0,
            is_there: bytes(data, 216).map(u32::from_le_bytes)? > 0,
            uuid: bytes(data, 247)?,
            parent_uuid: bytes(data, 263)?,
            made: Timestamp {
                secs: number(data, 339)?.cast_signed(),
                nanos: bytes(data, 347).map(u32::from_le_bytes)?,
            },
        })
    }
}

impl Place {
    fn read(tree: u64, data: &[u8]) -> Option<Self> {
        let length = usize::from(bytes(data, 16).map(u16::from_le_bytes)?);
        Some(Self { tree, directory: number(data, 0)?, name: data.get(18..)?.get(..length)?.to_vec() })
    }
}

/// The snapshots that others made of the subvolume with this top directory. None are found by a server that is not the
/// administrator.
pub(crate) fn others_of(root: &OwnedFd) -> Result<Vec<FoundSnapshot>> {
    let live = btrfs::subvolume_of(root).map_err(from_errno)?;
    let (mut roots, mut places) = (Vec::new(), HashMap::new());
    let key = SearchKey {
        tree: ROOT_TREE,
        min_object: btrfs::TOP,
        max_object: LAST,
        min_type: ROOT_ITEM,
        max_type: ROOT_BACKREF,
        ..WHATEVER
    };
    let searched = each_item(root, key, |item| {
        if item.kind == ROOT_ITEM {
            roots.extend(Root::read(item.data).map(|root| (item.object, root)));
        } else if item.kind == ROOT_BACKREF {
            places.extend(Place::read(item.offset, item.data).map(|place| (item.object, place)));
        }
        ControlFlow::Continue(())
    });
    match searched {
        Ok(()) => {}
        Err(Errno::PERM) => return Ok(Vec::new()),
        Err(errno) => return Err(from_errno(errno)),
    }
    let is_of_it = |root: &Root| root.is_there && root.is_read_only && root.parent_uuid == live.uuid;
    let found = roots.into_iter().filter(|(_, found)| is_of_it(found)).filter_map(|(id, found)| {
        let place = places.get(&id)?;
        let above = btrfs::path_in(root, place.tree, place.directory).unwrap_or_default();
        Some(FoundSnapshot {
            id: SnapshotId(u32::try_from(id).ok()?),
            name: String::from_utf8_lossy(&[&above[..], &place.name].concat()).into_owned(),
            recorded: found.made,
            is_own: false,
            uuid: Some(found.uuid),
        })
    });
    Ok(found.collect())
}

/// The top directory of a snapshot of the subvolume with this top directory, wherever it is in the file system. Only for a
/// server that may use handles. The top directory of a snapshot is a picture of the subvolume's, so their handles differ in the
/// number of the subvolume only.
pub(crate) fn open_by_id(root: &OwnedFd, id: SnapshotId) -> Result<OwnedFd> {
    const TOP: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    let KernelHandle { kind, mut bytes } = kernel_handle::name_to_handle(root.as_fd()).map_err(from_errno)?;
    let place = bytes.get_mut(SUBVOLUME_IN_HANDLE).ok_or(Error::NotSupported)?;
    place.copy_from_slice(&u64::from(id.0).to_ne_bytes());
    let opened = kernel_handle::open_by_handle(root.as_fd(), &KernelHandle { kind, bytes });
    let opened = opened.and_then(|fd| openat(fd, c".", TOP, Mode::empty()));
    let top =
        opened.map_err(|errno| if errno == Errno::STALE { Error::NotFound } else { from_errno(errno) })?;
    let found = btrfs::subvolume_of(&top).map_err(from_errno)?;
    if found.is_read_only && found.id == u64::from(id.0) { Ok(top) } else { Err(Error::NotFound) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_item_says() {
        let mut data = vec![0; 439];
        assert_eq!(Root::read(&data).map(|root| (root.is_read_only, root.is_there)), Some((false, false)));
        data[208] = 1;
        data[216] = 1;
        data[247..263].fill(3);
        data[263..279].fill(7);
        data[339] = 9;
        data[347] = 5;
        let made = Timestamp { secs: 9, nanos: 5 };
        assert_eq!(
            Root::read(&data),
            Some(Root { uuid: [3; 16], parent_uuid: [7; 16], is_read_only: true, is_there: true, made })
        );
        assert_eq!(Root::read(&data[..350]), None, "of a file system before Linux 3.6");
        let place = [&9_u64.to_le_bytes()[..], &[0; 8], &3_u16.to_le_bytes(), b"abc"].concat();
        assert_eq!(Place::read(5, &place), Some(Place { tree: 5, directory: 9, name: b"abc".to_vec() }));
        assert_eq!(Place::read(5, &place[..20]), None);
    }
}

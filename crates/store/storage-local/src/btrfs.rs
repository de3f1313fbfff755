//! Subvolumes of Btrfs: the ioctls of linux/btrfs.h.
#![expect(unsafe_code, reason = "rustix has no wrappers for the ioctls of Btrfs")]

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Setter, Updater, ioctl, opcode};
use storage::Timestamp;

/// The number of a subvolume's top directory (`BTRFS_FIRST_FREE_OBJECTID`).
pub(crate) const TOP: u64 = 256;

/// The number of every directory that a snapshot has in the place of a subvolume (`BTRFS_EMPTY_SUBVOL_DIR_OBJECTID`).
pub(crate) const PLACEHOLDER: u64 = 2;

/// `BTRFS_IOCTL_MAGIC`.
const MAGIC: u8 = 0x94;
/// `BTRFS_SUBVOL_RDONLY`, in what is asked for.
const READ_ONLY: u64 = 1 << 1;
/// `BTRFS_ROOT_SUBVOL_RDONLY`, in what is recorded.
pub(crate) const RECORDED_READ_ONLY: u64 = 1;
/// `BTRFS_SUBVOL_SPEC_BY_ID`: the name is a number.
const BY_ID: u64 = 1 << 4;
/// The longest name of a subvolume, in bytes (`BTRFS_VOL_NAME_MAX`).
const NAME_BYTES_MAX: usize = 255;
/// How many subvolumes one question is answered with (`BTRFS_MAX_ROOTREF_BUFFER_NUM`).
const BELOW_MAX: usize = 255;
/// How many bytes of items one search returns.
pub(crate) const FOUND_BYTES: usize = 3992;

/// `struct btrfs_ioctl_vol_args_v2`.
#[repr(C)]
struct VolumeArgs {
    fd: i64,
    transid: u64,
    flags: u64,
    unused: [u64; 4],
    name: [u8; 4040],
}

/// `struct btrfs_ioctl_timespec`.
#[repr(C)]
struct Time {
    secs: u64,
    nanos: u32,
}

/// `struct btrfs_ioctl_get_subvol_info_args`.
#[repr(C)]
struct SubvolumeInfo {
    id: u64,
    name: [u8; 256],
    parent: u64,
    directory: u64,
    generation: u64,
    flags: u64,
    uuid: [u8; 16],
    parent_uuid: [u8; 16],
    received_uuid: [u8; 16],
    changed_in: u64,
    made_in: u64,
    sent_in: u64,
    received_in: u64,
    ctime: Time,
    otime: Time,
    stime: Time,
    rtime: Time,
    reserved: [u64; 8],
}

/// `struct btrfs_ioctl_fs_info_args`, with what nobody here needs left out.
#[repr(C)]
struct FileSystemInfo {
    max_id: u64,
    devices: u64,
    uuid: [u8; 16],
    rest: [u64; 124],
}

/// `struct btrfs_ioctl_search_key`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchKey {
    pub(crate) tree: u64,
    pub(crate) min_object: u64,
    pub(crate) max_object: u64,
    pub(crate) min_offset: u64,
    pub(crate) max_offset: u64,
    pub(crate) min_transid: u64,
    pub(crate) max_transid: u64,
    pub(crate) min_type: u32,
    pub(crate) max_type: u32,
    /// The most that are wanted, then how many there are.
    pub(crate) items: u32,
    pub(crate) unused: u32,
    pub(crate) unused_too: [u64; 4],
}

/// `struct btrfs_ioctl_search_args`.
#[repr(C)]
struct SearchArgs {
    key: SearchKey,
    found: [u8; FOUND_BYTES],
}

/// `struct btrfs_ioctl_ino_lookup_args`.
#[repr(C)]
struct LookupArgs {
    tree: u64,
    object: u64,
    path: [u8; 4080],
}

/// `struct btrfs_ioctl_get_subvol_rootref_args`.
#[repr(C)]
struct Below {
    /// From which number on they are asked for.
    from: u64,
    /// The number of a subvolume, and that of the directory it is in.
    found: [[u64; 2]; BELOW_MAX],
    count: u8,
    align: [u8; 7],
}

const TREE_SEARCH: Opcode = opcode::read_write::<SearchArgs>(MAGIC, 17);
const INO_LOOKUP: Opcode = opcode::read_write::<LookupArgs>(MAGIC, 18);
const SNAP_CREATE_V2: Opcode = opcode::write::<VolumeArgs>(MAGIC, 23);
const SUBVOL_CREATE_V2: Opcode = opcode::write::<VolumeArgs>(MAGIC, 24);
const FS_INFO: Opcode = opcode::read::<FileSystemInfo>(MAGIC, 31);
const SUBVOL_GETFLAGS: Opcode = opcode::read::<u64>(MAGIC, 25);
const SUBVOL_SETFLAGS: Opcode = opcode::write::<u64>(MAGIC, 26);
const GET_SUBVOL_INFO: Opcode = opcode::read::<SubvolumeInfo>(MAGIC, 60);
const GET_SUBVOL_ROOTREF: Opcode = opcode::read_write::<Below>(MAGIC, 61);
const SNAP_DESTROY_V2: Opcode = opcode::write::<VolumeArgs>(MAGIC, 63);

/// What is known about a subvolume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subvolume {
    /// Its number, which is never given again.
    pub(crate) id: u64,
    pub(crate) uuid: [u8; 16],
    /// That of the subvolume of which it was a snapshot at first.
    pub(crate) parent_uuid: [u8; 16],
    pub(crate) is_read_only: bool,
    /// The transaction in which it was made.
    pub(crate) made_in: u64,
    /// When it was made.
    pub(crate) made: Timestamp,
}

/// Whether a snapshot can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    Allowed,
    Refused,
}

impl VolumeArgs {
    fn of(name: &[u8]) -> Result<Self, Errno> {
        let mut args = Self { fd: 0, transid: 0, flags: 0, unused: [0; 4], name: [0; 4040] };
        let room = args.name.get_mut(..name.len()).filter(|room| room.len() <= NAME_BYTES_MAX);
        room.ok_or(Errno::NAMETOOLONG)?.copy_from_slice(name);
        Ok(args)
    }
}

fn set<const OPCODE: Opcode, T>(fd: impl AsFd, value: T) -> Result<(), Errno> {
    // SAFETY: each opcode of this file has the type of its argument, which is the one that is passed, and the kernel only
    // reads it.
    unsafe { ioctl(fd, Setter::<OPCODE, T>::new(value)) }
}

/// Makes an empty subvolume with this name in a directory.
pub(crate) fn make_subvolume(dir: impl AsFd, name: &[u8]) -> Result<(), Errno> {
    set::<SUBVOL_CREATE_V2, _>(dir, VolumeArgs::of(name)?)
}

/// Makes a snapshot of a subvolume, of which any descriptor is given, with this name in a directory.
pub(crate) fn snapshot(of: impl AsFd, dir: impl AsFd, name: &[u8], writing: Writing) -> Result<(), Errno> {
    let flags = if writing == Writing::Refused { READ_ONLY } else { 0 };
    let fd = i64::from(of.as_fd().as_raw_fd());
    set::<SNAP_CREATE_V2, _>(dir, VolumeArgs { fd, flags, ..VolumeArgs::of(name)? })
}

/// Removes the subvolume with this name in a directory.
pub(crate) fn remove_subvolume(dir: impl AsFd, name: &[u8]) -> Result<(), Errno> {
    set::<SNAP_DESTROY_V2, _>(dir, VolumeArgs::of(name)?)
}

/// Removes the subvolume with this number, wherever it is in the file system of an object. Since Linux 5.7.
pub(crate) fn remove_by_id(fd: impl AsFd, id: u64) -> Result<(), Errno> {
    set::<SNAP_DESTROY_V2, _>(fd, VolumeArgs { flags: BY_ID, ..VolumeArgs::of(&id.to_ne_bytes())? })
}

/// The numbers of the subvolumes in the one with this top directory: 255 at most. Since Linux 4.18.
pub(crate) fn below(top: impl AsFd) -> Result<Vec<u64>, Errno> {
    let mut args = Below { from: 0, found: [[0; 2]; BELOW_MAX], count: 0, align: [0; 7] };
    // SAFETY: the opcode is the one whose argument is a `struct btrfs_ioctl_get_subvol_rootref_args`, which it reads and fills.
    match unsafe { ioctl(top, Updater::<GET_SUBVOL_ROOTREF, Below>::new(&mut args)) } {
        // There are more.
        Ok(()) | Err(Errno::OVERFLOW) => {}
        Err(errno) => return Err(errno),
    }
    Ok(args.found.iter().take(args.count.into()).map(|[id, _]| *id).collect())
}

/// Makes a subvolume read-only, of which the top directory is given.
pub(crate) fn refuse_writing(top: impl AsFd) -> Result<(), Errno> {
    // SAFETY: the opcode is the one whose argument is a 64-bit number, which it fills.
    let flags = unsafe { ioctl(&top, Getter::<SUBVOL_GETFLAGS, u64>::new()) }?;
    set::<SUBVOL_SETFLAGS, _>(top, flags | READ_ONLY)
}

/// The subvolume that an object is in.
pub(crate) fn subvolume_of(fd: impl AsFd) -> Result<Subvolume, Errno> {
    // SAFETY: the opcode is the one whose argument is a `struct btrfs_ioctl_get_subvol_info_args`, which it fills.
    let info = unsafe { ioctl(fd, Getter::<GET_SUBVOL_INFO, SubvolumeInfo>::new()) }?;
    let made = Timestamp { secs: info.otime.secs.cast_signed(), nanos: info.otime.nanos };
    let is_read_only = info.flags & RECORDED_READ_ONLY != 0;
    let SubvolumeInfo { id, uuid, parent_uuid, made_in, .. } = info;
    Ok(Subvolume { id, uuid, parent_uuid, is_read_only, made_in, made })
}

/// The UUID of the file system that an object is in: that of all its subvolumes.
pub(crate) fn file_system_of(fd: impl AsFd) -> Result<[u8; 16], Errno> {
    // SAFETY: the opcode is the one whose argument is a `struct btrfs_ioctl_fs_info_args`, which it fills.
    let info = unsafe { ioctl(fd, Getter::<FS_INFO, FileSystemInfo>::new()) }?;
    Ok(info.uuid)
}

/// Searches a tree of the file system. Returns how many items there are in the bytes. Only for the administrator of the
/// machine.
pub(crate) fn search(fd: impl AsFd, key: SearchKey) -> Result<(u32, [u8; FOUND_BYTES]), Errno> {
    let mut args = SearchArgs { key, found: [0; FOUND_BYTES] };
    // SAFETY: the opcode is the one whose argument is a `struct btrfs_ioctl_search_args`, which it reads and fills.
    unsafe { ioctl(fd, Updater::<TREE_SEARCH, SearchArgs>::new(&mut args)) }?;
    Ok((args.key.items, args.found))
}

/// The path of a directory in its subvolume, which is empty or ends with a slash. Only for the administrator of the machine.
pub(crate) fn path_in(fd: impl AsFd, tree: u64, directory: u64) -> Result<Vec<u8>, Errno> {
    let mut args = LookupArgs { tree, object: directory, path: [0; 4080] };
    // SAFETY: the opcode is the one whose argument is a `struct btrfs_ioctl_ino_lookup_args`, which it reads and fills.
    unsafe { ioctl(fd, Updater::<INO_LOOKUP, LookupArgs>::new(&mut args)) }?;
    Ok(args.path.split(|byte| *byte == 0).next().unwrap_or_default().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_kernels() {
        assert_eq!(size_of::<VolumeArgs>(), 4096);
        assert_eq!(size_of::<SubvolumeInfo>(), 504);
        assert_eq!(size_of::<FileSystemInfo>(), 1024);
        assert_eq!((size_of::<SearchKey>(), size_of::<SearchArgs>()), (104, 4096));
        assert_eq!((size_of::<LookupArgs>(), size_of::<Below>()), (4096, 4096));
    }

    #[test]
    fn a_name_fits_or_is_refused() {
        assert!(VolumeArgs::of(&[b'a'; 255]).is_ok());
        assert_eq!(VolumeArgs::of(&[b'a'; 256]).err(), Some(Errno::NAMETOOLONG));
    }

    #[test]
    fn elsewhere_there_are_no_subvolumes() {
        let dir = std::fs::File::open("/proc").unwrap();
        assert!(subvolume_of(&dir).is_err() && file_system_of(&dir).is_err());
        assert!(make_subvolume(&dir, b"a").is_err());
    }
}

//! What the file system under a store supports, found out by trying.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    Access, AtFlags, FallocateFlags, MemfdFlags, Mode, OFlags, StatVfsMountFlags, XattrFlags, accessat,
    fallocate, fgetxattr, fsetxattr, fstatfs, fstatvfs, memfd_create, openat,
};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use rustix::thread::CapabilitySet;
use storage::depot::StreamsNumber;
use storage::{Capabilities, HANDLE_BYTES_MAX, Result};

use crate::attributes::{btime_of, device_of, stat};
use crate::dos::DOS_XATTR;
use crate::errno::from_errno;
use crate::{descriptor, kernel_handle, sys};

/// statfs(2): file systems whose data is in memory, so that reading never waits for a device.
const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;
/// File systems whose handles are never reused, not even after a remount: ext2 to ext4, XFS, Btrfs, F2FS, Bcachefs and
/// ZFS; also tmpfs, of which nothing is left after a remount. Elsewhere (FAT, FUSE) generations may be made up at each
/// mount, and data stored under a handle could come to belong to another file.
const LASTING_HANDLES: [i64; 7] =
    [0xef53, 0x5846_5342, BTRFS_MAGIC, 0xf2f5_2010, 0xca45_1a4e, 0x2fc1_2fc1, TMPFS_MAGIC];
const OVERLAYFS_MAGIC: i64 = 0x794c_7630;
const BTRFS_MAGIC: i64 = 0x9123_683e;
/// Bytes of a native handle apart from the file system's own.
const HANDLE_OVERHEAD: usize = 21;

/// Whether data is in memory.
pub(crate) fn is_in_memory(root: &OwnedFd) -> Result<bool> {
    Ok(matches!(file_system(root)?, TMPFS_MAGIC | RAMFS_MAGIC))
}

/// Whether handles of the file system are never reused.
pub(crate) fn has_lasting_handles(root: &OwnedFd) -> Result<bool> {
    Ok(LASTING_HANDLES.contains(&file_system(root)?))
}

/// Whether the file system is changed only by this machine, through its kernel: whether it is one of those above.
pub(crate) fn is_changed_here_only(root: &OwnedFd) -> Result<bool> {
    has_lasting_handles(root)
}

/// Whether the file system is known to lie on this machine's own devices or in its memory. All others may stop
/// answering for good: FUSE, NFS, SMB, 9P, CephFS, GlusterFS, and unknown ones.
pub(crate) fn is_local(root: &OwnedFd) -> Result<bool> {
    Ok(match file_system(root)? {
        RAMFS_MAGIC => true,
        OVERLAYFS_MAGIC => has_upper_layer(root)?,
        _ => is_changed_here_only(root)?,
    })
}

/// Whether an overlay is writable. The kernel accepts no network or FUSE file system as the upper layer
/// (Documentation/filesystems/overlayfs.rst, "Upper and Lower"), and what is read from below is an image on the same
/// disk.
fn has_upper_layer(root: &OwnedFd) -> Result<bool> {
    let device = device_of(&stat(root)?);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    Ok(has_upper(&mounts, &format!("{}:{}", device.major, device.minor)))
}

/// proc_pid_mountinfo(5): the third field is the device, the last are the options of the file system.
fn has_upper(mounts: &str, device: &str) -> bool {
    let mut of_device = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(device));
    of_device.any(|line| line.split(' ').next_back().is_some_and(|options| options.contains(",upperdir=")))
}

/// The type of the file system (statfs(2)).
pub(crate) fn file_system(root: &OwnedFd) -> Result<i64> {
    // The type is signed on some architectures; the magic numbers have 32 bits.
    Ok(fstatfs(root).map_err(from_errno)?.f_type & 0xffff_ffff)
}

/// Whether this is in Btrfs, as far as the system says.
pub(crate) fn is_btrfs(fd: &OwnedFd) -> bool {
    file_system(fd) == Ok(BTRFS_MAGIC)
}

/// Whether nobody can change what is below the root: its mount, its file system or its subvolume is read-only.
pub(crate) fn is_read_only(root: &OwnedFd) -> Result<bool> {
    // Not told of a subvolume of Btrfs.
    let of_mount = fstatvfs(root).map_err(from_errno)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    Ok(of_mount || accessat(root, c".", Access::WRITE_OK, AtFlags::EACCESS) == Err(Errno::ROFS))
}

/// All capabilities except [`Capabilities::NATIVE_HANDLES`].
pub(crate) fn capabilities(root: &OwnedFd, is_in_memory: bool) -> Result<Capabilities> {
    let mut found = Capabilities::empty();
    found.set(Capabilities::LOCAL, is_local(root)?);
    found.set(Capabilities::WRITE, !is_read_only(root)?);
    found.set(Capabilities::OWNERS, can_set_owners());
    found.set(Capabilities::BIRTH_TIME, btime_of(&stat(root)?).is_some());
    let xattr = fgetxattr(root, DOS_XATTR, &mut [0; 64][..]);
    found.set(Capabilities::XATTRS, !matches!(xattr, Err(Errno::OPNOTSUPP)));
    match openat(root, c".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR) {
        Ok(file) => found |= capabilities_of_files(&file),
        // There is no file to try with: calls will find out by themselves.
        Err(_) => found |= Capabilities::READ_NEVER | Capabilities::SPARSE | Capabilities::PUNCH_HOLE,
    }
    if is_in_memory {
        found |= Capabilities::READ_NEVER | Capabilities::WRITE_NEVER;
    }
    Ok(found)
}

/// Tries calls on a file without a name.
fn capabilities_of_files(file: &OwnedFd) -> Capabilities {
    let mut found = Capabilities::empty();
    let wrote = pwritev2(file, &[IoSlice::new(b"x")], 0, ReadWriteFlags::NOWAIT);
    found.set(Capabilities::WRITE_NEVER, !matches!(wrote, Err(Errno::OPNOTSUPP)));
    let read = preadv2(file, &mut [IoSliceMut::new(&mut [0])], 0, ReadWriteFlags::NOWAIT);
    found.set(Capabilities::READ_NEVER, !matches!(read, Err(Errno::OPNOTSUPP)));
    let punched = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 1);
    // Local file systems that free ranges also know which ranges are free.
    found.set(Capabilities::SPARSE | Capabilities::PUNCH_HOLE, !matches!(punched, Err(Errno::OPNOTSUPP)));
    // Clones a whole file to itself: where cloning works, this is refused as an overlap.
    let cloned = sys::clone_range(file.as_fd(), 0, file.as_fd(), 1 << 20, 0);
    found.set(Capabilities::CLONE, !matches!(cloned, Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS)));
    found
}

/// Whether the server's attributes that clients must not change are `trusted.` ones: where it may write such attributes.
/// Where nothing can be written, as in a snapshot, it is asked for what a server that may has written there.
fn writes_trusted_xattrs(root: &OwnedFd) -> bool {
    let tried = |file: OwnedFd| fsetxattr(file, descriptor::TRUSTED_XATTR, b"", XattrFlags::empty()).is_ok();
    match openat(root, c".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR) {
        Ok(file) => tried(file),
        Err(Errno::ROFS) => {
            let known = fgetxattr(root, descriptor::TRUSTED_XATTR, &mut [0; 1][..]);
            !matches!(known, Err(Errno::OPNOTSUPP))
                && memfd_create(c"anabranch", MemfdFlags::CLOEXEC).is_ok_and(tried)
        }
        Err(_) => false,
    }
}

/// The attribute for security descriptors.
pub(crate) fn descriptor_xattr(root: &OwnedFd) -> &'static str {
    if writes_trusted_xattrs(root) { descriptor::TRUSTED_XATTR } else { descriptor::USER_XATTR }
}

/// The attribute of objects that holds the number of their streams.
pub(crate) fn number_xattr(root: &OwnedFd) -> &'static str {
    if writes_trusted_xattrs(root) { StreamsNumber::TRUSTED_XATTR } else { StreamsNumber::USER_XATTR }
}

fn can_set_owners() -> bool {
    let needed = CapabilitySet::CHOWN | CapabilitySet::FOWNER;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Whether the server may use the file system's own handles.
pub(crate) fn has_native_handles(root: &OwnedFd) -> bool {
    let Ok(handle) = kernel_handle::name_to_handle(root.as_fd()) else { return false };
    // Handles of directories and files may differ in length, but never by more than a factor of two.
    let fits = handle.bytes.len() + HANDLE_OVERHEAD <= HANDLE_BYTES_MAX;
    fits && kernel_handle::open_by_handle(root.as_fd(), &handle).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_to_be_local() {
        let at = |path: &str| {
            let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
            is_local(&file).unwrap()
        };
        assert!(at("/dev/shm"));
        assert!(!at("/proc"), "nobody knows what it does");
    }

    #[test]
    fn an_overlay_is_local_when_it_has_an_upper_layer() {
        let mounts = "22 1 8:2 / / rw - ext4 /dev/sda2 rw\n\
            31 22 0:41 / /m rw,relatime shared:1 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n\
            32 22 0:42 / /n ro - overlay overlay ro,lowerdir=/l:/k\n";
        assert!(has_upper(mounts, "0:41"));
        assert!(!has_upper(mounts, "0:42") && !has_upper(mounts, "0:4") && !has_upper(mounts, "8:2"));
    }
}

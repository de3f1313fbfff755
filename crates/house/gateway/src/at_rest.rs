//! Whether a directory is encrypted on its disk, as far as this machine can tell.

use std::fs;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

/// Devices below a device are looked at this deep.
const DEPTH_MAX: u32 = 8;

/// How a directory is encrypted: `fscrypt` (by its file system, statx(2)), `dm-crypt` (by a block device below, as LUKS does), or
/// `none-seen`. None if the system does not say. Blocks.
pub(crate) fn encryption(directory: &Path) -> Option<&'static str> {
    let found = statx(CWD, directory, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    if found.stx_attributes.contains(StatxAttributes::ENCRYPTED) {
        return Some("fscrypt");
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let device = fs::canonicalize(source(&mounts, found.stx_mnt_id)?).ok();
    let device = device.as_deref().and_then(Path::file_name);
    let is_crypt =
        device.is_some_and(|device| is_crypt(Path::new("/sys/class/block"), &Path::new("").join(device), 0));
    Some(if is_crypt { "dm-crypt" } else { "none-seen" })
}

/// What is mounted there (proc_pid_mountinfo(5)): the second field behind the dash.
fn source(mounts: &str, number: u64) -> Option<&str> {
    let number = number.to_string();
    let mount = mounts.lines().find(|line| line.split(' ').next() == Some(&number))?;
    mount.split_once(" - ")?.1.split(' ').nth(1)
}

/// Whether a block device, or one below it, is a mapping of dm-crypt. `devices` is what `/sys/class/block` is.
fn is_crypt(devices: &Path, name: &Path, depth: u32) -> bool {
    let device = devices.join(name);
    let uuid = fs::read_to_string(device.join("dm/uuid")).unwrap_or_default();
    if uuid.starts_with("CRYPT-") {
        return true;
    }
    let below = fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
    depth < DEPTH_MAX
        && below.into_iter().any(|below| is_crypt(devices, Path::new(&below.file_name()), depth + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_of_dm_crypt_is_found_below_others() {
        let place = tempfile::tempdir().unwrap();
        let devices = place.path();
        let make = |path: &str| fs::create_dir_all(devices.join(path)).unwrap();
        for path in [
            "dm-1/dm",
            "dm-1/slaves/dm-0",
            "dm-0/dm",
            "dm-0/slaves/sda2",
            "sda2",
            "dm-2/dm",
            "dm-2/slaves/sda2",
        ] {
            make(path);
        }
        let uuid = |device: &str, uuid: &str| fs::write(devices.join(device).join("dm/uuid"), uuid).unwrap();
        uuid("dm-0", "CRYPT-LUKS2-0123-data\n");
        uuid("dm-1", "LVM-abc\n");
        uuid("dm-2", "LVM-def\n");
        let found =
            ["dm-0", "dm-1", "dm-2", "sda2", "none"].map(|name| is_crypt(devices, Path::new(name), 0));
        assert_eq!(found, [true, true, false, false, false]);
    }

    #[test]
    fn the_source_of_a_mount_is_behind_the_dash() {
        let mounts = "21 1 8:1 / / rw shared:1 master:2 - ext4 /dev/mapper/root rw\n22 21 0:5 / /run rw - tmpfs none rw\n";
        assert_eq!(source(mounts, 21), Some("/dev/mapper/root"));
        assert_eq!((source(mounts, 22), source(mounts, 2)), (Some("none"), None));
    }

    #[test]
    fn what_is_not_encrypted_is_said() {
        assert_eq!(encryption(Path::new("/proc")), Some("none-seen"));
        assert_eq!(encryption(Path::new("/no/such/directory")), None);
    }
}

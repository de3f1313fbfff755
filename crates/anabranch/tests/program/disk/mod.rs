//! A local disk in a file: one that stalls when it is told to, an ext4 file system, which is frozen; and a Btrfs, for snapshots.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::needs;

/// Mounted as long as this lives.
pub(crate) struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        self.thaw();
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// Whether a program succeeds, which is installed for the tests; `impossible` says what this machine does not do if it does not.
fn succeeds(program: &mut Command, impossible: &str) -> bool {
    let name = program.get_program().to_string_lossy().into_owned();
    let Some(Output { status, stderr, .. }) = needs::installed(&name, program.output()) else { return false };
    if !status.success() {
        needs::not_tested(&format!("{impossible}: {}", String::from_utf8_lossy(&stderr)));
    }
    status.success()
}

impl Disk {
    /// None, which is said, where this user may not mount, or a program is missing.
    pub(crate) fn mount(image: &Path, at: &Path) -> Option<Self> {
        std::fs::File::create(image).unwrap().set_len(64 << 20).unwrap();
        std::fs::create_dir(at).unwrap();
        let (mut format, mut mount) = (Command::new("mkfs.ext4"), Command::new("mount"));
        let made = succeeds(format.args(["-q", "-F"]).arg(image), "no file system in a file")
            && succeeds(mount.args(["-o", "loop"]).arg(image).arg(at), "no right to mount a file");
        made.then(|| Self(at.to_owned()))
    }

    /// A Btrfs of 256 MiB. None, which is said, where this user may not mount, or a program is missing.
    pub(crate) fn mount_btrfs(image: &Path, at: &Path) -> Option<Self> {
        std::fs::File::create(image).unwrap().set_len(256 << 20).unwrap();
        std::fs::create_dir(at).unwrap();
        let (mut format, mut mount) = (Command::new("mkfs.btrfs"), Command::new("mount"));
        let made = succeeds(format.arg("-q").arg(image), "no Btrfs in a file")
            && succeeds(mount.args(["-o", "loop"]).arg(image).arg(at), "no right to mount a file");
        made.then(|| Self(at.to_owned()))
    }

    /// Whoever changes anything waits from now on (ioctl_fifreeze(2)). False, which is said, where nothing can be frozen.
    pub(crate) fn freeze(&self) -> bool {
        succeeds(Command::new("fsfreeze").arg("-f").arg(&self.0), "no right to freeze a file system")
    }

    pub(crate) fn thaw(&self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(&self.0).output();
    }
}

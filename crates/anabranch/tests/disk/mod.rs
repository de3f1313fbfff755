//! A local disk that stalls when it is told to: an ext4 file system in a file, which is frozen.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounted as long as this lives.
pub(crate) struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        self.thaw();
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

fn succeeds(program: &mut Command) -> bool {
    program.output().is_ok_and(|output| output.status.success())
}

impl Disk {
    /// None where this user may not mount, or a program is missing.
    pub(crate) fn mount(image: &Path, at: &Path) -> Option<Self> {
        std::fs::File::create(image).unwrap().set_len(64 << 20).unwrap();
        std::fs::create_dir(at).unwrap();
        let made = succeeds(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(image))
            && succeeds(Command::new("mount").args(["-o", "loop"]).arg(image).arg(at));
        made.then(|| Self(at.to_owned()))
    }

    /// Whoever changes anything waits from now on (ioctl_fifreeze(2)).
    pub(crate) fn freeze(&self) -> bool {
        succeeds(Command::new("fsfreeze").arg("-f").arg(&self.0))
    }

    pub(crate) fn thaw(&self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(&self.0).output();
    }
}

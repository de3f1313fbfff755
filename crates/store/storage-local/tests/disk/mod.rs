//! File systems in files, and directories that are mounted once more.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::needs;

/// Mounted as long as this lives.
pub(crate) struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// Whether a program succeeds; if not, that is said.
pub(crate) fn succeeds(program: &str, arguments: &[&str], at: &[&Path]) -> bool {
    let Some(output) = needs::installed(program, Command::new(program).args(arguments).args(at).output())
    else {
        return false;
    };
    if !output.status.success() {
        needs::not_tested(&format!("{program}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    output.status.success()
}

impl Disk {
    /// A new file system of some MiB at `at`, made by `mkfs.KIND` with these arguments, in a file beside it. None, which
    /// is said, where this user may not mount, or a program is missing.
    pub(crate) fn make(kind: &str, arguments: &[&str], mebibytes: u64, at: &Path) -> Option<Self> {
        let image = at.with_extension("image");
        std::fs::File::create(&image).unwrap().set_len(mebibytes << 20).unwrap();
        std::fs::create_dir(at).unwrap();
        let made = succeeds(&format!("mkfs.{kind}"), arguments, &[&image])
            && succeeds("mount", &["-t", kind, "-o", "loop"], &[&image, at]);
        made.then(|| Self(at.to_owned()))
    }

    /// The directory `of` once more at `at`, where nothing can be written.
    pub(crate) fn read_only(of: &Path, at: &Path) -> Option<Self> {
        std::fs::create_dir(at).unwrap();
        if !succeeds("mount", &["--bind"], &[of, at]) {
            return None;
        }
        let disk = Self(at.to_owned());
        succeeds("mount", &["-o", "remount,bind,ro"], &[at]).then_some(disk)
    }
}

//! Cleans up after a measurement, however it ends.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A command that runs when this value is dropped, or when this process ends by whatever signal.
pub(super) struct Afterwards {
    waiting: Child,
}

impl Afterwards {
    /// Begins to wait. `command` is a command of the shell.
    pub(super) fn run(command: &str) -> io::Result<Self> {
        let script = format!("trap '' INT TERM HUP; cat >/dev/null; {command}");
        let waiting =
            Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        Ok(Self { waiting })
    }
}

impl Drop for Afterwards {
    fn drop(&mut self) {
        // The end of its input is what the process waits for.
        drop(self.waiting.stdin.take());
        match self.waiting.wait() {
            Ok(status) if status.success() => {}
            ended => eprintln!("what was to be put back: {ended:?}"),
        }
    }
}

/// A folder that exists during a measurement. Users other than its owner may pass through it.
pub(super) struct Scratch {
    path: PathBuf,
    _removed: Afterwards,
}

impl Scratch {
    /// Makes a folder below another one, or in the directory of temporary files.
    pub(super) fn make(below: Option<&str>) -> io::Result<Self> {
        Self::ended_by(below, |_| String::new())
    }

    /// Makes a folder whose use is ended by a command before the folder is removed.
    pub(super) fn ended_by(below: Option<&str>, command: impl FnOnce(&str) -> String) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("anabranch-bench.").permissions(Permissions::from_mode(0o711));
        let made = below.map_or_else(|| builder.tempdir(), |below| builder.tempdir_in(below))?;
        let quoted = format!("'{}'", made.path().display());
        let end = command(&quoted);
        let removed = Afterwards::run(&format!("{end} rm -rf {quoted}"))?;
        Ok(Self { path: made.keep(), _removed: removed })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_is_gone_with_its_value() {
        let outer = Scratch::make(None).unwrap();
        let note = outer.path().join("note");
        let inner =
            Scratch::ended_by(outer.path().to_str(), |path| format!("ls {path} >'{}';", note.display()))
                .unwrap();
        let path = inner.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        drop(inner);
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(note).unwrap(), "file\n");
    }
}

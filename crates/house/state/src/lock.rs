//! Who has a state directory: one process at a time, by a lock on a file in it, which names the process and its machine.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// In the state directory.
const FILE: &str = "lock";
/// Bytes of it at most: a number, and a name of at most 64 bytes (uname(2)).
const FILE_BYTES_MAX: u64 = 128;
/// How often it is tried within the time that the caller has.
const PAUSE: Duration = Duration::from_millis(20);

/// The state directory is this process's until the value is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The process that has the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// None: it has not said.
    process: Option<u32>,
    /// The name of its machine. None: it has not said, as versions up to 0.1.0 do not.
    machine: Option<String>,
}

/// The name of this machine.
fn this_machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

impl Lock {
    /// Takes the directory, from others that have it for a moment only within `patience`.
    ///
    /// # Errors
    /// The file cannot be made or locked; inside: another process has the directory.
    pub fn take(directory: &Path, patience: Duration) -> io::Result<Result<Self, Holder>> {
        let path = directory.join(FILE);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(e)) => return Err(e),
                Err(TryLockError::WouldBlock) if started.elapsed() >= patience => {
                    return Ok(Err(Holder::named(&mut file)));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            }
        }
        file.set_len(0)?;
        file.rewind()?;
        // Whoever waits sees both, or the process alone.
        file.write_all(format!("{}\n{}\n", std::process::id(), this_machine()).as_bytes())?;
        Ok(Ok(Self { _file: file }))
    }
}

impl Holder {
    /// One that has not said who it is.
    pub const UNKNOWN: Self = Self { process: None, machine: None };

    fn named(file: &mut File) -> Self {
        let mut text = String::new();
        let read = file.rewind().and_then(|()| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
        if read.is_err() {
            return Self::UNKNOWN;
        }
        let mut lines = text.lines();
        let process = lines.next().and_then(|line| line.trim().parse().ok());
        let machine = lines.next().map(|line| line.trim().to_owned()).filter(|name| !name.is_empty());
        Self { process, machine }
    }

    /// Whether it is certainly on another machine: it has said so.
    pub fn is_elsewhere(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| *machine != this_machine())
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(process) = self.process else { return f.write_str("a process that has not said which") };
        if let Some(machine) = self.machine.as_ref().filter(|_| self.is_elsewhere()) {
            return write!(f, "process {process} on {machine}");
        }
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        write!(f, "{} (process {process})", if name.is_empty() { "one" } else { name.trim() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_it_and_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let take = || Lock::take(directory.path(), Duration::ZERO).unwrap();
        let lock = take().unwrap();
        let holder = take().unwrap_err();
        assert!(holder.to_string().ends_with(&format!("(process {})", std::process::id())), "{holder}");
        drop(lock);
        take().unwrap();
    }

    #[test]
    fn one_on_another_machine_is_named_with_the_machine() {
        let holder = |text: &str| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            Holder::named(&mut file)
        };
        let other = holder("12\nnode-of-a-test\n");
        assert_eq!(
            (other.to_string().as_str(), other.is_elsewhere()),
            ("process 12 on node-of-a-test", true)
        );
        for here in [format!("12\n{}\n", this_machine()), "12\n".to_owned()] {
            let here = holder(&here);
            assert!(here.to_string().ends_with("(process 12)") && !here.is_elsewhere(), "{here}");
        }
        for nobody in ["", "\n", "node\n12\n", "\u{7f}"] {
            assert_eq!(holder(nobody).to_string(), Holder::UNKNOWN.to_string(), "{nobody:?}");
        }
    }
}

//! Who has a state directory: one process at a time, by a lock on a file in it, which names the process.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// In the state directory.
const FILE: &str = "lock";
/// Bytes of it at most.
const FILE_BYTES_MAX: u64 = 64;
/// How often it is tried within the time that the caller has.
const PAUSE: Duration = Duration::from_millis(20);

/// The state directory is this process's until the value is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The process that has the state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// None: it has not said.
    process: Option<u32>,
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
        writeln!(file, "{}", std::process::id())?;
        Ok(Ok(Self { _file: file }))
    }
}

impl Holder {
    /// One that has not said who it is.
    pub const UNKNOWN: Self = Self { process: None };

    fn named(file: &mut File) -> Self {
        let mut text = String::new();
        let read = file.rewind().and_then(|()| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
        Self { process: read.ok().and_then(|_| text.trim().parse().ok()) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(process) = self.process else { return f.write_str("a process that has not said which") };
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
}

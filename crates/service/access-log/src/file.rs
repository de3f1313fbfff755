//! The file, and its rotation.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::FileSettings;
use crate::queue::{Output, Put, READER_PATIENCE};

/// Nobody but its owner may read it: it names users and files.
const MODE: u32 = 0o600;

/// The file that lines are appended to. Whole lines: one of which only a part was written is finished before the next.
#[derive(Debug)]
pub(crate) struct FileOutput {
    settings: FileSettings,
    open: Option<Opened>,
    /// The bytes of the present line that are written.
    begun: usize,
}

#[derive(Debug)]
struct Opened {
    file: File,
    bytes: u64,
    /// Whether it may be renamed. A pipe may not, nor may a file for which that has failed.
    is_rotated: bool,
}

impl FileOutput {
    /// # Errors
    /// The file cannot be opened. A pipe without a reader can be opened later.
    pub(crate) fn open(settings: FileSettings) -> io::Result<Self> {
        let open = match Opened::new(&settings.path) {
            Ok(open) => Some(open),
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { settings, open, begun: 0 })
    }

    /// Renames the file if the line would make it too long.
    fn make_room(&mut self, line: &[u8]) {
        let (Some(open), Some(bytes_max)) = (&mut self.open, self.settings.bytes_max) else { return };
        let bytes = open.bytes.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
        if !open.is_rotated || open.bytes == 0 || bytes <= bytes_max {
            return;
        }
        match rotate(&self.settings.path, self.settings.kept) {
            Ok(()) => self.open = None,
            Err(error) => {
                open.is_rotated = false;
                let path = self.settings.path.display();
                tracing::error!("{path} grows beyond {bytes_max} bytes: it cannot be renamed: {error}");
            }
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let open = match &mut self.open {
            Some(open) => open,
            closed => closed.insert(Opened::new(&self.settings.path)?),
        };
        while let Some(rest) = line.get(self.begun..).filter(|rest| !rest.is_empty()) {
            match open.file.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.begun += count;
                    open.bytes = open.bytes.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.begun = 0;
        Ok(())
    }
}

impl Output for FileOutput {
    fn put(&mut self, line: &[u8]) -> Put {
        if self.begun == 0 {
            self.make_room(line);
        }
        match self.write(line) {
            Ok(()) => Put::Written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.open.iter().for_each(|open| wait_for_reader(&open.file));
                Put::Full
            }
            Err(error) => {
                if error.kind() == ErrorKind::BrokenPipe {
                    // The next reader gets whole lines.
                    (self.open, self.begun) = (None, 0);
                }
                Put::Failed(error)
            }
        }
    }

    fn reopen(&mut self, file: Option<FileSettings>) {
        self.settings = file.unwrap_or_else(|| self.settings.clone());
        // What is wrong with it is told when a line is to be written.
        (self.open, self.begun) = (Opened::new(&self.settings.path).ok(), 0);
    }
}

impl Opened {
    fn new(path: &Path) -> io::Result<Self> {
        // A pipe that nobody reads, or that is full, is not waited for.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = OpenOptions::new().append(true).create(true).mode(MODE).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        Ok(Self { file, bytes: metadata.len(), is_rotated: metadata.is_file() })
    }
}

/// Waits a moment until a pipe has room.
fn wait_for_reader(file: &File) {
    let patience = Timespec::try_from(READER_PATIENCE).ok();
    // The next write says what became of it.
    let _ = poll(&mut [PollFd::new(file, PollFlags::OUT)], patience.as_ref());
}

/// Renames PATH to PATH.1, after PATH.1 to PATH.2, and so on. The oldest one is replaced.
fn rotate(path: &Path, kept: u32) -> io::Result<()> {
    for number in (1..kept.max(1)).rev() {
        match std::fs::rename(numbered(path, number), numbered(path, number + 1)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(path, numbered(path, 1))
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn settings(path: PathBuf, bytes_max: Option<u64>) -> FileSettings {
        FileSettings { path, bytes_max, kept: 3 }
    }

    fn put(output: &mut FileOutput, line: &str) {
        assert!(matches!(output.put(line.as_bytes()), Put::Written), "{line}");
    }

    #[test]
    fn rotation_loses_no_line_and_repeats_none() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("access.json");
        let mut output = FileOutput::open(settings(path.clone(), Some(100))).unwrap();
        let line = |number: u32| format!("{number:09}\n");
        (0..35).for_each(|number| put(&mut output, &line(number)));
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        let lines = |range: std::ops::Range<u32>| range.map(line).collect::<String>();
        assert_eq!(read(numbered(&path, 3)), lines(0..10));
        assert_eq!(read(numbered(&path, 2)), lines(10..20));
        assert_eq!(read(numbered(&path, 1)), lines(20..30));
        assert_eq!(read(path.clone()), lines(30..35));
        // Another run goes on where this one has ended, and the oldest file is replaced.
        let mut output = FileOutput::open(settings(path.clone(), Some(100))).unwrap();
        (35..42).for_each(|number| put(&mut output, &line(number)));
        assert_eq!((read(path.clone()), read(numbered(&path, 1))), (lines(40..42), lines(30..40)));
        assert_eq!(read(numbered(&path, 3)), lines(10..20));
        assert!(!numbered(&path, 4).exists());
        // A line that is longer than a file may be is written all the same.
        put(&mut output, &line(42).repeat(20));
        assert_eq!(read(path), line(42).repeat(20));
    }

    #[test]
    fn a_file_that_was_moved_away_is_made_anew_when_it_is_opened_again() {
        let place = tempfile::tempdir().unwrap();
        let (path, moved) = (place.path().join("access.json"), place.path().join("moved"));
        let mut output = FileOutput::open(settings(path.clone(), None)).unwrap();
        put(&mut output, "first\n");
        std::fs::rename(&path, &moved).unwrap();
        put(&mut output, "second\n");
        output.reopen(None);
        put(&mut output, "third\n");
        assert_eq!(std::fs::read_to_string(moved).unwrap(), "first\nsecond\n");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "third\n");
    }

    #[test]
    fn a_full_disk_is_a_failure_and_no_line_is_cut() {
        let mut output = FileOutput::open(settings("/dev/full".into(), Some(10))).unwrap();
        assert!(
            matches!(output.put(b"line\n"), Put::Failed(error) if error.kind() == ErrorKind::StorageFull)
        );
        assert!(FileOutput::open(settings("/no/such/place".into(), None)).is_err());
        assert!(FileOutput::open(settings("/".into(), None)).is_err());
    }

    #[test]
    fn a_pipe_gets_whole_lines_once_it_is_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
        let mut output = FileOutput::open(settings(path.clone(), Some(10))).unwrap();
        assert!(matches!(output.put(b"nobody reads\n"), Put::Failed(_)));
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
        let mut reader = OpenOptions::new().read(true).custom_flags(flags).open(&path).unwrap();
        let long = format!("{}\n", "x".repeat(300_000));
        assert!(matches!(output.put(long.as_bytes()), Put::Full), "a pipe has no such room");
        let mut read = Vec::new();
        while !matches!(output.put(long.as_bytes()), Put::Written) {
            let mut piece = [0; 65_536];
            let count = reader.read(&mut piece).unwrap_or(0);
            read.extend_from_slice(&piece[..count]);
        }
        put(&mut output, "afterwards\n");
        drop(output);
        reader.read_to_end(&mut read).unwrap();
        assert!(read == format!("{long}afterwards\n").into_bytes(), "{} bytes", read.len());
    }
}

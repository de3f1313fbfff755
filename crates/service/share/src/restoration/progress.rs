//! How far a restoration is, for those who ask meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::Error;

/// Of what was left alone, so many are named.
pub const LEFT_NAMED_MAX: usize = 100;

/// How far a restoration is. It is read while another thread restores.
#[derive(Debug, Default)]
pub struct RestoreProgress {
    stop: AtomicBool,
    restored: AtomicU64,
    unchanged: AtomicU64,
    left: AtomicU64,
    bytes: AtomicU64,
    /// What there is to go through: files, and their bytes.
    all: Mutex<Option<(u64, u64)>>,
    /// Guards itself alone.
    named: Mutex<Vec<LeftAlone>>,
}

/// Something that was not restored, because of what is in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAlone {
    /// Its path in the share.
    pub path: Vec<u8>,
    /// Why.
    pub error: Error,
}

/// How far a restoration is at one moment. Files are all objects that are no directories.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestoreFigures {
    /// Files that were restored.
    pub restored: u64,
    /// Files that were as in the snapshot already.
    pub unchanged: u64,
    /// Files and directories that were left alone.
    pub left: u64,
    /// The first of these.
    pub named: Vec<LeftAlone>,
    /// Bytes of the files that were gone through.
    pub bytes: u64,
    /// How many files there are to go through, once counted.
    pub files_all: Option<u64>,
    /// How many bytes they have.
    pub bytes_all: Option<u64>,
}

impl RestoreProgress {
    /// Has the restoration stop before the next file, or piece of a large file.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether it is to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// How far it is.
    #[must_use]
    pub fn figures(&self) -> RestoreFigures {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let all = *self.all.lock();
        RestoreFigures {
            restored: read(&self.restored),
            unchanged: read(&self.unchanged),
            left: read(&self.left),
            named: self.named.lock().clone(),
            bytes: read(&self.bytes),
            files_all: all.map(|(files, _)| files),
            bytes_all: all.map(|(_, bytes)| bytes),
        }
    }

    pub(super) fn counted(&self, files: u64, bytes: u64) {
        *self.all.lock() = Some((files, bytes));
    }

    /// A file was restored, of which these bytes were not copied.
    pub(super) fn restored(&self, bytes: u64) {
        self.restored.fetch_add(1, Ordering::Relaxed);
        self.copied(bytes);
    }

    pub(super) fn unchanged(&self, bytes: u64) {
        self.unchanged.fetch_add(1, Ordering::Relaxed);
        self.copied(bytes);
    }

    pub(super) fn copied(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn leave(&self, path: Vec<u8>, error: Error) {
        self.left.fetch_add(1, Ordering::Relaxed);
        let mut named = self.named.lock();
        if named.len() < LEFT_NAMED_MAX {
            named.push(LeftAlone { path, error });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_alone_is_counted_and_the_first_of_it_named() {
        let progress = RestoreProgress::default();
        for at in 0..LEFT_NAMED_MAX + 5 {
            progress.leave(at.to_string().into_bytes(), Error::SharingViolation);
        }
        progress.restored(2);
        progress.unchanged(5);
        let figures = progress.figures();
        assert_eq!((figures.left, figures.named.len()), (LEFT_NAMED_MAX as u64 + 5, LEFT_NAMED_MAX));
        assert_eq!(figures.named.first().map(|left| left.path.as_slice()), Some(b"0".as_slice()));
        assert_eq!((figures.restored, figures.unchanged, figures.bytes), (1, 1, 7));
        assert_eq!((figures.files_all, figures.bytes_all), (None, None));
        progress.counted(3, 9);
        assert_eq!((progress.figures().files_all, progress.figures().bytes_all), (Some(3), Some(9)));
        assert!(!progress.is_stopped());
        progress.stop();
        assert!(progress.is_stopped());
    }
}

//! Reading, writing, holes and copies.

use std::io::IoSlice;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use storage::{Error, FileKind, Result, Stability};

use crate::data_cache::{BLOCK_BYTES, Change, DataCache, FileKey, Found};
use crate::errno::from_errno;
use crate::node::CephNode;
use crate::open_file::OpenFile;
use crate::place::{stale, text};
use crate::store::OwnData;

/// The largest offset, as on Linux. The file system may have a smaller one (`max_file_size`).
pub(crate) const OFFSET_MAX: u64 = i64::MAX.unsigned_abs();
/// How much of a copy is in memory at a time, in bytes.
const COPY_BYTES: usize = 4 << 20;

/// Checks that a range ends within what Linux accepts.
fn check_range(offset: u64, length: u64) -> Result<i64> {
    let end = offset.checked_add(length).filter(|end| *end <= OFFSET_MAX).ok_or(Error::TooLarge)?;
    i64::try_from(end - length).map_err(|_| Error::TooLarge)
}

/// The files that a node has opened.
#[derive(Default)]
pub(crate) struct Files {
    /// Opened for reading, before anybody wrote.
    reader: OnceLock<OpenFile>,
    /// Opened for reading and writing.
    writer: OnceLock<OpenFile>,
}

impl Files {
    /// With a file that was opened for reading and writing when it was made.
    pub(crate) fn made(file: OpenFile) -> Self {
        Self { reader: OnceLock::new(), writer: OnceLock::from(file) }
    }

    fn present(&self) -> Option<&OpenFile> {
        self.writer.get().or_else(|| self.reader.get())
    }
}

impl CephNode {
    pub(crate) fn check_data(&self) -> Result<()> {
        match self.kind {
            FileKind::Regular => Ok(()),
            FileKind::Directory => Err(Error::IsDirectory),
            _ => Err(Error::WrongKind),
        }
    }

    fn reader(&self) -> Result<&OpenFile> {
        if let Some(file) = self.files.present() {
            return Ok(file);
        }
        self.find_again()?;
        let file = self.inode.open(false).map_err(from_errno)?;
        Ok(self.files.reader.get_or_init(|| file))
    }

    /// Has the library know the name of a file of a snapshot, by which it opens the file: it may have forgotten that since it was found,
    /// and would open the file of now.
    fn find_again(&self) -> Result<()> {
        if self.store.snapshot.is_none() {
            return Ok(());
        }
        // A stream has no such place: it is opened when it is found.
        let Ok(Some((dir, name))) = self.above() else { return Ok(()) };
        let (_, stat) = dir.inode.lookup(&text(&name)?).map_err(from_errno).map_err(stale)?;
        if stat.number == self.id.number { Ok(()) } else { Err(Error::Stale) }
    }

    fn writer(&self) -> Result<&OpenFile> {
        if let Some(file) = self.files.writer.get() {
            return Ok(file);
        }
        let file = self.inode.open(true).map_err(from_errno)?;
        Ok(self.files.writer.get_or_init(|| file))
    }

    /// Opens the file, so that its data stays when its last name is removed.
    pub(crate) fn keep_data(&self) -> Result<()> {
        if self.kind == FileKind::Regular { self.reader().map(drop) } else { Ok(()) }
    }

    pub(crate) fn read_data(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let room = usize::try_from(OFFSET_MAX.saturating_sub(offset)).unwrap_or(usize::MAX).min(into.len());
        let into = into.get_mut(..room).unwrap_or_default();
        if into.is_empty() {
            return Ok(0);
        }
        let Some((cache, file)) = self.cached() else {
            return self.read_in_cluster(check_range(offset, 0)?, into);
        };
        if let Some(Found { count, is_whole: true }) = cache.read(file, offset, into) {
            return Ok(count);
        }
        let wanted = into.len() as u64;
        let begin = offset - offset % BLOCK_BYTES as u64;
        let end = (offset + wanted).next_multiple_of(BLOCK_BYTES as u64).min(OFFSET_MAX);
        let fill = cache.fill(file);
        if begin == offset && end == offset + wanted {
            let count = self.read_in_cluster(check_range(begin, 0)?, into)?;
            fill.keep(begin, into.get(..count).unwrap_or_default(), count < into.len());
            return Ok(count);
        }
        let mut blocks = vec![0; usize::try_from(end - begin).map_err(|_| Error::TooLarge)?];
        let count = self.read_in_cluster(check_range(begin, 0)?, &mut blocks)?;
        let is_end = count < blocks.len();
        blocks.truncate(count);
        fill.keep(begin, &blocks, is_end);
        let skipped = usize::try_from(offset - begin).unwrap_or(count).min(count);
        let found = blocks.get(skipped..).unwrap_or_default();
        let count = found.len().min(into.len());
        into.get_mut(..count).unwrap_or_default().copy_from_slice(found.get(..count).unwrap_or_default());
        Ok(count)
    }

    /// Reads from the OSDs. Those of a snapshot that was removed have zeros some seconds later, and report no error.
    fn read_in_cluster(&self, at: i64, into: &mut [u8]) -> Result<usize> {
        let count = self.reader()?.read(at, into).map_err(from_errno)?;
        self.store.check_snapshot()?;
        Ok(count)
    }

    /// Reads what is in memory.
    pub(crate) fn read_at_hand(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let found = self.cached().and_then(|(cache, file)| cache.read(file, offset, into));
        match found {
            Some(Found { count, is_whole }) if count > 0 || is_whole => Ok(count),
            _ => Err(Error::WouldBlock),
        }
    }

    /// Where data of this file is in memory; None: others may change it.
    fn cached(&self) -> Option<(&DataCache, FileKey)> {
        let OwnData { store, is_certain } = &self.store.data;
        let file = FileKey { store: *store, number: self.id.number };
        is_certain.load(Ordering::Acquire).then_some((&self.inode.mount.data, file))
    }

    /// To be held while data from `offset` on is changed: [`DataCache::change`].
    pub(crate) fn changing_data(&self, offset: u64, length: Option<u64>) -> Option<Change<'_>> {
        self.cached().map(|(cache, file)| cache.change(file, offset, length))
    }

    pub(crate) fn write_data(
        &self,
        offset: u64,
        data: &[IoSlice<'_>],
        stability: Stability,
    ) -> Result<usize> {
        let total: usize = data.iter().map(|slice| slice.len()).sum();
        let at = check_range(offset, total as u64)?;
        if total == 0 {
            return Ok(0);
        }
        let file = self.writer()?;
        let change = self.changing_data(offset, Some(total as u64));
        match data {
            [one] => file.write(at, one),
            // One call: others must not see a part.
            many => file.write(at, &many.iter().flat_map(|slice| slice.iter().copied()).collect::<Vec<u8>>()),
        }
        .map_err(from_errno)?;
        drop(change);
        if stability != Stability::Unstable {
            // The data is on the OSDs. What finds it again, the size among it, is with the metadata server only now.
            file.sync().map_err(from_errno)?;
        }
        Ok(total)
    }

    pub(crate) fn sync(&self) -> Result<()> {
        match self.files.present() {
            Some(file) => file.sync(),
            None => self.inode.sync(),
        }
        .map_err(from_errno)
    }

    pub(crate) fn punch(&self, offset: u64, length: u64) -> Result<()> {
        if length == 0 {
            return Err(Error::InvalidArgument);
        }
        let at = check_range(offset, length)?;
        let length = i64::try_from(length).map_err(|_| Error::TooLarge)?;
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let _change = self.changing_data(offset, Some(length.unsigned_abs()));
        self.writer()?.allocate(mode, at, length).map_err(from_errno)
    }

    /// Copies through memory: CephFS has no call that copies from one object to another.
    pub(crate) fn copy_to(&self, offset: u64, to: &Self, to_offset: u64, length: u64) -> Result<u64> {
        if offset > OFFSET_MAX {
            return Ok(0);
        }
        if self.id == to.id && offset.abs_diff(to_offset) < length {
            return Err(Error::InvalidArgument);
        }
        let (at, to_at) = (check_range(offset, 0)?, check_range(to_offset, 0)?);
        let wanted = usize::try_from(length).unwrap_or(usize::MAX).min(COPY_BYTES);
        let mut piece = vec![0; wanted];
        let count = self.reader()?.read(at, &mut piece).map_err(from_errno)?;
        if count > 0 {
            check_range(to_offset, count as u64)?;
            let _change = to.changing_data(to_offset, Some(count as u64));
            to.writer()?.write(to_at, piece.get(..count).unwrap_or_default()).map_err(from_errno)?;
        }
        Ok(count as u64)
    }
}

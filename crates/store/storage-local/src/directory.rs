//! Listing directories.

use std::ops::ControlFlow;

use rustix::fs::{FileType, Mode, OFlags, RawDir, SeekFrom, openat, seek};
use storage::{DirEntry, Error, FileKind, ObjectId, Result};

use crate::errno::from_errno;
use crate::node::LocalNode;

/// How much of a directory is read at a time, in bytes.
const BUFFER_BYTES: usize = 32 << 10;

fn kind_of(kind: FileType) -> Option<FileKind> {
    match kind {
        FileType::RegularFile => Some(FileKind::Regular),
        FileType::Directory => Some(FileKind::Directory),
        FileType::Symlink => Some(FileKind::Symlink),
        FileType::Fifo => Some(FileKind::Fifo),
        FileType::Socket => Some(FileKind::Socket),
        FileType::BlockDevice => Some(FileKind::BlockDevice),
        FileType::CharacterDevice => Some(FileKind::CharDevice),
        FileType::Unknown => None,
    }
}

impl LocalNode {
    /// A listing has a descriptor of its own, since the position belongs to the descriptor. With `O_NOATIME` the access
    /// time stays unchanged, where the server may use the flag: open(2) allows it to the owner and with `CAP_FOWNER`.
    pub(crate) fn list(
        &self,
        cookie: u64,
        noatime: OFlags,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        if self.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        self.check_place()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let stale = |e| if e == Error::NotFound { Error::Stale } else { e };
        let open = |flags| self.store.with_descriptor(|| openat(&self.fd, c".", flags, Mode::empty()));
        let fd = match open(flags | noatime) {
            Err(Error::NotPermitted) if !noatime.is_empty() => open(flags),
            other => other,
        };
        let fd = fd.map_err(stale)?;
        if cookie != 0 {
            seek(&fd, SeekFrom::Start(cookie)).map_err(from_errno)?;
        }
        let mut buffer: Vec<u8> = Vec::with_capacity(BUFFER_BYTES);
        let mut entries = RawDir::new(&fd, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(from_errno).map_err(stale)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || self.store.reserved.has(name) {
                continue;
            }
            let (id, kind) = (ObjectId::live(entry.ino()), kind_of(entry.file_type()));
            if each(DirEntry { name, id, kind, cookie: entry.next_entry_cookie() }).is_break() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

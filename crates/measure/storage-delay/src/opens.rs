//! What is open, by the numbers that the kernel was given for it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

/// Something that is open.
#[derive(Debug)]
pub(crate) enum Open {
    /// A file.
    File(File),
    /// A directory. The lock is for its position.
    Directory(Mutex<OwnedFd>),
}

/// All that is open.
#[derive(Debug, Default)]
pub(crate) struct Opens {
    /// Guards the table.
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    opens: HashMap<u64, Arc<Open>>,
}

impl Opens {
    /// Enters what was opened. Its number.
    pub(crate) fn enter(&self, open: Open) -> u64 {
        let mut table = self.table.lock();
        table.last += 1;
        let number = table.last;
        table.opens.insert(number, Arc::new(open));
        number
    }

    /// What has this number.
    ///
    /// # Errors
    /// EBADF: nothing has.
    pub(crate) fn find(&self, number: u64) -> io::Result<Arc<Open>> {
        self.table.lock().opens.get(&number).cloned().ok_or_else(|| Errno::BADF.into())
    }

    /// Closes what has this number.
    pub(crate) fn close(&self, number: u64) {
        self.table.lock().opens.remove(&number);
    }
}

impl Open {
    /// The file.
    ///
    /// # Errors
    /// EBADF: it is a directory.
    pub(crate) fn file(&self) -> io::Result<&File> {
        match self {
            Self::File(file) => Ok(file),
            Self::Directory(_) => Err(Errno::BADF.into()),
        }
    }
}

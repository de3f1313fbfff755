//! The records of NFSv4 clients.

use std::io;

use nfs_proto::v4::recovery::ClientRecord;

/// The store in which clients that hold state are recorded. Its calls block.
pub trait ClientRecords: Send + Sync + std::fmt::Debug {
    /// Writes a client down; it is on stable storage when this returns.
    ///
    /// # Errors
    /// When that is not sure.
    fn keep(&self, record: &ClientRecord) -> io::Result<()>;

    /// Strikes clients out; on stable storage when this returns.
    ///
    /// # Errors
    /// When that is not sure.
    fn forget(&self, records: &[ClientRecord]) -> io::Result<()>;

    /// All that are written down.
    ///
    /// # Errors
    /// When they cannot be read.
    fn all(&self) -> io::Result<Vec<ClientRecord>>;
}

//! The records of NFSv4 clients.

use std::io;

use nfs_proto::v4::recovery::ClientRecord;

/// The store in which clients that hold state are recorded. Its calls block, unless
/// [`ClientRecords::answers_at_once`] says otherwise.
pub trait ClientRecords: Send + Sync + std::fmt::Debug {
    /// Records a client. The record is on stable storage when this returns.
    ///
    /// # Errors
    /// It is not certain that the record is stored.
    fn keep(&self, record: &ClientRecord) -> io::Result<()>;

    /// Removes records. The removal is on stable storage when this returns.
    ///
    /// # Errors
    /// It is not certain that the removal is stored.
    fn forget(&self, records: &[ClientRecord]) -> io::Result<()>;

    /// All records.
    ///
    /// # Errors
    /// The records cannot be read.
    fn all(&self) -> io::Result<Vec<ClientRecord>>;

    /// Whether no call ever waits, as with records in memory. All other calls are made on threads that may wait.
    fn answers_at_once(&self) -> bool {
        false
    }
}

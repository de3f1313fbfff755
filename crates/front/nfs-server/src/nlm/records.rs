//! The records of hosts that hold locks by NLM.

use std::io;
use std::net::IpAddr;

/// A host that holds locks. The record is stored before the first lock is granted, so that the host can be told after a restart
/// of the server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostRecord {
    /// The name by which the host calls itself.
    pub name: Vec<u8>,
    /// Its address.
    pub address: IpAddr,
    /// The address by which it knows this server.
    pub server: IpAddr,
}

/// The store of the records. Its calls may block.
pub trait HostRecords: Send + Sync + std::fmt::Debug {
    /// Records a host. The record is on stable storage when this returns.
    ///
    /// # Errors
    /// It is not certain that the record is stored.
    fn keep(&self, record: &HostRecord) -> io::Result<()>;

    /// Removes records. The removal is on stable storage when this returns.
    ///
    /// # Errors
    /// It is not certain that the removal is stored.
    fn forget(&self, records: &[HostRecord]) -> io::Result<()>;

    /// All records.
    ///
    /// # Errors
    /// The records cannot be read.
    fn all(&self) -> io::Result<Vec<HostRecord>>;
}

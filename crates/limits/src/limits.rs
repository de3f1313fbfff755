//! What a plan comes to.

use crate::{Limit, MIB};

/// What a share may do. What is `None` is not limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Operations in a second: the baseline.
    pub iops: Option<u64>,
    /// What may be done above the baseline for a while.
    pub burst: Option<Burst>,
    /// Bytes read in a second.
    pub read: Option<u64>,
    /// Bytes written in a second.
    pub write: Option<u64>,
    /// Bytes read and written in a second, together.
    pub throughput: Option<u64>,
    /// Operations on names and attributes in a second. They count as operations too.
    pub metadata_iops: Option<u64>,
    /// Operations on the data of one file in a second.
    pub file_iops: Option<u64>,
    /// Bytes read from and written to one file in a second.
    pub file_throughput: Option<u64>,
    /// Bytes of the largest file.
    pub file_size: Option<u64>,
    /// Operations of one client in a second.
    pub client_iops: Option<u64>,
    /// Bytes of one client in a second.
    pub client_throughput: Option<u64>,
    /// Bytes that the share holds.
    pub capacity: Option<u64>,
    /// Opens at a time.
    pub handles: Handles,
    /// A read or write counts as one operation for every so many bytes, or part of them.
    pub io_unit: u64,
}

/// A share may go beyond its baseline as long as it has credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Operations in a second at most.
    pub iops: u64,
    /// The most credits that can be saved up. An operation above the baseline costs one.
    pub credits: u64,
}

/// Opens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handles {
    /// Of the share's root directory.
    pub root: Option<u64>,
    /// Of any other file or directory.
    pub file: Option<u64>,
    /// Of all together.
    pub share: Option<u64>,
}

impl Limits {
    /// As much as one operation carries over SMB and NFS in one request: neither the pages on Azure Files nor those on Azure
    /// NetApp Files name the size of "one I/O".
    pub const IO_UNIT: u64 = MIB;

    /// No limits at all.
    pub const NONE: Self = Self {
        iops: None,
        burst: None,
        read: None,
        write: None,
        throughput: None,
        metadata_iops: None,
        file_iops: None,
        file_throughput: None,
        file_size: None,
        client_iops: None,
        client_throughput: None,
        capacity: None,
        handles: Handles { root: None, file: None, share: None },
        io_unit: Self::IO_UNIT,
    };

    /// How much of it there is in a second; `None` when it is not limited.
    #[must_use]
    pub fn rate(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::ClientIops => self.client_iops,
            Limit::ClientThroughput => self.client_throughput,
            Limit::Metadata => self.metadata_iops,
            Limit::FileIops => self.file_iops,
            Limit::FileThroughput => self.file_throughput,
            Limit::Read => self.read,
            Limit::Write => self.write,
            Limit::Throughput => self.throughput,
            Limit::Iops => self.iops,
        }
    }

    /// Whether an operation may ever have to wait.
    #[must_use]
    pub fn has_rates(&self) -> bool {
        Limit::ALL.iter().any(|limit| self.rate(*limit).is_some())
    }

    /// As how many operations a read or write of so many bytes counts.
    #[must_use]
    pub fn operations(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.io_unit.max(1)).max(1)
    }
}

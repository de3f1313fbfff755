//! The limits that follow from a plan.

use crate::{Limit, MIB};

/// The limits of a share. `None` means unlimited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Operations per second: the baseline.
    pub iops: Option<u64>,
    /// How far, and for how long, the share may exceed the baseline.
    pub burst: Option<Burst>,
    /// Bytes read per second.
    pub read: Option<u64>,
    /// Bytes written per second.
    pub write: Option<u64>,
    /// Bytes read and written per second, together.
    pub throughput: Option<u64>,
    /// Operations per second on names and attributes. They also count as operations.
    pub metadata_iops: Option<u64>,
    /// Operations per second on the data of one file.
    pub file_iops: Option<u64>,
    /// Bytes per second read from and written to one file.
    pub file_throughput: Option<u64>,
    /// Size of the largest file in bytes.
    pub file_size: Option<u64>,
    /// Operations per second of one client.
    pub client_iops: Option<u64>,
    /// Operations per second of one client on names and attributes. They also count as operations.
    pub client_metadata_iops: Option<u64>,
    /// Bytes per second of one client.
    pub client_throughput: Option<u64>,
    /// Bytes that the share may hold.
    pub capacity: Option<u64>,
    /// The most opens at a time.
    pub handles: Handles,
    /// A read or write counts as one operation per this many bytes, rounded up.
    pub io_unit: u64,
}

/// A share may go beyond its baseline as long as it has credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// The most operations per second.
    pub iops: u64,
    /// The most credits that can be saved. An operation above the baseline costs one.
    pub credits: u64,
}

/// The most opens at a time.
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
    /// As much as one SMB or NFS request carries: neither the documentation of Azure Files nor that of Azure NetApp
    /// Files gives the size of "one I/O".
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
        client_metadata_iops: None,
        client_throughput: None,
        capacity: None,
        handles: Handles { root: None, file: None, share: None },
        io_unit: Self::IO_UNIT,
    };

    /// Whether an operation may ever have to wait.
    #[must_use]
    pub fn has_rates(&self) -> bool {
        Limit::ALL.iter().any(|limit| self.rate(*limit).is_some())
    }

    /// As how many operations a read or write of this many bytes counts.
    #[must_use]
    pub fn operations(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.io_unit.max(1)).max(1)
    }
}

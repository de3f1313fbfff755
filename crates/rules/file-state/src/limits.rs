//! How much one file's state may grow.

/// The most that the clients of one file may hold at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// Share reservations: opens of the file.
    pub reservations_max: usize,
    /// Byte-range locks, counted after merging.
    pub locks_max: usize,
    /// Caching grants.
    pub grants_max: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { reservations_max: 16_384, locks_max: 16_384, grants_max: 1_024 }
    }
}

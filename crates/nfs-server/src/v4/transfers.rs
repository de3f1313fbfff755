//! How much a session's clients read and write at a time: for whoever looks after the server.

/// Reads and writes of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfers {
    /// READ and READ_PLUS.
    pub reads: Sizes,
    /// WRITE.
    pub writes: Sizes,
}

/// Calls that moved payload, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Calls.
    pub calls: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Most bytes of one.
    pub bytes_max: u64,
}

impl Sizes {
    pub(super) fn add(&mut self, bytes: u64) {
        self.calls = self.calls.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes_max = self.bytes_max.max(bytes);
    }

    pub(super) fn join(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.bytes_max = self.bytes_max.max(other.bytes_max);
    }

    /// Bytes of the average call.
    #[must_use]
    pub fn bytes_mean(&self) -> u64 {
        self.bytes.checked_div(self.calls).unwrap_or(0)
    }
}

impl Transfers {
    pub(super) fn join(&mut self, other: Self) {
        self.reads.join(other.reads);
        self.writes.join(other.writes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_and_joined() {
        let mut all = Transfers::default();
        assert_eq!(all.reads.bytes_mean(), 0);
        all.reads.add(4096);
        all.reads.add(1 << 20);
        let mut other = Transfers::default();
        other.reads.add(100);
        other.writes.add(7);
        all.join(other);
        let reads = Sizes { calls: 3, bytes: 4096 + (1 << 20) + 100, bytes_max: 1 << 20 };
        assert_eq!(all, Transfers { reads, writes: Sizes { calls: 1, bytes: 7, bytes_max: 7 } });
        assert_eq!(reads.bytes_mean(), 350_924);
    }
}

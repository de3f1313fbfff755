//! File systems that have gone to another server while a client had opens, locks or delegations there.
//!
//! The client hears of it even if it uses these file systems no more: each SEQUENCE has SEQ4_STATUS_LEASE_MOVED until the client
//! has asked where they are (RFC 8881 18.46.3).

use std::time::Instant;

use parking_lot::Mutex;
use share::ShareId;

/// The file systems of which a client is to ask where they are.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// Guards the list: the number of each share, and until when the client is told. As long as a lease, because a client that
    /// has not asked by then has lost what it had, and no longer than that, because a share may go for good meanwhile.
    unasked: Mutex<Vec<(ShareId, Instant)>>,
}

impl Moved {
    /// Notes that a share has gone.
    pub(super) fn note(&self, share: ShareId, until: Instant) {
        let mut unasked = self.unasked.lock();
        unasked.retain(|(known, _)| *known != share);
        unasked.push((share, until));
    }

    /// Notes that the client has asked where a share is.
    pub(super) fn asked(&self, share: ShareId) {
        self.unasked.lock().retain(|(known, _)| *known != share);
    }

    /// Whether the client need not be told any more.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let mut unasked = self.unasked.lock();
        unasked.retain(|(_, until)| now < *until);
        unasked.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_client_is_told_until_it_has_asked_and_no_longer_than_a_lease() {
        let (moved, begin) = (Moved::default(), Instant::now());
        let later = |seconds| begin + Duration::from_secs(seconds);
        assert!(moved.is_over(begin));
        moved.note(ShareId(1), later(90));
        moved.note(ShareId(2), later(95));
        moved.note(ShareId(1), later(100));
        assert!(!moved.is_over(begin));
        moved.asked(ShareId(1));
        assert!(!moved.is_over(later(94)), "it has not asked for the other one");
        assert!(moved.is_over(later(95)));
    }
}

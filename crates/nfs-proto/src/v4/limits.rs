//! How much one client may hold.

/// The most that one client may hold at a time. What goes beyond is refused: the others are not to
/// suffer from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Opens: one for each open-owner and file.
    pub opens_max: usize,
    /// Sets of byte-range locks: one for each lock-owner and open.
    pub lock_states_max: usize,
    /// Delegations, those included that were revoked and that the client has not freed.
    pub delegations_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { opens_max: 65_536, lock_states_max: 65_536, delegations_max: 16_384 }
    }
}

/// One of [`Limits`] is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a client holds too much: {0}")]
pub struct LimitReached(pub &'static str);

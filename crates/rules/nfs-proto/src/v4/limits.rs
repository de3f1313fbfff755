//! How much one client may hold.

/// The most that one client may hold at a time. Requests beyond that are refused, so that one client cannot harm the
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldingLimits {
    /// Opens: one for each pair of open-owner and file.
    pub opens_max: usize,
    /// Sets of byte-range locks: one for each pair of lock-owner and open.
    pub lock_states_max: usize,
    /// Delegations, including those that were revoked and not freed by the client.
    pub delegations_max: usize,
    /// Open-owners and lock-owners of a client without sessions.
    pub state_owners_max: usize,
}

impl Default for HoldingLimits {
    fn default() -> Self {
        Self { opens_max: 65_536, lock_states_max: 65_536, delegations_max: 16_384, state_owners_max: 65_536 }
    }
}

/// One of the [`HoldingLimits`] is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a client holds too much: {0}")]
pub struct LimitReached(pub &'static str);

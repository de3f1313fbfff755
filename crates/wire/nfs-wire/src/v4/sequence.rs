//! SEQUENCE, RFC 8881 18.46: the slot that a request uses; comes before all other operations.

use crate::v4::status::Status;
use crate::v4::types::SessionId;
use crate::xdr::{xdr_bitflags, xdr_struct};

/// Arguments.
#[doc(alias = "SEQUENCE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The session.
    pub session_id: SessionId,
    /// One more than in the slot's previous request, or the same in a retry.
    pub sequence_id: u32,
    /// The slot.
    pub slot_id: u32,
    /// The highest slot with a request outstanding.
    pub highest_slot_id: u32,
    /// Whether the reply must be kept for a retry.
    pub cache_this: bool,
}

xdr_struct!(Args { session_id, sequence_id, slot_id, highest_slot_id, cache_this });

/// Success.
#[doc(alias = "SEQUENCE4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// As in the arguments.
    pub session_id: SessionId,
    /// As in the arguments.
    pub sequence_id: u32,
    /// As in the arguments.
    pub slot_id: u32,
    /// The highest slot that the server accepts.
    pub highest_slot_id: u32,
    /// The highest slot that the server wants the client to use.
    pub target_highest_slot_id: u32,
    /// The condition of the client's state.
    pub status_flags: StatusFlags,
}

xdr_struct!(ResOk {
    session_id,
    sequence_id,
    slot_id,
    highest_slot_id,
    target_highest_slot_id,
    status_flags
});

/// Result.
#[doc(alias = "SEQUENCE4res")]
pub type Res = Result<ResOk, Status>;

xdr_bitflags! {
    /// Conditions that a client must react to, RFC 8881 18.46.3.
    pub struct StatusFlags {
        /// No back channel of any session works.
        #[doc(alias = "SEQ4_STATUS_CB_PATH_DOWN")]
        const CB_PATH_DOWN = 0x0000_0001;
        /// GSS contexts of the back channel expire soon.
        #[doc(alias = "SEQ4_STATUS_CB_GSS_CONTEXTS_EXPIRING")]
        const CB_GSS_CONTEXTS_EXPIRING = 0x0000_0002;
        /// GSS contexts of the back channel have expired.
        #[doc(alias = "SEQ4_STATUS_CB_GSS_CONTEXTS_EXPIRED")]
        const CB_GSS_CONTEXTS_EXPIRED = 0x0000_0004;
        /// The lease has expired and all state is revoked.
        #[doc(alias = "SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED")]
        const EXPIRED_ALL_STATE_REVOKED = 0x0000_0008;
        /// The lease has expired and some state is revoked.
        #[doc(alias = "SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED")]
        const EXPIRED_SOME_STATE_REVOKED = 0x0000_0010;
        /// An administrator has revoked some state.
        #[doc(alias = "SEQ4_STATUS_ADMIN_STATE_REVOKED")]
        const ADMIN_STATE_REVOKED = 0x0000_0020;
        /// Delegations or layouts that were not returned are revoked.
        #[doc(alias = "SEQ4_STATUS_RECALLABLE_STATE_REVOKED")]
        const RECALLABLE_STATE_REVOKED = 0x0000_0040;
        /// Some state has moved to another server.
        #[doc(alias = "SEQ4_STATUS_LEASE_MOVED")]
        const LEASE_MOVED = 0x0000_0080;
        /// The server has restarted: state must be reclaimed.
        #[doc(alias = "SEQ4_STATUS_RESTART_RECLAIM_NEEDED")]
        const RESTART_RECLAIM_NEEDED = 0x0000_0100;
        /// No back channel of this session works.
        #[doc(alias = "SEQ4_STATUS_CB_PATH_DOWN_SESSION")]
        const CB_PATH_DOWN_SESSION = 0x0000_0200;
        /// The back channel is out of step: its sequence numbers do not match.
        #[doc(alias = "SEQ4_STATUS_BACKCHANNEL_FAULT")]
        const BACKCHANNEL_FAULT = 0x0000_0400;
        /// A device ID has changed.
        #[doc(alias = "SEQ4_STATUS_DEVID_CHANGED")]
        const DEVID_CHANGED = 0x0000_0800;
        /// A device ID is gone.
        #[doc(alias = "SEQ4_STATUS_DEVID_DELETED")]
        const DEVID_DELETED = 0x0000_1000;
    }
}

//! The names of lock-owners: a process and the bytes by which its host names the owner.

use nfs_wire::nlm::{Holder, Lock, NetObject};
use share::{ByteRangeLock, LockKind, LockOwner};

use super::state::NlmState;

/// Bytes of the process in a name.
const SVID_BYTES: usize = 4;

/// The name of the owner of a lock.
pub(super) fn name(lock: &Lock<'_>) -> Vec<u8> {
    [&lock.svid.to_be_bytes()[..], lock.owner.0].concat()
}

/// A lock that conflicts, with its owner as its own host would describe it.
pub(super) struct Conflict {
    lock: ByteRangeLock,
    svid: u32,
    owner: Vec<u8>,
}

impl Conflict {
    pub(super) fn of(nlm: &NlmState, lock: ByteRangeLock) -> Self {
        let (svid, owner) = match lock.owner {
            LockOwner::Open(_) => (0, b"smb".to_vec()),
            LockOwner::Client(number) => {
                let name = nlm.with(|hosts| hosts.owner_name(number));
                let split = name.as_deref().and_then(|name| name.split_first_chunk::<SVID_BYTES>());
                split.map_or_else(
                    || (0, b"nfs4".to_vec()),
                    |(svid, owner)| (u32::from_be_bytes(*svid), owner.to_vec()),
                )
            }
        };
        Self { lock, svid, owner }
    }

    pub(super) fn holder(&self) -> Holder<'_> {
        let range = self.lock.range;
        Holder {
            exclusive: self.lock.kind == LockKind::Exclusive,
            svid: self.svid,
            owner: NetObject(&self.owner),
            offset: range.offset(),
            length: if range.reaches_end() { 0 } else { range.length() },
        }
    }
}

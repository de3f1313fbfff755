//! Stateids: what the bits of a stateid say before any table is consulted (RFC 8881 8.2).

pub use nfs_wire::v4::types::{Stateid, StateidOther as Other};

/// A file, on this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// The number of the share.
    pub share: u32,
    /// The file system in it.
    pub fs: u32,
    /// The number of the file in that.
    pub number: u64,
    /// The snapshot that holds the file; 0 for the present state.
    pub snapshot: u32,
}

#[cfg(test)]
impl FileKey {
    /// A file in the present state of the first file system of a share.
    pub(super) const fn live(share: u32, number: u64) -> Self {
        Self { share, fs: 0, number, snapshot: 0 }
    }
}

/// What a stateid stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Designates {
    /// No open: checked against the opens of all clients (RFC 8881 8.2.3).
    Anonymous,
    /// As [`Designates::Anonymous`], but a READ may ignore locks.
    ReadBypass,
    /// The stateid returned by an earlier operation of the COMPOUND.
    Current,
    /// A set of locks.
    Locks,
}

/// Why a stateid is refused (RFC 8881 15.1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StateidError {
    /// The stateid does not belong to this client, this file or this run of the server, or has another kind
    /// (NFS4ERR_BAD_STATEID).
    #[error("no such stateid")]
    Bad,
    /// The set of locks has changed since (NFS4ERR_OLD_STATEID).
    #[error("the stateid is not the latest")]
    Old,
    /// The state was revoked because the client's lease had expired (NFS4ERR_EXPIRED).
    #[error("the lease was over")]
    Expired,
    /// The state was revoked by an administrator, or because of a conflict (NFS4ERR_ADMIN_REVOKED).
    #[error("revoked")]
    AdminRevoked,
    /// The delegation was revoked because the client did not return it in time (NFS4ERR_DELEG_REVOKED).
    #[error("the delegation was revoked")]
    DelegRevoked,
}

/// What a stateid stands for.
///
/// # Errors
/// [`StateidError::Bad`] for a reserved value that has no meaning (RFC 8881 8.2.3).
pub fn designates(stateid: Stateid) -> Result<Designates, StateidError> {
    match stateid {
        Stateid::ANONYMOUS => Ok(Designates::Anonymous),
        Stateid::READ_BYPASS => Ok(Designates::ReadBypass),
        Stateid::CURRENT => Ok(Designates::Current),
        reserved if reserved.is_special() => Err(StateidError::Bad),
        _ => Ok(Designates::Locks),
    }
}

/// Makes the `other` fields of one client's stateids. A value is never used twice by one client (RFC 8881 8.2.4), nor
/// by two clients, nor by two runs of the server.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// Distinguishes this run of the server from others.
    instance: u32,
    /// Distinguishes this client from others.
    client: u32,
    next: u32,
}

impl Names {
    /// The names for a client. `client` is unique in this run of the server; `instance` identifies the run.
    #[must_use]
    pub fn new(instance: u32, client: u32) -> Self {
        Self { instance, client, next: 0 }
    }

    /// The number of the client.
    #[must_use]
    pub fn client(&self) -> u32 {
        self.client
    }

    /// Another value; None after 2^32 of them.
    pub fn make(&mut self) -> Option<Other> {
        // The counter starts at one and never becomes all ones, so that no reserved value results.
        self.next = self.next.checked_add(1).filter(|next| *next != u32::MAX)?;
        let mut other = [0; 12];
        let words = [self.instance, self.client, self.next].map(u32::to_be_bytes);
        other.iter_mut().zip(words.as_flattened()).for_each(|(to, from)| *to = *from);
        Some(Other(other))
    }
}

/// The run of the server and the client for which [`Names`] has made this value.
#[must_use]
pub fn origin(Other([a, b, c, d, e, f, g, h, ..]): Other) -> (u32, u32) {
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}

/// The seqid after this one. It skips 0, which has another meaning (RFC 8881 8.2.2).
#[must_use]
pub fn seqid_after(seqid: u32) -> u32 {
    if seqid == u32::MAX { 1 } else { seqid.saturating_add(1) }
}

/// Checks the seqid that a client sent against the current one; 0 always means the latest (RFC 8881 8.2.2).
///
/// # Errors
/// [`StateidError::Old`] for an earlier seqid, [`StateidError::Bad`] for a later one.
pub fn check_seqid(sent: u32, current: u32) -> Result<(), StateidError> {
    // "the possibility of the seqid being swapped around past the NFS4_UINT32_MAX value needs to be taken into account"
    let behind = current.wrapping_sub(sent).cast_signed();
    match behind {
        _ if sent == 0 || behind == 0 => Ok(()),
        1.. => Err(StateidError::Old),
        _ => Err(StateidError::Bad),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_values_have_the_meaning_of_the_table() {
        // RFC 8881 8.2.3, by hand: seqid, other, meaning.
        let cases = [
            (0, 0x00, Ok(Designates::Anonymous)),
            (u32::MAX, 0xff, Ok(Designates::ReadBypass)),
            (1, 0x00, Ok(Designates::Current)),
            (u32::MAX, 0x00, Err(StateidError::Bad)),
            (2, 0x00, Err(StateidError::Bad)),
            (0, 0xff, Err(StateidError::Bad)),
            (1, 0xff, Err(StateidError::Bad)),
            (0, 0x01, Ok(Designates::Locks)),
        ];
        for (seqid, byte, expected) in cases {
            assert_eq!(designates(Stateid { seqid, other: Other([byte; 12]) }), expected, "{seqid} {byte}");
        }
    }

    #[test]
    fn old_and_future_seqids_are_told_apart_also_at_the_end() {
        assert_eq!(check_seqid(0, 7), Ok(()));
        assert_eq!(check_seqid(7, 7), Ok(()));
        assert_eq!(check_seqid(6, 7), Err(StateidError::Old));
        assert_eq!(check_seqid(8, 7), Err(StateidError::Bad));
        assert_eq!(check_seqid(u32::MAX, 1), Err(StateidError::Old));
        assert_eq!(check_seqid(1, u32::MAX), Err(StateidError::Bad));
        assert_eq!((seqid_after(1), seqid_after(u32::MAX)), (2, 1));
    }

    #[test]
    fn names_are_never_made_twice_and_never_reserved() {
        let mut names = Names::new(0, 0);
        let (one, two) = (names.make().unwrap(), names.make().unwrap());
        assert_ne!(one, two);
        assert_eq!(Names::new(7, 9).make().map(origin), Some((7, 9)));
        assert_eq!(designates(Stateid { seqid: 0, other: one }), Ok(Designates::Locks));
        assert_ne!(Names::new(0, 1).make(), Some(one));
        assert_ne!(Names::new(1, 0).make(), Some(one));
        names.next = u32::MAX - 2;
        assert!(names.make().is_some());
        assert_eq!(names.make(), None);
        assert_eq!(names.make(), None);
    }
}

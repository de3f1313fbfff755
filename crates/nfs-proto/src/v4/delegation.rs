//! Which delegation an OPEN is offered, and why none (RFC 8881 10.4, 18.16.3). The delegation itself is a caching grant
//! of `file-state`, which says whether there is room for it.

use super::open_state::ShareAccess;

/// What an OPEN says of delegations: the OPEN4_SHARE_ACCESS_WANT_* bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Nothing.
    NoPreference,
    /// One for reading.
    Read,
    /// One for reading and writing.
    Write,
    /// Either.
    Any,
    /// None.
    None,
    /// None, and what was wanted earlier is not wanted any more.
    Cancel,
}

/// why_no_delegation4: what an OPEN without a delegation is told, if it spoke of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// WND4_NOT_WANTED
    NotWanted,
    /// WND4_CONTENTION
    Contention,
    /// WND4_RESOURCE
    Resource,
    /// WND4_NOT_SUPP_UPGRADE
    NotSupportedUpgrade,
    /// WND4_NOT_SUPP_DOWNGRADE
    NotSupportedDowngrade,
    /// WND4_CANCELLED
    Cancelled,
}

impl Want {
    /// What the bits of share_access say; None for a value that means nothing.
    #[must_use]
    pub fn of(share_access: u32) -> Option<Self> {
        Some(match share_access & 0xff00 {
            0x0000 => Self::NoPreference,
            0x0100 => Self::Read,
            0x0200 => Self::Write,
            0x0300 => Self::Any,
            0x0400 => Self::None,
            0x0500 => Self::Cancel,
            _ => return None,
        })
    }

    /// Whether the answer says why there is no delegation: "If the client specifies a WANT flag" (OPEN_DELEGATE_NONE_EXT).
    #[must_use]
    pub fn is_told_why(self) -> bool {
        self != Self::NoPreference
    }
}

/// What an OPEN is offered, as far as there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// A delegation for this.
    Delegation(ShareAccess),
    /// None.
    Nothing(Why),
}

/// What an OPEN for `access` is offered, when the client has `had` already, and callbacks reach it or do not.
#[must_use]
pub fn offer(want: Want, access: ShareAccess, had: Option<ShareAccess>, reachable: bool) -> Offer {
    let both = ShareAccess::all();
    let writes = access.contains(ShareAccess::WRITE);
    match (want, had) {
        (Want::None, _) => return Offer::Nothing(Why::NotWanted),
        (Want::Cancel, _) => return Offer::Nothing(Why::Cancelled),
        (Want::Write, Some(ShareAccess::READ)) => return Offer::Nothing(Why::NotSupportedUpgrade),
        (Want::Read, Some(had)) if had == both => return Offer::Nothing(Why::NotSupportedDowngrade),
        (_, Some(_)) => return Offer::Nothing(Why::Resource),
        (_, None) if !reachable => return Offer::Nothing(Why::Resource),
        (_, None) => {}
    }
    match want {
        Want::Read => Offer::Delegation(ShareAccess::READ),
        Want::Write => Offer::Delegation(both),
        // Who opens a file for writing has little use for one that it must give back when it writes.
        Want::NoPreference | Want::Any if writes => Offer::Delegation(both),
        _ => Offer::Delegation(ShareAccess::READ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: ShareAccess = ShareAccess::READ;
    const W: ShareAccess = ShareAccess::WRITE;

    #[test]
    fn the_bits_of_share_access() {
        let wants = [Want::NoPreference, Want::Read, Want::Write, Want::Any, Want::None, Want::Cancel];
        for (number, want) in (0..).zip(wants) {
            assert_eq!(Want::of(number << 8 | 0x3_0003), Some(want));
        }
        assert_eq!(Want::of(0x0600), None);
        assert!(Want::None.is_told_why() && !Want::NoPreference.is_told_why());
    }

    #[test]
    fn what_is_offered() {
        let read = Offer::Delegation(R);
        let write = Offer::Delegation(R | W);
        assert_eq!(offer(Want::NoPreference, R, None, true), read);
        assert_eq!(offer(Want::NoPreference, R | W, None, true), write);
        assert_eq!(offer(Want::Read, R | W, None, true), read);
        assert_eq!(offer(Want::Write, R, None, true), write);
        assert_eq!(offer(Want::Any, R, None, true), read);
        assert_eq!(offer(Want::None, R, None, true), Offer::Nothing(Why::NotWanted));
        assert_eq!(offer(Want::Cancel, R, None, true), Offer::Nothing(Why::Cancelled));
        assert_eq!(offer(Want::Any, R, None, false), Offer::Nothing(Why::Resource));
        assert_eq!(offer(Want::Write, W, Some(R), true), Offer::Nothing(Why::NotSupportedUpgrade));
        assert_eq!(offer(Want::Read, R, Some(R | W), true), Offer::Nothing(Why::NotSupportedDowngrade));
        assert_eq!(offer(Want::Any, R, Some(R), true), Offer::Nothing(Why::Resource));
    }
}

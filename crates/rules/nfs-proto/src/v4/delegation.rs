//! Whether an OPEN is offered a delegation, and if not, why (RFC 8881 10.4, 18.16.3). The delegation itself is a
//! caching grant of `file-state`, which decides whether there is room for it.

use nfs_wire::v4::open::{Want, WhyNone};

use super::open_state::ShareAccess;

/// What an OPEN is offered, if there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// A delegation for this access.
    Delegation(ShareAccess),
    /// No delegation, for this reason.
    Nothing(WhyNone),
}

/// What an OPEN for `access` is offered. `had` is the delegation that the client has already; `reachable` tells whether
/// callbacks reach the client.
#[must_use]
pub fn offer(want: Want, access: ShareAccess, had: Option<ShareAccess>, reachable: bool) -> Offer {
    let both = ShareAccess::all();
    let writes = access.contains(ShareAccess::WRITE);
    match (want, had) {
        (Want::None, _) => return Offer::Nothing(WhyNone::NotWanted),
        (Want::Cancel, _) => return Offer::Nothing(WhyNone::Cancelled),
        (Want::Write, Some(ShareAccess::READ)) => return Offer::Nothing(WhyNone::UpgradeNotSupported),
        (Want::Read, Some(had)) if had == both => return Offer::Nothing(WhyNone::DowngradeNotSupported),
        (_, Some(_)) => return Offer::Nothing(WhyNone::Resource { will_signal: false }),
        (_, None) if !reachable => return Offer::Nothing(WhyNone::Resource { will_signal: false }),
        (_, None) => {}
    }
    match want {
        Want::Write => Offer::Delegation(both),
        Want::Any if writes => Offer::Delegation(both),
        // A read delegation would have to be returned as soon as the file is written. A write delegation is given only
        // to a client that asks for one: it costs an additional call when the file is removed or renamed, and others
        // that read the file's attributes must ask the holder.
        Want::NoPreference if writes => Offer::Nothing(WhyNone::Resource { will_signal: false }),
        _ => Offer::Delegation(ShareAccess::READ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: ShareAccess = ShareAccess::READ;
    const W: ShareAccess = ShareAccess::WRITE;

    #[test]
    fn what_is_offered() {
        let read = Offer::Delegation(R);
        let write = Offer::Delegation(R | W);
        assert_eq!(offer(Want::NoPreference, R, None, true), read);
        let none = Offer::Nothing(WhyNone::Resource { will_signal: false });
        assert_eq!(offer(Want::NoPreference, R | W, None, true), none);
        assert_eq!(offer(Want::Any, R | W, None, true), write);
        assert_eq!(offer(Want::Read, R | W, None, true), read);
        assert_eq!(offer(Want::Write, R, None, true), write);
        assert_eq!(offer(Want::Any, R, None, true), read);
        assert_eq!(offer(Want::None, R, None, true), Offer::Nothing(WhyNone::NotWanted));
        assert_eq!(offer(Want::Cancel, R, None, true), Offer::Nothing(WhyNone::Cancelled));
        assert_eq!(
            offer(Want::Any, R, None, false),
            Offer::Nothing(WhyNone::Resource { will_signal: false })
        );
        assert_eq!(offer(Want::Write, W, Some(R), true), Offer::Nothing(WhyNone::UpgradeNotSupported));
        assert_eq!(offer(Want::Read, R, Some(R | W), true), Offer::Nothing(WhyNone::DowngradeNotSupported));
        assert_eq!(
            offer(Want::Any, R, Some(R), true),
            Offer::Nothing(WhyNone::Resource { will_signal: false })
        );
    }
}

//! Which delegation an OPEN is offered, and why none (RFC 8881 10.4, 18.16.3). The delegation itself is a caching grant
//! of `file-state`, which says whether there is room for it.

use nfs_wire::v4::open::{Want, WhyNone};

use super::open_state::ShareAccess;

/// What an OPEN is offered, as far as there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// A delegation for this.
    Delegation(ShareAccess),
    /// None.
    Nothing(WhyNone),
}

/// What an OPEN for `access` is offered, when the client has `had` already, and callbacks reach it or do not.
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
        // It would have to be given back as soon as the file is written. And who has not asked for one for writing is not given
        // one: it costs a call more when the file is removed or renamed, and whoever looks at the file must ask the holder.
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

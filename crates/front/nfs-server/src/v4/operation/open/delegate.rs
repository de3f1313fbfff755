//! The delegation that comes with an OPEN, or why there is none (RFC 8881 10.4, 18.16.3).

use std::sync::Arc;

use nfs_proto::v4::delegation;
use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::acl::{Ace, AceFlags, AceMask, ace_type};
use nfs_wire::v4::open::{
    Claim, Delegation, DelegationType, ReadDelegation, SpaceLimit, Want, WhyNone, WriteDelegation,
};
use nfs_wire::v4::types::{Stateid, Text};
use share::{Access, Admission, Caching, OpenRequest, Sharing};
use storage::Want as Attributes;

use super::target::{Target, grant};
use super::wish::Wish;
use super::{permitted, rights};
use crate::v4::compound::Compound;
use crate::v4::filehandle;
use crate::v4::files::{Delegated, Held, file_of};
use crate::v4::state::Client;

/// The delegation that the client is offered.
pub(super) struct Offer {
    offer: delegation::Offer,
    /// Whether the client expressed a want, and so must be told why it gets no delegation.
    is_told_why: bool,
}

impl Offer {
    /// What the client may cache under it. A delegation also stands for opens and closes that the server does not see.
    pub(super) fn caching(&self) -> Caching {
        match self.offer {
            delegation::Offer::Nothing(_) => Caching::empty(),
            delegation::Offer::Delegation(access) if access.contains(ShareAccess::WRITE) => Caching::all(),
            delegation::Offer::Delegation(_) => Caching::READ | Caching::HANDLE,
        }
    }
}

/// The offer for an OPEN.
pub(super) fn offer(client: &Client, target: &Target, wish: &Wish<'_>) -> Offer {
    let file = file_of(&target.object);
    let had = client.files.with(|holdings| holdings.delegation(file).map(|(_, held)| held.access));
    let reachable = client.sessions().iter().any(|session| session.back.is_open());
    let (want, access) = match wish.claim.0 {
        // RFC 8881 18.16.3: "A partial exception is the reclaim (CLAIM_PREVIOUS) case, in which a delegation type is
        // claimed."
        Claim::Previous(DelegationType::Read) => (Want::Read, wish.access),
        Claim::Previous(DelegationType::Write) => (Want::Write, wish.access),
        Claim::Previous(DelegationType::None | DelegationType::NoneExt) => (Want::None, wish.access),
        // What it opened under a delegation it is to give back.
        Claim::DelegateCur(..) | Claim::DelegCurFh(_) => (Want::None, wish.access),
        _ => (wish.want, wish.access),
    };
    let is_told_why = wish.want != Want::NoPreference;
    let offer = within_permissions(delegation::offer(want, access, had, reachable), target, wish.access);
    Offer { offer, is_told_why }
}

/// The offer, without what the caller may not do. The client may use the delegation's stateid in place of the open's (RFC 8881
/// 9.1.2), and no permissions are checked behind it. `opened` is what the OPEN itself may do.
fn within_permissions(offer: delegation::Offer, target: &Target, opened: ShareAccess) -> delegation::Offer {
    let may = |access: ShareAccess| permitted(target, access.difference(opened)).is_ok();
    match offer {
        delegation::Offer::Delegation(access) if may(access) => offer,
        delegation::Offer::Delegation(_) if may(ShareAccess::READ) => {
            delegation::Offer::Delegation(ShareAccess::READ)
        }
        delegation::Offer::Delegation(_) => {
            delegation::Offer::Nothing(WhyNone::Resource { will_signal: false })
        }
        delegation::Offer::Nothing(_) => offer,
    }
}

/// Gives the delegation, if the open was granted the caching that it needs.
pub(super) async fn delegate(
    c: &Compound<'_>,
    target: &Target,
    open: &Held,
    Offer { offer, is_told_why }: Offer,
) -> Delegation<'static> {
    let none = |why| if is_told_why { Delegation::NoneExt(why) } else { Delegation::None };
    let access = match offer {
        delegation::Offer::Nothing(why) => return none(why),
        delegation::Offer::Delegation(access) => access,
    };
    let granted = open.open.granted().state;
    let writes = granted.contains(Caching::WRITE);
    if granted.is_empty() {
        return none(WhyNone::Contention { will_push: false });
    }
    // Where there was no room for writing, what is left is of use for reading.
    let access = if writes { access } else { ShareAccess::READ };
    match enter(c, target, open, access).await {
        Some(stateid) => told(stateid, access),
        None => none(WhyNone::Contention { will_push: false }),
    }
}

/// Gives the delegation an open of its own, which lasts until it is returned, and a stateid.
async fn enter(c: &Compound<'_>, target: &Target, held: &Held, access: ShareAccess) -> Option<Stateid> {
    let (share, files, file) = (&target.object.share, &c.client().files, file_of(&target.object));
    let request = OpenRequest {
        grant: Some(grant(c, target, Caching::empty())),
        reserved: Access::READ_ATTRIBUTES,
        is_reclaim: true,
        openers: target.object.call.caller.openers,
        ..OpenRequest::new(rights(access), Sharing::all())
    };
    let handle = filehandle::of_node(c.server(), share.id(), &target.found.node).ok();
    let opened = share.open_granted(&target.found, &request);
    let (Ok(Admission::Done(open)), Some(handle)) = (opened, handle) else {
        share.give_up(target.found.node.id(), files.holder());
        return None;
    };
    // As it is now, the file that an OPEN made or cut included: what the client learns of it behind this OPEN.
    let now = share.attributes(&target.object.call, &target.found.node, Attributes::empty()).await;
    let change = now.map_or_else(|_| target.found.attributes.change(), |now| now.change());
    let held = Held { open: Arc::clone(&open), ..held.clone() };
    let delegated = Delegated { held, handle, change };
    let entered = files.with(|holdings| holdings.delegate(file, access, delegated));
    let stateid = match entered {
        Ok(stateid) => stateid,
        Err(refused) => {
            // Another OPEN of the client may have got one at the same time: then the grant is that one's.
            if files.with(|holdings| holdings.delegation(file).is_none()) {
                share.give_up(target.found.node.id(), files.holder());
            }
            refused.held.close(&target.object.call).await;
            return None;
        }
    };
    if !share.granted(&open).breaking && !share.granted(&open).state.is_empty() {
        return Some(stateid);
    }
    // Somebody needs the file already.
    let returned = files.with(|holdings| holdings.return_delegation(stateid, file));
    share.give_up(target.found.node.id(), files.holder());
    if let Ok(returned) = returned {
        returned.held.close(&target.object.call).await;
    }
    None
}

/// Nobody is let in without asking: the client asks with ACCESS.
const PERMISSIONS: Ace<'static> = Ace {
    ace_type: ace_type::ALLOW,
    flags: AceFlags::empty(),
    mask: AceMask::empty(),
    who: Text(b"EVERYONE@"),
};

fn told(stateid: Stateid, access: ShareAccess) -> Delegation<'static> {
    if access.contains(ShareAccess::WRITE) {
        // RFC 8881 10.4.1: "The server must ensure that the client will be able to write modified data to the server of a size
        // equal to that provided". Nothing is set aside here, so modified data is to be flushed on close, and who closes a file
        // learns that the share is full.
        let space_limit = SpaceLimit::FileBytes(0);
        let recall = false;
        Delegation::Write(WriteDelegation { stateid, recall, space_limit, permissions: PERMISSIONS })
    } else {
        Delegation::Read(ReadDelegation { stateid, recall: false, permissions: PERMISSIONS })
    }
}

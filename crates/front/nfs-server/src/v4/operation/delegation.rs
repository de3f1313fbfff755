//! Whether a client gets a delegation of a file, and how (RFC 8881 10.4, 18.16.3).

use std::sync::Arc;

use nfs_proto::v4::delegation::{self, Offer};
use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::acl::{Ace, AceFlags, AceMask, ace_type};
use nfs_wire::v4::open::{Delegation, ReadDelegation, SpaceLimit, Want, WhyNone, WriteDelegation};
use nfs_wire::v4::types::{Stateid, Text};
use share::{Access, Admission, Caching, Found, GrantRequest, OpenRequest, Sharing};
use storage::Want as Attributes;

use super::data::{permitted, rights};
use crate::object::Object;
use crate::v4::compound::Compound;
use crate::v4::filehandle;
use crate::v4::files::{Delegated, Held, file_of};
use crate::v4::recall::Reach;
use crate::v4::state::Client;

/// The delegation to offer to a client for a file that it may open for `access`, which has been checked.
pub(super) fn offer(
    client: &Client,
    object: &Object,
    found: &Found,
    want: Want,
    access: ShareAccess,
) -> Offer {
    // What never changes is cached without. Nobody would be left to take it back when the snapshot is removed.
    if object.share.snapshot().is_some() {
        return Offer::Nothing(WhyNone::Resource { will_signal: false });
    }
    let file = file_of(object);
    let had = client.files.with(|holdings| holdings.delegation(file).map(|(_, held)| held.access));
    let reachable = client.sessions().iter().any(|session| session.back.is_open());
    within_permissions(delegation::offer(want, access, had, reachable), object, found, access)
}

/// The offer, reduced to what the caller may do. The client may use the delegation's stateid in place of an open's (RFC
/// 8881 9.1.2), and no permissions are checked then. `checked` are the rights that the caller certainly has.
fn within_permissions(offer: Offer, object: &Object, found: &Found, checked: ShareAccess) -> Offer {
    let may = |access: ShareAccess| permitted(object, found, access.difference(checked)).is_ok();
    match offer {
        Offer::Delegation(access) if may(access) => offer,
        Offer::Delegation(_) if may(ShareAccess::READ) => Offer::Delegation(ShareAccess::READ),
        Offer::Delegation(_) => Offer::Nothing(WhyNone::Resource { will_signal: false }),
        Offer::Nothing(_) => offer,
    }
}

/// What the client may cache under an offer. A delegation also stands for opens and closes that the server does not see.
pub(super) fn caching(offer: Offer) -> Caching {
    match offer {
        Offer::Nothing(_) => Caching::empty(),
        Offer::Delegation(access) if access.contains(ShareAccess::WRITE) => Caching::all(),
        Offer::Delegation(_) => Caching::READ | Caching::HANDLE,
    }
}

/// A request for a caching grant for the client, which may be empty.
pub(super) fn grant(
    c: &Compound<'_>,
    client: &Arc<Client>,
    object: &Object,
    wanted: Caching,
) -> GrantRequest {
    let reach = Reach::new(c.server(), client, file_of(object));
    GrantRequest { key: client.files.grant_key(), wanted, client: reach }
}

/// Gives the delegation, if the open was granted the caching that it needs.
///
/// # Errors
/// Why there is no delegation.
pub(super) async fn delegate(
    c: &Compound<'_>,
    client: &Arc<Client>,
    object: &Object,
    found: &Found,
    open: &Held,
    offer: Offer,
) -> Result<Delegation<'static>, WhyNone> {
    let access = match offer {
        Offer::Nothing(why) => return Err(why),
        Offer::Delegation(access) => access,
    };
    let granted = open.open.granted().state;
    let contention = WhyNone::Contention { will_push: false };
    if granted.is_empty() {
        return Err(contention);
    }
    // If there was no room for the caching of writes, the rest still allows a read delegation.
    let access = if granted.contains(Caching::WRITE) { access } else { ShareAccess::READ };
    let stateid = enter(c, client, object, found, open, access).await.ok_or(contention)?;
    Ok(told(stateid, access))
}

/// Gives the delegation an open of its own, which lasts until it is returned, and a stateid.
async fn enter(
    c: &Compound<'_>,
    client: &Arc<Client>,
    object: &Object,
    found: &Found,
    held: &Held,
    access: ShareAccess,
) -> Option<Stateid> {
    let (share, files, file) = (&object.share, &client.files, file_of(object));
    let request = OpenRequest {
        grant: Some(grant(c, client, object, Caching::empty())),
        reserved: Access::READ_ATTRIBUTES,
        is_reclaim: true,
        openers: object.call.caller.openers,
        ..OpenRequest::new(rights(access), Sharing::all())
    };
    let handle = filehandle::of_node(c.server(), share, &found.node).ok();
    let opened = share.open_granted(found, &request);
    let (Ok(Admission::Done(open)), Some(handle)) = (opened, handle) else {
        share.give_up(found.node.id(), files.holder());
        return None;
    };
    // The attributes as of now, including the effects of an OPEN that created or truncated the file. The client learns
    // of these after the OPEN.
    let now = share.attributes(&object.call, &found.node, Attributes::empty()).await;
    let change = now.map_or_else(|_| found.attributes.change(), |now| now.change());
    let held = Held { open: Arc::clone(&open), ..held.clone() };
    let delegated = Delegated { held, handle, change };
    let entered = files.with(|holdings| holdings.delegate(file, access, delegated));
    let stateid = match entered {
        Ok(stateid) => stateid,
        Err(refused) => {
            // Another OPEN of the client may have got a delegation at the same time. The grant then belongs to that
            // one.
            if files.with(|holdings| holdings.delegation(file).is_none()) {
                share.give_up(found.node.id(), files.holder());
            }
            refused.held.close(&object.call).await;
            return None;
        }
    };
    if !share.granted(&open).breaking && !share.granted(&open).state.is_empty() {
        return Some(stateid);
    }
    // Another client already needs the file.
    let returned = files.with(|holdings| holdings.return_delegation(stateid, file));
    share.give_up(found.node.id(), files.holder());
    if let Ok(returned) = returned {
        returned.held.close(&object.call).await;
    }
    None
}

/// Grants no right without a check: the client asks with ACCESS.
const PERMISSIONS: Ace<'static> = Ace {
    ace_type: ace_type::ALLOW,
    flags: AceFlags::empty(),
    mask: AceMask::empty(),
    who: Text(b"EVERYONE@"),
};

fn told(stateid: Stateid, access: ShareAccess) -> Delegation<'static> {
    if access.contains(ShareAccess::WRITE) {
        // RFC 8881 10.4.1: "The server must ensure that the client will be able to write modified data to the server of
        // a size equal to that provided". This server reserves no space, so the client must flush modified data on
        // close, and a user who closes a file learns that the share is full.
        let space_limit = SpaceLimit::FileBytes(0);
        let recall = false;
        Delegation::Write(WriteDelegation { stateid, recall, space_limit, permissions: PERMISSIONS })
    } else {
        Delegation::Read(ReadDelegation { stateid, recall: false, permissions: PERMISSIONS })
    }
}

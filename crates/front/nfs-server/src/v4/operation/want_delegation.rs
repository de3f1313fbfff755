//! WANT_DELEGATION, RFC 8881 18.49: a delegation without an open. The server grants it at once or not at all: it registers no
//! wants, so it neither signals nor pushes delegations later.

use std::sync::Arc;

use nfs_proto::v4::delegation::Offer;
use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::open::{Delegation, DelegationType, Want, WhyNone};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::want_delegation::{Args, Claim, Res};
use share::{Access, Admission, Found, OpenRequest, Sharing};
use storage::{FileKind, Want as Attributes};

use super::data::{permitted, rights};
use super::delegation;
use crate::object::Object;
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;
use crate::v4::files::Held;
use crate::v4::place::Place;
use crate::v4::state::Client;

pub(super) const OPERATION: Operation<Number> =
    Operation { result_bytes: 96, ..Operation::v4(Number::WantDelegation, "WantDelegation") };

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Res<'static> {
    let want = wanted(args)?;
    let object = match c.place()? {
        Place::Root => return Ok(Delegation::NoneExt(WhyNone::IsDir)),
        Place::Absent(_) => return Err(Status::Moved),
        Place::Object(object) => object,
    };
    if let Some(why) = never(want, object.node.kind()) {
        return Ok(Delegation::NoneExt(why));
    }
    let recovery = &c.server().v4.recovery;
    let is_reclaim = matches!(args.claim, Claim::Previous(_));
    let client = c.client()?;
    recovery.check_locking(client, is_reclaim, c.now).await?;
    let found = object.share.found(&object.call, &object.node, Attributes::FLAGS).await;
    let found = found.map_err(status::v4)?;
    let access = access(object, &found, want)?;
    recovery.keep(client).await?;
    let offer = delegation::offer(client, object, &found, want, access);
    let given = match hold(c, client, object, &found, offer, is_reclaim) {
        Ok(held) => give(c, client, object, &found, &held, offer).await,
        Err(why) => Err(why),
    };
    Ok(given.unwrap_or_else(Delegation::NoneExt))
}

/// The delegation that the client asks for.
fn wanted(args: Args) -> Result<Want, Status> {
    let want = match args.want.want()? {
        // 18.49.3: a client that neither wants a delegation nor cancels a want gets NFS4ERR_INVAL. To want no
        // delegation is not a want.
        Want::NoPreference | Want::None => return Err(Status::Inval),
        want => want,
    };
    match args.claim {
        Claim::Fh => Ok(want),
        // As with OPEN (18.16.3), the claim states the type of the delegation.
        Claim::Previous(DelegationType::Read) => Ok(Want::Read),
        Claim::Previous(DelegationType::Write) => Ok(Want::Write),
        Claim::Previous(DelegationType::None | DelegationType::NoneExt) => Err(Status::Inval),
        // As with OPEN: a server need not keep delegations for the client's next incarnation.
        Claim::DelegPrevFh => Err(Status::NotSupp),
    }
}

/// Why there can never be a delegation of such an object for such a want (18.16.3, od_whynone; 18.49.3).
fn never(want: Want, kind: FileKind) -> Option<WhyNone> {
    match (kind, want) {
        // There are no wants to cancel.
        (_, Want::Cancel) => Some(WhyNone::Cancelled),
        (FileKind::Regular, _) => None,
        (FileKind::Directory, _) => Some(WhyNone::IsDir),
        (_, Want::Write) => Some(WhyNone::WriteNotSupported),
        _ => Some(WhyNone::TypeNotSupported),
    }
}

/// The access that the caller may have under the delegation, as if it opened the file for that.
///
/// # Errors
/// [`Status::Access`], also when the export is read-only.
fn access(object: &Object, found: &Found, want: Want) -> Result<ShareAccess, Status> {
    let may = |access| permitted(object, found, access).is_ok();
    let access = match want {
        Want::Write => ShareAccess::all(),
        Want::Any if may(ShareAccess::all()) => ShareAccess::all(),
        _ => ShareAccess::READ,
    };
    if may(access) { Ok(access) } else { Err(Status::Access) }
}

/// Opens the file until the delegation has its own open. This open conflicts with no other: a want does not recall what
/// other clients have (18.49.4).
///
/// # Errors
/// Why there is no delegation.
fn hold(
    c: &Compound<'_>,
    client: &Arc<Client>,
    object: &Object,
    found: &Found,
    offer: Offer,
    is_reclaim: bool,
) -> Result<Held, WhyNone> {
    let access = match offer {
        Offer::Nothing(why) => return Err(why),
        Offer::Delegation(access) => access,
    };
    let request = OpenRequest {
        grant: Some(delegation::grant(c, client, object, delegation::caching(offer))),
        reserved: Access::READ_ATTRIBUTES,
        is_reclaim,
        openers: object.call.caller.openers,
        ..OpenRequest::new(rights(access), Sharing::all())
    };
    match object.share.open_granted(found, &request) {
        Ok(Admission::Done(open)) => Ok(c.held(object, open)),
        // The file is about to be deleted, or too many files are open.
        Ok(Admission::Wait(_)) | Err(_) => Err(WhyNone::Resource { will_signal: false }),
    }
}

/// Gives the delegation, if the open was granted the caching that it needs, and closes the open.
///
/// # Errors
/// Why there is no delegation.
async fn give(
    c: &Compound<'_>,
    client: &Arc<Client>,
    object: &Object,
    found: &Found,
    held: &Held,
    offer: Offer,
) -> Result<Delegation<'static>, WhyNone> {
    let given = delegation::delegate(c, client, object, found, held, offer).await;
    held.close(&object.call).await;
    if !object.standing.is_present(&object.share) {
        // A check after a change of the rules may have run before the delegation was entered.
        c.server().reconsider_client(client, &object.share).await;
    }
    given
}

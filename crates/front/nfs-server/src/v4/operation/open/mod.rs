//! OPEN, RFC 8881 18.16, as a list of steps.

mod claim;
mod create;
mod target;
mod wish;

use std::sync::Arc;

use nfs_proto::v4::open_state::Opened;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::open::{Args, ResOk};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Stateid;
use share::{Access, File, GrantRequest, Kind, OpenRequest};
use storage::SetAttributes;

use super::data::{check_regular, permitted, rights};
use super::delegation;
use crate::object::Object;
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;
use crate::v4::files::{Held, file_of};
use crate::v4::state::Client;
use target::FileToOpen;
use wish::Wish;

pub(super) const OPERATION: Operation<Number> =
    Operation { result_bytes: 320, ..Operation::v4(Number::Open, "Open").of_kind(Kind::Open) };

pub(super) async fn handle<'a>(c: &mut Compound<'a>, args: Args<'a>) -> Result<ResOk<'static>, Status> {
    let wish = Wish::of(&args)?;
    c.object()?;
    let (client, recovery) = (Arc::clone(c.client()?), &c.server().v4.recovery);
    if !wish.claim.stands_on_delegation() {
        recovery.check_locking(&client, wish.claim.is_reclaim(), c.now).await?;
    }
    recovery.keep(&client).await?;
    wait_for_room(c).await?;
    let target = claim::find(c, &wish).await?;
    check_regular(&target.found.node)?;
    let access = access(&target, &wish)?;
    let offer = delegation::offer(&client, &target.object, &target.found, wish.delegation(), wish.access);
    let grant = delegation::grant(c, &client, &target.object, delegation::caching(offer));
    let held = admit(c, &target, &wish, access, grant).await?;
    if target.truncates
        && let Err(status) = truncate(&target, &held).await
    {
        held.close(&target.object.call).await;
        return Err(status);
    }
    let stateid = enter(&client, &target, &wish, &held).await?;
    let delegation = delegation::delegate(c, &client, &target.object, &target.found, &held, offer).await;
    if !target.object.standing.is_present(&held.share) {
        // A check after a change of the rules may have run before the open was entered.
        c.server().reconsider_client(&client, &held.share).await;
    }
    c.set_object(target.object);
    c.set_stateid(Some(stateid));
    Ok(ResOk {
        stateid,
        change: target.change,
        flags: c.open_flags(),
        attributes_set: target.attributes_set,
        delegation: delegation.unwrap_or_else(|why| wish.no_delegation(why)),
    })
}

/// Waits for room for an open, so that no file is created that cannot be opened. The share must be able to end clients
/// with an expired lease, so that no open is refused because of them.
async fn wait_for_room(c: &Compound<'_>) -> Result<(), Status> {
    let Object { share, call, .. } = c.object()?;
    share.open_by_courtesy_of(c.server());
    share.wait_for_open(call).await.map_err(status::v4)
}

/// The rights that an open needs, or why the caller may not have them.
fn access(target: &FileToOpen, wish: &Wish<'_>) -> Result<Access, Status> {
    if target.is_new {
        Ok(rights(wish.access))
    } else {
        permitted(&target.object, &target.found, wish.access)
    }
}

/// Admits the open beside those of all clients. The client's own opens are no exception (RFC 8881 18.16.3: "checking of
/// share reservations for the new OPEN proceeds normally, with no exception for the existing OPEN held by the same
/// open-owner").
async fn admit(
    c: &Compound<'_>,
    target: &FileToOpen,
    wish: &Wish<'_>,
    access: Access,
    grant: GrantRequest,
) -> Result<Held, Status> {
    let request = OpenRequest {
        grant: Some(grant),
        is_reclaim: wish.claim.is_reclaim() || wish.claim.stands_on_delegation(),
        openers: target.object.call.caller.openers,
        ..OpenRequest::new(access, wish.sharing())
    };
    let share = &target.object.share;
    let open = share.open_settled(&target.object.call, &target.found, &request).await;
    let open = open.map_err(|error| match status::v4(error) {
        Status::ShareDenied if wish.claim.is_reclaim() => Status::ReclaimConflict,
        status => status,
    })?;
    Ok(c.held(&target.object, open))
}

/// UNCHECKED4 with a size of zero, for a file that exists (RFC 8881 18.16.3).
async fn truncate(target: &FileToOpen, held: &Held) -> Result<(), Status> {
    let Object { share, call, .. } = &target.object;
    let writes = held.open.access().contains(Access::WRITE_DATA);
    let file = if writes { File::Open(Arc::clone(&held.open)) } else { target.object.file() };
    let set = SetAttributes { size: Some(0), ..SetAttributes::default() };
    share.set_attributes(call, &file, &set, None).await.map(|_| ()).map_err(status::v4)
}

/// Gives the open its stateid.
async fn enter(
    client: &Client,
    target: &FileToOpen,
    wish: &Wish<'_>,
    held: &Held,
) -> Result<Stateid, Status> {
    let new = Opened { access: wish.access, deny: wish.deny, held: held.clone() };
    let entered = client.files.open(file_of(&target.object), wish.owner, new);
    match entered {
        Ok((stateid, unneeded)) => {
            if let Some(unneeded) = unneeded {
                unneeded.close(&target.object.call).await;
            }
            Ok(stateid)
        }
        Err(refused) => {
            refused.close(&target.object.call).await;
            Err(Status::Delay)
        }
    }
}

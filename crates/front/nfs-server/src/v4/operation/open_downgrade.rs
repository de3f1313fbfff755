//! OPEN_DOWNGRADE, RFC 8881 18.18.

use nfs_proto::v4::open_state::share_of;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::open_downgrade::{Args, ResOk};
use nfs_wire::v4::status::Status;
use share::Turn;

use crate::operation::{Callers, Operation};
use crate::v4::compound::Compound;
use crate::v4::files::{file_of, not_downgraded};

pub(super) const OPERATION: Operation<Number> = Operation {
    // It only gives up.
    callers: Callers::Anybody,
    result_bytes: 48,
    ..Operation::v4(Number::OpenDowngrade, "OpenDowngrade").with(Turn::Charged)
};

pub(super) async fn handle(c: &mut Compound<'_>, args: Args) -> Result<ResOk, Status> {
    let object = c.object()?;
    let sent = c.stateid(args.open_stateid)?;
    let share = share_of(args.share_access.bits(), args.share_deny.bits()).ok_or(Status::Inval)?;
    let left = c.client()?.files.with(|holdings| holdings.downgrade(sent, file_of(object), share));
    let (open_stateid, gone) = left.map_err(not_downgraded)?;
    for held in &gone {
        held.close(&object.call).await;
    }
    c.set_stateid(Some(open_stateid));
    Ok(ResOk { open_stateid })
}

//! DELEGRETURN, RFC 8881 18.6.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::delegreturn::Args;
use nfs_wire::v4::status::Status;
use share::Turn;

use crate::operation::{Callers, Operation};
use crate::v4::compound::Compound;
use crate::v4::files::{file_of, refused};

pub(super) const OPERATION: Operation<Number> = Operation {
    callers: Callers::Anybody,
    ..Operation::v4(Number::DelegReturn, "DelegReturn").with(Turn::Charged)
};

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<(), Status> {
    let object = c.object()?;
    let sent = c.stateid(args.stateid)?;
    let files = &c.client()?.files;
    let returned = files.with(|holdings| holdings.return_delegation(sent, file_of(object)));
    let delegated = returned.map_err(refused)?;
    object.share.give_up(object.node.id(), files.holder());
    delegated.held.close(&object.call).await;
    Ok(())
}

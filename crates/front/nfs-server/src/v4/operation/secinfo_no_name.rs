//! SECINFO_NO_NAME, RFC 8881 18.45.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::secinfo_no_name::{Args, ResOk, Style};
use nfs_wire::v4::status::Status;

use super::{lookupp, secinfo};
use crate::operation::{Callers, Operation};
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> =
    Operation { callers: Callers::Mounting, ..Operation::v4(Number::SecInfoNoName, "SecInfo") };

pub(super) async fn handle(c: &mut Compound<'_>, args: Args) -> Result<ResOk<'static>, Status> {
    let flavors = match args.style {
        Style::CurrentFh => secinfo::flavors(c, c.place()?),
        Style::Parent => secinfo::flavors(c, &lookupp::parent(c).await?),
    };
    c.consume_place();
    Ok(flavors)
}

//! TEST_STATEID, RFC 8881 18.48.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::test_stateid::{Args, ResOk};

use crate::operation::Operation;
use crate::v4::compound::Compound;
use crate::v4::files::refused;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::TestStateid);

pub(super) fn handle(c: &Compound<'_>, args: &Args) -> Result<ResOk, Status> {
    let statuses = c.client()?.files.with(|holdings| {
        args.stateids.iter().map(|stateid| holdings.test(*stateid).map_err(refused)).collect()
    });
    Ok(ResOk { statuses })
}

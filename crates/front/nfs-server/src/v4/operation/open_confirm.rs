//! OPEN_CONFIRM, RFC 7530 16.18: a client of NFSv4.0 has sent the OPEN that an open-owner begins with.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::open_confirm::{Args, ResOk};
use nfs_wire::v4::status::Status;

use crate::operation::{Needs, Operation};
use crate::v4::compound::Compound;
use crate::v4::files::{file_of, refused};

pub(super) const OPERATION: Operation<Number> =
    Operation { needs: Needs::FileHandle, ..Operation::v4_of_no_share(Number::OpenConfirm) };

pub(super) fn handle(c: &Compound<'_>, args: Args) -> Result<ResOk, Status> {
    let object = c.object()?;
    let sent = c.stateid(args.open_stateid)?;
    let confirmed = c.client()?.files.with(|holdings| holdings.confirm(sent, file_of(object)));
    let open_stateid = confirmed.map_err(refused)?;
    Ok(ResOk { open_stateid })
}

//! COMMIT, RFC 8881 18.3: the whole file is put on stable storage, whatever range is given.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::commit::{Args, ResOk};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Verifier;

use super::data::check_regular;
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> =
    Operation { changes: true, result_bytes: 48, ..Operation::v4(Number::Commit, "Commit") };

pub(super) async fn handle(c: &Compound<'_>, _: Args) -> Result<ResOk, Status> {
    let object = c.object_to_change()?;
    check_regular(&object.node)?;
    object.share.commit(&object.call, &object.file()).await.map_err(status::v4)?;
    Ok(ResOk { verifier: Verifier(c.server().write_verifier) })
}

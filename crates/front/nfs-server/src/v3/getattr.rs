//! GETATTR, RFC 1813 3.3.1.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::getattr::{Args, Res, ResOk};
use nfs_wire::v3::types::FileHandle;

use super::for_object::ForObject;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::{Callers, Operation};

pub(super) const OPERATION: Operation<Procedure> =
    Operation { callers: Callers::Mounting, ..Operation::v3(Procedure::GetAttr, "GetAttr") };

impl ForObject for Args {
    fn object(&self) -> &FileHandle {
        &self.object
    }
}

pub(super) async fn handle(_: &Request<'_>, object: &CalledObject<'_>, _: Args) -> Res {
    let attributes = object.look().await?;
    Ok(ResOk { object_attributes: object.told(&attributes) })
}

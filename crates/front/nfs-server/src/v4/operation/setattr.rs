//! SETATTR, RFC 8881 18.30.

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::setattr::{Args, Res};
use nfs_wire::v4::status::Status;

use crate::operation::Operation;
use crate::v4::attributes;
use crate::v4::compound::Compound;
use crate::v4::set_attributes::{AttributesToSet, Of};

pub(super) const OPERATION: Operation<Number> =
    Operation { changes: true, result_bytes: 64, ..Operation::v4(Number::SetAttr, "SetAttr") };

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Res {
    match set(c, &args).await {
        Ok(res) => res,
        Err(status) => status.into(),
    }
}

async fn set(c: &Compound<'_>, args: &Args<'_>) -> Result<Res, Status> {
    let object = c.object_to_change()?;
    let supported = attributes::supported_in(c.minor_version, &object.share);
    let wanted = AttributesToSet::decode(&args.attributes, supported, Of::Existing, c.names())?;
    // 18.30.3: the stateid matters only for the size.
    let file = match wanted.set.size {
        Some(_) => c.file(args.stateid, ShareAccess::WRITE)?,
        None => object.file(),
    };
    let (status, attributes_set) = wanted.apply(object, &file).await;
    Ok(Res { status, attributes_set })
}

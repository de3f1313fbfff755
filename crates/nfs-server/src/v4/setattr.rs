//! SETATTR, RFC 8881 18.30.

use nfs_wire::v4::setattr::{Args, Res};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Stateid;

use super::compound::Compound;
use super::set_attributes::{Of, Wanted};
use super::{attributes, data_file};
use share::Access;

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Res {
    match set(c, &args).await {
        Ok(res) => res,
        Err(status) => status.into(),
    }
}

async fn set(c: &Compound<'_>, args: &Args<'_>) -> Result<Res, Status> {
    let object = c.object_to_change()?;
    let supported = attributes::supported(c.minor_version, object.share.capabilities());
    let wanted = Wanted::decode(&args.attributes, supported, Of::Existing)?;
    // 18.30.3: the stateid counts for the size; for all else it may say whose delegation is not in the way.
    let stateid = if wanted.set.size.is_some() { c.stateid(args.stateid)? } else { Stateid::ANONYMOUS };
    let file = data_file::of(c, object, stateid, Access::WRITE_DATA)?;
    let (status, attributes_set) = wanted.apply(object, &file).await;
    Ok(Res { status, attributes_set })
}

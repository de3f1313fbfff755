//! VERIFY, RFC 8881 18.31.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::attr::{Attribute, Attributes};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::verify::Args;

use crate::operation::{Callers, Operation};
use crate::v4::compound::Compound;
use crate::v4::describe;
use crate::v4::place::Place;

pub(super) const OPERATION: Operation<Number> =
    Operation { callers: Callers::Mounting, ..Operation::v4(Number::Verify, "Verify") };

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Result<(), Status> {
    if is_same(c, &args.attributes).await? { Ok(()) } else { Err(Status::NotSame) }
}

/// Whether the current object has these attributes.
///
/// # Errors
/// [`Status::AttrNotSupp`] for attributes that the object does not support; [`Status::Inval`] for attributes that can
/// only be set, and for rdattr_error (18.31.3).
pub(super) async fn is_same(c: &Compound<'_>, attributes: &Attributes<'_>) -> Result<bool, Status> {
    let place = c.place()?;
    let wanted = attributes.set;
    if let Place::Absent(absent) = place {
        absent.check_compared(wanted)?;
    }
    if !wanted.difference(describe::supported(c, place)).is_empty() {
        return Err(Status::AttrNotSupp);
    }
    if wanted.contains(Attribute::RdattrError) {
        return Err(Status::Inval);
    }
    let values = attributes.values().collect::<Result<Vec<_>, _>>()?;
    let told = describe::tell(c, place, wanted).await?;
    Ok(values.iter().all(|value| told.subject.value(value.attribute()).as_ref() == Some(value)))
}

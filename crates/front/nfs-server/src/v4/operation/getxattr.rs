//! GETXATTR, RFC 8276 8.4.1.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::getxattr::{Args, ResOk};
use nfs_wire::v4::status::Status;
use nfs_wire::xdr::{Encode, Writer};

use super::xattr;
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;

/// The most bytes of a value, as in Linux (XATTR_SIZE_MAX).
const VALUE_BYTES_MAX: usize = 64 << 10;

/// A [`ResOk`] that owns its value.
pub(super) struct Value(Vec<u8>);

impl Encode for Value {
    fn encode(&self, writer: &mut Writer<'_>) {
        ResOk { value: &self.0 }.encode(writer);
    }
}

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::GetXattr, "GetXattr");

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Result<Value, Status> {
    let object = c.object()?;
    xattr::check(object)?;
    let name = xattr::checked(args.name)?;
    c.take_room(c.room().min(VALUE_BYTES_MAX)).await;
    object.share.xattr(&object.call, &object.node, name).await.map(Value).map_err(status::v4)
}

//! READLINK, RFC 8881 18.24.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::readlink::ResOk;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Text;
use nfs_wire::xdr::{Encode, Writer};
use storage::FileKind;

use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;

/// A [`ResOk`] that owns its text.
pub(super) struct Link(Vec<u8>);

impl Encode for Link {
    fn encode(&self, writer: &mut Writer<'_>) {
        ResOk { link: Text(&self.0) }.encode(writer);
    }
}

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::ReadLink, "ReadLink");

pub(super) async fn handle(c: &Compound<'_>) -> Result<Link, Status> {
    let link = c.object()?;
    if link.node.kind() != FileKind::Symlink {
        return Err(Status::WrongType);
    }
    link.share.read_link(&link.call, &link.node).await.map(Link).map_err(status::v4)
}

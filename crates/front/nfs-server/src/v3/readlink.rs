//! READLINK, RFC 1813 3.3.5.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::attr::Attributes;
use nfs_wire::v3::readlink::{Args, ResOk};
use nfs_wire::v3::types::{FileHandle, Path, ResWithAttributes};
use nfs_wire::xdr::{Encode, Writer};

use super::for_object::ForObject;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::status;

/// A [`ResOk`] that owns its text.
pub(super) struct Text {
    symlink_attributes: Option<Attributes>,
    data: Vec<u8>,
}

impl Encode for Text {
    fn encode(&self, writer: &mut Writer<'_>) {
        ResOk { symlink_attributes: self.symlink_attributes, data: Path(&self.data) }.encode(writer);
    }
}

pub(super) const OPERATION: Operation<Procedure> = Operation::v3(Procedure::ReadLink, "ReadLink");

impl ForObject for Args {
    fn object(&self) -> &FileHandle {
        &self.symlink
    }
}

pub(super) async fn handle(_: &Request<'_>, symlink: &CalledObject<'_>, _: Args) -> ResWithAttributes<Text> {
    match symlink.share.read_link(symlink.call, &symlink.node).await {
        Ok(data) => Ok(Text { symlink_attributes: symlink.attributes().await, data }),
        Err(error) => Err(symlink.failed(status::of(error)).await),
    }
}

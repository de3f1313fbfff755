//! READLINK, RFC 1813 3.3.5.

use nfs_wire::v3::attr::Attributes;
use nfs_wire::v3::readlink::{Args, ResOk};
use nfs_wire::v3::types::{Path, ResWithAttributes};
use nfs_wire::xdr::{Encode, Writer};

use crate::rpc_dispatch::Request;
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

pub(super) async fn handle(request: &Request<'_>, args: Args) -> ResWithAttributes<Text> {
    let symlink = request.object(&args.symlink).await?;
    match symlink.share.read_link(&symlink.node).await {
        Ok(data) => Ok(Text { symlink_attributes: symlink.attributes().await, data }),
        Err(error) => Err(symlink.failed(status::of(error)).await),
    }
}

//! READDIR, RFC 1813 3.3.16.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::readdir::Args;
use nfs_wire::v3::types::{FileHandle, ResWithAttributes};

use super::for_object::ForObject;
use super::listing::{Ask, Encoded, list};
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Procedure> = Operation::v3(Procedure::ReadDir, "ReadDir");

impl ForObject for Args {
    fn object(&self) -> &FileHandle {
        &self.dir
    }
}

pub(super) async fn handle(
    request: &Request<'_>,
    dir: &CalledObject<'_>,
    args: Args,
) -> ResWithAttributes<Encoded> {
    list(request, dir, &Ask { cookie: args.cookie, bytes_max: args.count, plus: None }).await
}

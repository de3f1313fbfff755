//! READDIRPLUS, RFC 1813 3.3.17.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::readdirplus::Args;
use nfs_wire::v3::types::{FileHandle, ResWithAttributes};

use super::for_object::ForObject;
use super::listing::{Ask, Encoded, list};
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Procedure> = Operation::v3(Procedure::ReadDirPlus, "ReadDirPlus");

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
    let ask = Ask { cookie: args.cookie, bytes_max: args.max_count, plus: Some(args.dir_count) };
    list(request, dir, &ask).await
}

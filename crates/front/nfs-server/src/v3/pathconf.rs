//! PATHCONF, RFC 1813 3.3.20.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::pathconf::{Args, Res, ResOk};
use nfs_wire::v3::types::{FileHandle, NAME_BYTES_MAX};

use super::for_object::ForObject;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::{Callers, Operation};

/// The most links to one object: a value that all local file systems of Linux support.
const LINKS_MAX: u32 = 65_000;

pub(super) const OPERATION: Operation<Procedure> =
    Operation { callers: Callers::Mounting, ..Operation::v3(Procedure::PathConf, "PathConf") };

impl ForObject for Args {
    fn object(&self) -> &FileHandle {
        &self.object
    }
}

pub(super) async fn handle(_: &Request<'_>, object: &CalledObject<'_>, _: Args) -> Res {
    Ok(ResOk {
        object_attributes: object.attributes().await,
        links_max: LINKS_MAX,
        name_bytes_max: u32::try_from(NAME_BYTES_MAX).unwrap_or(u32::MAX),
        no_trunc: true,
        chown_restricted: true,
        case_insensitive: false,
        case_preserving: true,
    })
}

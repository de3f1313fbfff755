//! FSINFO, RFC 1813 3.3.19.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::fsinfo::{Args, Properties, Res, ResOk};
use nfs_wire::v3::types::{FileHandle, Time};

use super::for_object::ForObject;
use crate::attributes::FILE_BYTES_MAX;
use crate::call::Request;
use crate::config::TRANSFER_BYTES_MAX;
use crate::object::CalledObject;
use crate::operation::{Callers, Operation};

/// The size of a transfer should be a multiple of this: a page.
const TRANSFER_MULTIPLE_BYTES: u32 = 4096;
/// The preferred size of a listing.
const READDIR_BYTES: u32 = 64 * 1024;
/// Times have a resolution of one nanosecond.
const TIME_DELTA: Time = Time { seconds: 0, nanoseconds: 1 };

pub(super) const OPERATION: Operation<Procedure> =
    Operation { callers: Callers::Mounting, ..Operation::v3(Procedure::FsInfo, "FsInfo") };

impl ForObject for Args {
    fn object(&self) -> &FileHandle {
        &self.root
    }
}

pub(super) async fn handle(_: &Request<'_>, object: &CalledObject<'_>, _: Args) -> Res {
    Ok(ResOk {
        object_attributes: object.attributes().await,
        read_bytes_max: TRANSFER_BYTES_MAX,
        read_bytes_preferred: TRANSFER_BYTES_MAX,
        read_bytes_multiple: TRANSFER_MULTIPLE_BYTES,
        write_bytes_max: TRANSFER_BYTES_MAX,
        write_bytes_preferred: TRANSFER_BYTES_MAX,
        write_bytes_multiple: TRANSFER_MULTIPLE_BYTES,
        readdir_bytes_preferred: READDIR_BYTES,
        file_bytes_max: FILE_BYTES_MAX.min(object.share.file_bytes_max()),
        time_delta: TIME_DELTA,
        properties: Properties::LINK
            | Properties::SYMLINK
            | Properties::HOMOGENEOUS
            | Properties::CAN_SET_TIME,
    })
}

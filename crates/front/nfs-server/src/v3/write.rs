//! WRITE, RFC 1813 3.3.7: the data is written directly from the receive buffer.

use bytes::Bytes;
use nfs_wire::v3::Procedure;
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{FileHandle, StableHow};
use nfs_wire::v3::write::{Args, Res, ResOk};
use share::{Direction, Turn, Written};
use storage::Stability;

use super::for_object::ForObject;
use crate::attributes::FILE_BYTES_MAX;
use crate::call::Request;
use crate::config::TRANSFER_BYTES_MAX;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::status;

pub(super) const OPERATION: Operation<Procedure> = Operation {
    changes: true,
    is_kept: true,
    ..Operation::v3(Procedure::Write, "Write").with(Turn::ByData(Direction::Write))
};

impl ForObject for Args<'_> {
    fn object(&self) -> &FileHandle {
        &self.file
    }
}

pub(super) async fn handle(request: &Request<'_>, file: &CalledObject<'_>, args: Args<'_>) -> Res {
    match write(request, file, &args).await {
        // The attributes before the write are omitted. With several concurrent writes they would belong to another
        // moment, and a client that compares them would take its own writes for changes by others.
        Ok(written) => Ok(ResOk {
            file_wcc: file.wcc_after().await,
            count: u32::try_from(written.count).unwrap_or(u32::MAX),
            committed: committed(written.stability),
            verifier: request.connection.server.write_verifier,
        }),
        Err(status) => Err(file.failed_change(status).await),
    }
}

async fn write(request: &Request<'_>, file: &CalledObject<'_>, args: &Args<'_>) -> Result<Written, Status> {
    let data = data(request, args)?;
    let end = args.offset.checked_add(data.len() as u64);
    if end.is_none_or(|end| end > FILE_BYTES_MAX) {
        return Err(Status::FBig);
    }
    let stability = stability(args.stable);
    let written = file.share.write(file.call, &file.file(), args.offset, data, stability).await;
    written.map_err(|error| match status::of(error) {
        // RFC 1813 3.3.7: NFS3ERR_INVAL for an object that is not a regular file.
        Status::IsDir => Status::Inval,
        status => status,
    })
}

/// The data to write, still in the record: `count` bytes, or as many as this server writes at a time.
fn data(request: &Request<'_>, args: &Args<'_>) -> Result<Bytes, Status> {
    let count = usize::try_from(args.count.min(TRANSFER_BYTES_MAX)).unwrap_or(usize::MAX);
    let data = args.data.get(..count).ok_or(Status::Inval)?; // the call has less data than its count says
    Ok(request.record.slice_ref(data))
}

fn stability(stable: StableHow) -> Stability {
    match stable {
        StableHow::Unstable => Stability::Unstable,
        StableHow::DataSync => Stability::Data,
        StableHow::FileSync => Stability::File,
    }
}

fn committed(stability: Stability) -> StableHow {
    match stability {
        Stability::Unstable => StableHow::Unstable,
        Stability::Data => StableHow::DataSync,
        Stability::File => StableHow::FileSync,
    }
}

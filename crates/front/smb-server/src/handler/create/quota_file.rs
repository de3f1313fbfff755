//! Opens the file that stands for the quotas of a share. Whoever may use the share may open it; what may be seen and changed
//! through it is asked later.

use std::sync::Arc;

use net::Buffer;
use parking_lot::Mutex;
use smb_wire::create::{CreateDisposition, CreateOptions, Request, Response};
use smb_wire::{AccessMask, FileAttributes, NtStatus};

use super::access::Desired;
use crate::context::OnShare;
use crate::state::open::{Open, OpenTarget};
use crate::status::Failure;

/// Everything that an open of a file can be granted.
const ALL: AccessMask = AccessMask::from_bits_retain(0x001F_01FF);
/// What the file is on Windows, as smb2.create.quota-fake-file of Samba's suite has it.
const ATTRIBUTES: FileAttributes = FileAttributes::HIDDEN
    .union(FileAttributes::SYSTEM)
    .union(FileAttributes::DIRECTORY)
    .union(FileAttributes::ARCHIVE);

/// Answers the request.
pub(super) fn open(ctx: &OnShare<'_>, request: &Request<'_>) -> Result<Buffer, Failure> {
    if ctx.share.snapshot().is_some() {
        return Err(NtStatus::OBJECT_NAME_NOT_FOUND.into());
    }
    let open = Open::new(
        ctx.server.file_id(),
        Arc::clone(ctx.tree),
        OpenTarget::Quotas(Mutex::default()),
        granted(request)?,
        request.name.decode()?,
        request.create_options,
        false,
    );
    ctx.add_open(&open)?;
    let response = Response::of_no_file(open.id, 0, ATTRIBUTES);
    let mut reply = ctx.reply();
    reply.append_with(|out, _| response.encode(out))?;
    Ok(reply)
}

/// The access that is granted. The file is always there, and stays as it is.
fn granted(request: &Request<'_>) -> Result<AccessMask, NtStatus> {
    let desired = Desired::of(request.desired_access)?;
    match request.create_disposition {
        CreateDisposition::Open | CreateDisposition::OpenIf => {}
        CreateDisposition::Create => return Err(NtStatus::OBJECT_NAME_COLLISION),
        CreateDisposition::Unknown(_) => return Err(NtStatus::INVALID_PARAMETER),
        _ => return Err(NtStatus::ACCESS_DENIED),
    }
    if request.create_options.contains(CreateOptions::DIRECTORY_FILE) {
        return Err(NtStatus::NOT_A_DIRECTORY);
    }
    if request.create_options.contains(CreateOptions::DELETE_ON_CLOSE) {
        return Err(NtStatus::CANNOT_DELETE);
    }
    let all = share::Access::from_bits_truncate(ALL.bits());
    Ok(AccessMask::from_bits_retain(desired.grant_maker(all).bits()))
}

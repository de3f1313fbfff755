//! Deletion: FileDispositionInformation and its Ex form. [MS-FSA] 2.1.5.15.3.

use smb_wire::fscc::file_info::{Disposition, DispositionEx, DispositionFlags};
use smb_wire::{AccessMask, NtStatus};

use super::{length_mismatch, require};
use crate::context::OnShare;
use crate::state::open::Open;
use crate::status::Failure;

/// The flags that are not supported: names that disappear while the file is open, and undoing the delete option of
/// CREATE.
const NOT_SUPPORTED: DispositionFlags = DispositionFlags::POSIX_SEMANTICS.union(DispositionFlags::ON_CLOSE);

/// FileDispositionInformation
pub(super) async fn set(ctx: &OnShare<'_>, open: &Open, buffer: &[u8]) -> Result<(), Failure> {
    let Disposition { delete_pending } = Disposition::decode(buffer).map_err(length_mismatch)?;
    mark(ctx, open, delete_pending).await
}

/// FileDispositionInformationEx
pub(super) async fn set_ex(ctx: &OnShare<'_>, open: &Open, buffer: &[u8]) -> Result<(), Failure> {
    let DispositionEx { flags } = DispositionEx::decode(buffer).map_err(length_mismatch)?;
    if flags.intersects(NOT_SUPPORTED) {
        return Err(NtStatus::NOT_SUPPORTED.into());
    }
    mark(ctx, open, flags.contains(DispositionFlags::DELETE)).await
}

async fn mark(ctx: &OnShare<'_>, open: &Open, delete: bool) -> Result<(), Failure> {
    require(open, AccessMask::DELETE)?;
    let is_root = ctx.share.location(open.file()?).is_none();
    if delete && is_root && ctx.tree.home.is_some() {
        return Err(NtStatus::CANNOT_DELETE.into());
    }
    ctx.share.set_delete_pending(ctx.call, open.file()?, delete).await?;
    open.write_down().await
}

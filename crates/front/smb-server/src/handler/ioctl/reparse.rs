//! FSCTL_GET_REPARSE_POINT, FSCTL_SET_REPARSE_POINT and FSCTL_DELETE_REPARSE_POINT. [MS-FSA] 2.1.5.10.14, 2.1.5.10.37,
//! 2.1.5.10.3. The only reparse points are symbolic links.

use net::Buffer;
use share::Access;
use smb_wire::NtStatus;
use smb_wire::fscc::reparse::ReparsePoint;
use smb_wire::ioctl::Request;
use storage::{FileKind, NodeRef};

use super::{require_room, respond};
use crate::context::OnShare;
use crate::link::{self, LinkTarget};
use crate::name::Path;
use crate::state::open::Open;
use crate::status::Failure;

/// Answers with the target of a link. "Copy as much of Open.File.ReparseData as can fit": clients that gave too little room
/// learn from the header how much it takes.
pub(super) async fn get(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>) -> Result<Buffer, Failure> {
    let link = link_of(open)?;
    require_room(request, ReparsePoint::HEADER_LEN, NtStatus::BUFFER_TOO_SMALL)?;
    let text = ctx.share.read_link(ctx.call, link).await?;
    let mut point = LinkTarget::of(&text)?.to_reparse_point()?;
    if require_room(request, point.len(), NtStatus::BUFFER_OVERFLOW).is_err() {
        point.truncate(usize::try_from(request.max_output_response).unwrap_or(usize::MAX));
        ctx.set_status(NtStatus::BUFFER_OVERFLOW);
    }
    respond(ctx, request, &point)
}

/// Turns the object into a symbolic link. It must have been made by the CREATE of this open, as clients do that make links:
/// the server cannot give a file back its data when a link ends.
pub(super) async fn set(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>) -> Result<Buffer, Failure> {
    let file = open.file()?;
    file.require_any(Access::WRITE_DATA | Access::WRITE_ATTRIBUTES)?;
    let target = link::text_of(request.input, depth_of(open))?;
    if !open.state.lock().take_new() {
        return Err(NtStatus::NOT_SUPPORTED.into());
    }
    let link = match ctx.share.turn_into_link(ctx.call, file, target).await {
        Ok(link) => link,
        Err(error) => {
            open.state.lock().is_new = true;
            return Err(why_not(error));
        }
    };
    open.become_link(link).await;
    respond(ctx, request, &[])
}

/// Refuses to turn a link into the file that it never was.
pub(super) fn delete(open: &Open) -> Result<Buffer, Failure> {
    link_of(open)?;
    Err(NtStatus::NOT_SUPPORTED.into())
}

/// The link that is open.
///
/// # Errors
/// STATUS_NOT_A_REPARSE_POINT: "If Open.File.ReparseTag is empty".
fn link_of(open: &Open) -> Result<&NodeRef, Failure> {
    let node = open.file()?.node();
    if node.kind() == FileKind::Symlink { Ok(node) } else { Err(NtStatus::NOT_A_REPARSE_POINT.into()) }
}

/// How many directories lie between the root of the tree connect and the object, by the path that the client gave.
fn depth_of(open: &Open) -> usize {
    let names = Path::parse(&open.path.as_str().into()).map_or(0, |path| path.components.len());
    names.saturating_sub(1).saturating_sub(usize::from(open.tree.home.is_some()))
}

/// Why an object did not become a link. Its name is there already: only the target can be too long.
fn why_not(error: share::Error) -> Failure {
    match error {
        share::Error::Storage(storage::Error::NameTooLong) => NtStatus::NAME_TOO_LONG.into(),
        error => error.into(),
    }
}

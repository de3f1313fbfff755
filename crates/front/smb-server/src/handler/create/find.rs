//! Resolves the path of a CREATE. [MS-SMB2] 3.3.5.9; [MS-FSA] 2.1.5.1.

use share::{Case, Reached, Walk};
use smb_wire::NtStatus;
use smb_wire::create::CreateOptions;
use smb_wire::error_response::{SymbolicLink, SymlinkFlags};
use storage::{FileKind, NodeRef, Want};

use super::wish::Wish;
use crate::context::OnShare;
use crate::link::LinkTarget;
use crate::status::Failure;

/// Resolves the path. With FILE_OPEN_REPARSE_POINT, a link at its end is opened itself.
///
/// # Errors
/// STATUS_STOPPED_ON_SYMLINK for any other link: the client follows it.
pub(super) async fn find(ctx: &OnShare<'_>, wish: &Wish) -> Result<Walk, Failure> {
    let path = &wish.path.components;
    if ctx.tree.home.is_some() && path.len() == 1 {
        return find_home(ctx, wish).await;
    }
    // The name of a home is the server's, and may be that of a link.
    let trusted = usize::from(ctx.tree.home.is_some());
    let itself = wish.options.contains(CreateOptions::OPEN_REPARSE_POINT);
    let reached = ctx.share.reach(ctx.call, path.clone(), trusted, Case::Insensitive, Want::FLAGS).await;
    match reached.map_err(on_the_way)? {
        Reached::End(Walk::Found(found)) if !itself && found.attributes.kind == FileKind::Symlink => {
            Err(stopped(ctx, wish, &found.node, 0).await?)
        }
        Reached::End(walk) => Ok(walk),
        Reached::Link { link, behind } => Err(stopped(ctx, wish, &link, behind).await?),
    }
}

/// The failure of a request whose path leads to a link which `behind` other names follow. [MS-SMB2] 2.2.2.2.1.
async fn stopped(ctx: &OnShare<'_>, wish: &Wish, link: &NodeRef, behind: usize) -> Result<Failure, Failure> {
    let text = ctx.share.read_link(ctx.call, link).await?;
    let target = LinkTarget::of(&text)?;
    let data = SymbolicLink {
        unparsed_path_bytes: wish.path.unparsed_bytes(behind),
        substitute_name: target.substitute_name(),
        print_name: target.print_name(),
        flags: if target.is_relative() { SymlinkFlags::RELATIVE } else { SymlinkFlags::empty() },
    };
    Ok(Failure::with_data(NtStatus::STOPPED_ON_SYMLINK, &data.encode()?))
}

/// Finds the root of a tree connect that is a home directory. The root has no name there, so that it can neither be renamed
/// nor removed.
async fn find_home(ctx: &OnShare<'_>, wish: &Wish) -> Result<Walk, Failure> {
    if wish.delete_on_close() {
        return Err(NtStatus::CANNOT_DELETE.into());
    }
    let path = wish.path.components.clone();
    match ctx.share.walk(ctx.call, path, Case::Insensitive, Want::FLAGS).await.map_err(on_the_way)? {
        Walk::Found(home) => Ok(Walk::Found(home.without_name())),
        Walk::Missing { .. } => Err(NtStatus::OBJECT_PATH_NOT_FOUND.into()),
    }
}

/// Distinguishes a missing directory on the path, or one that is not a directory, from a missing file.
fn on_the_way(error: share::Error) -> Failure {
    match error {
        share::Error::Storage(storage::Error::NotFound | storage::Error::NotDirectory) => {
            NtStatus::OBJECT_PATH_NOT_FOUND.into()
        }
        error => error.into(),
    }
}

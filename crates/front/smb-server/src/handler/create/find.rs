//! Resolves the path of a CREATE. [MS-SMB2] 3.3.5.9; [MS-FSA] 2.1.5.1.

use share::{Case, Walk};
use smb_wire::NtStatus;
use smb_wire::create::CreateOptions;
use storage::Want;

use super::wish::Wish;
use crate::context::OnShare;
use crate::status::Failure;

/// Resolves the path. With FILE_OPEN_REPARSE_POINT, a link at its end is opened itself; otherwise links are followed
/// here, as long as they stay in the share.
pub(super) async fn find(ctx: &OnShare<'_>, wish: &Wish) -> Result<Walk, Failure> {
    let share = ctx.share;
    let path = &wish.path.components;
    if ctx.tree.home.is_some() && path.len() == 1 {
        return find_home(ctx, wish).await;
    }
    let nofollow = wish.options.contains(CreateOptions::OPEN_REPARSE_POINT);
    let Some((name, parents)) = path.split_last().filter(|_| nofollow) else {
        let walk = share.walk(ctx.call, path.clone(), Case::Insensitive, Want::FLAGS).await;
        return walk.map_err(on_the_way);
    };
    let walk = share.walk(ctx.call, parents.to_vec(), Case::Insensitive, Want::empty()).await;
    let Walk::Found(dir) = walk.map_err(on_the_way)? else {
        return Err(NtStatus::OBJECT_PATH_NOT_FOUND.into());
    };
    match share.lookup(ctx.call, &dir.node, name, Case::Insensitive, Want::FLAGS).await {
        Ok(found) => Ok(Walk::Found(found)),
        Err(share::Error::Storage(storage::Error::NotFound)) => {
            Ok(Walk::Missing { dir: dir.node, name: name.clone() })
        }
        Err(error) => Err(on_the_way(error)),
    }
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

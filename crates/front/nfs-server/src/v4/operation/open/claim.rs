//! The file of an OPEN: a name in the current directory, or the current filehandle (RFC 8881 18.16.3).

use nfs_proto::v4::holdings::Through;
use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::open::{Claim, How};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Name, Stateid};
use storage::Want;

use super::create;
use super::target::{FileToOpen, existing, look_up, unchanged};
use super::wish::Wish;
use crate::object::Object;
use crate::status;
use crate::v4::compound::Compound;
use crate::v4::files::{file_of, unusable};
use crate::v4::operation::directory;

/// Finds the file, or creates it.
pub(super) async fn find(c: &Compound<'_>, wish: &Wish<'_>) -> Result<FileToOpen, Status> {
    let object = c.object()?;
    match wish.claim.0 {
        Claim::Null(name) => named(c, object, name, wish).await,
        Claim::DelegateCur(delegation, name) => {
            let target = named(c, object, name, wish).await?;
            check_delegated(c, delegation, &target.object, wish.access)?;
            Ok(target)
        }
        Claim::Fh | Claim::Previous(_) => current(object).await,
        Claim::DelegCurFh(delegation) => {
            check_delegated(c, delegation, object, wish.access)?;
            current(object).await
        }
        // "The server MAY support CLAIM_DELEGATE_PREV and/or CLAIM_DELEG_PREV_FH".
        Claim::DelegatePrev(_) | Claim::DelegPrevFh => Err(Status::NotSupp),
    }
}

/// The current filehandle. A caller that has it may open the file if the permissions of the file allow that, whatever
/// those of its directory are.
async fn current(object: &Object) -> Result<FileToOpen, Status> {
    let found = object.share.found(&object.call, &object.node, Want::FLAGS).await.map_err(status::v4)?;
    let change = unchanged(&found.attributes);
    Ok(existing(object.clone(), found, change))
}

async fn named(
    c: &Compound<'_>,
    dir: &Object,
    name: Name<'_>,
    wish: &Wish<'_>,
) -> Result<FileToOpen, Status> {
    directory::check(dir)?;
    match &wish.how {
        How::Create(how) => create::create(c, dir, name.checked()?, how).await,
        How::NoCreate => look_up(dir, directory::existing(name)?).await,
    }
}

/// Whether the client has a delegation of this file that allows such an open.
fn check_delegated(
    c: &Compound<'_>,
    delegation: Stateid,
    object: &Object,
    access: ShareAccess,
) -> Result<(), Status> {
    let sent = c.stateid(delegation)?;
    c.client()?.files.with(|holdings| match holdings.for_data(sent, file_of(object), access) {
        Ok(Through::Delegation(_)) => Ok(()),
        Ok(Through::Open(_)) => Err(Status::BadStateId),
        Err(error) => Err(unusable(error)),
    })
}

//! SHARE and UNSHARE: reservations of whole files, as programs of DOS make them.

use nfs_wire::nlm::{Access as WireAccess, Mode, Procedure, ShareArgs, Status};
use share::{Access, OpenRequest, Sharing, Turn};

use super::arrive;
use super::state::{Held, NlmState};
use crate::call::Request;
use crate::counted::Counted;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::status;

pub(super) const SHARE: Operation<Procedure> =
    Operation::nlm(Procedure::Share, 4, "Share").with(Turn::Charged);
pub(super) const UNSHARE: Operation<Procedure> =
    Operation::nlm(Procedure::Unshare, 5, "Unshare").with(Turn::Charged);

pub(super) async fn share(
    request: &Request<'_>,
    nlm: &NlmState,
    counted: &Counted<'_>,
    args: &ShareArgs<'_>,
) -> Result<Status, Status> {
    let file = arrive::file(request, counted, &args.share.file).await?;
    let (from, name) = (request.connection.client, args.share.caller.0);
    nlm.recovery.check(from.into(), name, args.reclaim)?;
    let host = nlm.enter(from, name, 0).await?;
    let held = open(request, &file, args).await?;
    let reserved =
        nlm.with(|hosts| hosts.reserve(host, arrive::key(&file), args.share.owner.0, held.clone()));
    match reserved {
        Ok(replaced) => {
            if let Some(replaced) = replaced {
                replaced.end(&[]).await;
            }
            Ok(Status::Granted)
        }
        Err(_) => {
            held.end(&[]).await;
            Err(Status::DeniedNoLocks)
        }
    }
}

/// Opens the file as the reservation says.
async fn open(request: &Request<'_>, file: &CalledObject<'_>, args: &ShareArgs<'_>) -> Result<Held, Status> {
    let access = access(args.share.access);
    if access.contains(Access::WRITE_DATA) && file.is_read_only() {
        return Err(Status::RoFs);
    }
    let found = arrive::readable(file).await?;
    let may = file.share.maximal_access(&file.call.caller, &found);
    let is_owner = found.security.is_none() && found.attributes.uid == file.call.caller.identity.uid();
    if !is_owner && access.contains(Access::WRITE_DATA) && !may.contains(Access::WRITE_DATA) {
        return Err(Status::Failed);
    }
    let open = OpenRequest {
        is_reclaim: args.reclaim,
        openers: file.call.caller.openers,
        ..OpenRequest::new(access, sharing(args.share.mode))
    };
    let open = file.share.open_settled(file.call, &found, &open).await.map_err(status::nlm)?;
    let (share, uid) = (file.share.clone(), file.call.caller.identity.uid());
    let callers = &request.connection.callers;
    let (client, certificate_names) = (callers.address(), callers.certificate_names());
    Ok(Held { share, open, client, certificate_names, uid })
}

pub(super) async fn unshare(
    request: &Request<'_>,
    nlm: &NlmState,
    counted: &Counted<'_>,
    args: &ShareArgs<'_>,
) -> Result<Status, Status> {
    let key = arrive::key(&arrive::file(request, counted, &args.share.file).await?);
    let held = nlm.with(|hosts| {
        let host = hosts.find(&request.connection.client.into(), args.share.caller.0)?;
        hosts.unreserve(host, key, args.share.owner.0)
    });
    if let Some(held) = held {
        held.end(&[]).await;
    }
    Ok(Status::Granted)
}

fn access(access: WireAccess) -> Access {
    let (reads, writes) = (Access::READ_DATA, Access::WRITE_DATA | Access::APPEND_DATA);
    match access {
        WireAccess::None => Access::READ_ATTRIBUTES,
        WireAccess::Read => reads,
        WireAccess::Write => writes,
        WireAccess::Both => reads | writes,
    }
}

/// What others may still do. Nobody is kept from removing the file.
fn sharing(mode: Mode) -> Sharing {
    match mode {
        Mode::DenyNone => Sharing::all(),
        Mode::DenyRead => Sharing::WRITE | Sharing::DELETE,
        Mode::DenyWrite => Sharing::READ | Sharing::DELETE,
        Mode::DenyBoth => Sharing::DELETE,
    }
}

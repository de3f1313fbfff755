//! FSCTL_LMR_REQUEST_RESILIENCY: makes an open outlive its connection, whatever the client caches. [MS-SMB2]
//! 3.3.5.15.9.

use net::Buffer;
use smb_proto::dialect::Dialect;
use smb_proto::durable::resilient;
use smb_proto::session::Principal;
use smb_wire::create::{CreateAction, ShareAccess};
use smb_wire::fscc::fsctl::ResiliencyRequest;
use smb_wire::ioctl::Request;
use smb_wire::{Guid, NtStatus};

use super::respond;
use crate::context::Admitted;
use crate::login::Login;
use crate::state::durable::Origin;
use crate::state::open::Open;
use crate::status::Failure;

/// Answers the request.
pub(super) fn handle(ctx: &Admitted<'_>, request: &Request<'_>) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let negotiated = ctx.connection.negotiated.get().ok_or(NtStatus::INVALID_PARAMETER)?;
    if negotiated.dialect == Dialect::Smb202 {
        return Err(NtStatus::INVALID_DEVICE_REQUEST.into());
    }
    let asked = ResiliencyRequest::decode(request.input).map_err(|_| NtStatus::INVALID_PARAMETER)?;
    // Without a user, the client could not show later that the open is its own. Opens of snapshots do not outlive their connection.
    if open.file().is_err() || open.view().is_some() || ctx.login.principal != Principal::User {
        return Err(NtStatus::NOT_SUPPORTED.into());
    }
    let before = open.durable.get().and_then(|durable| durable.durability());
    let durability = resilient(before, asked.timeout_ms, &ctx.server.config.durable)?;
    match open.durable.get() {
        Some(durable) => durable.set_durability(durability),
        None => {
            let origin = origin(&open, negotiated.client_guid, ctx.login);
            open.make_durable(&ctx.server.durable, origin, Some(durability), false);
            ctx.server.durable.enter(&open, ctx.session.id);
            if open.closed.is_set() {
                // Another channel closed it before it was in the table, so no other code removes it.
                open.leave_durable();
                return Err(NtStatus::FILE_CLOSED.into());
            }
        }
    }
    respond(ctx, request, &[])
}

/// The origin of an open whose CREATE asked for no durability.
fn origin(open: &Open, client_guid: Guid, login: &Login) -> Origin {
    Origin {
        create_guid: Guid::ZERO,
        client_guid,
        owner: login.user.clone(),
        owner_sid: login.opener().sid,
        lease: None,
        app_instance: None,
        app_instance_version: None,
        desired_access: open.granted_access,
        share_access: ShareAccess::empty(),
        action: CreateAction::Opened,
        handle: None,
    }
}

//! Acknowledgments of oplock and lease breaks. [MS-SMB2] 3.3.5.22.

use net::Buffer;
use share::{AcknowledgeError, Caching, Turn};
use smb_wire::create::OplockLevel;
use smb_wire::create_context::LeaseState;
use smb_wire::oplock_break::{OplockBreak, Request, Response};
use smb_wire::{Command, NtStatus};

use crate::context::OnShare;
use crate::front;
use crate::operation::{Needs, Operation};
use crate::state::lease::{self, LeaseId};
use crate::state::open::Grant;
use crate::state::oplock;
use crate::status::Failure;

/// The status of an acknowledgment without a break. 3.3.5.22.1 has STATUS_INVALID_DEVICE_STATE; Windows returns this
/// status (smbtorture's smb2.oplock.levelii500).
const NOT_BREAKING: NtStatus = NtStatus::INVALID_OPLOCK_PROTOCOL;

/// The properties of OPLOCK_BREAK.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::OplockBreak, "OplockBreak").with(Turn::Charged)),
    needs: Needs::Tree,
    answer_bytes: 36,
    ..Operation::of(Command::OplockBreak)
};

/// Answers the request.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request) -> Result<Buffer, Failure> {
    match request {
        Request::Oplock(acknowledged) => acknowledge_oplock(ctx, acknowledged).await?,
        Request::Lease { lease_key, lease_state } => acknowledge_lease(ctx, lease_key, lease_state).await?,
    }
    // The reply repeats what was acknowledged.
    let response: Response = request;
    let mut reply = ctx.reply();
    reply.append_with(|out, _| response.encode(out));
    Ok(reply)
}

/// 3.3.5.22.1
async fn acknowledge_oplock(ctx: &OnShare<'_>, acknowledged: OplockBreak) -> Result<(), Failure> {
    let open = ctx.open(acknowledged.file_id)?;
    let (share, file) = (ctx.share, open.file()?);
    let granted = share.granted(file);
    let oplock = match &*open.grant.lock() {
        Some(Grant::Oplock(oplock)) if granted.breaking => std::sync::Arc::clone(oplock),
        _ => return Err(NOT_BREAKING.into()),
    };
    let give_up = |status: NtStatus| {
        share.give_up(file.node().id(), file.holder());
        oplock.acknowledged();
        Err(status.into())
    };
    let keeps = match acknowledged.oplock_level {
        OplockLevel::Lease => return give_up(NtStatus::INVALID_PARAMETER),
        OplockLevel::None => Caching::empty(),
        OplockLevel::LevelII => oplock::caching_of(OplockLevel::LevelII),
        // "the server MUST complete the oplock break ... with a new level SMB2_OPLOCK_LEVEL_NONE"
        OplockLevel::Exclusive if granted.state == oplock::caching_of(OplockLevel::Batch) => Caching::empty(),
        OplockLevel::Exclusive | OplockLevel::Batch | OplockLevel::Unknown(_) => {
            return give_up(NtStatus::INVALID_OPLOCK_PROTOCOL);
        }
    };
    oplock.acknowledged();
    match share.acknowledge(file.node().id(), file.holder(), keeps) {
        Ok(()) => open.write_down().await,
        Err(AcknowledgeError::NotBreaking) => Err(NOT_BREAKING.into()),
        Err(AcknowledgeError::TooMuch) => give_up(NtStatus::INVALID_OPLOCK_PROTOCOL),
    }
}

/// 3.3.5.22.2
async fn acknowledge_lease(ctx: &OnShare<'_>, key: [u8; 16], state: LeaseState) -> Result<(), Failure> {
    let client = ctx.connection.negotiated.get().map(|negotiated| negotiated.client_guid);
    let lease = client.and_then(|client| ctx.server.leases.find(LeaseId { client, key }));
    let lease = lease.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    // Undefined bits count as more caching than any client may keep.
    let keeps = lease::caching_of(state);
    if lease::lease_state(keeps) != state {
        return Err(NtStatus::REQUEST_NOT_ACCEPTED.into());
    }
    match lease.acknowledge(keeps) {
        Ok(()) => ctx.server.durable.write_down_lease(lease.id).await,
        Err(AcknowledgeError::NotBreaking) => Err(NtStatus::UNSUCCESSFUL.into()),
        Err(AcknowledgeError::TooMuch) => Err(NtStatus::REQUEST_NOT_ACCEPTED.into()),
    }
}

//! Oplocks and leases of a CREATE. [MS-SMB2] 3.3.5.9 ("Oplock Acquisition"), 3.3.5.9.8, 3.3.5.9.11.

use std::sync::Arc;

use share::{Caching, Found, GrantKey, GrantRequest, Holder};
use smb_proto::dialect::Dialect;
use smb_wire::create::OplockLevel;
use smb_wire::create_context::{self, LeaseFlags, ResponseContext};
use smb_wire::{FileId, NtStatus};
use storage::FileKind;

use super::CreateOutcome;
use super::wish::Wish;
use crate::context::OnShare;
use crate::state::lease::{self, LeaseId};
use crate::state::open::Grant;
use crate::state::oplock::{self, GrantTarget, Oplock};
use crate::status::Failure;

/// An open that is about to be made, with the caching that it asks for.
pub(super) struct Asking {
    /// The identifier of the open, which a break of its oplock names.
    pub(super) id: FileId,
    /// The grant, before it is known how much will be granted.
    pub(super) grant: Grant,
    wanted: Caching,
}

impl Asking {
    /// The request to the share.
    pub(super) fn request(&self) -> GrantRequest {
        match &self.grant {
            Grant::Oplock(oplock) => {
                GrantRequest { key: GrantKey::Open, wanted: self.wanted, client: Arc::clone(oplock) as _ }
            }
            Grant::Lease(hold) => GrantRequest {
                key: hold.lease().id.grant_key(),
                wanted: self.wanted,
                client: Arc::clone(hold.lease()) as _,
            },
        }
    }
}

/// The lease context of a request that asks for a lease, as the connection's dialect knows it. 3.3.5.9.8: "If
/// RequestedOplockLevel is not SMB2_OPLOCK_LEVEL_LEASE, the server SHOULD ignore" it; 3.3.5.9.11: version 2 belongs to
/// SMB 3.x.
fn lease_asked<'a>(ctx: &OnShare<'_>, wish: &'a Wish) -> Option<&'a create_context::Lease> {
    let dialect = ctx.connection.dialect()?;
    let lease = wish.asked.lease.as_ref().filter(|_| wish.oplock_level == OplockLevel::Lease)?;
    let known = if lease.v2.is_some() { dialect.is_smb3() } else { dialect >= Dialect::Smb210 };
    known.then_some(lease)
}

fn lease_id(ctx: &OnShare<'_>, key: [u8; 16]) -> Option<LeaseId> {
    let client = ctx.connection.negotiated.get()?.client_guid;
    Some(LeaseId { client, key })
}

/// The lease of the parent directory under which the open works: changes made through the open do not break that lease.
pub(super) fn directory(ctx: &OnShare<'_>, wish: &Wish) -> Option<Holder> {
    let lease = lease_asked(ctx, wish)?;
    let v2 = lease.v2.filter(|_| lease.flags.contains(LeaseFlags::PARENT_LEASE_KEY_SET))?;
    Some(lease_id(ctx, v2.parent_key)?.holder())
}

/// A file that does not exist yet cannot use the key of an existing lease, which belongs to another file.
///
/// # Errors
/// STATUS_INVALID_PARAMETER.
pub(super) fn check_new(ctx: &OnShare<'_>, wish: &Wish) -> Result<(), Failure> {
    let id = lease_asked(ctx, wish).and_then(|lease| lease_id(ctx, lease.key));
    match id.and_then(|id| ctx.server.leases.find(id)) {
        Some(_) => Err(NtStatus::INVALID_PARAMETER.into()),
        None => Ok(()),
    }
}

/// The caching that the client asks for on an object.
///
/// # Errors
/// STATUS_INVALID_PARAMETER for a lease key that belongs to another file.
pub(super) fn ask(ctx: &OnShare<'_>, wish: &Wish, found: &Found) -> Result<Asking, Failure> {
    let (share, session, file) = (ctx.share, ctx.session, found.node.id());
    let id = ctx.server.file_id();
    let (share_encrypts, durable) = (ctx.tree.encrypt_data, &ctx.server.durable);
    let is_directory = found.attributes.kind == FileKind::Directory;
    let place = GrantTarget { share, file, is_directory, share_encrypts, durable };
    let lease = lease_asked(ctx, wish).and_then(|lease| Some((lease, lease_id(ctx, lease.key)?)));
    let Some((lease, lease_id)) = lease else {
        let oplock = Oplock::new(id, Arc::downgrade(session), &place);
        // [MS-FSA] 2.1.5.18: directories have leases only.
        let wanted = if is_directory { Caching::empty() } else { oplock::caching_of(wish.oplock_level) };
        return Ok(Asking { id, grant: Grant::Oplock(oplock), wanted });
    };
    let hold = ctx.server.leases.hold(lease_id, place, lease, Arc::downgrade(session))?;
    let mut wanted = lease::caching_of(lease.state);
    if is_directory {
        // Only version 2 has leases of directories, and no client writes to a directory.
        wanted = if lease.v2.is_some() { wanted.difference(Caching::WRITE) } else { Caching::empty() };
    }
    Ok(Asking { id, grant: Grant::Lease(hold), wanted })
}

/// The response that says what the client may cache.
pub(super) fn answer(granted: share::Granted, grant: &Grant, outcome: &mut CreateOutcome) {
    match grant {
        Grant::Oplock(_) => outcome.oplock_level = oplock::level_of(granted.state),
        Grant::Lease(hold) => {
            outcome.oplock_level = OplockLevel::Lease;
            outcome.contexts.push(ResponseContext::Lease(hold.lease().answer(granted)));
        }
    }
}

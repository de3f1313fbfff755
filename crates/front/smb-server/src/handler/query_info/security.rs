//! Queries of security descriptors. [MS-SMB2] 3.3.5.20.3.

use std::sync::Arc;

use acl::{Control, SecurityDescriptor};
use smb_wire::query_info::SecurityInformation;
use smb_wire::{AccessMask, NtStatus};

use crate::context::OnShare;
use crate::state::open::Open;
use crate::status::Failure;

/// The parts of a descriptor that need READ_CONTROL.
const DESCRIBED: SecurityInformation = SecurityInformation::OWNER
    .union(SecurityInformation::GROUP)
    .union(SecurityInformation::DACL)
    .union(SecurityInformation::LABEL);

/// The descriptor in self-relative form.
pub(super) async fn query(
    ctx: &OnShare<'_>,
    open: &Arc<Open>,
    parts: SecurityInformation,
) -> Result<Vec<u8>, Failure> {
    let needed = |part, right| !parts.intersects(part) || open.granted_access.contains(right);
    if !needed(SecurityInformation::SACL, AccessMask::ACCESS_SYSTEM_SECURITY)
        || !needed(DESCRIBED, AccessMask::READ_CONTROL)
    {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let mut security = ctx.share.security(ctx.call, open.file()?.node()).await?;
    if security.is_of_some_mode(open.is_directory) {
        // Where permission bits decide, the owner has more rights than the bits can express.
        security = security.with_ownership();
        // Numbers of a domain are shown as the users and groups that the client knows.
        let people = ctx.share.people();
        security = security.renamed(|sid| people.domain_sid_of(sid));
    }
    let mut data = Vec::new();
    select(security, parts).encode_into(&mut data).map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
    Ok(data)
}

/// The parts that a client asks for. There is never a SACL.
fn select(security: SecurityDescriptor, parts: SecurityInformation) -> SecurityDescriptor {
    let dacl = parts.contains(SecurityInformation::DACL);
    SecurityDescriptor {
        control: if dacl { security.control } else { Control::empty() },
        owner: security.owner.filter(|_| parts.contains(SecurityInformation::OWNER)),
        group: security.group.filter(|_| parts.contains(SecurityInformation::GROUP)),
        sacl: None,
        dacl: security.dacl.filter(|_| dacl),
    }
}

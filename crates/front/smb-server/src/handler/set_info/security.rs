//! Changes of security descriptors. [MS-SMB2] 3.3.5.21.3, [MS-FSA] 2.1.5.17.

use std::sync::Arc;

use acl::SecurityDescriptor;
use share::{File, SecurityChange};
use smb_wire::query_info::SecurityInformation;
use smb_wire::{AccessMask, NtStatus};

use super::require;
use crate::context::OnShare;
use crate::state::open::Open;
use crate::status::Failure;

/// The rights that the parts of a descriptor need.
const NEEDED: [(SecurityInformation, AccessMask); 3] = [
    (
        SecurityInformation::OWNER.union(SecurityInformation::GROUP).union(SecurityInformation::LABEL),
        AccessMask::WRITE_OWNER,
    ),
    (SecurityInformation::DACL, AccessMask::WRITE_DAC),
    (SecurityInformation::SACL, AccessMask::ACCESS_SYSTEM_SECURITY),
];

/// Sets owner, group and DACL; other parts are ignored.
pub(super) async fn set(
    ctx: &OnShare<'_>,
    open: &Open,
    parts: SecurityInformation,
    buffer: &[u8],
) -> Result<(), Failure> {
    for (part, access) in NEEDED {
        if parts.intersects(part) {
            require(open, access)?;
        }
    }
    let wanted = SecurityDescriptor::decode(buffer).map_err(|_| NtStatus::INVALID_SECURITY_DESCR)?;
    let change = change(wanted, parts)?;
    if change == SecurityChange::default() {
        return Ok(());
    }
    let file = File::Open(Arc::clone(open.file()?));
    Ok(ctx.share.set_security(ctx.call, &file, change).await?)
}

/// The parts of the descriptor that the client sets.
fn change(wanted: SecurityDescriptor, parts: SecurityInformation) -> Result<SecurityChange, Failure> {
    let mut change = SecurityChange::default();
    if parts.contains(SecurityInformation::OWNER) {
        change.owner = Some(wanted.owner.ok_or(NtStatus::INVALID_OWNER)?);
    }
    if parts.contains(SecurityInformation::GROUP) {
        change.group = Some(wanted.group.ok_or(NtStatus::INVALID_PRIMARY_GROUP)?);
    }
    if parts.contains(SecurityInformation::DACL) {
        change.dacl = Some((wanted.control, wanted.dacl));
    }
    Ok(change)
}

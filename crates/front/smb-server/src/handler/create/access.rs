//! The access that a client asks for, and the access that it can get. [MS-SMB2] 2.2.13.1, 3.3.5.9; [MS-FSA] 2.1.5.1.

use share::{Access, Caller, Found, Share};
use smb_wire::{AccessMask, NtStatus};
use storage::FileKind;

use crate::context::OnShare;
use crate::status::Failure;

/// Bits that no access right has ([MS-FSA] 2.1.5.1, phase 1).
const MEANINGLESS: u32 = 0x0CE0_FE00;

/// FILE_GENERIC_READ
pub(super) const READ: Access = Access::from_bits_truncate(AccessMask::FILE_READ.bits());

/// A DesiredAccess with generic rights resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Desired {
    /// The access that must be granted.
    pub(super) access: Access,
    /// Whether everything beyond that is also wanted (MAXIMUM_ALLOWED).
    maximum: bool,
}

impl Desired {
    /// Resolves a DesiredAccess.
    ///
    /// # Errors
    /// STATUS_ACCESS_DENIED for a mask that asks for nothing, or for undefined rights; STATUS_PRIVILEGE_NOT_HELD for
    /// the SACL.
    pub(super) fn of(mask: AccessMask) -> Result<Self, NtStatus> {
        if mask.is_empty() || mask.bits() & MEANINGLESS != 0 {
            return Err(NtStatus::ACCESS_DENIED);
        }
        if mask.contains(AccessMask::ACCESS_SYSTEM_SECURITY) {
            return Err(NtStatus::PRIVILEGE_NOT_HELD);
        }
        let access = Access::from_bits_truncate(mask.mapped().bits());
        Ok(Self { access, maximum: mask.contains(AccessMask::MAXIMUM_ALLOWED) })
    }

    /// Whether the client asks for this access, or for the maximum.
    pub(super) fn includes(self, access: Access) -> bool {
        self.maximum || self.access.contains(access)
    }

    /// The access granted on an object for which `maximal` is allowed.
    ///
    /// # Errors
    /// STATUS_ACCESS_DENIED when `maximal` does not include what must be granted.
    fn grant(self, maximal: Access) -> Result<Access, NtStatus> {
        let granted = self.grant_maker(maximal);
        if maximal.contains(self.access) && !granted.is_empty() {
            Ok(granted)
        } else {
            Err(NtStatus::ACCESS_DENIED)
        }
    }

    /// Whether the client may make an object and open it like this, in a share that gives it at most `tree`.
    ///
    /// # Errors
    /// STATUS_ACCESS_DENIED.
    pub(super) fn check_may_make(self, tree: AccessMask) -> Result<(), NtStatus> {
        let given = Access::from_bits_truncate(tree.bits());
        if given.contains(Access::ADD_FILE | self.access) { Ok(()) } else { Err(NtStatus::ACCESS_DENIED) }
    }

    /// The access granted to the creator of an object: whatever the creator asked for.
    pub(super) fn grant_maker(self, maximal: Access) -> Access {
        if self.maximum { self.access | maximal } else { self.access }
    }
}

/// The most that SMB clients may do with an object: what the share allows, in the terms of Windows.
///
/// Permission bits have no right to take ownership, and no right to delete that belongs to a file. Where they decide,
/// an owner who may read and write has what Windows calls full control. A user who may read a program may also execute
/// it, since the client executes a copy. This also holds for those who are exempt from permissions.
pub(super) fn maximal(share: &Share, caller: &Caller, found: &Found, tree: AccessMask) -> Access {
    let mut access = share.maximal_access(caller, found);
    if found.security.is_none() || caller.identity.is_exempt() {
        access |= beyond_bits(caller, found, access);
    }
    access & Access::from_bits_truncate(tree.bits())
}

/// The access to grant on an object that was found, and for which `maximal` is allowed. At a snapshot, as on Windows, whoever
/// might change the object but for that opens it, and each change is refused.
///
/// # Errors
/// STATUS_MEDIA_WRITE_PROTECTED to change an object of a snapshot, STATUS_ACCESS_DENIED for anything else that `maximal` does
/// not include.
pub(super) fn grant(
    ctx: &OnShare<'_>,
    found: &Found,
    desired: Desired,
    maximal: Access,
) -> Result<Access, Failure> {
    let might = || maximal | share::permitted(&ctx.caller().identity, found.object());
    match desired.grant(maximal) {
        Ok(granted) => Ok(granted),
        Err(_)
            if ctx.share.snapshot().is_some()
                && might().contains(desired.access)
                && !desired.grant_maker(maximal).is_empty() =>
        {
            Ok(desired.grant_maker(maximal))
        }
        Err(_) => Err(ctx.share.why_refused(found, desired.access).into()),
    }
}

fn beyond_bits(caller: &Caller, found: &Found, access: Access) -> Access {
    let mut beyond = Access::empty();
    let is_file = found.attributes.kind != FileKind::Directory;
    beyond.set(Access::EXECUTE, is_file && access.contains(Access::READ_DATA));
    let owns = caller.identity.is_exempt() || caller.identity.uid() == found.attributes.uid;
    let full = owns && access.contains(Access::READ_DATA | Access::WRITE_DATA);
    beyond.set(Access::WRITE_OWNER | Access::DELETE_CHILD, full);
    beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired(bits: u32) -> Result<Access, NtStatus> {
        Desired::of(AccessMask::from_bits_retain(bits)).map(|d| d.access)
    }

    #[test]
    fn generic_rights_are_resolved() {
        // [MS-SMB2] 2.2.13.1.1; winnt.h FILE_GENERIC_READ and the like
        assert_eq!(desired(0x8000_0000).unwrap().bits(), 0x0012_0089);
        assert_eq!(desired(0x4000_0000).unwrap().bits(), 0x0012_0116);
        assert_eq!(desired(0x2000_0000).unwrap().bits(), 0x0012_00A0);
        assert_eq!(desired(0x1000_0000).unwrap().bits(), 0x001F_01FF);
        assert_eq!(desired(0x8001_0000).unwrap().bits(), 0x0013_0089);
        assert_eq!(desired(0x1).unwrap(), Access::READ_DATA);
    }

    #[test]
    fn what_is_no_right_is_refused() {
        for bit in 0..32 {
            let mask = 1_u32 << bit;
            // smbtorture's smb2.create.gentest: the bits that Windows 7 refuses
            let refused = 0x0DE0_FE00 & mask != 0;
            assert_eq!(desired(mask).is_err(), refused, "{mask:#x}");
        }
        assert_eq!(desired(0), Err(NtStatus::ACCESS_DENIED));
        assert_eq!(desired(0x0100_0001), Err(NtStatus::PRIVILEGE_NOT_HELD));
        assert_eq!(desired(0x0010_0001).unwrap(), Access::READ_DATA | Access::SYNCHRONIZE);
    }

    #[test]
    fn the_maximum_is_granted_on_request_only() {
        let maximal = Access::READ_DATA | Access::READ_ATTRIBUTES;
        let all = Desired::of(AccessMask::MAXIMUM_ALLOWED).unwrap();
        assert_eq!(all.grant(maximal), Ok(maximal));
        assert_eq!(all.grant(Access::empty()), Err(NtStatus::ACCESS_DENIED));
        let read = Desired::of(AccessMask::READ_DATA).unwrap();
        assert_eq!(read.grant(maximal), Ok(Access::READ_DATA));
        let write = Desired::of(AccessMask::WRITE_DATA | AccessMask::MAXIMUM_ALLOWED).unwrap();
        assert_eq!(write.grant(maximal), Err(NtStatus::ACCESS_DENIED));
        assert_eq!(write.grant_maker(maximal), maximal | Access::WRITE_DATA);
    }
}

//! Security descriptors in their self-relative form, [MS-DTYP] 2.4.4 to 2.4.6.

use bitflags::bitflags;

use crate::bytes::{Malformed, Put, Reader, len_u16, len_u32, patch_u32};
use crate::{AccessMask, Sid};

bitflags! {
    /// `Control`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Control: u16 {
        /// SE_OWNER_DEFAULTED
        const OWNER_DEFAULTED = 0x0001;
        /// SE_GROUP_DEFAULTED
        const GROUP_DEFAULTED = 0x0002;
        /// SE_DACL_PRESENT: without it the DACL has no meaning. With it and without a DACL, everybody may do
        /// everything.
        const DACL_PRESENT = 0x0004;
        /// SE_DACL_DEFAULTED
        const DACL_DEFAULTED = 0x0008;
        /// SE_SACL_PRESENT
        const SACL_PRESENT = 0x0010;
        /// SE_SACL_DEFAULTED
        const SACL_DEFAULTED = 0x0020;
        /// SE_DACL_TRUSTED
        const DACL_TRUSTED = 0x0040;
        /// SE_SERVER_SECURITY
        const SERVER_SECURITY = 0x0080;
        /// SE_DACL_AUTO_INHERIT_REQ
        const DACL_AUTO_INHERIT_REQ = 0x0100;
        /// SE_SACL_AUTO_INHERIT_REQ
        const SACL_AUTO_INHERIT_REQ = 0x0200;
        /// SE_DACL_AUTO_INHERITED
        const DACL_AUTO_INHERITED = 0x0400;
        /// SE_SACL_AUTO_INHERITED
        const SACL_AUTO_INHERITED = 0x0800;
        /// SE_DACL_PROTECTED
        const DACL_PROTECTED = 0x1000;
        /// SE_SACL_PROTECTED
        const SACL_PROTECTED = 0x2000;
        /// SE_RM_CONTROL_VALID
        const RM_CONTROL_VALID = 0x4000;
        /// SE_SELF_RELATIVE: always set on the wire.
        const SELF_RELATIVE = 0x8000;
        const _ = !0;
    }
}

/// Who owns a file and who may do what with it.
#[doc(alias = "SECURITY_DESCRIPTOR")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecurityDescriptor {
    /// Flags; [`Control::SELF_RELATIVE`] is added by encoding.
    pub control: Control,
    /// The owner.
    pub owner: Option<Sid>,
    /// The primary group.
    pub group: Option<Sid>,
    /// What to audit; only with [`Control::SACL_PRESENT`].
    pub sacl: Option<Acl>,
    /// Who may do what; only with [`Control::DACL_PRESENT`].
    pub dacl: Option<Acl>,
}

/// A list of access control entries.
#[doc(alias = "ACL")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    /// 2, or 4 if there are object entries.
    pub revision: u8,
    /// The entries, in the order in which they are evaluated.
    pub aces: Vec<Ace>,
}

/// The type of an access control entry, [MS-DTYP] 2.4.4.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AceType {
    /// ACCESS_ALLOWED_ACE_TYPE
    AccessAllowed,
    /// ACCESS_DENIED_ACE_TYPE
    AccessDenied,
    /// SYSTEM_AUDIT_ACE_TYPE
    SystemAudit,
    /// SYSTEM_MANDATORY_LABEL_ACE_TYPE
    SystemMandatoryLabel,
    /// SYSTEM_SCOPED_POLICY_ID_ACE_TYPE
    SystemScopedPolicyId,
}

impl AceType {
    const ALL: [(u8, Self); 5] = [
        (0x00, Self::AccessAllowed),
        (0x01, Self::AccessDenied),
        (0x02, Self::SystemAudit),
        (0x11, Self::SystemMandatoryLabel),
        (0x13, Self::SystemScopedPolicyId),
    ];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == number).map(|(_, ace_type)| *ace_type)
    }

    fn number(self) -> u8 {
        match self {
            Self::AccessAllowed => 0x00,
            Self::AccessDenied => 0x01,
            Self::SystemAudit => 0x02,
            Self::SystemMandatoryLabel => 0x11,
            Self::SystemScopedPolicyId => 0x13,
        }
    }
}

bitflags! {
    /// `AceFlags`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct AceFlags: u8 {
        /// OBJECT_INHERIT_ACE: files inherit it.
        const OBJECT_INHERIT = 0x01;
        /// CONTAINER_INHERIT_ACE: directories inherit it.
        const CONTAINER_INHERIT = 0x02;
        /// NO_PROPAGATE_INHERIT_ACE: objects that inherit it do not pass it on.
        const NO_PROPAGATE_INHERIT = 0x04;
        /// INHERIT_ONLY_ACE: it does not apply to this object.
        const INHERIT_ONLY = 0x08;
        /// INHERITED_ACE: it was inherited.
        const INHERITED = 0x10;
        /// SUCCESSFUL_ACCESS_ACE_FLAG
        const SUCCESSFUL_ACCESS = 0x40;
        /// FAILED_ACCESS_ACE_FLAG
        const FAILED_ACCESS = 0x80;
        const _ = !0;
    }
}

/// An access control entry.
#[doc(alias = "ACE_HEADER")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ace {
    /// The inheritance flags.
    pub flags: AceFlags,
    /// The contents.
    pub body: AceBody,
}

/// The contents of an access control entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AceBody {
    /// An entry of one of the types in [`AceType`]: rights, and to whom they apply.
    Basic {
        /// Allow, deny or audit.
        ace_type: AceType,
        /// The rights.
        mask: AccessMask,
        /// To whom the entry applies.
        sid: Sid,
    },
    /// Any other entry (object and callback entries), kept unchanged.
    Other {
        /// The type.
        ace_type: u8,
        /// The bytes after the header; a multiple of four.
        data: Vec<u8>,
    },
}

const FIXED_LEN: usize = 20;

impl SecurityDescriptor {
    /// This descriptor with other SIDs for the users and groups that have another one, as owner, as group and in entries.
    #[must_use]
    pub fn renamed(mut self, other: impl Fn(&Sid) -> Option<Sid>) -> Self {
        let entries = self.dacl.iter_mut().flat_map(|dacl| &mut dacl.aces);
        let named = entries.filter_map(|ace| match &mut ace.body {
            AceBody::Basic { sid, .. } => Some(sid),
            AceBody::Other { .. } => None,
        });
        for sid in named.chain(&mut self.owner).chain(&mut self.group) {
            *sid = other(sid).unwrap_or(*sid);
        }
        self
    }

    /// Decodes a security descriptor.
    ///
    /// # Errors
    /// [`Malformed`] (STATUS_INVALID_SECURITY_DESCR).
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes);
        if r.u8()? != 1 {
            return Err(Malformed::Invalid("revision of a security descriptor"));
        }
        r.skip(1)?;
        let control = Control::from_bits_retain(r.u16()?);
        if !control.contains(Control::SELF_RELATIVE) {
            return Err(Malformed::Invalid("Control of a security descriptor"));
        }
        let (owner, group, sacl, dacl) = (r.len32()?, r.len32()?, r.len32()?, r.len32()?);
        let sid = |offset| part(bytes, offset)?.map(Sid::decode).transpose();
        let acl = |present, offset| {
            if control.contains(present) {
                part(bytes, offset)?.map(Acl::decode).transpose()
            } else {
                Ok(None)
            }
        };
        Ok(Self {
            control,
            owner: sid(owner)?,
            group: sid(group)?,
            sacl: acl(Control::SACL_PRESENT, sacl)?,
            dacl: acl(Control::DACL_PRESENT, dacl)?,
        })
    }

    /// Appends the security descriptor: owner, group, SACL, DACL.
    ///
    /// # Errors
    /// [`Malformed::TooLong`] when an ACL has more than 65,535 bytes.
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let start = out.len();
        out.put(&[1, 0]);
        out.put_u16((self.control | Control::SELF_RELATIVE).bits());
        out.put(&[0; 16]);
        let mut at = start.saturating_add(4);
        for sid in [self.owner, self.group] {
            if let Some(sid) = sid {
                set_offset(out, start, at)?;
                sid.encode_into(out);
            }
            at = at.saturating_add(4);
        }
        for (acl, present) in [(&self.sacl, Control::SACL_PRESENT), (&self.dacl, Control::DACL_PRESENT)] {
            if let Some(acl) = acl.as_ref().filter(|_| self.control.contains(present)) {
                set_offset(out, start, at)?;
                acl.encode_into(out)?;
            }
            at = at.saturating_add(4);
        }
        Ok(())
    }
}

/// Writes the offset of the next part into the field at `at`.
fn set_offset(out: &mut [u8], start: usize, at: usize) -> Result<(), Malformed> {
    let offset = len_u32(out.len().saturating_sub(start), "security descriptor")?;
    patch_u32(out, at, offset);
    Ok(())
}

/// The part at `offset`; None if the offset is 0.
fn part(bytes: &[u8], offset: usize) -> Result<Option<&[u8]>, Malformed> {
    match offset {
        0 => Ok(None),
        _ if offset < FIXED_LEN => Err(Malformed::OutOfBounds("offset in a security descriptor")),
        _ => bytes.get(offset..).map(Some).ok_or(Malformed::OutOfBounds("offset in a security descriptor")),
    }
}

impl Acl {
    const HEADER_LEN: usize = 8;

    /// Decodes the ACL at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes);
        let revision = r.u8()?;
        r.skip(1)?;
        let size = r.len16()?;
        let count = r.u16()?;
        r.skip(2)?;
        let entries = size.checked_sub(Self::HEADER_LEN).ok_or(Malformed::Invalid("AclSize"))?;
        let mut r = Reader::new(r.bytes(entries)?);
        let aces = (0..count).map(|_| Ace::read(&mut r)).collect::<Result<_, _>>()?;
        Ok(Self { revision, aces })
    }

    /// Appends the ACL.
    ///
    /// # Errors
    /// [`Malformed::TooLong`] when it has more than 65,535 bytes.
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let mut entries = Vec::new();
        for ace in &self.aces {
            ace.encode_into(&mut entries)?;
        }
        out.put(&[self.revision, 0]);
        out.put_u16(len_u16(entries.len().saturating_add(Self::HEADER_LEN), "ACL")?);
        out.put_u16(len_u16(self.aces.len(), "ACL")?);
        out.put_u16(0);
        out.put(&entries);
        Ok(())
    }
}

impl Ace {
    /// An entry that allows `sid` the rights in `mask`.
    #[must_use]
    pub const fn allow(sid: Sid, mask: AccessMask, flags: AceFlags) -> Self {
        Self { flags, body: AceBody::Basic { ace_type: AceType::AccessAllowed, mask, sid } }
    }

    /// An entry that denies `sid` the rights in `mask`.
    #[must_use]
    pub const fn deny(sid: Sid, mask: AccessMask, flags: AceFlags) -> Self {
        Self { flags, body: AceBody::Basic { ace_type: AceType::AccessDenied, mask, sid } }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = r.u8()?;
        let flags = AceFlags::from_bits_retain(r.u8()?);
        let size = r.len16()?;
        let data = r.bytes(size.checked_sub(4).ok_or(Malformed::Invalid("AceSize"))?)?;
        let body = match AceType::of(number) {
            None => AceBody::Other { ace_type: number, data: data.to_vec() },
            Some(ace_type) => {
                let mut r = Reader::new(data);
                AceBody::Basic {
                    ace_type,
                    mask: AccessMask::from_bits_retain(r.u32()?),
                    sid: Sid::read(&mut r)?,
                }
            }
        };
        Ok(Self { flags, body })
    }

    fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match &self.body {
            AceBody::Basic { ace_type, mask, sid } => {
                out.put(&[ace_type.number(), self.flags.bits()]);
                out.put_u16(len_u16(sid.byte_len().saturating_add(8), "ACE")?);
                out.put_u32(mask.bits());
                sid.encode_into(out);
            }
            AceBody::Other { ace_type, data } => {
                out.put(&[*ace_type, self.flags.bits()]);
                out.put_u16(len_u16(data.len().saturating_add(4), "ACE")?);
                out.put(data);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> Vec<u8> {
        let dacl = Acl {
            revision: 2,
            aces: vec![Ace::allow(Sid::EVERYONE, AccessMask::READ_DATA, AceFlags::INHERITED)],
        };
        let descriptor = SecurityDescriptor {
            control: Control::DACL_PRESENT,
            owner: Some(Sid::LOCAL_SYSTEM),
            dacl: Some(dacl),
            ..SecurityDescriptor::default()
        };
        let mut bytes = Vec::new();
        descriptor.encode_into(&mut bytes).unwrap();
        bytes
    }

    fn with(at: usize, value: &[u8]) -> Result<SecurityDescriptor, Malformed> {
        let mut bytes = bytes();
        bytes[at..at + value.len()].copy_from_slice(value);
        SecurityDescriptor::decode(&bytes)
    }

    #[test]
    fn offsets_and_sizes_are_checked() {
        // OwnerOffset at 4, DaclOffset at 16; the DACL starts at 32: AclSize at 34, AceCount at 36; its
        // entry at 40: AceSize at 42
        assert_eq!(bytes()[16..20], [32, 0, 0, 0]);
        assert!(with(0, &[1]).is_ok());
        assert!(with(0, &[2]).is_err());
        assert!(with(2, &[4, 0]).is_err());
        for offset in [[19, 0, 0, 0], [0xFF; 4]] {
            assert!(with(4, &offset).is_err());
            assert!(with(16, &offset).is_err());
        }
        for size in [[7, 0], [20, 0], [0xFF, 0xFF]] {
            assert!(with(34, &size).is_err());
        }
        assert!(with(36, &[2, 0]).is_err());
        for size in [[3, 0], [15, 0], [40, 0]] {
            assert!(with(42, &size).is_err());
        }
    }

    #[test]
    fn no_dacl_is_not_an_empty_dacl() {
        let null = with(16, &[0; 4]).unwrap();
        assert!(null.control.contains(Control::DACL_PRESENT) && null.dacl.is_none());
        let empty = with(36, &[0, 0]).unwrap();
        assert_eq!(empty.dacl.map(|acl| acl.aces), Some(vec![]));
        let absent = with(2, &[0, 0x80]).unwrap();
        assert!(absent.dacl.is_none());
    }

    #[test]
    fn an_acl_of_more_than_64_kib_is_refused() {
        let ace = Ace::allow(Sid::ADMINISTRATORS, AccessMask::GENERIC_ALL, AceFlags::empty());
        let acl = |count| Acl { revision: 2, aces: vec![ace.clone(); count] };
        assert!(acl(2_730).encode_into(&mut Vec::new()).is_ok());
        assert_eq!(acl(2_731).encode_into(&mut Vec::new()), Err(Malformed::TooLong("ACL")));
    }
}

//! Access control lists, RFC 8881 section 6.

use crate::v4::types::Text;
use crate::xdr::{xdr_bitflags, xdr_struct};

/// An entry of an access control list.
#[doc(alias = "nfsace4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ace<'a> {
    /// Allow, deny, audit or alarm: one of [`ace_type`], or an undefined number.
    pub ace_type: u32,
    /// Inheritance, and whether `who` is a group.
    pub flags: AceFlags,
    /// Rights.
    pub mask: AceMask,
    /// User, group or special identifier (RFC 8881 6.2.1.5).
    pub who: Text<'a>,
}

xdr_struct!(Ace<'a> { ace_type, flags, mask, who });

/// An access control list with flags.
#[doc(alias = "nfsacl41")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl41<'a> {
    /// Inheritance of the list as a whole.
    pub flags: AclFlags,
    /// The entries.
    pub aces: Vec<Ace<'a>>,
}

xdr_struct!(Acl41<'a> { flags, aces });

/// Types of entries, RFC 8881 6.2.1.1.
pub mod ace_type {
    /// Grants the rights.
    #[doc(alias = "ACE4_ACCESS_ALLOWED_ACE_TYPE")]
    pub const ALLOW: u32 = 0;
    /// Denies the rights.
    #[doc(alias = "ACE4_ACCESS_DENIED_ACE_TYPE")]
    pub const DENY: u32 = 1;
    /// Writes an entry to the audit log.
    #[doc(alias = "ACE4_SYSTEM_AUDIT_ACE_TYPE")]
    pub const AUDIT: u32 = 2;
    /// Raises an alarm.
    #[doc(alias = "ACE4_SYSTEM_ALARM_ACE_TYPE")]
    pub const ALARM: u32 = 3;
}

xdr_bitflags! {
    /// The supported types of entries, RFC 8881 6.2.1.2: the value of [`Attribute::AclSupport`].
    pub struct AclSupport {
        /// [`ace_type::ALLOW`].
        const ALLOW = 0x1;
        /// [`ace_type::DENY`].
        const DENY = 0x2;
        /// [`ace_type::AUDIT`].
        const AUDIT = 0x4;
        /// [`ace_type::ALARM`].
        const ALARM = 0x8;
    }
}

xdr_bitflags! {
    /// RFC 8881 6.2.1.3: the rights of an entry.
    #[doc(alias = "acemask4")]
    pub struct AceMask {
        /// Read data, or list a directory.
        const READ_DATA = 0x0000_0001;
        /// Write data, or add a file to a directory.
        const WRITE_DATA = 0x0000_0002;
        /// Append data, or add a directory to a directory.
        const APPEND_DATA = 0x0000_0004;
        /// Read named attributes.
        const READ_NAMED_ATTRS = 0x0000_0008;
        /// Write named attributes.
        const WRITE_NAMED_ATTRS = 0x0000_0010;
        /// Execute, or traverse a directory.
        const EXECUTE = 0x0000_0020;
        /// Delete entries of the directory.
        const DELETE_CHILD = 0x0000_0040;
        /// Read basic attributes.
        const READ_ATTRIBUTES = 0x0000_0080;
        /// Change the times.
        const WRITE_ATTRIBUTES = 0x0000_0100;
        /// Write the retention.
        const WRITE_RETENTION = 0x0000_0200;
        /// Write administrative holds.
        const WRITE_RETENTION_HOLD = 0x0000_0400;
        /// Delete.
        const DELETE = 0x0001_0000;
        /// Read the list.
        const READ_ACL = 0x0002_0000;
        /// Write the list and the mode.
        const WRITE_ACL = 0x0004_0000;
        /// Write owner and group.
        const WRITE_OWNER = 0x0008_0000;
        /// Use the object locally with synchronous reads and writes.
        const SYNCHRONIZE = 0x0010_0000;
    }
}

xdr_bitflags! {
    /// RFC 8881 6.2.1.4: flags of an entry.
    #[doc(alias = "aceflag4")]
    pub struct AceFlags {
        /// Inherited by files.
        const FILE_INHERIT = 0x01;
        /// Inherited by directories.
        const DIRECTORY_INHERIT = 0x02;
        /// Inherited by children only, not by their children.
        const NO_PROPAGATE_INHERIT = 0x04;
        /// Does not apply to this directory itself.
        const INHERIT_ONLY = 0x08;
        /// Audit and alarm upon success.
        const SUCCESSFUL_ACCESS = 0x10;
        /// Audit and alarm upon failure.
        const FAILED_ACCESS = 0x20;
        /// `who` is a group.
        const IDENTIFIER_GROUP = 0x40;
        /// The entry was inherited.
        const INHERITED = 0x80;
    }
}

xdr_bitflags! {
    /// RFC 8881 6.4.3.2: flags of a list.
    #[doc(alias = "aclflag4")]
    pub struct AclFlags {
        /// Inheritance is automatic.
        const AUTO_INHERIT = 0x1;
        /// Nothing is inherited automatically.
        const PROTECTED = 0x2;
        /// The list was made by default.
        const DEFAULTED = 0x4;
    }
}

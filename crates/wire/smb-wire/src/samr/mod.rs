//! The Security Account Manager, [MS-SAMR], through which clients list the accounts and groups of a server. Stubs in NDR.
//!
//! Only what reads is decoded. Of a call that would change something, this crate knows the form of the answer
//! ([`Request::Change`]).

mod request;
mod response;

pub use request::{Enumeration, Request};
pub use response::{
    DisplayEntry, DomainGeneral, DomainInformation, Entry, GroupInformation, Response, UserInformation,
};

use crate::dcerpc::SyntaxId;
use crate::dtyp::Guid;

/// The interface, 12345778-1234-abcd-ef00-0123456789ac version 1.0.
pub const INTERFACE: SyntaxId = SyntaxId {
    uuid: Guid([
        0x78, 0x57, 0x34, 0x12, 0x34, 0x12, 0xcd, 0xab, 0xef, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xac,
    ]),
    version: 1,
};

/// The most names, RIDs or SIDs of one call. [MS-SAMR] 3.1.5.11.2: "The Count parameter [...] MUST be less than or equal to
/// 1000".
pub const LOOKUPS_MAX: usize = 1000;

/// SE_GROUP_MANDATORY, SE_GROUP_ENABLED_BY_DEFAULT and SE_GROUP_ENABLED, [MS-SAMR] 2.2.1.10.
pub const GROUP_ATTRIBUTES: u32 = 7;

/// A handle of an object: the server, a domain, a group, an alias or a user.
#[doc(alias = "SAMPR_HANDLE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handle(pub [u8; 20]);

/// What a domain has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A user.
    User,
    /// A group whose members are users of the same domain.
    Group,
    /// A local group, whose members are SIDs.
    Alias,
}

/// Bits of UserAccountControl, [MS-SAMR] 2.2.1.12.
pub mod account_control {
    /// USER_ACCOUNT_DISABLED
    pub const DISABLED: u32 = 0x0001;
    /// USER_NORMAL_ACCOUNT
    pub const NORMAL: u32 = 0x0010;
    /// USER_DONT_EXPIRE_PASSWORD
    pub const PASSWORD_DOES_NOT_EXPIRE: u32 = 0x0200;
}

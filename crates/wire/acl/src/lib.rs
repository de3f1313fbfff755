//! Who may do what with a file: [MS-DTYP] SIDs, access control lists and security descriptors, their bytes and their
//! rules.
//!
//! Nothing here waits, reads a clock or depends on a protocol: the same descriptor decides for SMB and for NFS.

// Tests index freely; code that meets a client's bytes does not.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod bytes;
mod check;
pub mod descriptor;
mod inherit;
mod mask;
mod mode;
mod sid;
mod token;

pub use bytes::Malformed;
pub use descriptor::{Ace, AceBody, AceFlags, AceType, Acl, Control, SecurityDescriptor};
pub use inherit::{Newborn, settled};
pub use mask::AccessMask;
pub use sid::{SUB_AUTHORITIES_MAX, Sid};
pub use token::Token;

/// The code in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

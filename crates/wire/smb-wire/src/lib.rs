//! [MS-SMB2] section 2, bytes to values and back: little-endian, borrowed payloads, no state, no IO.
//!
//! A *message* is a slice that starts at an SMB2 header; a *frame* is what one Direct TCP length prefix covers:
//! one message, or several chained by `NextCommand` ([`chain`]), or an encrypted message ([`transform`]).
//!
//! Every command has a module with a `Request` and a `Response`:
//! * `decode(message)` reads a body; all offsets of SMB2 count from the header, so it takes the whole message.
//!   Every offset and length is checked: inside the message, behind the fixed part, without overflow.
//! * `encode(&self, out)` appends a body to `out`, which must end with the 64 bytes of the message's header
//!   ([`header::Header::encode_into`]). Where a value could be longer than its length field, it returns a
//!   `Result`; after an error `out` holds part of a body and must be thrown away.
//!
//! What a server has to judge itself (an unknown command, information class, oplock level) decodes to
//! `Unknown(n)`; flags keep bits without a name. What can only be a broken client is a [`WireError`].

#![forbid(unsafe_code)]
#![deny(clippy::big_endian_bytes, clippy::host_endian_bytes)]
// Tests index and add freely; code that meets a client's bytes does not.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

#[macro_use]
pub mod codec;

pub mod cancel;
pub mod chain;
pub mod change_notify;
pub mod close;
pub mod compression;
pub mod create;
pub mod create_context;
pub mod dcerpc;
pub mod dssetup;
pub mod dtyp;
pub mod echo;
pub mod error_response;
pub mod flush;
pub mod frame;
pub mod fscc;
pub mod header;
pub mod ioctl;
pub mod lock;
pub mod logoff;
pub mod lsarpc;
mod ndr;
pub mod negotiate;
pub mod negotiate_context;
pub mod ntstatus;
pub mod oplock_break;
pub mod query_directory;
pub mod query_info;
pub mod query_quota;
pub mod read;
pub mod samr;
pub mod session_setup;
pub mod set_info;
pub mod share_redirect;
pub mod smb1;
pub mod srvsvc;
pub mod transform;
pub mod tree_connect;
pub mod tree_disconnect;
pub mod wkssvc;
pub mod write;

pub use acl::{Sid, descriptor as security_descriptor};
pub use codec::{Utf16, WireError};
pub use create::AccessMask;
pub use dtyp::{FileId, FileTime, Guid};
pub use fscc::FileAttributes;
pub use header::{Command, Header, HeaderFlags, Target};
pub use ntstatus::NtStatus;

/// The code in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

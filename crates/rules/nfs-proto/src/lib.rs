//! The rules of NFS that depend on earlier messages: filehandles, the duplicate request cache, security contexts, the state of
//! NFSv4 clients, and the locks of NFSv3.
//!
//! No sockets, no clock and no threads; time and keys are arguments.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

pub mod duplicate_request;
pub mod filehandle;
mod grace_period;
pub mod gss;
pub mod nlm;
pub mod v4;

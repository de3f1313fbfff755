//! The rules of NFS that need memory of earlier messages: filehandles, the duplicate request cache, the state of NFSv4
//! clients.
//!
//! Pure: no sockets, no clock (time is an argument), no randomness (keys are arguments), no threads.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

pub mod duplicate_request;
pub mod filehandle;
pub mod v4;

//! ONC RPC, XDR, MOUNT v3, NFSv3, NLM v4, NSM, rpcbind and NFSv4.0 to NFSv4.2: bytes to values and back, in both
//! directions.
//!
//! Only bytes belong here: no sockets, no clock, no memory of earlier messages. Every procedure has one file with its
//! arguments (`Args`) and its results (`ResOk`, and [`xdr::Failure`] for the other arm of the union). Every type both
//! encodes and decodes, so that a server, a client and a test share one definition. Payloads are borrowed from the
//! record in which they arrived.
//!
//! A malformed message is an [`xdr::XdrError`]; nothing that a peer sends makes this code panic.
#![forbid(unsafe_code)]
#![deny(clippy::little_endian_bytes, clippy::host_endian_bytes)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

pub mod auth_sys;
pub mod gss;
pub mod mount;
pub mod nlm;
pub mod nsm;
pub mod portmap;
pub mod record_mark;
pub mod rpc;
pub mod rpcbind;
pub mod rquota;
pub mod v3;
pub mod v4;
pub mod xdr;

/// The code in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

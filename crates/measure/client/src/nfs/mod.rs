//! NFSv3 (RFC 1813) and NFSv4.1 (RFC 8881): 1 to 16 connections.

mod gss;
mod mount;
mod rpc;
mod session;
mod tls;
mod v3;
mod v41;

pub use session::Session;

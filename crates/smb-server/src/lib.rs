//! The SMB server: sockets, one handler a command.
//!
//! A frame comes from [`net`], is decrypted and verified ([`receive`]), dispatched to a handler ([`dispatch`],
//! [`handler`]) and answered ([`reply`]). What a connection remembers follows the rules of [`smb_proto`]; what a share
//! does with a request is behind [`share`]. Handlers only translate between the two.

#![forbid(unsafe_code)]

mod attributes;
mod clients;
mod config;
mod connection;
mod context;
mod dispatch;
mod durable;
mod endpoint;
mod extended_attributes;
mod handler;
mod interim;
mod lease;
mod name;
mod network_interfaces;
mod notification;
mod open;
mod oplock;
mod pipe;
mod receive;
mod reply;
pub mod report;
mod server;
mod service;
mod session;
mod status;
mod tree;

pub use config::{Config, Dialect, GivenInterface, Interface, Interfaces, Limits, Protection, Timeouts};
pub use connection::Connection;
pub use durable::{Change, PersistentLease, PersistentLock, PersistentOpen, PersistentOpens};
pub use server::Server;
pub use service::Service;

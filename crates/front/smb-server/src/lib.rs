//! The SMB server: sockets, and one handler for each command.
//!
//! A frame comes from [`net`] ([`serve`]), is decrypted and verified ([`receive`]), dispatched to a handler
//! ([`dispatch`], [`handler`]) and answered ([`reply`], [`compound`]). The state of a connection ([`connection`])
//! follows the rules of [`smb_proto`], and the effect of a request on a share is the work of [`share`]. Handlers only
//! translate between the two. Their [`context`] provides what they may rely on.

#![forbid(unsafe_code)]

mod admission;
mod attributes;
mod compound;
mod config;
mod connection;
mod context;
mod directory;
mod dispatch;
mod endpoint;
mod extended_attributes;
mod front;
mod guesses;
mod handler;
mod interim;
mod link;
mod logged;
mod login;
mod mechanisms;
mod name;
mod network_interfaces;
mod open_files;
mod operation;
mod pipe;
mod quotas;
mod receive;
mod reply;
pub mod report;
mod serve;
mod server;
mod service;
mod session_table;
mod signal;
mod snapshot;
mod state;
mod status;
mod tree;

pub use config::{
    ChannelBinding, Config, Dialect, GivenInterface, Interface, Interfaces, Limits, Ntlm, Protection,
    Timeouts,
};
pub use connection::{Connection, FAILED_LOGONS_MAX};
pub use directory::{AccountEntry, Directory, Known, LookUp, NoDirectory};
pub use front::FRONT;
pub use guesses::{LogonCounts, MechanismLogons};
pub use handler::operations;
pub use handler::query_info::{QUOTA_LIST_BYTES_MAX, QUOTA_ROWS_MAX};
pub use mechanisms::KerberosKeys;
pub use serve::STRANGER_FRAME_BYTES_MAX;
pub use server::Server;
pub use service::Service;
pub use smb_wire::Sid;
pub use smb_wire::lsarpc::SidKind;
pub use state::durable::{Change, PersistentLease, PersistentLock, PersistentOpen, PersistentOpens};

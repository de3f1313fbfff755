//! A client of the control address: one call of the API, over HTTP or HTTPS.
//!
//! [`call`] makes a call, [`get`] asks for a path; each opens a connection of its own and blocks until the server has
//! answered, or has been silent for too long. [`control_access::find`](gateway::control_access::find) says where a server
//! is, and how a caller authenticates to it.
//!
//! It never prints. An [`Error`] says what has happened; the caller says what to do about it.

mod call;
mod error;
mod known_server;
mod patient;

pub use call::{answers, call, call_within, get, path_part, post_patiently, stream};
pub use error::{Error, Result};

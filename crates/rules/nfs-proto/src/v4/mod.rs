//! What NFSv4 remembers of earlier requests: clients, sessions, leases and the back channel (RFC 8881 2.10, 8.3), and what
//! clients hold (RFC 8881 8 to 10). NFSv4.0 has state-owners in place of sessions (RFC 7530 9.1).
//!
//! Rules only. Time and randomness are arguments, and nothing waits. The server puts each of these values behind a lock
//! of its choice, reports events to it, and acts on the results.

pub mod backchannel;
pub mod client;
pub mod delegation;
pub mod grace;
pub mod holdings;
pub mod lease;
pub mod limits;
pub mod lock_owner;
pub mod lock_state;
pub mod offload;
pub mod open_state;
pub mod recovery;
pub mod session;
pub mod slot;
pub mod state_owner;
pub mod stateid;

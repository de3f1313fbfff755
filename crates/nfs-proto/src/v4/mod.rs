//! What NFSv4.1 and 4.2 remember of earlier requests.
//!
//! Rules only. Time and randomness are arguments, and nothing waits.

pub mod delegation;
pub mod grace;
pub mod holdings;
pub mod limits;
pub mod lock_owner;
pub mod lock_state;
pub mod open_state;
pub mod recovery;
pub mod stateid;

//! Advice on a running server: the facts of its clients' work, and trials of advised changes.
//!
//! A [`Look`] is the server's account of some clients at one moment. From two looks follows the [`Work`] of each client in
//! between, and from the work the facts ([`of_work`]) for the rules of `advise`. [`change`] turns their advice into one
//! [`Change`] of a share that can be reverted. A [`Trial`] measures with and without the change, and keeps the change only if
//! it surely helps.
//!
//! A trial leaves a share changed only if the change helps, or if the server can no longer be asked. The clock and the sockets
//! are here, so that `advise` needs neither.

mod change;
mod error;
mod look;
pub mod share_facts;
mod trial;
mod work;

pub use change::{Change, change, changes};
pub use error::{Error, Result};
pub use look::{Look, look};
pub use trial::{Trial, TrialOutcome};
pub use work::{Work, of_work, works};

//! Advice on a server that runs: the facts of its clients' work, and trials of what the advice comes to.
//!
//! A [`Look`] is what the server tells of some clients at a moment. Between two looks each of them has done some [`Work`], of
//! which there are facts ([`of_work`]) for the rules of `advise`. Of their advice, [`change`] makes the one [`Change`] to a
//! share that can be taken back, and a [`Trial`] measures with it and without it, and keeps it only if it surely helps.
//!
//! A trial never leaves a share changed, unless the change helps or the server can no longer be asked. The clock and the
//! sockets are here, so that `advise` needs neither.

mod change;
mod error;
mod look;
pub mod share_facts;
mod trial;
mod work;

pub use change::{Change, change};
pub use error::{Error, Result};
pub use look::{Look, look};
pub use trial::{Trial, TrialOutcome};
pub use work::{Work, of_work, works};

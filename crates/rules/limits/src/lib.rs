//! Provisioned performance: what a share may do, and which operation may go on when.
//!
//! A [`Plan`] says what was provisioned, and [`Plan::limits`] which limits follow from it. A [`Budget`] holds
//! operations to these limits with token buckets, burst credits, and at every limit a fair queue between the clients of
//! a share. It decides and does not act: it has no threads, no clock and no locks. Time is an argument ([`Time`]); an
//! operation that waits is a [`Ticket`].

mod anf;
mod azure;
mod bucket;
mod budget;
mod burst;
mod change;
mod fair_queue;
mod gate;
mod held_count;
mod last_quarter;
mod limit;
mod limits;
mod parse;
mod plan;
pub mod simulation;
mod units;

pub use anf::{Level, Pool, PoolError, Qos, check_pools};
pub use azure::Media;
pub use budget::{Budget, BudgetAnswer, Operation, Released, Ticket, Waits};
pub use change::{ChangeError, DECREASE_AFTER, Provisioned};
pub use held_count::HeldCount;
pub use last_quarter::may_take;
pub use limit::{Counted, Limit, Scope};
pub use limits::{Burst, Handles, Limits};
pub use parse::PlanError;
pub use plan::Plan;
pub use units::{GIB, KIB, MIB, TIB, parse_size, show_size, size};

/// A moment: the time since an origin that the caller chooses and keeps.
pub type Time = std::time::Duration;

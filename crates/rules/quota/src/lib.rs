//! Quotas: how much users, groups and directories may hold, and how much they do.
//!
//! A [`Ledger`] has an account for each user, each group and each directory with a quota. A file is charged to its [`Owners`]:
//! one account of each kind. Before a write, room for the worst case is reserved; afterwards the file is charged for what the
//! store reports. What was there before is found by a count of all files, which is exact although files change meanwhile
//! ([`Ledger::visit`]). All sizes are bytes.

mod account;
mod count;
mod ledger;
mod limits;
mod numbers;

pub use account::{Account, Owners, Subject};
pub use ledger::{Ledger, Refused, Standing};
pub use limits::{GRACE, Limits, LimitsError};

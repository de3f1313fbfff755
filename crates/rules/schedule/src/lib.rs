//! When snapshots are due, and which of them are kept.
//!
//! A [`Policy`] has up to four rules, in the form of Azure NetApp Files' snapshot policies: hourly, daily, weekly, monthly. Each
//! says when it is due ([`Every`]) and how many of its snapshots are kept. [`look`] says what a rule wants now, [`surplus`] which
//! snapshots it no longer keeps. All times are UTC: so no time of a rule is there twice or not at all when clocks are changed
//! for summer.

mod day;
mod due;
mod every;
mod keep;
mod label;
mod policy;
mod utc;

pub use due::{Look, look};
pub use every::Every;
pub use keep::{OfRule, surplus};
pub use label::{is_reserved, label, of_label};
pub use policy::{KEEP_MAX, NAME_BYTES_MAX, Period, Policy, PolicyError, Rule, check_name};
pub use utc::{NotATime, Utc};

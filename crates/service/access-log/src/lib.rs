//! The access log: who did what, from where, to which file, and with what outcome. One JSON object a line.
//!
//! Whoever ends an operation asks first whether its kind is wanted ([`AccessLog::wants`]: one look at a number), and then
//! describes it ([`Event`]). A line is made on the caller's thread and put into the queue of each sink; a thread for each sink
//! writes. A caller never waits: a line for which a queue has no room is dropped and counted, and the next line in that sink
//! says how many were. docs/access-log.md describes the lines.
//!
//! This crate knows neither shares nor protocols.

mod escape;
mod event;
mod file;
mod kind;
mod log;
mod queue;
mod settings;
mod sink;
mod socket;

pub use accounting::Outcome;
pub use event::{Actor, Event};
pub use kind::{Kind, Kinds, UnknownKind};
pub use log::{AccessLog, Counts};
pub use queue::WAITING_BYTES_MAX;
pub use settings::{FileSettings, OpenError, Outcomes, Settings, User, Users};

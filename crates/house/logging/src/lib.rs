//! The log on standard error.
//!
//! The log neither ends nor delays the program that writes it. A separate thread writes the lines, so a file system that does
//! not answer delays only this thread. Lines that cannot be written (to a pipe that nobody reads, to a full disk) are lost and
//! counted, and so are lines that come while too many are waiting. The last lines
//! stay in memory, too ([`recent_lines`]). [`start`] begins the log of a process; [`Names`] are the
//! names that a filter may use.
//!
//! This crate does not know what it logs: the program names its own parts.

mod filter;
mod lines;
mod recent;

pub use filter::{LEVELS, Names, UnknownName};
pub use lines::{Format, finish, lost_lines, newly_lost_lines, start, write_taken};
pub use recent::{LINES_MAX, RecentLine, recent_lines};

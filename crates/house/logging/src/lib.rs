//! The log on standard error.
//!
//! It may neither end nor hold up what it tells of. Lines are written by a thread of their own, which a log on a file system
//! that does not answer holds up, and nobody else. What is not taken (by a pipe that nobody reads, a full disk) is lost, and
//! counted; so is what finds too much waiting. [`start`] begins the log of a process, [`Names`] say what a filter may name.
//!
//! It will never know what it logs: the names of the parts of a program are the program's.

mod filter;
mod lines;

pub use filter::{LEVELS, Names, UnknownName};
pub use lines::{Format, finish, lost_lines, newly_lost_lines, start, write_taken};

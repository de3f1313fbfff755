//! Tells clients that replace the contents of many files as ransomware does.
//!
//! Ransomware replaces data that programs can read by data that looks random, in a way that depends on its maker: it writes over
//! the file, it empties the file and writes it anew, it writes another file
//! beside it and removes the first or renames the new one over it.
//! Often the names get a suffix that nobody uses. [`look`] tells what a piece of data looks like, and a [`Detector`] counts for
//! each client how many files it has spoilt in one of these ways within a time. The counts are of files, not of bytes, because
//! one large file is no sign of anything.

mod client;
mod detector;
mod look;
mod rule;
mod suffix;

pub use client::Count;
pub use detector::{Alarm, Before, Detector, First, Now};
pub use look::{Look, SAMPLE_BYTES, look};
pub use rule::{Rule, RuleError};

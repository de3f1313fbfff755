//! Anabranch beside Samba and NFS-Ganesha on this machine, measured in turns.
//!
//! A [`Lineup`] starts and stops the servers. A [`Contest`] measures one family of rows on the servers that have its
//! protocols, a [`Series`] measures all families in a given time. The result is [`Measured`]: [`save`] writes it to result
//! files, [`ratios`] makes the cells of a table, and [`section`] a section of a Markdown document.
//!
//! This crate never prints: its caller shows the progress and the results.

mod budget;
mod contest;
pub mod counts;
mod error;
mod lineup;
mod own;
pub mod ratios;
pub mod section;
mod series;

pub use contest::{Contest, Measured, over, save};
pub use error::{Error, Result};
pub use lineup::{Lineup, Wanted};
pub use series::Series;

//! Anabranch beside Samba and NFS-Ganesha on this machine, measured in turns.
//!
//! A [`Lineup`] starts the servers and ends them. A [`Contest`] measures one family of rows on those that speak its
//! protocols, a [`Series`] all families in a given time. What comes of them is [`Measured`]: [`save`] makes result files of
//! it, [`ratios`] the cells of a table, and [`section`] a part of a Markdown document.
//!
//! It will never print: who measures shows how far it has come, and what was found.

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

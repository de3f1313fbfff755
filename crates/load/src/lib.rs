//! Load on SMB and NFS servers without mounts, what was measured, and what it means.
//!
//! [`result`] is what a run leaves: one JSON file with everything that was measured and where. A report or advice is made
//! from it and from nothing else. [`histogram`] and [`statistics`] are the arithmetic behind it; [`advise`] draws the conclusions.

pub mod advise;
pub mod histogram;
pub mod result;
pub mod statistics;

//! The operations of a share that one of its parts carries out alone.

mod agreement;
mod budget;
mod quotas;
mod security;
mod snapshots;
mod store;
mod vigilance;
mod watch;

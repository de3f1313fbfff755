//! The operations of a share that one of its parts carries out alone.

mod agreement;
mod budget;
mod store;
mod watch;

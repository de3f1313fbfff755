//! The operations of a share that one of its parts carries out alone.

mod agreement;
mod budget;
mod security;
mod store;
mod watch;

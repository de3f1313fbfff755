//! The operations of a share that one of its parts carries out alone.

mod budget;
mod watch;

//! A gateway: from [`Settings`](settings::Settings) to servers that run, and what changes them while clients work.
//!
//! A caller prepares one ([`Prepared`]: the state database and the stores of the shares are open), gives it sockets ([`Sockets`]) and has
//! it run ([`Gateway`]). Its [`Administration`] makes, changes and removes shares, users and tokens, and puts another configuration in
//! the place of the whole. Signals, flags, files of settings and the log are the caller's.
//!
//! The invariant: what a gateway knows is in its values. Several live in one process and know nothing of each other; each has a
//! state directory, sockets and threads of its own.

mod accounts;
mod administration;
mod apart;
pub mod control_access;
pub mod control_tls;
mod declared;
mod descriptors;
mod directories;
mod gateway;
mod held_up;
mod identities;
pub mod in_time;
mod name_service;
mod names;
mod opening;
mod prepared;
mod problem;
mod servers;
pub mod settings;
mod sockets;
mod upkeep;
mod waiting;

pub use administration::Administration;
pub use gateway::Gateway;
pub use prepared::{Prepared, check_something_to_serve};
pub use problem::{Cause, Problem, Result};
pub use sockets::{Addresses, Sockets};
pub use state::Closed;

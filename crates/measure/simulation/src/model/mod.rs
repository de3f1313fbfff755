//! Conditions that the replies to clients must satisfy, whatever the server does.

mod data;
mod listing;
mod locks;

pub(crate) use data::Data;
pub(crate) use listing::Listing;
pub(crate) use locks::{LockOwner, Locks};

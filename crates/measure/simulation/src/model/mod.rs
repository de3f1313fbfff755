//! What must be true of the answers that clients get, whatever the server does.

mod data;
mod listing;
mod locks;

pub(crate) use data::Data;
pub(crate) use listing::Listing;
pub(crate) use locks::{LockOwner, Locks};

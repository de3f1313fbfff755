//! What must be true of the answers that clients get, whatever the server does.

mod data;
mod locks;

pub(crate) use data::Data;
pub(crate) use locks::{LockOwner, Locks};

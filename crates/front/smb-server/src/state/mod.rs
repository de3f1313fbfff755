//! What a server knows of its clients beyond one request: sessions, what they have open, and what they were granted.

pub(crate) mod clients;
pub(crate) mod durable;
pub(crate) mod lease;
pub(crate) mod notification;
pub(crate) mod open;
pub(crate) mod oplock;
pub(crate) mod session;

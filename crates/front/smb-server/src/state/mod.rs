//! The state that a server keeps of its clients beyond one request: sessions, opens and grants.

pub(crate) mod clients;
pub(crate) mod durable;
pub(crate) mod lease;
pub(crate) mod notification;
pub(crate) mod open;
pub(crate) mod oplock;
pub(crate) mod session;

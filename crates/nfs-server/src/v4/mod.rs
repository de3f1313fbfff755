//! NFS versions 4.1 and 4.2.
//!
//! A request is a COMPOUND, which [`run`] runs. SEQUENCE ([`sequence`]) opens it; with the slot that it finds begins the context
//! that all other operations work on, [`compound`]. The few that need no session get the request only, and cannot reach
//! anybody's state. [`operation`] has the operations, one file each, and their table.

mod acl;
mod attributes;
pub(crate) mod callback;
pub(crate) mod client_records;
mod compound;
pub(crate) mod connection;
mod courtesy;
mod describe;
mod filehandle;
pub(crate) mod files;
mod in_session;
pub(crate) mod link;
mod locations;
mod operation;
mod owner;
mod place;
mod pseudo_fs;
mod recall;
mod recovery;
mod reply;
mod revocation;
pub(crate) mod run;
mod running;
mod sequence;
mod set_attributes;
pub(crate) mod slots;
pub(crate) mod state;

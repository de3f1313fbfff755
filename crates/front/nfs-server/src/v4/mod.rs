//! NFS versions 4.0, 4.1 and 4.2.
//!
//! A request is a COMPOUND, which [`run`] runs. It begins with SEQUENCE ([`sequence`]), which finds a slot. From the
//! slot comes [`compound`], the context of all other operations. The few operations that need no session get only the
//! request, and cannot reach any client's state. A COMPOUND of NFSv4.0 is in no session ([`sessionless`]). [`operation`] has the
//! operations, one file each, and their table.

mod absent;
mod acl;
mod admission;
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
mod moved;
pub(crate) mod open_files;
pub(crate) mod operation;
pub(crate) mod owner;
mod place;
mod pseudo_fs;
mod recall;
mod recovery;
mod reply;
mod revocation;
pub(crate) mod run;
mod running;
mod sequence;
mod sessionless;
mod set_attributes;
pub(crate) mod slots;
pub(crate) mod state;
mod wrong_sec;

//! A directory of CephFS as a store, by Ceph's client library.
//!
//! The library is loaded when a file system is mounted: a machine without Ceph needs none, and one program serves whatever version
//! there is.
//!
//! **Who changes the directory.** A gateway that is the only one to change a directory says so ([`CephOptions::is_exclusive`]). Then
//! what it reads may be cached: the store has a feed of its own changes, and one of everything when the gateway is no longer the only
//! one ([`CephStore::end_exclusive`]).
//!
//! **Nodes.** A node holds an object of the library. Nodes that nobody holds stay cached for some seconds, with the file that they
//! have opened. The library keeps attributes, names and extended attributes in memory as long as the metadata server allows; it keeps
//! no data, so that a write is on the OSDs when it returns. [`storage::Node::commit`] adds what finds the data again.
//!
//! **Handles** are the number of the object, which CephFS never gives to another one, with a keyed checksum: a client cannot forge a
//! handle for an object outside of the store.
//!
//! **Attributes for SMB** are in the extended attribute `user.anabranch.dos`, security descriptors in `trusted.anabranch.acl`.
//!
//! **Named streams** are files of a depot, the directory `.anabranch-streams` in the root, which no lookup and no listing shows
//! (see the module `depot`).
//!
//! What CephFS does not have: it does not tell holes from data ([`storage::Capabilities::SPARSE`]) and does not reserve space; a time
//! before 1970 or after 2106 becomes the nearest that it can store.

mod attributes;
mod claim;
mod data;
mod data_cache;
mod depot;
mod errno;
mod handle;
mod inode;
mod layout;
mod library;
mod listing;
mod mount;
mod name_locks;
mod names;
mod node;
mod open_file;
mod place;
mod snapshot_places;
mod snapshot_store;
mod snapshots;
mod store;
mod streams;
mod xattrs;

pub use layout::data_pool_at;
pub use library::end_process;
pub use mount::{Mount, MountError, Place, check, end_session};
pub use store::{CephOptions, CephStore};

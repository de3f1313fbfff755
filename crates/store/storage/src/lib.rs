//! The storage trait, its errors, its conformance suite and the in-memory store.
//!
//! A store is a tree of objects. An object is a [`Node`]: pinned, and named by a stable [`ObjectId`] and by a [`Handle`]
//! that survives a restart of the server. All calls are synchronous and object-safe. A call that waits takes a
//! token ([`MayWait`]), or can be tried without one first ([`Wait`]).
//!
//! The trait is documented in groups: what a read-only store needs, what writing adds, and what sparse files, extended
//! attributes and clones add. A call for a feature that the store lacks returns [`Error::NotSupported`].

mod attributes;
pub mod conformance;
pub mod depot;
mod errno;
mod error;
pub mod fault;
mod handle;
pub mod memory;
mod name;
mod node;
mod node_cache;
mod observe;
mod own_feed;
mod quick_map;
mod reserved_names;
mod snapshot_name;
mod snapshots;
mod store;
mod stored_descriptor;
mod stored_dos;
mod wait;

pub use attributes::{
    Attributes, CLOCK_TICK, Device, FileFlags, FileKind, ObjectId, Protection, SetAttributes, SetTime, Space,
    Timestamp, Want,
};
pub use error::{Error, Result};
pub use handle::{HANDLE_BYTES_MAX, Handle};
pub use name::{
    NAME_BYTES_MAX, Name, STREAM_NAME_BYTES_MAX, StreamName, XATTR_NAME_BYTES_MAX, check_xattr_name,
};
pub use node::{
    DirEntry, NewKind, NewNode, Node, NodeRef, Replace, SeekTo, Stability, StreamEntry, XattrMode,
};
pub use node_cache::NodeCache;
pub use observe::{Deed, Feed, Observed, ObservedId, Observer, Uncertain};
pub use own_feed::{FeedLimits, OwnChanges, OwnFeed};
pub use quick_map::{QuickHash, QuickHasher, QuickMap};
pub use reserved_names::ReservedNames;
pub use snapshot_name::{SnapshotName, date_and_time};
pub use snapshots::{
    BEFORE_REVERT, FoundSnapshot, NoSnapshots, Snapshot, SnapshotId, Snapshots, in_order, is_nowhere,
    name_beside, not_before,
};
pub use store::{Capabilities, Storage};
pub use stored_descriptor::{DESCRIPTOR_BYTES_MAX, StoredDescriptor};
pub use stored_dos::{DOS_BYTES_MAX, StoredDos};
pub use wait::{KnownLocal, MayWait, Moment, StoreThread, View, Wait};

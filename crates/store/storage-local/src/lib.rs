//! A directory of this machine as a store (Linux).
//!
//! **Below the root only.** Names are resolved one component at a time, relative to an open descriptor, with `openat2`
//! (`RESOLVE_BENEATH`, no symbolic links, no magic links, no mount points). Directories on which another file system is
//! mounted, and Btrfs subvolumes, are refused ([`storage::Error::PermissionDenied`]), and the log says so: inode numbers
//! are unique only within one file system.
//!
//! **Nodes.** A node holds an `O_PATH` descriptor, which pins the inode and so its number. Descriptors for data are
//! opened when first needed. Fifos, sockets and devices are never opened. Nodes that nobody holds stay cached for some
//! seconds, so that a path that is in use costs one `statx` per component. The data of a file that a local program
//! removes is freed when its node leaves the cache.
//!
//! **Handles** are the file system's own where the server may use them (`CAP_DAC_READ_SEARCH`), with a keyed checksum:
//! a client cannot forge a handle for an object that was never looked up below the root. When a directory's handle is
//! used, the directory must still lie below the root. A file that a local program has moved out of the root stays
//! reachable by handles that clients already have. Elsewhere handles use an index of names ([`HandleRecords`]),
//! and the handle of an object that a local program renames becomes stale.
//!
//! **Attributes for SMB** (DOS flags and a birth time set by a client) are in one extended attribute,
//! `user.anabranch.dos`. The security descriptor is in another: `trusted.anabranch.acl` where the server is privileged,
//! otherwise `user.anabranch.acl`.
//!
//! **Named streams** are files of a depot, the directory `.anabranch-streams` in the root, which no lookup and no
//! listing shows (see the module `depot`). A number leads from the object to its directory there; it is in an attribute
//! of the object, `trusted.anabranch.streams` or `user.anabranch.streams`. They exist on file systems whose handles are
//! never reused and that have extended attributes.
//!
//! **Snapshots** are there where the root is a subvolume of Btrfs (see the modules `snapshots`, `snapshot_folder` and `revert`).
//! Those that the server takes are in `.anabranch-snapshots` in the root, which is as hidden as the depot.
//!
//! **Pools** are directories in which the server makes the directories of shares itself, and removes them again (see the modules
//! `pool`, `pool_mark` and `removal`).

mod attributes;
mod below;
mod btrfs;
mod carriers;
mod copied_streams;
mod data;
mod depot;
mod depot_check;
mod depot_sweep;
mod descriptor;
mod directory;
mod dos;
mod end_of_streams;
mod errno;
mod feed;
mod group_directory;
mod handle;
mod handle_records;
mod index;
pub mod kernel_handle;
mod limits;
mod names;
mod node;
mod observe;
mod old_depot;
mod other_file_systems;
mod others_snapshots;
mod pool;
mod pool_mark;
mod probe;
mod removal;
mod reserved;
mod resolve;
mod revert;
mod snapshot_folder;
mod snapshot_store;
mod snapshots;
mod store;
mod stream_folder;
mod streams;
mod streams_number;
mod sys;
mod touched;
mod tree_items;
mod xattr;

pub use depot_check::{OrphanedStreams, StreamsCheck, check_streams};
pub use group_directory::create_for_group;
pub use handle_records::{HandleKey, HandleRecords, NameRecord, RecordsError, RecordsInMemory};
pub use limits::raise_descriptor_limit;
pub use pool::{Pool, PoolError, PoolOwner, PoolSpace};
pub use pool_mark::{NotAMark, PoolMark};
pub use removal::Removal;
pub use reserved::lacks_reserved_names;
pub use store::{LocalOptions, LocalStore};

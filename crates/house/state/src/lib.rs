//! What a server must remember across restarts, in one database of its state directory: who it is, the key of its filehandles,
//! the shares, snapshot policies, users and tokens that were created by command, the numbers of shares and the burst credits that they have left, password
//! hashes, the persistent opens of SMB clients, the NFSv4 clients that hold something, and the hosts with NFSv3 locks. Beside it: whether that database is sound
//! ([`image`]), its last good copy ([`copies`]), and who has the directory ([`lock`]).
//!
//! The invariant: what a call here has returned as kept is on stable storage, whole, and there at the next start; what was only
//! half written is not there at all.

mod account_domain;
mod accounts;
pub mod burst_credits;
pub mod cluster;
pub mod copies;
mod deleted_shares;
pub mod directory;
mod error;
mod handles;
pub mod image;
pub mod lock;
mod lock_hosts;
mod nfs_clients;
mod nt_hashes;
mod persistent_opens;
mod policies;
mod pool_directories;
mod quotas;
mod records;
mod redb_store;
mod replications;
mod restores;
pub mod rules;
mod server_records;
mod snapshots;
mod state;
mod state_file;
pub mod store;

pub use account_domain::AccountDomain;
pub use deleted_shares::DeletedShare;
pub use error::{Error, Result};
pub use lock_hosts::LockHostTable;
pub use nfs_clients::NfsClientTable;
pub use persistent_opens::PersistentOpenTable;
pub use policies::{DoneRecord, PolicyRecord};
pub use pool_directories::{AbandonedDirectory, PoolDirectory};
pub use records::{PasswordKeys, Secrets, ShareRecord, TokenRecord, UserRecord};
pub use replications::{DestinationRecord, DestinationsRecord, ReplicationRecord};
pub use restores::{RestoreEnd, RestoreRecord};
pub use server_records::ServerRecords;
pub use snapshots::ProtectedSnapshot;
pub use state::{State, exists, file};
pub use state_file::Closed;
pub use store::Store;

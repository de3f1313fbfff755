//! Share reservations, byte-range locks and caching grants, for every protocol.
//!
//! [`FileState`] is everything that the opens of one file hold against each other, whichever protocol they came
//! through. It decides and does not act: it has no threads, no clock and no sockets. A holder that must be told about
//! its caching grant is returned as a value ([`Break`]). The caller keeps the queue of requests that wait for locks,
//! and looks at it again when a call says that something was freed.
//!
//! Rules: [MS-FSA] 2.1.4.10 (range locks), 2.1.4.12 (oplock breaks), 2.1.5.1.2.2 (sharing);
//! RFC 8881 9 (share reservations, byte-range locks) and 10.4 (delegations).

mod access;
mod byte_range_lock;
mod caching;
mod file;
mod limits;
mod owner;
mod range;
mod share_reservation;
mod small_map;
mod stream_opens;
mod under;

pub use access::{Access, Sharing};
pub use byte_range_lock::{ByteRangeLock, LockChange, LockError, LockKind, UnlockError};
pub use caching::{AcknowledgeError, Break, Breaks, Caching, Holder, Operation, is_quiet};
pub use file::{FileState, IoConflict, Released};
pub use limits::FileLimits;
pub use owner::{Actor, LockOwner, OpenKey};
pub use range::{ByteRange, InvalidRange};
pub use share_reservation::{Reservation, ReserveError};
pub use small_map::SmallMap;

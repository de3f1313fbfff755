//! What a server sends to another one that replicates a share: bytes to values and back, without I/O or state.
//!
//! A stream is a sequence of [`Record`]s, and the last one is [`Record::End`]: a stream that ends earlier was cut off. There are two
//! kinds. That of *changes* says what is different between two snapshots: first what has left its place ([`Record::Departed`]), then
//! each directory in which something is different, with what is different in it ([`Record::Directory`], [`Record::Entry`], [`Record::Left`]). That of
//! *objects* has what single objects consist of, in the order in which they were asked for ([`Record::Object`] up to
//! [`Record::ObjectEnd`]).
//!
//! Each record is a frame: its kind (8 bits), the length of the rest (32 bits), the rest. All numbers are little-endian.

mod bytes;
mod object;
mod record;

pub use bytes::Malformed;
pub use object::{Kind, Number, Object, Time};
pub use record::{Directory, Entry, FRAME_BYTES_MAX, Record, VERSION, Version, Wanted, WantedObject};

/// The most bytes of data in one record.
pub const DATA_BYTES_MAX: usize = 256 << 10;
/// The most bytes of a name: that of an entry, a stream or an extended attribute. Linux's are shorter; names of streams have up to 765.
pub const NAME_BYTES_MAX: usize = 1024;
/// How many directories may lie in each other, with the root. What is deeper is not replicated.
pub const DEPTH_MAX: usize = 1024;
/// The most bytes of a handle of an object.
pub const HANDLE_BYTES_MAX: usize = 64;
/// The most bytes of the text of a symbolic link, of a security descriptor, and of the value of an extended attribute: what Linux
/// keeps in an extended attribute.
pub const VALUE_BYTES_MAX: usize = 64 << 10;
/// The most objects that are asked for at a time.
pub const WANTED_MAX: usize = 1024;

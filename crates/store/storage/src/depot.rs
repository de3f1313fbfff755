//! The layout of a depot: a directory in which a store keeps named streams as ordinary files. All of this is bytes and
//! names, the same for every store that has a depot.
//!
//! The depot is the directory [`DEPOT_NAME`] in the root of the store. In it, an object's streams have a directory of
//! their own, named by a random number ([`StreamsNumber`]). An extended attribute of the object holds the number, so
//! the number travels with the object wherever its attributes do: into a snapshot, to another disk, into a backup and
//! out of it. An attribute of the directory says which object it belongs to ([`StreamsOwner`]), so that a copy of the
//! object, which carries the same number, is known as a copy. [`StreamPath`] is the place of a stream's file in the
//! directory.

mod number;
mod owner;
mod path;

pub use number::StreamsNumber;
pub use owner::StreamsOwner;
pub use path::{STREAM_DEPTH_MAX, StreamPath};

/// The depot's name in the root. The name is reserved everywhere in the store, since one share may lie inside another.
pub const DEPOT_NAME: &str = ".anabranch-streams";

/// Whether a name is the depot's, ignoring case.
#[must_use]
pub fn is_depot_name(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(DEPOT_NAME.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_depots_in_any_case() {
        assert!(is_depot_name(b".anabranch-streams") && is_depot_name(b".ANABRANCH-STREAMS"));
        assert!(!is_depot_name(b".anabranch-stream") && !is_depot_name(b""));
    }
}

//! The layout of a depot: a directory in which a store keeps named streams as ordinary files. All of this is bytes and
//! names, the same for every store that has a depot.
//!
//! The depot is the directory [`DEPOT_NAME`] in the root of the store. In it, an object's streams have a directory of
//! their own; [`StreamPath`] is the place of a stream's file there.

mod path;

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

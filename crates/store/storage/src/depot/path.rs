//! The place of a stream's file in its object's directory.
//!
//! A stream's file has the stream's name, unless the name is too long for a file or is `.` or `..`. Stream names
//! contain no colon, so a leading colon marks a name that is encoded: a name of more than 254 bytes is cut into pieces
//! of 254, each of which but the last is a directory `:PIECE`; `.` becomes `:.`. So creating, renaming and removing a
//! stream is one call each, which is atomic.

use crate::StreamName;

/// How much of a name fits into one component after the colon, in bytes.
const PIECE_BYTES: usize = 254;
/// Levels of directories below an object's directory: as many as the longest name needs.
pub const STREAM_DEPTH_MAX: usize = 4;

/// The place of a stream's file below its object's directory.
#[derive(Debug, PartialEq, Eq)]
pub struct StreamPath {
    /// The directories on the way, from the top, as paths.
    pub directories: Vec<Vec<u8>>,
    /// The path of the file.
    pub path: Vec<u8>,
}

impl StreamPath {
    /// The place of the stream with this name.
    #[must_use]
    pub fn of(name: StreamName<'_>) -> Self {
        let (mut directories, mut path) = (Vec::new(), Vec::new());
        let mut rest = name.as_bytes();
        while let Some((piece, behind)) = rest.split_at_checked(PIECE_BYTES).filter(|(_, b)| !b.is_empty()) {
            path.push(b':');
            path.extend_from_slice(piece);
            directories.push(path.clone());
            path.push(b'/');
            rest = behind;
        }
        if matches!(rest, b"." | b"..") {
            path.push(b':');
        }
        path.extend_from_slice(rest);
        Self { directories, path }
    }

    /// The part of a stream's name for which an entry of a directory stands.
    #[must_use]
    pub fn piece_of(entry: &[u8]) -> &[u8] {
        entry.strip_prefix(b":").unwrap_or(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &[u8]) -> Vec<u8> {
        StreamPath::of(StreamName::new(name).unwrap()).path
    }

    #[test]
    fn names_are_cut_into_pieces_that_fit() {
        assert_eq!(path(b"a"), b"a");
        assert_eq!(path(&[b'a'; 254]), [b'a'; 254]);
        assert_eq!(path(b"."), b":.");
        assert_eq!(path(b".."), b":..");
        let long = [&[b'a'; 254][..], b"."].concat();
        let place = StreamPath::of(StreamName::new(&long).unwrap());
        assert_eq!(place.directories, [[b":", &[b'a'; 254][..]].concat()]);
        assert_eq!(place.path, [b":", &[b'a'; 254][..], b"/:."].concat());
        let longest = StreamPath::of(StreamName::new(&[b'a'; 765]).unwrap());
        assert_eq!(longest.directories.len(), 3);
        assert!(longest.path.split(|b| *b == b'/').all(|piece| piece.len() <= 255));
    }

    #[test]
    fn a_name_is_put_together_again() {
        for name in [&b"a"[..], b".", b"..", &[b'b'; 254], &[b'c'; 255], &[b'd'; 765]] {
            let pieces =
                path(name).split(|b| *b == b'/').map(StreamPath::piece_of).collect::<Vec<_>>().concat();
            assert_eq!(pieces, name);
        }
    }
}

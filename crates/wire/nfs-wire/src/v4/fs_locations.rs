//! The attribute `fs_locations`, RFC 8881 5.8.2.12 and 11.16: other places where a file system can be reached.

use crate::v4::types::Text;
use crate::xdr::xdr_struct;

/// A path, one text for each component; the root of the server has none.
#[doc(alias = "pathname4")]
pub type Pathname<'a> = Vec<Text<'a>>;

/// The places of a file system.
#[doc(alias = "fs_locations4")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsLocations<'a> {
    /// The file system's root in this server's name space.
    pub root: Pathname<'a>,
    /// All places where the file system can be reached, including this one.
    pub locations: Vec<FsLocation<'a>>,
}

xdr_struct!(FsLocations<'a> { root, locations });

/// Servers, or network addresses of one server, that have a file system at the same place.
#[doc(alias = "fs_location4")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsLocation<'a> {
    /// Names of servers, or IP addresses as text.
    pub servers: Vec<Text<'a>>,
    /// The file system's root in their name space.
    pub root: Pathname<'a>,
}

xdr_struct!(FsLocation<'a> { servers, root });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, Encode, Writer};

    #[test]
    fn they_are_a_path_and_addresses_with_a_path() {
        let root = vec![Text(b"data")];
        let location = FsLocation { servers: vec![Text(b"10.0.2.2"), Text(b"::1")], root: root.clone() };
        let locations = FsLocations { root, locations: vec![location] };
        // RFC 5662: fs_locations4 { pathname4 fs_root; fs_location4 locations<>; }, fs_location4 { utf8str_cis server<>; pathname4 rootpath; }
        let bytes = b"\0\0\0\x01\0\0\0\x04data\0\0\0\x01\0\0\0\x02\0\0\0\x0810.0.2.2\0\0\0\x03::1\0\0\0\0\x01\0\0\0\x04data";
        let mut written = Vec::new();
        locations.encode(&mut Writer::new(&mut written));
        assert_eq!(written, bytes);
        assert_eq!(FsLocations::from_bytes(bytes), Ok(locations));
    }
}

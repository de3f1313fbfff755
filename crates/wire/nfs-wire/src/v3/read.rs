//! READ, RFC 1813 3.3.6: read data of a file.

use crate::v3::attr::{ATTRIBUTES_BYTES, Attributes};
use crate::v3::types::{FileHandle, ResWithAttributes};
use crate::xdr::{Encode, Writer, xdr_struct};

/// Arguments.
#[doc(alias = "READ3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The file.
    pub file: FileHandle,
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub count: u32,
}

xdr_struct!(Args { file, offset, count });

/// Success, with the data borrowed from the reply.
#[doc(alias = "READ3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The file's attributes.
    pub file_attributes: Option<Attributes>,
    /// The number of bytes read: the length of `data`.
    pub count: u32,
    /// Whether the read reached the end of the file.
    pub eof: bool,
    /// The data.
    pub data: &'a [u8],
}

xdr_struct!(ResOk<'a> { file_attributes, count, eof, data });

/// Result; on failure with the file's attributes.
#[doc(alias = "READ3res")]
pub type Res<'a> = ResWithAttributes<ResOk<'a>>;

/// Everything that precedes the data in a successful result, for a server that reads the data straight into its reply.
///
/// Order on the wire: this, `count` bytes of data, [`padding`](crate::xdr::padding)`(count)` zero bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The file's attributes.
    pub file_attributes: Option<Attributes>,
    /// The number of data bytes that follow.
    pub count: u32,
    /// Whether the read reached the end of the file.
    pub eof: bool,
}

impl Head {
    /// The most bytes of a head: status, attributes, count, eof and the data's length.
    pub const BYTES_MAX: usize = 4 + 4 + ATTRIBUTES_BYTES + 4 + 4 + 4;
}

impl Encode for Head {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(0); // NFS3_OK
        self.file_attributes.encode(writer);
        writer.u32(self.count);
        writer.bool(self.eof);
        writer.u32(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::types::{FileType, SpecData, Time};

    #[test]
    fn a_head_and_data_are_a_result() {
        let time = Time { seconds: 1, nanoseconds: 2 };
        let attributes = Attributes {
            file_type: FileType::Regular,
            mode: 0o644,
            links: 1,
            uid: 2,
            gid: 3,
            size: 5,
            used: 4096,
            rdev: SpecData::default(),
            fsid: 7,
            fileid: 8,
            atime: time,
            mtime: time,
            ctime: time,
        };
        assert_eq!(attributes.encode_to_vec().len(), ATTRIBUTES_BYTES);
        let data = b"hello";
        for file_attributes in [None, Some(attributes)] {
            let head = Head { file_attributes, count: 5, eof: true };
            let mut reply = head.encode_to_vec();
            assert!(reply.len() <= Head::BYTES_MAX);
            reply.extend_from_slice(b"hello\0\0\0");
            let result: Res<'_> = Ok(ResOk { file_attributes, count: 5, eof: true, data });
            assert_eq!(reply, result.encode_to_vec());
        }
    }
}

//! READ_PLUS, RFC 7862 15.10: data and holes of a file.

use crate::v4::seek::content;
use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "READ_PLUS4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The open, the locks or the delegation used for the operation.
    pub stateid: Stateid,
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub count: u32,
}

xdr_struct!(Args { stateid, offset, count });

/// Success.
#[doc(alias = "read_plus_res4")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// Whether the read reached the end of the file.
    pub eof: bool,
    /// Parts of the file, in order.
    pub contents: Vec<Content<'a>>,
}

xdr_struct!(ResOk<'a> { eof, contents });

/// Result.
#[doc(alias = "READ_PLUS4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;

/// A part of a file.
#[doc(alias = "read_plus_content")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// Data.
    Data {
        /// Offset of the first byte.
        offset: u64,
        /// The data.
        data: &'a [u8],
    },
    /// A hole, which reads as zeros.
    Hole {
        /// Offset of the first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
}

impl Encode for Content<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Data { offset, data } => {
                writer.u32(content::DATA);
                writer.u64(offset);
                writer.opaque(data);
            }
            Self::Hole { offset, length } => {
                writer.u32(content::HOLE);
                writer.u64(offset);
                writer.u64(length);
            }
        }
    }
}

impl<'a> Decode<'a> for Content<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match reader.u32()? {
            content::DATA => Ok(Self::Data { offset: reader.u64()?, data: Decode::decode(reader)? }),
            content::HOLE => Ok(Self::Hole { offset: reader.u64()?, length: reader.u64()? }),
            value => Err(XdrError::UndefinedValue { kind: "data_content4", value }),
        }
    }
}

/// Everything that precedes the data in a successful result with one part, which is data.
///
/// Order on the wire: the operation's number, this, `count` bytes of data,
/// [`padding`](crate::xdr::padding)`(count)` zero bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHead {
    /// Whether the read reached the end of the file.
    pub eof: bool,
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of data bytes that follow.
    pub count: u32,
}

impl DataHead {
    /// Bytes of a head: status, eof, number of parts, and the part's kind, offset and length.
    pub const BYTES: usize = 4 + 4 + 4 + 4 + 8 + 4;
}

impl Encode for DataHead {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(0); // NFS4_OK
        writer.bool(self.eof);
        writer.u32(1);
        writer.u32(content::DATA);
        writer.u64(self.offset);
        writer.u32(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_and_data_are_a_result() {
        let mut reply = DataHead { eof: false, offset: 9, count: 5 }.encode_to_vec();
        assert_eq!(reply.len(), DataHead::BYTES);
        reply.extend_from_slice(b"hello\0\0\0");
        let contents = vec![Content::Data { offset: 9, data: b"hello" }];
        let result: Res<'_> = Ok(ResOk { eof: false, contents });
        assert_eq!(reply, result.encode_to_vec());
    }
}

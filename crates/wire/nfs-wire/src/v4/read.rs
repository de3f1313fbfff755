//! READ, RFC 8881 18.22: read data of a file.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::{Encode, Writer, xdr_struct};

/// Arguments.
#[doc(alias = "READ4args")]
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

/// Success, with the data borrowed from the reply.
#[doc(alias = "READ4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// Whether the read reached the end of the file.
    pub eof: bool,
    /// The data.
    pub data: &'a [u8],
}

xdr_struct!(ResOk<'a> { eof, data });

/// Result.
#[doc(alias = "READ4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;

/// Everything that precedes the data in a successful result, for a server that reads the data straight into its reply.
///
/// Order on the wire: the operation's number, this, `count` bytes of data,
/// [`padding`](crate::xdr::padding)`(count)` zero bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Whether the read reached the end of the file.
    pub eof: bool,
    /// The number of data bytes that follow.
    pub count: u32,
}

impl Head {
    /// Bytes of a head: status, eof and the data's length.
    pub const BYTES: usize = 4 + 4 + 4;
}

impl Encode for Head {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(0); // NFS4_OK
        writer.bool(self.eof);
        writer.u32(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_and_data_are_a_result() {
        let mut reply = Head { eof: true, count: 5 }.encode_to_vec();
        assert_eq!(reply.len(), Head::BYTES);
        reply.extend_from_slice(b"hello\0\0\0");
        let result: Res<'_> = Ok(ResOk { eof: true, data: b"hello" });
        assert_eq!(reply, result.encode_to_vec());
    }
}

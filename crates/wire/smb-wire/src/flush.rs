//! FLUSH, [MS-SMB2] 2.2.17 and 2.2.18.

use crate::codec::{Put, Reader, WireError, put_zeros};
use crate::dtyp::FileId;

/// Asks the server to put data that was written to a file on stable storage.
#[doc(alias = "SMB2_FLUSH_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The open.
    pub file_id: FileId,
}

impl Request {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::StructureSize`].
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<24>(message, 24)?;
        r.skip(6)?;
        Ok(Self { file_id: FileId::read(&mut r)? })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(24);
        put_zeros(out, 6);
        self.file_id.put(out);
    }
}

empty_body! {
    /// The data is stable.
    #[doc(alias = "SMB2_FLUSH_RESPONSE")]
    Response
}

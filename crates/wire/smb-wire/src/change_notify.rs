//! CHANGE_NOTIFY, [MS-SMB2] 2.2.35 and 2.2.36.

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError};
use crate::dtyp::FileId;

bitflags! {
    /// `Flags` of the request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ChangeNotifyFlags: u16 {
        /// SMB2_WATCH_TREE: the directory and everything below it.
        const WATCH_TREE = 0x0001;
        const _ = !0;
    }
}

bitflags! {
    /// The changes to report (FILE_NOTIFY_CHANGE_*).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct CompletionFilter: u32 {
        /// Names of files.
        const FILE_NAME = 0x0000_0001;
        /// Names of directories.
        const DIR_NAME = 0x0000_0002;
        /// File attributes.
        const ATTRIBUTES = 0x0000_0004;
        /// Sizes.
        const SIZE = 0x0000_0008;
        /// Times of the last write.
        const LAST_WRITE = 0x0000_0010;
        /// Times of the last access.
        const LAST_ACCESS = 0x0000_0020;
        /// Times of creation.
        const CREATION = 0x0000_0040;
        /// Extended attributes.
        const EA = 0x0000_0080;
        /// Security descriptors.
        const SECURITY = 0x0000_0100;
        /// Names of streams.
        const STREAM_NAME = 0x0000_0200;
        /// Sizes of streams.
        const STREAM_SIZE = 0x0000_0400;
        /// Data of streams.
        const STREAM_WRITE = 0x0000_0800;
        const _ = !0;
    }
}

/// A CHANGE_NOTIFY request.
#[doc(alias = "SMB2_CHANGE_NOTIFY_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Whether to watch the whole tree.
    pub flags: ChangeNotifyFlags,
    /// The largest output buffer in bytes.
    pub output_buffer_length: u32,
    /// The open directory.
    pub file_id: FileId,
    /// The changes to report.
    pub completion_filter: CompletionFilter,
}

impl Request {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::StructureSize`].
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<32>(message, 32)?;
        Ok(Self {
            flags: ChangeNotifyFlags::from_bits_retain(r.u16()?),
            output_buffer_length: r.u32()?,
            file_id: FileId::read(&mut r)?,
            completion_filter: CompletionFilter::from_bits_retain(r.u32()?),
        })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(32);
        out.put_u16(self.flags.bits());
        out.put_u32(self.output_buffer_length);
        self.file_id.put(out);
        out.put_u32(self.completion_filter.bits());
        out.put_u32(0);
    }
}

output_buffer_response! {
    /// A CHANGE_NOTIFY response: a chain of changes ([`crate::fscc::notify`]).
    #[doc(alias = "SMB2_CHANGE_NOTIFY_RESPONSE")]
    Response
}

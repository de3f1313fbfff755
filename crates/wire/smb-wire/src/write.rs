//! WRITE, [MS-SMB2] 2.2.21 and 2.2.22.

use std::ops::Range;

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError, len_u16, len_u32, variable};
use crate::dtyp::FileId;
use crate::read::Channel;

bitflags! {
    /// `Flags` of the request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct WriteFlags: u32 {
        /// SMB2_WRITEFLAG_WRITE_THROUGH (SMB 2.1 and later)
        const WRITE_THROUGH = 0x0000_0001;
        /// SMB2_WRITEFLAG_WRITE_UNBUFFERED (SMB 3.0.2 and later)
        const WRITE_UNBUFFERED = 0x0000_0002;
        const _ = !0;
    }
}

const REQUEST_FIXED_END: usize = 64 + 48;

/// A WRITE request.
#[doc(alias = "SMB2_WRITE_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The data to write; empty when it is sent over another channel ([`Self::remaining_bytes`] has its length).
    pub data: &'a [u8],
    /// Offset in the file. A value above `i64::MAX` is invalid, which the server checks.
    pub offset: u64,
    /// The open.
    pub file_id: FileId,
    /// How the payload is sent.
    pub channel: Channel,
    /// Bytes that will follow this request, as a hint, or bytes on another channel.
    pub remaining_bytes: u32,
    /// RDMA descriptors; empty with [`Channel::None`].
    pub channel_info: &'a [u8],
    /// How to write.
    pub flags: WriteFlags,
    data_offset: u16,
}

impl<'a> Request<'a> {
    /// A request to write `data`, for encoding.
    #[must_use]
    pub const fn new(file_id: FileId, offset: u64, data: &'a [u8], flags: WriteFlags) -> Self {
        Self {
            data,
            offset,
            file_id,
            channel: Channel::None,
            remaining_bytes: 0,
            channel_info: &[],
            flags,
            data_offset: 0x70,
        }
    }

    /// The place of [`Self::data`] in the decoded message, so that a caller who owns the message can keep the payload
    /// without copying it.
    #[must_use]
    pub fn payload_range(&self) -> Range<usize> {
        let start = usize::from(self.data_offset);
        if self.data.is_empty() { 0..0 } else { start..start.saturating_add(self.data.len()) }
    }

    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`] or [`WireError::OutOfBounds`].
    #[inline]
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<48>(message, 49)?;
        let data_offset = r.u16()?;
        let length = r.len32()?;
        let offset = r.u64()?;
        let file_id = FileId::read(&mut r)?;
        let channel = Channel::from(r.u32()?);
        let remaining_bytes = r.u32()?;
        let (info_offset, info_length) = (r.len16()?, r.len16()?);
        let flags = WriteFlags::from_bits_retain(r.u32()?);
        let data = variable(message, REQUEST_FIXED_END, data_offset.into(), length, "Data")?;
        // [MS-SMB2] 2.2.21: without a channel these fields "MUST be ignored by the server".
        let channel_info = match channel {
            Channel::None => &[],
            _ => variable(message, REQUEST_FIXED_END, info_offset, info_length, "WriteChannelInfo")?,
        };
        Ok(Self { data, offset, file_id, channel, remaining_bytes, channel_info, flags, data_offset })
    }

    /// Appends the body: the RDMA descriptors, if there are any, then the payload.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let info_offset = if self.channel_info.is_empty() { 0 } else { REQUEST_FIXED_END };
        let data_offset = REQUEST_FIXED_END.saturating_add(self.channel_info.len());
        out.put_u16(49);
        out.put_u16(len_u16(data_offset, "WriteChannelInfo")?);
        out.put_u32(len_u32(self.data.len(), "Data")?);
        out.put_u64(self.offset);
        self.file_id.put(out);
        out.put_u32(self.channel.into());
        out.put_u32(self.remaining_bytes);
        out.put_u16(len_u16(info_offset, "WriteChannelInfoOffset")?);
        out.put_u16(len_u16(self.channel_info.len(), "WriteChannelInfo")?);
        out.put_u32(self.flags.bits());
        out.put(self.channel_info);
        out.put(self.data);
        Ok(())
    }
}

/// A WRITE response.
#[doc(alias = "SMB2_WRITE_RESPONSE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Bytes written.
    pub count: u32,
}

impl Response {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::StructureSize`].
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<16>(message, 17)?;
        r.skip(2)?;
        Ok(Self { count: r.u32()? })
    }

    /// Appends the body.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let [a, b, c, d] = self.count.to_le_bytes();
        out.put(&[17, 0, 0, 0, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(offset: u16, length: u32) -> Vec<u8> {
        let mut message = vec![0; 64];
        Request::new(FileId::ANY, 9, b"payload", WriteFlags::WRITE_THROUGH).encode(&mut message).unwrap();
        message[66..68].copy_from_slice(&offset.to_le_bytes());
        message[68..72].copy_from_slice(&length.to_le_bytes());
        message
    }

    #[test]
    fn the_payload_is_inside_the_message() {
        let bytes = message(0x70, 7);
        let request = Request::decode(&bytes).unwrap();
        assert_eq!((request.data, request.payload_range()), (&b"payload"[..], 0x70..0x77));
        let bytes = message(0x71, 6);
        assert_eq!(Request::decode(&bytes).unwrap().data, b"ayload");
        for (offset, length) in [(0x70, 8), (0x6F, 1), (0, 7), (0xFFFF, 1), (0x70, u32::MAX)] {
            assert_eq!(Request::decode(&message(offset, length)), Err(WireError::OutOfBounds("Data")));
        }
    }

    #[test]
    fn an_empty_payload_has_no_range() {
        let bytes = message(0xFFFF, 0);
        assert_eq!(Request::decode(&bytes).unwrap().payload_range(), 0..0);
    }
}

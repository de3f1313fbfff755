//! READ, [MS-SMB2] 2.2.19 and 2.2.20.

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError, len_u8, len_u16, len_u32, put_zeros, variable};
use crate::dtyp::FileId;

bitflags! {
    /// `Flags` of the request (SMB 3.0.2 and later).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct RequestFlags: u8 {
        /// SMB2_READFLAG_READ_UNBUFFERED
        const READ_UNBUFFERED = 0x01;
        /// SMB2_READFLAG_REQUEST_COMPRESSED (SMB 3.1.1)
        const REQUEST_COMPRESSED = 0x02;
        const _ = !0;
    }
}

wire_enum! {
    /// How the payload of a READ or WRITE is sent (SMB 3.x).
    pub enum Channel: u32 {
        /// In the message.
        None = 0x0000_0000,
        /// SMB2_CHANNEL_RDMA_V1
        RdmaV1 = 0x0000_0001,
        /// SMB2_CHANNEL_RDMA_V1_INVALIDATE
        RdmaV1Invalidate = 0x0000_0002,
        /// SMB2_CHANNEL_RDMA_TRANSFORM
        RdmaTransform = 0x0000_0003,
    }
}

const REQUEST_FIXED_END: usize = 64 + 48;

/// A READ request.
#[doc(alias = "SMB2_READ_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Where the client wants the payload, from the response's header; usually 0 or 0x50.
    pub padding: u8,
    /// How to read.
    pub flags: RequestFlags,
    /// Bytes to read.
    pub length: u32,
    /// Where to start in the file. A value above `i64::MAX` is invalid, which the server checks.
    pub offset: u64,
    /// The open.
    pub file_id: FileId,
    /// If fewer bytes than this can be read, the answer is STATUS_END_OF_FILE.
    pub minimum_count: u32,
    /// How the payload is sent.
    pub channel: Channel,
    /// Bytes that the client will read after this, as a hint.
    pub remaining_bytes: u32,
    /// RDMA descriptors; empty with [`Channel::None`].
    pub channel_info: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`] or [`WireError::OutOfBounds`].
    #[inline]
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<48>(message, 49)?;
        let padding = r.u8()?;
        let flags = RequestFlags::from_bits_retain(r.u8()?);
        let length = r.u32()?;
        let offset = r.u64()?;
        let file_id = FileId::read(&mut r)?;
        let minimum_count = r.u32()?;
        let channel = Channel::from(r.u32()?);
        let remaining_bytes = r.u32()?;
        let (info_offset, info_length) = (r.len16()?, r.len16()?);
        // [MS-SMB2] 2.2.19: without a channel these fields "MUST be ignored by the server".
        let channel_info = match channel {
            Channel::None => &[],
            _ => variable(message, REQUEST_FIXED_END, info_offset, info_length, "ReadChannelInfo")?,
        };
        Ok(Self {
            padding,
            flags,
            length,
            offset,
            file_id,
            minimum_count,
            channel,
            remaining_bytes,
            channel_info,
        })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let info_offset = if self.channel_info.is_empty() { 0 } else { REQUEST_FIXED_END };
        out.put_u16(49);
        out.put_u8(self.padding);
        out.put_u8(self.flags.bits());
        out.put_u32(self.length);
        out.put_u64(self.offset);
        self.file_id.put(out);
        out.put_u32(self.minimum_count);
        out.put_u32(self.channel.into());
        out.put_u32(self.remaining_bytes);
        out.put_u16(len_u16(info_offset, "ReadChannelInfoOffset")?);
        out.put_u16(len_u16(self.channel_info.len(), "ReadChannelInfo")?);
        // StructureSize counts one byte of the buffer, and clients send it.
        out.put(if self.channel_info.is_empty() { &[0] } else { self.channel_info });
        Ok(())
    }
}

bitflags! {
    /// `Flags` of the response (SMB 3.1.1; reserved before).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ResponseFlags: u32 {
        /// SMB2_READFLAG_RESPONSE_RDMA_TRANSFORM
        const RDMA_TRANSFORM = 0x0000_0001;
        const _ = !0;
    }
}

/// Offset of the payload of a READ response, from the header, when it directly follows the fixed part.
pub const PAYLOAD_OFFSET: usize = 64 + ResponseHead::LEN;

/// The fixed part of a READ response. The payload is `data_offset` bytes after the start of the header: a server reads
/// the file into that place in its buffer, and writes the header and the fixed part in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseHead {
    /// Offset of the payload from the header, [`PAYLOAD_OFFSET`] or more.
    pub data_offset: u8,
    /// Bytes of payload in the message.
    pub data_length: u32,
    /// Bytes sent over another channel.
    pub data_remaining: u32,
    /// How these bytes were sent.
    pub flags: ResponseFlags,
}

impl ResponseHead {
    /// Bytes of the fixed part.
    pub const LEN: usize = 16;

    /// The fixed part of a response that is directly followed by `data_length` bytes.
    #[must_use]
    pub const fn new(data_length: u32) -> Self {
        // 64 + 16 fits into a byte.
        Self { data_offset: 0x50, data_length, data_remaining: 0, flags: ResponseFlags::empty() }
    }

    /// The fixed part in wire form.
    #[inline]
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0..2].copy_from_slice(&17_u16.to_le_bytes());
        bytes[2] = self.data_offset;
        bytes[4..8].copy_from_slice(&self.data_length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.data_remaining.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.flags.bits().to_le_bytes());
        bytes
    }
}

/// A READ response.
#[doc(alias = "SMB2_READ_RESPONSE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// Bytes sent over another channel.
    pub data_remaining: u32,
    /// How these bytes were sent.
    pub flags: ResponseFlags,
    /// What was read.
    pub data: &'a [u8],
}

impl<'a> Response<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`] or [`WireError::OutOfBounds`].
    #[inline]
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<16>(message, 17)?;
        let data_offset = usize::from(r.u8()?);
        r.skip(1)?;
        let data_length = r.len32()?;
        let data_remaining = r.u32()?;
        let flags = ResponseFlags::from_bits_retain(r.u32()?);
        let data = variable(message, PAYLOAD_OFFSET, data_offset, data_length, "Data")?;
        Ok(Self { data_remaining, flags, data })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let head = ResponseHead {
            data_offset: len_u8(PAYLOAD_OFFSET, "DataOffset")?,
            data_length: len_u32(self.data.len(), "Data")?,
            data_remaining: self.data_remaining,
            flags: self.flags,
        };
        out.put(&head.encode());
        out.put(self.data);
        if self.data.is_empty() {
            put_zeros(out, 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_info_counts_only_with_a_channel() {
        let message = |channel: u8| {
            let mut message = vec![0; 64];
            message.push(49);
            message.resize(64 + 48, 0);
            message[64 + 36] = channel;
            message[64 + 44..64 + 48].copy_from_slice(&[0xFF; 4]);
            message
        };
        assert_eq!(Request::decode(&message(0)).unwrap().channel_info, []);
        assert_eq!(Request::decode(&message(1)), Err(WireError::OutOfBounds("ReadChannelInfo")));
    }

    #[test]
    fn the_payload_lies_where_the_head_says() {
        let message = |offset: u8, length: u8| {
            let head = ResponseHead { data_offset: offset, ..ResponseHead::new(length.into()) };
            [vec![0; 64], head.encode().to_vec(), vec![1, 2, 3, 4]].concat()
        };
        let data = |offset, length| {
            Response::decode(&message(offset, length)).map(|response| response.data.to_vec())
        };
        assert_eq!(data(0x50, 4), Ok(vec![1, 2, 3, 4]));
        assert_eq!(data(0x52, 2), Ok(vec![3, 4]));
        assert_eq!(data(0x4F, 1), Err(WireError::OutOfBounds("Data")));
        assert_eq!(data(0x50, 5), Err(WireError::OutOfBounds("Data")));
        assert_eq!(PAYLOAD_OFFSET, 0x50);
    }
}

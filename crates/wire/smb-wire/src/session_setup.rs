//! SESSION_SETUP, [MS-SMB2] 2.2.5 and 2.2.6. The security token is opaque here.

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError, len_u16, variable};
use crate::negotiate::Capabilities;

bitflags! {
    /// `Flags` of the request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct RequestFlags: u8 {
        /// SMB2_SESSION_FLAG_BINDING: bind this connection to an existing session (SMB 3.x).
        const BINDING = 0x01;
        const _ = !0;
    }
}

bitflags! {
    /// `SecurityMode` of the request: one byte here, two in [`crate::negotiate::SecurityMode`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SecurityMode: u8 {
        /// SMB2_NEGOTIATE_SIGNING_ENABLED
        const SIGNING_ENABLED = 0x01;
        /// SMB2_NEGOTIATE_SIGNING_REQUIRED
        const SIGNING_REQUIRED = 0x02;
        const _ = !0;
    }
}

bitflags! {
    /// `SessionFlags` of the response.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SessionFlags: u16 {
        /// SMB2_SESSION_FLAG_IS_GUEST
        const IS_GUEST = 0x0001;
        /// SMB2_SESSION_FLAG_IS_NULL: an anonymous session.
        const IS_NULL = 0x0002;
        /// SMB2_SESSION_FLAG_ENCRYPT_DATA: everything in this session is encrypted (SMB 3.x).
        const ENCRYPT_DATA = 0x0004;
        const _ = !0;
    }
}

const REQUEST_FIXED_END: usize = 64 + 24;

/// A SESSION_SETUP request.
#[doc(alias = "SMB2_SESSION_SETUP_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Whether this binds a channel.
    pub flags: RequestFlags,
    /// Whether the client supports or requires signing.
    pub security_mode: SecurityMode,
    /// The client's capabilities; only DFS is defined.
    pub capabilities: Capabilities,
    /// An earlier session of the client, whose connection broke and which this session replaces; or 0.
    pub previous_session_id: u64,
    /// A token of the authentication.
    pub security_buffer: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`] or [`WireError::OutOfBounds`].
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<24>(message, 25)?;
        let flags = RequestFlags::from_bits_retain(r.u8()?);
        let security_mode = SecurityMode::from_bits_retain(r.u8()?);
        let capabilities = Capabilities::from_bits_retain(r.u32()?);
        r.skip(4)?;
        let (offset, length) = (r.len16()?, r.len16()?);
        Ok(Self {
            flags,
            security_mode,
            capabilities,
            previous_session_id: r.u64()?,
            security_buffer: variable(message, REQUEST_FIXED_END, offset, length, "SecurityBuffer")?,
        })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u16(25);
        out.put_u8(self.flags.bits());
        out.put_u8(self.security_mode.bits());
        out.put_u32(self.capabilities.bits());
        out.put_u32(0);
        out.put_u16(len_u16(REQUEST_FIXED_END, "SecurityBufferOffset")?);
        out.put_u16(len_u16(self.security_buffer.len(), "SecurityBuffer")?);
        out.put_u64(self.previous_session_id);
        out.put(self.security_buffer);
        Ok(())
    }
}

const RESPONSE_FIXED_END: usize = 64 + 8;

/// A SESSION_SETUP response; with STATUS_MORE_PROCESSING_REQUIRED or STATUS_SUCCESS.
#[doc(alias = "SMB2_SESSION_SETUP_RESPONSE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'a> {
    /// The kind of session.
    pub session_flags: SessionFlags,
    /// A token of the authentication.
    pub security_buffer: &'a [u8],
}

impl<'a> Response<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`] or [`WireError::OutOfBounds`].
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<8>(message, 9)?;
        let session_flags = SessionFlags::from_bits_retain(r.u16()?);
        let (offset, length) = (r.len16()?, r.len16()?);
        let security_buffer = variable(message, RESPONSE_FIXED_END, offset, length, "SecurityBuffer")?;
        Ok(Self { session_flags, security_buffer })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u16(9);
        out.put_u16(self.session_flags.bits());
        out.put_u16(len_u16(RESPONSE_FIXED_END, "SecurityBufferOffset")?);
        out.put_u16(len_u16(self.security_buffer.len(), "SecurityBuffer")?);
        out.put(self.security_buffer);
        Ok(())
    }
}

//! NEGOTIATE, [MS-SMB2] 2.2.3 and 2.2.4.

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError, aligned, len_u16, len_u32, put_zeros, variable};
use crate::dtyp::{FileTime, Guid};
use crate::negotiate_context::NegotiateContext;

wire_enum! {
    /// A dialect revision.
    pub enum Dialect: u16 {
        /// SMB 2.0.2
        Smb202 = 0x0202,
        /// SMB 2.1
        Smb210 = 0x0210,
        /// "Any SMB2 dialect": the answer to an SMB1 NEGOTIATE with "SMB 2.???".
        Wildcard = 0x02FF,
        /// SMB 3.0
        Smb300 = 0x0300,
        /// SMB 3.0.2
        Smb302 = 0x0302,
        /// SMB 3.1.1
        Smb311 = 0x0311,
    }
}

bitflags! {
    /// `SecurityMode` of NEGOTIATE and SESSION_SETUP.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SecurityMode: u16 {
        /// SMB2_NEGOTIATE_SIGNING_ENABLED
        const SIGNING_ENABLED = 0x0001;
        /// SMB2_NEGOTIATE_SIGNING_REQUIRED
        const SIGNING_REQUIRED = 0x0002;
        const _ = !0;
    }
}

bitflags! {
    /// `Capabilities` of NEGOTIATE and SESSION_SETUP (SMB2_GLOBAL_CAP_*).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Capabilities: u32 {
        /// Distributed File System.
        const DFS = 0x0000_0001;
        /// Leases (SMB 2.1).
        const LEASING = 0x0000_0002;
        /// Requests that cost several credits (SMB 2.1).
        const LARGE_MTU = 0x0000_0004;
        /// Several channels in a session (SMB 3.x).
        const MULTI_CHANNEL = 0x0000_0008;
        /// Persistent handles (SMB 3.x).
        const PERSISTENT_HANDLES = 0x0000_0010;
        /// Directory leases (SMB 3.x).
        const DIRECTORY_LEASING = 0x0000_0020;
        /// Encryption (SMB 3.0 and 3.0.2; in 3.1.1 a negotiate context announces it).
        const ENCRYPTION = 0x0000_0040;
        /// One-way notifications from server to client (SMB 3.1.1).
        const NOTIFICATIONS = 0x0000_0080;
        const _ = !0;
    }
}

const REQUEST_FIXED_END: usize = 64 + 36;

/// A NEGOTIATE request.
#[doc(alias = "SMB2_NEGOTIATE_REQUEST")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// Whether the client supports or requires signing.
    pub security_mode: SecurityMode,
    /// The client's capabilities (SMB 3.x).
    pub capabilities: Capabilities,
    /// The GUID by which the client identifies itself.
    pub client_guid: Guid,
    /// The dialects that the client speaks.
    pub dialects: Vec<Dialect>,
    /// Negotiate contexts; read only when [`Dialect::Smb311`] is among the dialects.
    pub contexts: Vec<NegotiateContext<'a>>,
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError`] for a malformed body or negotiate context. A count of 0 dialects is not an error here.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<36>(message, 36)?;
        let dialect_count = r.len16()?;
        let security_mode = SecurityMode::from_bits_retain(r.u16()?);
        r.skip(2)?;
        let capabilities = Capabilities::from_bits_retain(r.u32()?);
        let client_guid = Guid::read(&mut r)?;
        let (context_offset, context_count) = (r.len32()?, r.u16()?);

        let mut list = Reader::new(message.get(REQUEST_FIXED_END..).ok_or(WireError::Truncated)?);
        let mut list = Reader::new(list.bytes(dialect_count.saturating_mul(2))?);
        let mut dialects = Vec::with_capacity(dialect_count);
        while !list.is_empty() {
            dialects.push(Dialect::from(list.u16()?));
        }
        let dialects_end = REQUEST_FIXED_END.saturating_add(dialect_count.saturating_mul(2));
        let contexts = if dialects.contains(&Dialect::Smb311) {
            decode_contexts(message, dialects_end, context_offset, context_count)?
        } else {
            Vec::new()
        };
        Ok(Self { security_mode, capabilities, client_guid, dialects, contexts })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let dialects_end = REQUEST_FIXED_END.saturating_add(self.dialects.len().saturating_mul(2));
        let contexts = NegotiateContext::encode_list(&self.contexts)?;
        let context_offset = if self.contexts.is_empty() { 0 } else { aligned(dialects_end, 8) };
        out.put_u16(36);
        out.put_u16(len_u16(self.dialects.len(), "Dialects")?);
        out.put_u16(self.security_mode.bits());
        out.put_u16(0);
        out.put_u32(self.capabilities.bits());
        self.client_guid.put(out);
        out.put_u32(len_u32(context_offset, "NegotiateContextOffset")?);
        out.put_u16(len_u16(self.contexts.len(), "NegotiateContextCount")?);
        out.put_u16(0);
        self.dialects.iter().for_each(|dialect| out.put_u16((*dialect).into()));
        put_zeros(out, context_offset.saturating_sub(dialects_end));
        out.put(&contexts);
        Ok(())
    }
}

fn decode_contexts(
    message: &[u8],
    fixed_end: usize,
    offset: usize,
    count: u16,
) -> Result<Vec<NegotiateContext<'_>>, WireError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if offset < fixed_end {
        return Err(WireError::OutOfBounds("NegotiateContextOffset"));
    }
    if !offset.is_multiple_of(8) {
        return Err(WireError::Misaligned("NegotiateContextOffset"));
    }
    let list = message.get(offset..).ok_or(WireError::OutOfBounds("NegotiateContextOffset"))?;
    NegotiateContext::decode_list(list, count)
}

const RESPONSE_FIXED_END: usize = 64 + 64;

/// A NEGOTIATE response.
#[doc(alias = "SMB2_NEGOTIATE_RESPONSE")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response<'a> {
    /// Whether the server supports or requires signing.
    pub security_mode: SecurityMode,
    /// The dialect of the connection.
    pub dialect: Dialect,
    /// The GUID by which the server identifies itself.
    pub server_guid: Guid,
    /// The server's capabilities.
    pub capabilities: Capabilities,
    /// The most bytes of a QUERY_INFO, SET_INFO, QUERY_DIRECTORY or CHANGE_NOTIFY buffer.
    pub max_transact_size: u32,
    /// The most bytes of a READ.
    pub max_read_size: u32,
    /// The most bytes of a WRITE.
    pub max_write_size: u32,
    /// The server's clock.
    pub system_time: FileTime,
    /// When the server started, or 0.
    pub server_start_time: FileTime,
    /// The first token of the authentication, which lists the mechanisms.
    pub security_buffer: &'a [u8],
    /// Negotiate contexts; only with [`Dialect::Smb311`].
    pub contexts: Vec<NegotiateContext<'a>>,
}

impl<'a> Response<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError`] for a malformed body or negotiate context.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<64>(message, 65)?;
        let security_mode = SecurityMode::from_bits_retain(r.u16()?);
        let dialect = Dialect::from(r.u16()?);
        let context_count = r.u16()?;
        let server_guid = Guid::read(&mut r)?;
        let capabilities = Capabilities::from_bits_retain(r.u32()?);
        let (max_transact_size, max_read_size, max_write_size) = (r.u32()?, r.u32()?, r.u32()?);
        let system_time = FileTime::read(&mut r)?;
        let server_start_time = FileTime::read(&mut r)?;
        let (offset, length) = (r.len16()?, r.len16()?);
        let context_offset = r.len32()?;
        let security_buffer = variable(message, RESPONSE_FIXED_END, offset, length, "SecurityBuffer")?;
        let contexts = if dialect == Dialect::Smb311 {
            decode_contexts(
                message,
                RESPONSE_FIXED_END.max(offset.saturating_add(length)),
                context_offset,
                context_count,
            )?
        } else {
            Vec::new()
        };
        Ok(Self {
            security_mode,
            dialect,
            server_guid,
            capabilities,
            max_transact_size,
            max_read_size,
            max_write_size,
            system_time,
            server_start_time,
            security_buffer,
            contexts,
        })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let security_end = RESPONSE_FIXED_END.saturating_add(self.security_buffer.len());
        let contexts = NegotiateContext::encode_list(&self.contexts)?;
        let context_offset = if self.contexts.is_empty() { 0 } else { aligned(security_end, 8) };
        out.put_u16(65);
        out.put_u16(self.security_mode.bits());
        out.put_u16(self.dialect.into());
        out.put_u16(len_u16(self.contexts.len(), "NegotiateContextCount")?);
        self.server_guid.put(out);
        out.put_u32(self.capabilities.bits());
        out.put_u32(self.max_transact_size);
        out.put_u32(self.max_read_size);
        out.put_u32(self.max_write_size);
        self.system_time.put(out);
        self.server_start_time.put(out);
        out.put_u16(len_u16(RESPONSE_FIXED_END, "SecurityBufferOffset")?);
        out.put_u16(len_u16(self.security_buffer.len(), "SecurityBuffer")?);
        out.put_u32(len_u32(context_offset, "NegotiateContextOffset")?);
        out.put(self.security_buffer);
        put_zeros(out, context_offset.saturating_sub(security_end));
        out.put(&contexts);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::negotiate_context::Cipher;

    fn message(dialects: &[Dialect]) -> Vec<u8> {
        let request = Request {
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::empty(),
            client_guid: Guid::ZERO,
            dialects: dialects.to_vec(),
            contexts: vec![NegotiateContext::Encryption(vec![Cipher::Aes128Gcm])],
        };
        let mut message = vec![0; 64];
        request.encode(&mut message).unwrap();
        message
    }

    #[test]
    fn contexts_are_read_only_for_smb_3_1_1() {
        // In other dialects the field is ClientStartTime and may have any value.
        let bytes = message(&[Dialect::Smb302]);
        let request = Request::decode(&bytes).unwrap();
        assert_eq!((request.dialects, request.contexts), (vec![Dialect::Smb302], vec![]));
        let bytes = message(&[Dialect::Smb311]);
        assert_eq!(Request::decode(&bytes).unwrap().contexts.len(), 1);
    }

    #[test]
    fn a_lie_about_dialects_is_refused() {
        let mut bytes = message(&[Dialect::Smb302]);
        bytes[66..68].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(Request::decode(&bytes), Err(WireError::Truncated));
    }

    #[test]
    fn a_lie_about_contexts_is_refused() {
        let at = |offset: u32, count: u16| {
            let mut bytes = message(&[Dialect::Smb311]);
            bytes[92..96].copy_from_slice(&offset.to_le_bytes());
            bytes[96..98].copy_from_slice(&count.to_le_bytes());
            Request::decode(&bytes).map(|request| request.contexts.len())
        };
        assert_eq!(at(104, 1), Ok(1));
        assert_eq!(at(104, 0), Ok(0));
        assert_eq!(at(104, 2), Err(WireError::Truncated));
        assert_eq!(at(108, 1), Err(WireError::Misaligned("NegotiateContextOffset")));
        assert_eq!(at(96, 1), Err(WireError::OutOfBounds("NegotiateContextOffset")));
        assert_eq!(at(0xFFFF_FFF8, 1), Err(WireError::OutOfBounds("NegotiateContextOffset")));
    }
}

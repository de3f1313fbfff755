//! The three messages. [MS-NLMP] 2.2.1.

use bitflags::bitflags;

const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";
/// AUTHENTICATE_MESSAGE up to NegotiateFlags: no payload begins before this.
const AUTHENTICATE_FIXED: usize = 64;
/// The place of the MIC in AUTHENTICATE_MESSAGE, after the 8 bytes of Version.
pub(super) const MIC: std::ops::Range<usize> = 72..88;

/// The bytes are not the NTLM message that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a well-formed NTLM message")]
pub struct MessageError;

bitflags! {
    /// NegotiateFlags. [MS-NLMP] 2.2.2.5.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct NegotiateFlags: u32 {
        /// NTLMSSP_NEGOTIATE_UNICODE
        const UNICODE = 0x0000_0001;
        /// NTLM_NEGOTIATE_OEM
        const OEM = 0x0000_0002;
        /// NTLMSSP_REQUEST_TARGET
        const REQUEST_TARGET = 0x0000_0004;
        /// NTLMSSP_NEGOTIATE_SIGN
        const SIGN = 0x0000_0010;
        /// NTLMSSP_NEGOTIATE_SEAL
        const SEAL = 0x0000_0020;
        /// NTLMSSP_NEGOTIATE_DATAGRAM
        const DATAGRAM = 0x0000_0040;
        /// NTLMSSP_NEGOTIATE_LM_KEY
        const LM_KEY = 0x0000_0080;
        /// NTLMSSP_NEGOTIATE_NTLM
        const NTLM = 0x0000_0200;
        /// NTLMSSP_ANONYMOUS
        const ANONYMOUS = 0x0000_0800;
        /// NTLMSSP_NEGOTIATE_ALWAYS_SIGN
        const ALWAYS_SIGN = 0x0000_8000;
        /// NTLMSSP_TARGET_TYPE_DOMAIN
        const TARGET_TYPE_DOMAIN = 0x0001_0000;
        /// NTLMSSP_TARGET_TYPE_SERVER
        const TARGET_TYPE_SERVER = 0x0002_0000;
        /// NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
        const EXTENDED_SESSION_SECURITY = 0x0008_0000;
        /// NTLMSSP_NEGOTIATE_TARGET_INFO
        const TARGET_INFO = 0x0080_0000;
        /// NTLMSSP_NEGOTIATE_VERSION
        const VERSION = 0x0200_0000;
        /// NTLMSSP_NEGOTIATE_128
        const BITS_128 = 0x2000_0000;
        /// NTLMSSP_NEGOTIATE_KEY_EXCH
        const KEY_EXCH = 0x4000_0000;
        /// NTLMSSP_NEGOTIATE_56
        const BITS_56 = 0x8000_0000;
        const _ = !0;
    }
}

/// Whether a token is a bare NTLM message, outside SPNEGO.
pub fn is_ntlm(token: &[u8]) -> bool {
    token.starts_with(SIGNATURE)
}

/// Reads fixed fields from the start of a message.
struct Fields<'a> {
    message: &'a [u8],
    rest: &'a [u8],
    /// Where the first payload begins; the message's end if there is none.
    payload_start: usize,
}

impl<'a> Fields<'a> {
    fn new(message: &'a [u8], message_type: u32) -> Result<Self, MessageError> {
        let mut fields = Self { message, rest: message, payload_start: message.len() };
        if fields.array::<8>()? != *SIGNATURE || fields.u32()? != message_type {
            return Err(MessageError);
        }
        Ok(fields)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(MessageError)?;
        self.rest = rest;
        Ok(*array)
    }

    fn u32(&mut self) -> Result<u32, MessageError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads Len, MaxLen and BufferOffset of a payload, which must begin at `from` or later; returns the payload.
    fn payload(&mut self, from: usize) -> Result<&'a [u8], MessageError> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        let _max_length = self.array::<2>()?;
        let offset = usize::try_from(self.u32()?).map_err(|_| MessageError)?;
        if length == 0 {
            return Ok(&[]); // the offset of an empty payload has no meaning
        }
        let end = offset.checked_add(length).ok_or(MessageError)?;
        if offset < from {
            return Err(MessageError);
        }
        self.payload_start = self.payload_start.min(offset);
        self.message.get(offset..end).ok_or(MessageError)
    }
}

/// The client's first message. [MS-NLMP] 2.2.1.1. Its names are not used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateMessage {
    /// What the client supports and asks for.
    pub flags: NegotiateFlags,
}

impl NegotiateMessage {
    /// Decodes a NEGOTIATE_MESSAGE.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn decode(message: &[u8]) -> Result<Self, MessageError> {
        let mut fields = Fields::new(message, 1)?;
        Ok(Self { flags: NegotiateFlags::from_bits_retain(fields.u32()?) })
    }

    /// The message's bytes, without names and version.
    pub fn encode(self) -> Vec<u8> {
        let mut message = header(1);
        message.extend_from_slice(&self.flags.bits().to_le_bytes());
        message.extend_from_slice(&[0; 16]); // DomainNameFields, WorkstationFields
        message
    }
}

/// The server's answer. [MS-NLMP] 2.2.1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChallengeMessage<'a> {
    /// The flags that were agreed on.
    pub flags: NegotiateFlags,
    /// Eight random bytes.
    pub server_challenge: [u8; 8],
    /// The server's name, UTF-16LE.
    pub target_name: &'a [u8],
    /// A list of AV_PAIRs ([`super::AvPairs`]).
    pub target_info: &'a [u8],
}

impl<'a> ChallengeMessage<'a> {
    const FIXED: usize = 48;
    /// Version: 6.1, build 0, NTLMSSP_REVISION_W2K3. [MS-NLMP] 2.2.2.10: for debugging only.
    const VERSION: [u8; 8] = [6, 1, 0, 0, 0, 0, 0, 15];

    /// Decodes a CHALLENGE_MESSAGE.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn decode(message: &'a [u8]) -> Result<Self, MessageError> {
        let mut fields = Fields::new(message, 2)?;
        let target_name = fields.payload(Self::FIXED)?;
        let flags = NegotiateFlags::from_bits_retain(fields.u32()?);
        let server_challenge = fields.array()?;
        let _reserved = fields.array::<8>()?;
        let target_info = fields.payload(Self::FIXED)?;
        Ok(Self { flags, server_challenge, target_name, target_info })
    }

    /// The message's bytes, with a Version.
    pub fn encode(&self) -> Vec<u8> {
        let mut message = header(2);
        let mut payload = Payload::at(Self::FIXED.saturating_add(Self::VERSION.len()));
        message.extend_from_slice(&payload.put(self.target_name));
        message.extend_from_slice(&self.flags.bits().to_le_bytes());
        message.extend_from_slice(&self.server_challenge);
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(&payload.put(self.target_info));
        message.extend_from_slice(&Self::VERSION);
        message.extend_from_slice(&payload.bytes);
        message
    }
}

/// The client's proof. [MS-NLMP] 2.2.1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthenticateMessage<'a> {
    /// LmChallengeResponse
    pub lm_response: &'a [u8],
    /// NtChallengeResponse
    pub nt_response: &'a [u8],
    /// The user's domain, UTF-16LE.
    pub domain: &'a [u8],
    /// The user's name, UTF-16LE.
    pub user: &'a [u8],
    /// The client's name, UTF-16LE.
    pub workstation: &'a [u8],
    /// EncryptedRandomSessionKey
    pub encrypted_session_key: &'a [u8],
    /// The flags that the client agreed to.
    pub flags: NegotiateFlags,
    /// The MIC, if there is room for one between the fixed fields and the payload. MsvAvFlags in the response tells
    /// whether it has a meaning.
    pub mic: Option<[u8; 16]>,
}

impl<'a> AuthenticateMessage<'a> {
    /// Decodes an AUTHENTICATE_MESSAGE.
    ///
    /// # Errors
    /// [`MessageError`], also for payload that lies inside the fixed fields.
    pub fn decode(message: &'a [u8]) -> Result<Self, MessageError> {
        let mut fields = Fields::new(message, 3)?;
        let from = AUTHENTICATE_FIXED;
        let (lm_response, nt_response) = (fields.payload(from)?, fields.payload(from)?);
        let (domain, user) = (fields.payload(from)?, fields.payload(from)?);
        let (workstation, encrypted_session_key) = (fields.payload(from)?, fields.payload(from)?);
        let flags = NegotiateFlags::from_bits_retain(fields.u32()?);
        let room = fields.payload_start >= MIC.end;
        let mic = if room { message.get(MIC).and_then(|mic| mic.try_into().ok()) } else { None };
        Ok(Self { lm_response, nt_response, domain, user, workstation, encrypted_session_key, flags, mic })
    }

    /// The message's bytes. If there is a MIC (zeros until it is computed), there is also a Version of zeros.
    pub fn encode(&self) -> Vec<u8> {
        let mut message = header(3);
        let mut payload = Payload::at(if self.mic.is_some() { MIC.end } else { AUTHENTICATE_FIXED });
        // names first: an order that other implementations use too
        let [domain, user, workstation] =
            [self.domain, self.user, self.workstation].map(|name| payload.put(name));
        let [lm, nt, key] =
            [self.lm_response, self.nt_response, self.encrypted_session_key].map(|b| payload.put(b));
        for field in [lm, nt, domain, user, workstation, key] {
            message.extend_from_slice(&field);
        }
        message.extend_from_slice(&self.flags.bits().to_le_bytes());
        if let Some(mic) = self.mic {
            message.extend_from_slice(&[0; 8]);
            message.extend_from_slice(&mic);
        }
        message.extend_from_slice(&payload.bytes);
        message
    }
}

fn header(message_type: u32) -> Vec<u8> {
    let mut message = SIGNATURE.to_vec();
    message.extend_from_slice(&message_type.to_le_bytes());
    message
}

/// Collects the payload that follows the fixed fields.
struct Payload {
    at: usize,
    bytes: Vec<u8>,
}

impl Payload {
    fn at(at: usize) -> Self {
        Self { at, bytes: Vec::new() }
    }

    /// Appends payload and returns its Len, MaxLen and BufferOffset. Payload that exceeds the length field is cut off,
    /// which only affects a client with names of 32,768 characters.
    fn put(&mut self, payload: &[u8]) -> [u8; 8] {
        let payload = payload.get(..usize::from(u16::MAX)).unwrap_or(payload);
        let offset = u32::try_from(self.at.saturating_add(self.bytes.len())).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(payload);
        let [a, b] = u16::try_from(payload.len()).unwrap_or(u16::MAX).to_le_bytes();
        let [c, d, e, f] = offset.to_le_bytes();
        [a, b, a, b, c, d, e, f]
    }
}

/// A name in UTF-16LE as text.
pub(super) fn text(name: &[u8]) -> Result<String, MessageError> {
    let (units, odd) = name.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(MessageError);
    }
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    char::decode_utf16(units).collect::<Result<_, _>>().map_err(|_| MessageError)
}

/// Text in UTF-16LE.
pub(super) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

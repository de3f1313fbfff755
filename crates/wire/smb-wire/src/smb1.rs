//! The SMB1 NEGOTIATE request with which older clients ask for SMB2, [MS-SMB2] 3.3.5.3; layout from [MS-CIFS] 2.2.4.52.
//! Nothing else of SMB1 is supported.

use crate::codec::{Reader, WireError};

/// The first four bytes of an SMB1 message.
pub const PROTOCOL_ID: [u8; 4] = [0xFF, b'S', b'M', b'B'];

/// The dialect string that asks for SMB 2.0.2.
pub const SMB_2_002: &[u8] = b"SMB 2.002";

/// The dialect string that asks for any later SMB2 dialect; the answer is the wildcard revision 0x02FF.
pub const SMB_2_WILDCARD: &[u8] = b"SMB 2.???";

const COMMAND_NEGOTIATE: u8 = 0x72;
const BUFFER_FORMAT_DIALECT: u8 = 0x02;

/// Bytes of the SMB1 header after the command: status, flags, PID, signature, TID, UID, MID.
const HEADER_REST: usize = 27;

/// An SMB1 NEGOTIATE request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiateRequest<'a> {
    /// The dialect strings, without the leading format byte and the terminating zero.
    pub dialects: Vec<&'a [u8]>,
}

impl<'a> NegotiateRequest<'a> {
    /// Decodes a whole SMB1 frame.
    ///
    /// # Errors
    /// [`WireError::ProtocolId`] when the frame is not an SMB1 message, [`WireError::Invalid`] when it is another
    /// command or has a malformed dialect string, [`WireError::Truncated`].
    pub fn decode(frame: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(frame);
        if r.array::<4>()? != PROTOCOL_ID {
            return Err(WireError::ProtocolId);
        }
        if r.u8()? != COMMAND_NEGOTIATE {
            return Err(WireError::Invalid("SMB1 command"));
        }
        r.skip(HEADER_REST)?;
        if r.u8()? != 0 {
            return Err(WireError::Invalid("WordCount"));
        }
        let byte_count = r.len16()?;
        let mut rest = r.bytes(byte_count)?;
        let mut dialects = Vec::new();
        while let Some((format, strings)) = rest.split_first() {
            let end =
                strings.iter().position(|byte| *byte == 0).ok_or(WireError::Invalid("dialect string"))?;
            let (name, behind) = strings.split_at_checked(end).ok_or(WireError::Truncated)?;
            if *format != BUFFER_FORMAT_DIALECT {
                return Err(WireError::Invalid("BufferFormat"));
            }
            dialects.push(name);
            rest = behind.get(1..).unwrap_or(&[]);
        }
        Ok(Self { dialects })
    }

    /// Whether the client offers this dialect.
    #[must_use]
    pub fn offers(&self, dialect: &[u8]) -> bool {
        self.dialects.contains(&dialect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(strings: &[u8]) -> Vec<u8> {
        let mut frame = PROTOCOL_ID.to_vec();
        frame.push(COMMAND_NEGOTIATE);
        frame.extend([0; HEADER_REST + 1]);
        frame.extend(u16::try_from(strings.len()).unwrap().to_le_bytes());
        frame.extend(strings);
        frame
    }

    #[test]
    fn dialects_are_listed() {
        let frame = frame(b"\x02NT LM 0.12\0\x02SMB 2.???\0");
        let request = NegotiateRequest::decode(&frame).unwrap();
        assert_eq!(request.dialects, [&b"NT LM 0.12"[..], b"SMB 2.???"]);
        assert!(request.offers(SMB_2_WILDCARD) && !request.offers(SMB_2_002));
    }

    #[test]
    fn malformed_frames_are_refused() {
        assert!(NegotiateRequest::decode(&frame(b"\x02SMB 2.002")).is_err());
        assert!(NegotiateRequest::decode(&frame(b"\x03SMB 2.002\0")).is_err());
        let mut short = frame(b"\x02SMB 2.002\0");
        short.pop();
        assert_eq!(NegotiateRequest::decode(&short), Err(WireError::Truncated));
        let mut other = frame(b"");
        other[4] = 0x73;
        assert!(NegotiateRequest::decode(&other).is_err());
    }
}

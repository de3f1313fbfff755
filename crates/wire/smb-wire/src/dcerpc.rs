//! The DCE/RPC PDUs sent over named pipes: connection-oriented, version 5.0, little-endian (C706 chapter 12, [MS-RPCE]
//! 2.2.2). Without RPC authentication, since SMB has already authenticated the pipe.

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError, len_u8, len_u16, len_u32, pad_from, patch_u32};
use crate::dtyp::Guid;

bitflags! {
    /// `pfc_flags`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct PduFlags: u8 {
        /// PFC_FIRST_FRAG
        const FIRST_FRAG = 0x01;
        /// PFC_LAST_FRAG
        const LAST_FRAG = 0x02;
        /// PFC_PENDING_CANCEL, or PFC_SUPPORT_HEADER_SIGN in a bind
        const PENDING_CANCEL = 0x04;
        /// PFC_CONC_MPX
        const CONC_MPX = 0x10;
        /// PFC_DID_NOT_EXECUTE
        const DID_NOT_EXECUTE = 0x20;
        /// PFC_MAYBE
        const MAYBE = 0x40;
        /// PFC_OBJECT_UUID: the request contains an object UUID.
        const OBJECT_UUID = 0x80;
        const _ = !0;
    }
}

/// An interface or a transfer syntax, and its version.
#[doc(alias = "p_syntax_id_t")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SyntaxId {
    /// The UUID of the interface or transfer syntax.
    pub uuid: Guid,
    /// Major version in the low 16 bits, minor in the high.
    pub version: u32,
}

impl SyntaxId {
    /// NDR, 8a885d04-1ceb-11c9-9fe8-08002b104860 version 2.
    pub const NDR: Self = Self {
        uuid: Guid([
            0x04, 0x5d, 0x88, 0x8a, 0xeb, 0x1c, 0xc9, 0x11, 0x9f, 0xe8, 0x08, 0x00, 0x2b, 0x10, 0x48, 0x60,
        ]),
        version: 2,
    };

    /// NDR64, 71710533-beba-4937-8319-b5dbef9ccc36 version 1; clients offer it, but this server does not accept it.
    pub const NDR64: Self = Self {
        uuid: Guid([
            0x33, 0x05, 0x71, 0x71, 0xba, 0xbe, 0x37, 0x49, 0x83, 0x19, 0xb5, 0xdb, 0xef, 0x9c, 0xcc, 0x36,
        ]),
        version: 1,
    };

    /// Whether this is bind time feature negotiation ([MS-RPCE] 2.2.2.14), which is offered like a transfer
    /// syntax and answered with [`PresentationResult::NegotiateAck`].
    #[must_use]
    pub const fn is_feature_negotiation(&self) -> bool {
        matches!(self.uuid.0, [0x2c, 0x1c, 0xb7, 0x6c, 0x12, 0x98, 0x40, 0x45, ..])
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self { uuid: Guid::read(r)?, version: r.u32()? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.uuid.put(out);
        out.put_u32(self.version);
    }
}

/// One proposal in a bind: an interface, and the possible encodings of its arguments.
#[doc(alias = "p_cont_elem_t")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentationContext {
    /// Identifies the context in requests.
    pub context_id: u16,
    /// The interface.
    pub abstract_syntax: SyntaxId,
    /// The encodings.
    pub transfer_syntaxes: Vec<SyntaxId>,
}

/// A bind or alter_context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The most bytes of a fragment that the client sends.
    pub max_xmit_frag: u16,
    /// The most bytes of a fragment that the client accepts.
    pub max_recv_frag: u16,
    /// An association to join, or 0.
    pub assoc_group_id: u32,
    /// The proposals.
    pub contexts: Vec<PresentationContext>,
}

/// The answer to one [`PresentationContext`].
#[doc(alias = "p_result_t")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresentationResult {
    /// The proposal is accepted, with this encoding.
    Acceptance(SyntaxId),
    /// provider_rejection, with its reason: 1 abstract syntax not supported, 2 transfer syntaxes not
    /// supported.
    ProviderRejection(u16),
    /// negotiate_ack, with the features that the server accepts ([MS-RPCE] 2.2.2.4).
    NegotiateAck(u16),
    /// Any other result, with its reason.
    Other(u16, u16),
}

/// A bind_ack or alter_context_resp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAck {
    /// The most bytes of a fragment that the server sends.
    pub max_xmit_frag: u16,
    /// The most bytes of a fragment that the server accepts.
    pub max_recv_frag: u16,
    /// The association.
    pub assoc_group_id: u32,
    /// `\PIPE\name`, ASCII, without its zero.
    pub secondary_address: Vec<u8>,
    /// One answer for each proposal.
    pub results: Vec<PresentationResult>,
}

/// The contents of a PDU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// bind (11)
    Bind(Bind),
    /// bind_ack (12)
    BindAck(BindAck),
    /// bind_nak (13), with the reason ([MS-RPCE] 2.2.2.5), or 0.
    BindNak(u16),
    /// alter_context (14)
    AlterContext(Bind),
    /// alter_context_resp (15)
    AlterContextResponse(BindAck),
    /// request (0)
    Request {
        /// Bytes of all fragments together, as a hint.
        alloc_hint: u32,
        /// The presentation context.
        context_id: u16,
        /// The procedure.
        opnum: u16,
        /// The arguments, or a part of them.
        stub: &'a [u8],
    },
    /// response (2)
    Response {
        /// Bytes of this and all later fragments, as a hint.
        alloc_hint: u32,
        /// The presentation context.
        context_id: u16,
        /// The results, or a part of them.
        stub: &'a [u8],
    },
    /// fault (3)
    Fault {
        /// The presentation context.
        context_id: u16,
        /// The reason ([`fault`]).
        status: u32,
    },
    /// A PDU that is not decoded: its type.
    Other(u8),
}

/// Reasons of a fault.
pub mod fault {
    /// nca_s_op_rng_error: there is no such procedure.
    pub const OP_RANGE_ERROR: u32 = 0x1C01_0002;
    /// nca_s_unk_if: there is no such presentation context.
    pub const UNKNOWN_INTERFACE: u32 = 0x1C01_0003;
    /// nca_s_proto_error
    pub const PROTOCOL_ERROR: u32 = 0x1C01_000B;
    /// rpc_x_bad_stub_data: the arguments do not decode.
    pub const BAD_STUB_DATA: u32 = 0x0000_06F7;
    /// nca_s_fault_context_mismatch: there is no such context handle.
    pub const CONTEXT_MISMATCH: u32 = 0x1C00_001A;
    /// ERROR_ACCESS_DENIED
    pub const ACCESS_DENIED: u32 = 0x0000_0005;
}

/// A PDU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdu<'a> {
    /// Whether the fragment is the first, the last, or between them.
    pub flags: PduFlags,
    /// The call to which the PDU belongs.
    pub call_id: u32,
    /// Whether the PDU had an authentication trailer, which is not kept.
    pub authenticated: bool,
    /// The contents.
    pub body: Body<'a>,
}

const HEADER_LEN: usize = 16;
const AUTH_TRAILER_LEN: usize = 8;
const LITTLE_ENDIAN_ASCII_IEEE: u32 = 0x0000_0010;

/// Bytes that precede the stub in a fragment of a response.
pub const RESPONSE_HEAD_LEN: usize = 24;

impl<'a> Pdu<'a> {
    /// A PDU in one fragment without authentication.
    #[must_use]
    pub const fn new(call_id: u32, body: Body<'a>) -> Self {
        Self { flags: PduFlags::FIRST_FRAG.union(PduFlags::LAST_FRAG), call_id, authenticated: false, body }
    }

    /// Decodes the PDU at the start of `bytes`. Returns the PDU and its length.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when `bytes` contains only part of the PDU; [`WireError`] for a malformed PDU, and for
    /// one that is not version 5.0 in little-endian.
    pub fn decode(bytes: &'a [u8]) -> Result<(Self, usize), WireError> {
        let mut r = Reader::new(bytes);
        if r.u8()? != 5 || r.u8()? > 1 {
            return Err(WireError::Invalid("version of DCE/RPC"));
        }
        let pdu_type = r.u8()?;
        let flags = PduFlags::from_bits_retain(r.u8()?);
        if r.u32()? != LITTLE_ENDIAN_ASCII_IEEE {
            return Err(WireError::Invalid("data representation"));
        }
        let (frag_length, auth_length) = (r.len16()?, r.len16()?);
        let call_id = r.u32()?;
        let body = frag_length.checked_sub(HEADER_LEN).ok_or(WireError::Invalid("frag_length"))?;
        let body = without_authentication(r.bytes(body)?, auth_length)?;
        let body = Body::decode(pdu_type, flags, body)?;
        Ok((Self { flags, call_id, authenticated: auth_length != 0, body }, frag_length))
    }

    /// Appends the PDU, without an authentication trailer.
    ///
    /// # Errors
    /// [`WireError::TooLong`] when it has more than 65,535 bytes.
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let start = out.len();
        out.put(&[5, 0, self.body.pdu_type(), self.flags.difference(PduFlags::OBJECT_UUID).bits()]);
        out.put_u32(LITTLE_ENDIAN_ASCII_IEEE);
        out.put_u32(0);
        out.put_u32(self.call_id);
        self.body.encode(out, start)?;
        let frag_length = len_u16(out.len().saturating_sub(start), "frag_length")?;
        patch_u32(out, start.saturating_add(8), frag_length.into());
        Ok(())
    }
}

/// Removes the authentication trailer and the padding that precedes it.
fn without_authentication(body: &[u8], auth_length: usize) -> Result<&[u8], WireError> {
    const BAD: WireError = WireError::OutOfBounds("auth_length");
    if auth_length == 0 {
        return Ok(body);
    }
    let trailer = auth_length.saturating_add(AUTH_TRAILER_LEN);
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(trailer).ok_or(BAD)?).ok_or(BAD)?;
    let padding = trailer.get(2).copied().map(usize::from).ok_or(BAD)?;
    body.get(..body.len().checked_sub(padding).ok_or(BAD)?).ok_or(BAD)
}

/// The stub of a call, split into the parts that fit into fragments of `fragment_bytes_max`, with their flags.
pub fn fragments(stub: &[u8], fragment_bytes_max: u16) -> impl Iterator<Item = (PduFlags, &[u8])> {
    let part = usize::from(fragment_bytes_max).saturating_sub(RESPONSE_HEAD_LEN).max(8);
    let count = stub.len().div_ceil(part).max(1);
    (0..count).map(move |index| {
        let start = index.saturating_mul(part);
        let end = start.saturating_add(part).min(stub.len());
        let mut flags = PduFlags::empty();
        flags.set(PduFlags::FIRST_FRAG, index == 0);
        flags.set(PduFlags::LAST_FRAG, index.saturating_add(1) == count);
        (flags, stub.get(start..end).unwrap_or(&[]))
    })
}

mod pdu_type {
    pub(super) const REQUEST: u8 = 0;
    pub(super) const RESPONSE: u8 = 2;
    pub(super) const FAULT: u8 = 3;
    pub(super) const BIND: u8 = 11;
    pub(super) const BIND_ACK: u8 = 12;
    pub(super) const BIND_NAK: u8 = 13;
    pub(super) const ALTER_CONTEXT: u8 = 14;
    pub(super) const ALTER_CONTEXT_RESPONSE: u8 = 15;
}

impl<'a> Body<'a> {
    const fn pdu_type(&self) -> u8 {
        match self {
            Self::Request { .. } => pdu_type::REQUEST,
            Self::Response { .. } => pdu_type::RESPONSE,
            Self::Fault { .. } => pdu_type::FAULT,
            Self::Bind(_) => pdu_type::BIND,
            Self::BindAck(_) => pdu_type::BIND_ACK,
            Self::BindNak(_) => pdu_type::BIND_NAK,
            Self::AlterContext(_) => pdu_type::ALTER_CONTEXT,
            Self::AlterContextResponse(_) => pdu_type::ALTER_CONTEXT_RESPONSE,
            Self::Other(pdu_type) => *pdu_type,
        }
    }

    fn decode(pdu_type: u8, flags: PduFlags, body: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(body);
        Ok(match pdu_type {
            pdu_type::REQUEST => {
                let (alloc_hint, context_id, opnum) = (r.u32()?, r.u16()?, r.u16()?);
                if flags.contains(PduFlags::OBJECT_UUID) {
                    r.skip(16)?;
                }
                Self::Request { alloc_hint, context_id, opnum, stub: r.rest() }
            }
            pdu_type::RESPONSE => {
                let (alloc_hint, context_id) = (r.u32()?, r.u16()?);
                r.skip(2)?;
                Self::Response { alloc_hint, context_id, stub: r.rest() }
            }
            pdu_type::FAULT => {
                r.skip(4)?;
                let context_id = r.u16()?;
                r.skip(2)?;
                Self::Fault { context_id, status: r.u32()? }
            }
            pdu_type::BIND => Self::Bind(Bind::read(&mut r)?),
            pdu_type::BIND_ACK => Self::BindAck(BindAck::read(&mut r, body.len())?),
            pdu_type::BIND_NAK => Self::BindNak(r.u16()?),
            pdu_type::ALTER_CONTEXT => Self::AlterContext(Bind::read(&mut r)?),
            pdu_type::ALTER_CONTEXT_RESPONSE => {
                Self::AlterContextResponse(BindAck::read(&mut r, body.len())?)
            }
            other => Self::Other(other),
        })
    }

    /// Appends the body of the PDU that starts at `start`.
    fn encode(&self, out: &mut Vec<u8>, start: usize) -> Result<(), WireError> {
        match self {
            Self::Bind(bind) | Self::AlterContext(bind) => bind.put(out)?,
            Self::BindAck(ack) | Self::AlterContextResponse(ack) => ack.put(out, start)?,
            Self::BindNak(reason) => {
                out.put_u16(*reason);
                // The only supported version: 5.0.
                out.put(&[1, 5, 0, 0, 0, 0]);
            }
            Self::Request { alloc_hint, context_id, opnum, stub } => {
                out.put_u32(*alloc_hint);
                out.put_u16(*context_id);
                out.put_u16(*opnum);
                out.put(stub);
            }
            Self::Response { alloc_hint, context_id, stub } => {
                out.put_u32(*alloc_hint);
                out.put_u16(*context_id);
                out.put_u16(0);
                out.put(stub);
            }
            Self::Fault { context_id, status } => {
                out.put_u32(0);
                out.put_u16(*context_id);
                out.put_u16(0);
                out.put_u32(*status);
                out.put_u32(0);
            }
            Self::Other(_) => {}
        }
        Ok(())
    }
}

impl Bind {
    fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let (max_xmit_frag, max_recv_frag, assoc_group_id) = (r.u16()?, r.u16()?, r.u32()?);
        let count = r.u8()?;
        r.skip(3)?;
        let contexts = (0..count).map(|_| PresentationContext::read(r)).collect::<Result<_, _>>()?;
        Ok(Self { max_xmit_frag, max_recv_frag, assoc_group_id, contexts })
    }

    fn put(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u16(self.max_xmit_frag);
        out.put_u16(self.max_recv_frag);
        out.put_u32(self.assoc_group_id);
        out.put(&[len_u8(self.contexts.len(), "presentation contexts")?, 0, 0, 0]);
        for context in &self.contexts {
            out.put_u16(context.context_id);
            out.put(&[len_u8(context.transfer_syntaxes.len(), "transfer syntaxes")?, 0]);
            context.abstract_syntax.put(out);
            context.transfer_syntaxes.iter().for_each(|syntax| syntax.put(out));
        }
        Ok(())
    }
}

impl PresentationContext {
    fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let context_id = r.u16()?;
        let count = r.u8()?;
        r.skip(1)?;
        let abstract_syntax = SyntaxId::read(r)?;
        let transfer_syntaxes = (0..count).map(|_| SyntaxId::read(r)).collect::<Result<_, _>>()?;
        Ok(Self { context_id, abstract_syntax, transfer_syntaxes })
    }
}

impl BindAck {
    fn read(r: &mut Reader<'_>, body_len: usize) -> Result<Self, WireError> {
        let (max_xmit_frag, max_recv_frag, assoc_group_id) = (r.u16()?, r.u16()?, r.u32()?);
        let length = r.len16()?;
        let address = r.bytes(length)?;
        let secondary_address = address.strip_suffix(&[0]).unwrap_or(address).to_vec();
        let position = body_len.saturating_sub(r.rest().len());
        r.skip(crate::codec::aligned(position, 4).saturating_sub(position))?;
        let count = r.u8()?;
        r.skip(3)?;
        let results = (0..count).map(|_| PresentationResult::read(r)).collect::<Result<_, _>>()?;
        Ok(Self { max_xmit_frag, max_recv_frag, assoc_group_id, secondary_address, results })
    }

    fn put(&self, out: &mut Vec<u8>, start: usize) -> Result<(), WireError> {
        out.put_u16(self.max_xmit_frag);
        out.put_u16(self.max_recv_frag);
        out.put_u32(self.assoc_group_id);
        out.put_u16(len_u16(self.secondary_address.len().saturating_add(1), "secondary address")?);
        out.put(&self.secondary_address);
        out.put_u8(0);
        pad_from(out, start, 4);
        out.put_u32(len_u32(self.results.len(), "results").and_then(|count| match count {
            0..=255 => Ok(count),
            _ => Err(WireError::TooLong("results")),
        })?);
        self.results.iter().for_each(|result| result.put(out));
        Ok(())
    }
}

impl PresentationResult {
    fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let (result, reason) = (r.u16()?, r.u16()?);
        let syntax = SyntaxId::read(r)?;
        Ok(match result {
            0 => Self::Acceptance(syntax),
            2 => Self::ProviderRejection(reason),
            3 => Self::NegotiateAck(reason),
            _ => Self::Other(result, reason),
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        const NO_SYNTAX: SyntaxId = SyntaxId { uuid: Guid::ZERO, version: 0 };
        let (result, reason, syntax) = match *self {
            Self::Acceptance(syntax) => (0, 0, syntax),
            Self::ProviderRejection(reason) => (2, reason, NO_SYNTAX),
            Self::NegotiateAck(features) => (3, features, NO_SYNTAX),
            Self::Other(result, reason) => (result, reason, NO_SYNTAX),
        };
        out.put_u16(result);
        out.put_u16(reason);
        syntax.put(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authentication_trailer_is_left_out() {
        let pdu =
            Pdu::new(7, Body::Request { alloc_hint: 0, context_id: 0, opnum: 15, stub: &[1, 2, 3, 4, 5] });
        let mut bytes = Vec::new();
        pdu.encode_into(&mut bytes).unwrap();
        // Three bytes of padding, the trailer's header (with the padding's length), two bytes of token
        bytes.extend([0, 0, 0, 10, 5, 3, 0, 0, 0, 0, 0, 0xAA, 0xBB]);
        let length = u16::try_from(bytes.len()).unwrap();
        bytes[8..10].copy_from_slice(&length.to_le_bytes());
        bytes[10] = 2;
        let (decoded, _) = Pdu::decode(&bytes).unwrap();
        assert_eq!((decoded.body, decoded.authenticated), (pdu.body, true));
        for lie in [30, 0xFF] {
            bytes[10] = lie;
            assert!(Pdu::decode(&bytes).is_err());
        }
    }

    #[test]
    fn only_version_5_in_little_endian() {
        let mut bytes = Vec::new();
        Pdu::new(1, Body::BindNak(0)).encode_into(&mut bytes).unwrap();
        assert!(Pdu::decode(&bytes).is_ok());
        for (at, wrong) in [(0, 4), (1, 2), (4, 0x00), (8, 15), (8, 200)] {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            assert!(Pdu::decode(&bytes).is_err(), "{at} {wrong}");
        }
    }
}

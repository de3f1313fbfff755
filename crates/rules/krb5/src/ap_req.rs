//! AP-REQ: a ticket and the proof that its bearer has its key. RFC 4120 5.5.1, RFC 4121 4.1.1.

use crate::Key;
use crate::channel::{BINDINGS_LEN, ChannelBindings};
use crate::crypto::KeyUsage;
use crate::fields::{EncryptedData, Fields, key, unsigned};
use crate::name::Principal;
use crate::reason::Reason;
use crate::ticket::Ticket;
use crate::time::Time;
use bitflags::bitflags;

const AP_REQ: u8 = 14;
const AUTHENTICATOR: u8 = 2;
/// The type of the checksum that has the GSS-API's flags. RFC 4121 4.1.1.
const GSS_CHECKSUM: i64 = 0x8003;
/// Lgth, Bnd and Flags of that checksum. RFC 4121 4.1.1.
const GSS_CHECKSUM_LEN: usize = 24;
/// The extensions of that checksum that have an IAKERB-FINISHED, and what its key is used for: those of the draft
/// (GSS_EXTS_FINISHED, draft-ietf-kitten-iakerb-03 5), and those of MIT up to 1.20.
const FINISHED: [(u32, KeyUsage); 2] = [(2, KeyUsage::IAKERB_FINISHED), (1, KeyUsage::IAKERB_FINISHED_MIT)];
const MICROSECONDS: i64 = 1_000_000;

/// An AP-REQ as the client sent it. Nothing in it is authenticated yet.
#[derive(Debug)]
pub struct ApReq<'a> {
    /// The ticket
    pub ticket: Ticket<'a>,
    /// The authenticator, encrypted with the key in the ticket
    pub authenticator: EncryptedData<'a>,
    /// USE-SESSION-KEY, bit 1 of the options. Bit 2, MUTUAL-REQUIRED, is not read: anybody could have set it.
    pub is_user_to_user: bool,
}

impl<'a> ApReq<'a> {
    /// `[APPLICATION 14] SEQUENCE { pvno [0], msg-type [1], ap-options [2], ticket [3], authenticator [4] }`.
    ///
    /// # Errors
    /// The reason why it is none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Reason> {
        let mut fields = Fields::of_message(bytes, AP_REQ)?;
        if fields.integer(0)? != 5 || fields.integer(1)? != i64::from(AP_REQ) {
            return Err(Reason::Version);
        }
        let is_user_to_user = fields.flags(2)? & (1 << 30) != 0;
        let ticket = Ticket::decode(fields.raw(3)?)?;
        Ok(Self { ticket, authenticator: EncryptedData::decode(fields.raw(4)?)?, is_user_to_user })
    }
}

/// What the client says, encrypted with the ticket's key.
pub(crate) struct Authenticator {
    pub(crate) client: Principal,
    pub(crate) bindings: Option<ChannelBindings>,
    pub(crate) flags: ContextFlags,
    pub(crate) ctime: Time,
    pub(crate) cusec: i64,
    pub(crate) subkey: Option<Key>,
    pub(crate) sequence_number: u32,
    /// IAKERB-FINISHED, if the client protects what came before
    pub(crate) finished: Option<Finished<Vec<u8>>>,
}

impl Authenticator {
    /// `[APPLICATION 2] SEQUENCE { authenticator-vno [0], crealm [1], cname [2], cksum [3] OPTIONAL, cusec [4],
    /// ctime [5], subkey [6] OPTIONAL, seq-number [7] OPTIONAL, authorization-data [8] OPTIONAL }`.
    ///
    /// The last field is ignored: the client chooses it.
    pub(crate) fn decode(plain: &[u8]) -> Result<Self, Reason> {
        let mut fields = Fields::of_message(plain, AUTHENTICATOR)?;
        if fields.integer(0)? != 5 {
            return Err(Reason::Version);
        }
        let realm = fields.text(1)?;
        let client = Principal::decode(fields.raw(2)?, realm)?;
        let (bindings, flags, finished) = gss_checksum(fields.optional(3)?.ok_or(Reason::NoGssChecksum)?)?;
        let finished = finished.map(|Finished { usage, bytes }| Finished { usage, bytes: bytes.to_vec() });
        let cusec = fields.integer(4)?;
        if !(0..MICROSECONDS).contains(&cusec) {
            return Err(Reason::Malformed);
        }
        let ctime = fields.time(5)?;
        let subkey = fields.optional(6)?.map(key).transpose()?;
        let sequence_number = fields.optional_integer(7)?.map_or(Ok(0), unsigned)?;
        Ok(Self { client, bindings, flags, ctime, cusec, subkey, sequence_number, finished })
    }
}

/// The client's channel, its wishes, and what it says of the tokens before.
type GssChecksum<'a> = (Option<ChannelBindings>, ContextFlags, Option<Finished<&'a [u8]>>);

/// The checksum of an authenticator: `SEQUENCE { cksumtype [0] Int32, checksum [1] OCTET STRING }`, whose octets are not
/// a checksum but Lgth (16), Bnd (16 bytes), Flags, a forwarded ticket if the flags say so, and extensions, of which
/// one is returned. RFC 4121 4.1.1, RFC 6542 3.
fn gss_checksum(bytes: &[u8]) -> Result<GssChecksum<'_>, Reason> {
    let mut fields = Fields::of_sequence(bytes)?;
    if fields.integer(0)? != GSS_CHECKSUM {
        return Err(Reason::NoGssChecksum);
    }
    let (fixed, delegated) =
        fields.octets(1)?.split_first_chunk::<GSS_CHECKSUM_LEN>().ok_or(Reason::Malformed)?;
    let Some(([16, 0, 0, 0], rest)) = fixed.split_first_chunk::<4>() else { return Err(Reason::Malformed) };
    let (bindings, flags) = rest.split_first_chunk::<BINDINGS_LEN>().ok_or(Reason::Malformed)?;
    let flags = flags.first_chunk().ok_or(Reason::Malformed)?;
    let flags = ContextFlags::from_bits_retain(u32::from_le_bytes(*flags));
    let rest = delegated;
    let extensions = if flags.contains(ContextFlags::DELEGATION) { pass_delegated(rest)? } else { rest };
    Ok((ChannelBindings::sent(*bindings), flags, finished(extensions)))
}

/// DlgOpt (1), Dlgth and a KRB-CRED of that length. The ticket that the client forwards is not looked at and never kept.
fn pass_delegated(bytes: &[u8]) -> Result<&[u8], Reason> {
    let Some(([1, 0, low, high], rest)) = bytes.split_first_chunk::<4>() else {
        return Err(Reason::Malformed);
    };
    let length = usize::from(u16::from_le_bytes([*low, *high]));
    rest.get(length..).ok_or(Reason::Malformed)
}

/// An IAKERB-FINISHED, and what its key is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finished<B> {
    pub(crate) usage: KeyUsage,
    pub(crate) bytes: B,
}

/// The first extension with an IAKERB-FINISHED: a type and a length, the highest byte first, and as many bytes. RFC 6542 3.1.
/// What follows the last whole extension is ignored.
fn finished(mut bytes: &[u8]) -> Option<Finished<&[u8]>> {
    while let Some((head, rest)) = bytes.split_first_chunk::<8>() {
        let [a, b, c, d, length @ ..] = *head;
        let (data, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(length)).ok()?)?;
        let kind = u32::from_be_bytes([a, b, c, d]);
        if let Some((_, usage)) = FINISHED.into_iter().find(|(known, _)| *known == kind) {
            return Some(Finished { usage, bytes: data });
        }
        bytes = rest;
    }
    None
}

bitflags! {
    /// What the client asks of the security context. RFC 4121 4.1.1.1, RFC 2744 for the values, [MS-KILE] 2.2.5 for those
    /// from [`Self::DCE_STYLE`] on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ContextFlags: u32 {
        /// The client forwards a ticket. It is dropped.
        const DELEGATION = 0x1;
        /// The client wants proof of the server
        const MUTUAL = 0x2;
        /// Replays of messages are to be found
        const REPLAY = 0x4;
        /// Messages out of sequence are to be found
        const SEQUENCE = 0x8;
        /// Messages may be encrypted
        const CONFIDENTIALITY = 0x10;
        /// Messages may be signed
        const INTEGRITY = 0x20;
        /// The three messages of DCE
        const DCE_STYLE = 0x1000;
        /// The client wants to be identified, no more
        const IDENTIFY = 0x2000;
        /// The client understands extended errors
        const EXTENDED_ERROR = 0x4000;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der::{Builder, OCTET_STRING, SEQUENCE, context};

    fn checksum(kind: i64, octets: &[u8]) -> Vec<u8> {
        let mut builder = Builder::default();
        builder.element(SEQUENCE, |fields| {
            fields.element(context(1), |field| field.primitive(OCTET_STRING, octets));
            fields.element(context(0), |field| field.integer(kind));
        });
        builder.finish()
    }

    fn octets(flags: u32) -> Vec<u8> {
        [&[16, 0, 0, 0][..], &[0; 16], &flags.to_le_bytes()].concat()
    }

    #[test]
    fn flags_and_bindings_are_in_the_checksum() {
        let plain = checksum(0x8003, &octets(0x3e));
        let (bindings, flags, finished) = gss_checksum(&plain).unwrap();
        assert_eq!((bindings, finished), (None, None));
        assert_eq!(flags.bits(), 0x3e);
        let mut bound = octets(0);
        bound[4..20].fill(7);
        assert_eq!(gss_checksum(&checksum(0x8003, &bound)).unwrap().0, ChannelBindings::sent([7; 16]));
    }

    #[test]
    fn another_checksum_is_refused() {
        assert_eq!(gss_checksum(&checksum(0x8002, &octets(0))), Err(Reason::NoGssChecksum));
        assert_eq!(gss_checksum(&checksum(16, &[0; 12])), Err(Reason::NoGssChecksum));
        let mut wrong = octets(0);
        wrong[0] = 17;
        assert_eq!(gss_checksum(&checksum(0x8003, &wrong)), Err(Reason::Malformed));
        let whole = octets(0);
        for length in 0..whole.len() {
            assert_eq!(gss_checksum(&checksum(0x8003, &whole[..length])), Err(Reason::Malformed), "{length}");
        }
    }

    #[test]
    fn a_forwarded_ticket_is_passed_over() {
        let with = |rest: &[u8]| {
            let whole = checksum(0x8003, &[&octets(1)[..], rest].concat());
            gss_checksum(&whole).map(|(_, flags, _)| flags)
        };
        for rest in [&[1, 0, 0, 0][..], &[1, 0, 3, 0, 7, 7, 7], &[1, 0, 2, 0, 7, 7, 7, 7]] {
            assert_eq!(with(rest), Ok(ContextFlags::DELEGATION), "{rest:?}");
        }
        for rest in [&[][..], &[1, 0, 1], &[2, 0, 0, 0], &[1, 0, 3, 0, 7, 7], &[1, 0, 0, 1, 7]] {
            assert_eq!(with(rest), Err(Reason::Malformed), "{rest:?}");
        }
        // without the flag, more bytes are extensions
        assert!(gss_checksum(&checksum(0x8003, &[&octets(0)[..], &[9]].concat())).is_ok());
    }

    #[test]
    fn the_finished_extension_is_found_among_others() {
        let other = [0, 0, 0, 7, 0, 0, 0, 2, 9, 9];
        let finished = [0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3];
        let with = |flags: u32, rest: &[u8]| {
            let whole = checksum(0x8003, &[&octets(flags)[..], rest].concat());
            gss_checksum(&whole).unwrap().2.map(|found| found.bytes.to_vec())
        };
        assert_eq!(with(0, &finished), Some(vec![1, 2, 3]));
        assert_eq!(with(0, &[&other[..], &finished].concat()), Some(vec![1, 2, 3]));
        let mut of_mit = finished;
        of_mit[3] = 1;
        assert_eq!(with(0, &of_mit), Some(vec![1, 2, 3]));
        assert_eq!(with(1, &[&[1, 0, 1, 0, 7][..], &finished].concat()), Some(vec![1, 2, 3]));
        for cut in 0..finished.len() {
            assert_eq!(with(0, &finished[..cut]), None, "{cut}");
        }
        assert_eq!(with(0, &other), None);
    }
}

//! The GSS-API's framing of Kerberos messages: `[APPLICATION 0] { mechanism, token id, message }`. RFC 2743 3.1, RFC
//! 4121 4.1.

use crate::der::{APPLICATION_0, Builder, OBJECT_IDENTIFIER, Reader};

/// 1.2.840.113554.1.2.2, Kerberos 5, as the content of an OBJECT IDENTIFIER.
pub const KERBEROS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];
/// 1.2.840.48018.1.2.2: Kerberos as Windows names it in SPNEGO, with a bit missing. [MS-SPNG] 1.9.
pub const MS_KERBEROS: &[u8] = &[0x2a, 0x86, 0x48, 0x82, 0xf7, 0x12, 1, 2, 2];

/// 1.3.6.1.5.2.5: Kerberos whose KDC is reached through the acceptor. draft-ietf-kitten-iakerb-03 2.
pub const IAKERB: &[u8] = &[0x2b, 6, 1, 5, 2, 5];

/// The mechanism that a token says it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Kerberos, by either of its two names
    Kerberos,
    /// IAKERB
    Iakerb,
}

impl Mechanism {
    fn has(self, oid: &[u8]) -> bool {
        match self {
            Self::Kerberos => oid == KERBEROS || oid == MS_KERBEROS,
            Self::Iakerb => oid == IAKERB,
        }
    }

    fn oid(self) -> &'static [u8] {
        match self {
            Self::Kerberos => KERBEROS,
            Self::Iakerb => IAKERB,
        }
    }
}

/// Which message a token holds (TOK_ID). RFC 4121 4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenId {
    /// KRB_AP_REQ
    ApReq,
    /// KRB_AP_REP
    ApRep,
    /// KRB_ERROR
    Error,
}

impl TokenId {
    const ALL: [Self; 3] = [Self::ApReq, Self::ApRep, Self::Error];

    fn bytes(self) -> [u8; 2] {
        match self {
            Self::ApReq => [1, 0],
            Self::ApRep => [2, 0],
            Self::Error => [3, 0],
        }
    }
}

/// The message in a token, and its kind. `None` if these are not the bytes of a token of Kerberos.
pub fn unframe(token: &[u8]) -> Option<(TokenId, &[u8])> {
    unframe_as(Mechanism::Kerberos, token)
}

/// The same for a mechanism.
pub fn unframe_as(of: Mechanism, token: &[u8]) -> Option<(TokenId, &[u8])> {
    let mut outer = Reader::new(token);
    let mut content = Reader::new(outer.element(APPLICATION_0).ok()?);
    let mechanism = content.element(OBJECT_IDENTIFIER).ok()?;
    if !outer.is_empty() || !of.has(mechanism) {
        return None;
    }
    let (id, message) = content.rest().split_first_chunk::<2>()?;
    let id = TokenId::ALL.into_iter().find(|known| known.bytes() == *id)?;
    Some((id, message))
}

/// Whether these bytes begin as the first token of a client of Kerberos does.
pub fn is_ap_req(token: &[u8]) -> bool {
    matches!(unframe(token), Some((TokenId::ApReq, _)))
}

/// The token that holds `message`.
pub fn frame(id: TokenId, message: &[u8]) -> Vec<u8> {
    frame_as(Mechanism::Kerberos, id, message)
}

/// The same for a mechanism.
pub fn frame_as(of: Mechanism, id: TokenId, message: &[u8]) -> Vec<u8> {
    let mut builder = Builder::with_capacity(message.len().saturating_add(32));
    builder.element(APPLICATION_0, |content| {
        content.bytes(message);
        content.bytes(&id.bytes());
        content.primitive(OBJECT_IDENTIFIER, of.oid());
    });
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_framed_as_rfc_4121_says() {
        let token = frame(TokenId::ApReq, b"message");
        let expected = [&[0x60, 20, 6, 9][..], KERBEROS, &[1, 0], b"message"].concat();
        assert_eq!(token, expected);
        assert_eq!(unframe(&token), Some((TokenId::ApReq, &b"message"[..])));
        assert!(is_ap_req(&token) && !is_ap_req(&frame(TokenId::Error, b"message")));
        for id in TokenId::ALL {
            assert_eq!(unframe(&frame(id, &[7; 70_000])), Some((id, &[7; 70_000][..])));
        }
    }

    #[test]
    fn windows_may_name_its_own_mechanism_and_nobody_else() {
        let of = |oid: &[u8], id: &[u8]| {
            let mut builder = Builder::default();
            builder.element(APPLICATION_0, |content| {
                content.bytes(id);
                content.primitive(OBJECT_IDENTIFIER, oid);
            });
            builder.finish()
        };
        assert_eq!(unframe(&of(MS_KERBEROS, &[1, 0])), Some((TokenId::ApReq, &[][..])));
        assert_eq!(unframe(&of(&[0x2b, 6, 1, 5, 5, 2], &[1, 0])), None);
        assert_eq!(unframe(&of(KERBEROS, &[4, 4])), None);
        assert_eq!(unframe(&of(KERBEROS, &[1])), None);
        let whole = of(KERBEROS, &[1, 0]);
        assert!((0..whole.len()).all(|length| unframe(&whole[..length]).is_none()));
        assert_eq!(unframe(&[whole, vec![0]].concat()), None);
    }
}

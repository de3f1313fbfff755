//! The tokens in which a client without a KDC talks to one through its acceptor. draft-ietf-kitten-iakerb-03 3 to 5.
//!
//! There are two dialects of MIT's library, which do not read each other's tokens in all places: up to version 1.20 the
//! realm is an OCTET STRING, and only the first token has the header of the GSS-API; from 1.22 on the realm is a
//! UTF8String, as in the draft, and each token has the header.

use crate::Enctype;
use crate::der::{
    APPLICATION_0, Builder, OBJECT_IDENTIFIER, OCTET_STRING, Reader, SEQUENCE, UTF8_STRING, context,
};
use crate::fields::Fields;
use crate::gss::IAKERB;

/// TOK_ID of a message for the KDC or of it.
const PROXY: [u8; 2] = [5, 1];
/// The most bytes of a realm.
const REALM_BYTES_MAX: usize = 255;

/// How a client writes these tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MIT up to 1.20: an OCTET STRING, and the header once
    Octets,
    /// The draft, and MIT from 1.22 on: a UTF8String, and the header each time
    Utf8,
}

/// A message for the KDC of a realm, or of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxied<'a> {
    /// How it is written
    pub dialect: Dialect,
    /// The realm; empty if the client asks for it
    pub realm: &'a str,
    /// The message of RFC 4120; empty if the client asks for the realm
    pub message: &'a [u8],
}

impl<'a> Proxied<'a> {
    /// Decodes a token. `None` if it is not one of IAKERB.
    ///
    /// `IAKERB-HEADER ::= SEQUENCE { target-realm [1] UTF8String, cookie [2] OCTET STRING OPTIONAL }`, and the message
    /// behind it. The cookie is ours to give, and we give none.
    #[must_use]
    pub fn decode(token: &'a [u8]) -> Option<Self> {
        let mut rest = Reader::new(without_header(token)?.strip_prefix(&PROXY)?);
        let (_, header) = rest.element_and_encoding(SEQUENCE).ok()?;
        let realm = Fields::of_sequence(header).ok()?.raw(1).ok()?;
        let (dialect, tag) = match Reader::new(realm).peek_tag()? {
            OCTET_STRING => (Dialect::Octets, OCTET_STRING),
            UTF8_STRING => (Dialect::Utf8, UTF8_STRING),
            _ => return None,
        };
        let realm = std::str::from_utf8(Reader::new(realm).element(tag).ok()?).ok()?;
        (realm.len() <= REALM_BYTES_MAX).then(|| Self { dialect, realm, message: rest.rest() })
    }

    /// The token of an acceptor, as its client reads it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let tag = match self.dialect {
            Dialect::Octets => OCTET_STRING,
            Dialect::Utf8 => UTF8_STRING,
        };
        let content = |builder: &mut Builder| {
            builder.bytes(self.message);
            builder.element(SEQUENCE, |fields| {
                fields.element(context(1), |field| field.primitive(tag, self.realm.as_bytes()));
            });
            builder.bytes(&PROXY);
        };
        let mut builder = Builder::with_capacity(self.message.len().saturating_add(64));
        match self.dialect {
            Dialect::Octets => content(&mut builder),
            Dialect::Utf8 => builder.element(APPLICATION_0, |token| {
                content(token);
                token.primitive(OBJECT_IDENTIFIER, IAKERB);
            }),
        }
        builder.finish()
    }
}

/// Whether these bytes begin as the first token of a client of IAKERB does.
#[must_use]
pub fn is_first(token: &[u8]) -> bool {
    Reader::new(token).peek_tag() == Some(APPLICATION_0) && without_header(token).is_some()
}

/// What is behind the header of the GSS-API, if there is one. RFC 2743 3.1.
fn without_header(token: &[u8]) -> Option<&[u8]> {
    let mut outer = Reader::new(token);
    if outer.peek_tag() != Some(APPLICATION_0) {
        return Some(token);
    }
    let mut content = Reader::new(outer.element(APPLICATION_0).ok()?);
    let is_ours = outer.is_empty() && content.element(OBJECT_IDENTIFIER).ok()? == IAKERB;
    is_ours.then(|| content.rest())
}

/// The checksum in an IAKERB-FINISHED, if it is one of a key of this type:
/// `SEQUENCE { gss-mic [1] Checksum }`, `Checksum ::= SEQUENCE { cksumtype [0] Int32, checksum [1] OCTET STRING }`.
pub(crate) fn finished_checksum(bytes: &[u8], enctype: Enctype) -> Option<&[u8]> {
    let checksum = Fields::of_sequence(bytes).ok()?.raw(1).ok()?;
    let mut fields = Fields::of_sequence(checksum).ok()?;
    let number = fields.integer(0).ok()?;
    let octets = fields.octets(1).ok()?;
    (number == i64::from(enctype.checksum_number())).then_some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_dialects_are_read_and_written() {
        let of = |dialect| Proxied { dialect, realm: "FILES", message: b"message" };
        // as MIT 1.22 writes it, and as MIT 1.20 writes all but the first
        let header = [0x60, 28, 6, 6, 0x2b, 6, 1, 5, 2, 5];
        let utf8 = [&header[..], &[5, 1, 0x30, 9, 0xa1, 7, 0x0c, 5], b"FILES", b"message"].concat();
        let octets = [&[5, 1, 0x30, 9, 0xa1, 7, 4, 5][..], b"FILES", b"message"].concat();
        assert_eq!(of(Dialect::Utf8).encode(), utf8);
        assert_eq!(of(Dialect::Octets).encode(), octets);
        for (dialect, token) in [(Dialect::Utf8, utf8), (Dialect::Octets, octets.clone())] {
            assert_eq!(Proxied::decode(&token), Some(of(dialect)));
            for length in 0..token.len() - b"message".len() {
                assert_eq!(Proxied::decode(&token[..length]), None, "{length}");
            }
        }
        let first = [&header[..], &octets].concat();
        assert_eq!(Proxied::decode(&first), Some(of(Dialect::Octets)));
        assert!(is_first(&first) && !is_first(&octets) && !is_first(b""));
    }

    #[test]
    fn other_tokens_are_none_of_these() {
        let token = |oid: &[u8], content: &[u8]| {
            let mut builder = Builder::default();
            builder.element(APPLICATION_0, |token| {
                token.bytes(content);
                token.primitive(OBJECT_IDENTIFIER, oid);
            });
            builder.finish()
        };
        let content = [5, 1, 0x30, 4, 0xa1, 2, 0x0c, 0];
        assert!(Proxied::decode(&token(IAKERB, &content)).is_some_and(|proxied| proxied.realm.is_empty()));
        assert_eq!(Proxied::decode(&token(crate::gss::KERBEROS, &content)), None);
        assert_eq!(Proxied::decode(&token(IAKERB, &[5, 0, 0x30, 4, 0xa1, 2, 0x0c, 0])), None);
        assert_eq!(Proxied::decode(&token(IAKERB, &[5, 1, 0x30, 4, 0xa1, 2, 0x1b, 0])), None);
        assert_eq!(Proxied::decode(&token(IAKERB, &[5, 1, 0x30, 5, 0xa1, 3, 0x0c, 1, 0xff])), None);
        let long = Proxied { dialect: Dialect::Utf8, realm: &"R".repeat(256), message: b"" };
        assert_eq!(Proxied::decode(&long.encode()), None);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic() {
        bolero::check!().for_each(|bytes: &[u8]| {
            if let Some(proxied) = Proxied::decode(bytes) {
                assert_eq!(Proxied::decode(&proxied.encode()), Some(proxied));
            }
            let _ = finished_checksum(bytes, Enctype::Aes256Sha384);
        });
    }
}

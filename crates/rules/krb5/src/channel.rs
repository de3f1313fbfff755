//! Channel bindings: what ties a logon to the TLS channel through which it comes. RFC 4121 4.1.1.2, RFC 5929 4.

use aws_lc_rs::digest::{Algorithm, SHA224, SHA256, SHA384, SHA512, digest};
use md5::{Digest, Md5};

use crate::der::{OBJECT_IDENTIFIER, Reader, SEQUENCE, context};

/// Bytes of a hash of channel bindings.
pub(crate) const BINDINGS_LEN: usize = 16;

/// RFC 5929 4: the unique prefix of this type of bindings, with the colon behind it.
const TLS_SERVER_END_POINT: &[u8] = b"tls-server-end-point:";

/// The hash of a client's channel bindings, as it is in the authenticator of a ticket and in the response of NTLM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelBindings([u8; BINDINGS_LEN]);

impl ChannelBindings {
    /// The bindings that a client has sent. Zeros stand for none: RFC 4121 4.1.1.2, [MS-NLMP] 2.2.2.1.
    #[must_use]
    pub fn sent(bytes: [u8; BINDINGS_LEN]) -> Option<Self> {
        (bytes != [0; BINDINGS_LEN]).then_some(Self(bytes))
    }

    /// The bytes that a client sends.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; BINDINGS_LEN] {
        &self.0
    }

    /// The bindings of a channel whose server has shown this certificate (DER). None: RFC 5929 4.1 leaves them undefined for
    /// a certificate whose signature uses no hash, or several: Ed25519 and what is not known here.
    #[must_use]
    pub fn tls_server_end_point(certificate: &[u8]) -> Option<Self> {
        let hash = digest(certificate_hash(certificate)?, certificate);
        Some(Self::of_application_data(&[TLS_SERVER_END_POINT, hash.as_ref()]))
    }

    /// The MD5 of a gss_channel_bindings_struct (RFC 2744 3.11) without addresses, each number with its lowest byte first.
    /// RFC 4121 4.1.1.2.
    fn of_application_data(data: &[&[u8]]) -> Self {
        let length = data.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        let mut md5 = Md5::new();
        // two types of addresses and two lengths of addresses
        md5.update([0; 16]);
        md5.update(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        data.iter().for_each(|part| md5.update(part));
        Self(md5.finalize().into())
    }
}

/// Whether clients must be bound to their TLS channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelBindingRule {
    /// A client that binds itself must be bound to this channel
    #[default]
    IfSent,
    /// Every client must be bound to its channel
    Required,
}

/// The TLS channel through which a client logs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// What a client of this channel is bound to; None: it is not defined for our certificate
    pub bindings: Option<ChannelBindings>,
    /// Whether its clients must be bound to it
    pub rule: ChannelBindingRule,
}

/// Why a client may not log on through a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbound {
    /// It is bound to another channel
    Other,
    /// It is bound to none
    None,
}

impl Channel {
    /// Checks what a client has sent. It must be covered by the client's proof.
    ///
    /// # Errors
    /// [`Unbound`].
    pub fn check(&self, theirs: Option<ChannelBindings>) -> Result<(), Unbound> {
        match (self.bindings, theirs, self.rule) {
            (Some(ours), Some(theirs), _) if ours == theirs => Ok(()),
            (Some(_), Some(_), _) => Err(Unbound::Other),
            (_, None, ChannelBindingRule::Required) | (None, Some(_), ChannelBindingRule::Required) => {
                Err(Unbound::None)
            }
            (_, None, ChannelBindingRule::IfSent) | (None, Some(_), ChannelBindingRule::IfSent) => Ok(()),
        }
    }
}

/// The hash with which a certificate is hashed: that of its signature, and SHA-256 in place of MD5 and SHA-1. RFC 5929 4.1.
fn certificate_hash(certificate: &[u8]) -> Option<&'static Algorithm> {
    // RFC 5280 4.1: SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE { OID, parameters }, signatureValue }
    let mut fields = Reader::new(Reader::new(certificate).element(SEQUENCE).ok()?);
    fields.element(SEQUENCE).ok()?;
    let mut algorithm = Reader::new(fields.element(SEQUENCE).ok()?);
    let name = algorithm.element(OBJECT_IDENTIFIER).ok()?;
    if name == RSASSA_PSS { pss_hash(algorithm) } else { signature_hash(name) }
}

/// 1.2.840.113549.1.1.10. RFC 4055 3.1.
const RSASSA_PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10];

/// The hash of signatures whose name says which one it is.
fn signature_hash(oid: &[u8]) -> Option<&'static Algorithm> {
    match oid {
        // 1.2.840.113549.1.1.n: RSA with MD5, SHA-1, SHA-256, SHA-384, SHA-512, SHA-224. RFC 8017 A.2.4
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, number] => match number {
            4 | 5 | 11 => Some(&SHA256),
            12 => Some(&SHA384),
            13 => Some(&SHA512),
            14 => Some(&SHA224),
            _ => None,
        },
        // 1.2.840.10045.4.1 and 4.3.n: ECDSA with SHA-1; with SHA-224, SHA-256, SHA-384, SHA-512. RFC 5758 3.2
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] => Some(&SHA256),
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, number] => match number {
            1 => Some(&SHA224),
            2 => Some(&SHA256),
            3 => Some(&SHA384),
            4 => Some(&SHA512),
            _ => None,
        },
        _ => None,
    }
}

/// The hash in the parameters of RSASSA-PSS: `SEQUENCE { hashAlgorithm [0] SEQUENCE { OID } DEFAULT SHA-1 ... }`. RFC 4055 3.1.
fn pss_hash(mut parameters: Reader<'_>) -> Option<&'static Algorithm> {
    let mut parameters = Reader::new(parameters.element(SEQUENCE).ok()?);
    let Some(hash) = parameters.optional(context(0)).ok()? else { return Some(&SHA256) };
    let mut hash = Reader::new(Reader::new(hash).element(SEQUENCE).ok()?);
    match hash.element(OBJECT_IDENTIFIER).ok()? {
        // 1.3.14.3.2.26: SHA-1
        [0x2b, 14, 3, 2, 26] => Some(&SHA256),
        // 2.16.840.1.101.3.4.2.n
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, number] => match number {
            1 => Some(&SHA256),
            2 => Some(&SHA384),
            3 => Some(&SHA512),
            4 => Some(&SHA224),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der::element;

    /// A certificate as far as its hash needs one.
    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let parts = [element(SEQUENCE, b"to be signed"), element(SEQUENCE, algorithm), element(3, &[0])];
        element(SEQUENCE, &parts.concat())
    }

    fn named(oid: &[u8]) -> Vec<u8> {
        certificate(&element(OBJECT_IDENTIFIER, oid))
    }

    /// The hash was computed with Python's hashlib over the struct.
    #[test]
    fn bindings_are_the_md5_of_the_struct() {
        let bindings = ChannelBindings::of_application_data(&[TLS_SERVER_END_POINT, &[0x11; 32]]);
        assert_eq!(bindings.0.to_vec(), crate::crypto::hex("187b8ed16257050635bf9bbd99eb5e29"));
    }

    #[test]
    fn a_certificate_is_hashed_as_it_is_signed() {
        let rsa = |number| named(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, number]);
        let ecdsa = |number| named(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, number]);
        let pss = |parameters: &[u8]| {
            certificate(&[element(OBJECT_IDENTIFIER, RSASSA_PSS), element(SEQUENCE, parameters)].concat())
        };
        let pss_with =
            |oid: &[u8]| pss(&element(context(0), &element(SEQUENCE, &element(OBJECT_IDENTIFIER, oid))));
        let sha2 = |number| pss_with(&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, number]);
        for (certificate, expected) in [
            (rsa(4), Some(&SHA256)),
            (rsa(5), Some(&SHA256)),
            (rsa(11), Some(&SHA256)),
            (rsa(12), Some(&SHA384)),
            (rsa(13), Some(&SHA512)),
            (rsa(14), Some(&SHA224)),
            (rsa(1), None),
            (named(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1]), Some(&SHA256)),
            (ecdsa(1), Some(&SHA224)),
            (ecdsa(2), Some(&SHA256)),
            (ecdsa(3), Some(&SHA384)),
            (ecdsa(4), Some(&SHA512)),
            (pss(&[]), Some(&SHA256)),
            (pss_with(&[0x2b, 14, 3, 2, 26]), Some(&SHA256)),
            (sha2(1), Some(&SHA256)),
            (sha2(2), Some(&SHA384)),
            (sha2(3), Some(&SHA512)),
            (sha2(9), None),
            (named(&[0x2b, 0x65, 112]), None), // Ed25519
            (b"no certificate".to_vec(), None),
        ] {
            assert_eq!(certificate_hash(&certificate), expected, "{certificate:02x?}");
            assert_eq!(ChannelBindings::tls_server_end_point(&certificate).is_some(), expected.is_some());
        }
        let whole = rsa(11);
        assert!((0..6).all(|length| ChannelBindings::tls_server_end_point(&whole[..length]).is_none()));
    }

    #[test]
    fn a_client_that_binds_itself_is_bound_to_this_channel_and_may_have_to() {
        use ChannelBindingRule::{IfSent, Required};
        let (ours, other) = (ChannelBindings([1; 16]), ChannelBindings([2; 16]));
        for (bindings, theirs, if_sent, required) in [
            (Some(ours), Some(ours), Ok(()), Ok(())),
            (Some(ours), Some(other), Err(Unbound::Other), Err(Unbound::Other)),
            (Some(ours), None, Ok(()), Err(Unbound::None)),
            // what is not defined cannot be compared
            (None, Some(other), Ok(()), Err(Unbound::None)),
            (None, None, Ok(()), Err(Unbound::None)),
        ] {
            for (rule, expected) in [(IfSent, if_sent), (Required, required)] {
                assert_eq!(Channel { bindings, rule }.check(theirs), expected, "{bindings:?} {theirs:?}");
            }
        }
        assert_eq!(ChannelBindings::sent([0; 16]), None);
        assert_eq!(ChannelBindings::sent([1; 16]), Some(ours));
    }
}

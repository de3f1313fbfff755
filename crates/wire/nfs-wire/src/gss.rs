//! RPCSEC_GSS, RFC 2203: the credential, the arguments and results of context creation, and the bodies of calls and replies
//! that are protected.
//!
//! What is protected is not opened here: the mechanism's tokens are opaque.

use crate::rpc::AUTH_BODY_BYTES_MAX;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// The version of the credential. RFC 2203 5: RPCSEC_GSS_VERS_1.
pub const VERSION: u32 = 1;

/// The first sequence number that a context must not use. RFC 2203 5.3.3.1: MAXSEQ.
pub const SEQUENCE_MAX: u32 = 0x8000_0000;

/// The most bytes of a token of the mechanism, in a message that begins a context.
pub const TOKEN_BYTES_MAX: usize = 64 << 10;

/// The most bytes of a token that protects a message without carrying it.
pub const CHECKSUM_BYTES_MAX: usize = 1024;

/// Major status codes of the GSS-API. RFC 2203 appendix A.
pub mod major {
    /// GSS_S_COMPLETE
    pub const COMPLETE: u32 = 0;
    /// GSS_S_BAD_MECH
    pub const BAD_MECHANISM: u32 = 0x0001_0000;
    /// GSS_S_DEFECTIVE_TOKEN
    pub const DEFECTIVE_TOKEN: u32 = 0x0009_0000;
    /// GSS_S_CREDENTIALS_EXPIRED
    pub const CREDENTIALS_EXPIRED: u32 = 0x000b_0000;
    /// GSS_S_FAILURE
    pub const FAILURE: u32 = 0x000d_0000;
    /// GSS_S_DUPLICATE_TOKEN: the supplementary bit 1, without an error
    pub const DUPLICATE_TOKEN: u32 = 2;
}

xdr_enum! {
    /// What a call does with its context. RFC 2203 5.
    #[doc(alias = "rpc_gss_proc_t")]
    Procedure {
        /// A call of a program.
        Data = 0,
        /// The first token of a context.
        Init = 1,
        /// A further token of a context.
        ContinueInit = 2,
        /// The context is not needed any more.
        Destroy = 3,
    }
}

xdr_enum! {
    /// How the arguments and results of a call are protected. RFC 2203 5.
    #[doc(alias = "rpc_gss_service_t")]
    Service {
        /// Not at all: only the header of the call is.
        None = 1,
        /// Against changes.
        Integrity = 2,
        /// Against changes, and nobody else can read them.
        Privacy = 3,
    }
}

/// The credential of a call.
#[doc(alias = "rpc_gss_cred_vers_1_t")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credential<'a> {
    /// What the call does with the context.
    pub procedure: Procedure,
    /// The number of the call in its context.
    pub sequence: u32,
    /// A [`Service`], in calls that have a context. In others, its value does not matter (RFC 2203 5.2.2).
    pub service: u32,
    /// The server's name for the context; empty in the call that begins one.
    pub handle: ContextHandle<'a>,
}

/// The server's name for a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextHandle<'a>(pub &'a [u8]);

impl Encode for ContextHandle<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for ContextHandle<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(AUTH_BODY_BYTES_MAX).map(Self)
    }
}

impl Encode for Credential<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(VERSION);
        self.procedure.encode(writer);
        writer.u32(self.sequence);
        writer.u32(self.service);
        self.handle.encode(writer);
    }
}

impl<'a> Decode<'a> for Credential<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match reader.u32()? {
            VERSION => {}
            value => return Err(XdrError::UndefinedValue { kind: "version of RPCSEC_GSS", value }),
        }
        Ok(Self {
            procedure: Decode::decode(reader)?,
            sequence: reader.u32()?,
            service: reader.u32()?,
            handle: Decode::decode(reader)?,
        })
    }
}

/// A token of the mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a>(pub &'a [u8]);

impl Encode for Token<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for Token<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(TOKEN_BYTES_MAX).map(Self)
    }
}

/// The arguments of a call that begins a context. RFC 2203 5.2.2.
#[doc(alias = "rpc_gss_init_arg")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitArgs<'a> {
    /// The client's token.
    pub token: Token<'a>,
}

xdr_struct!(InitArgs<'a> { token });

/// The results of a call that begins a context. RFC 2203 5.2.3.1.
#[doc(alias = "rpc_gss_init_res")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitRes<'a> {
    /// The server's name for the context; empty if there is none.
    pub handle: ContextHandle<'a>,
    /// One of [`major`].
    pub major: u32,
    /// The mechanism's own status.
    pub minor: u32,
    /// How many calls may be under way: the numbers of a context that the server tells apart.
    pub sequence_window: u32,
    /// The server's token.
    pub token: Token<'a>,
}

xdr_struct!(InitRes<'a> { handle, major, minor, sequence_window, token });

/// Arguments or results that are protected against changes. RFC 2203 5.3.2.2.
#[doc(alias = "rpc_gss_integ_data")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed<'a> {
    /// The number of the call, and its arguments or results: a [`Numbered`].
    pub body: &'a [u8],
    /// The mechanism's checksum of `body`.
    pub checksum: &'a [u8],
}

impl Encode for Signed<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.body);
        writer.opaque(self.checksum);
    }
}

impl<'a> Decode<'a> for Signed<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        let most = reader.rest().len();
        Ok(Self { body: reader.opaque(most)?, checksum: reader.opaque(CHECKSUM_BYTES_MAX)? })
    }
}

/// Arguments or results that nobody else can read. RFC 2203 5.3.2.3.
#[doc(alias = "rpc_gss_priv_data")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The mechanism's token around a [`Numbered`].
    pub body: &'a [u8],
}

impl Encode for Sealed<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.body);
    }
}

impl<'a> Decode<'a> for Sealed<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        let most = reader.rest().len();
        Ok(Self { body: reader.opaque(most)? })
    }
}

/// What is protected: the number of the call again, and its arguments or results. RFC 2203 5.3.2.2.
#[doc(alias = "rpc_gss_data_t")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered<'a> {
    /// The number in the credential of the call.
    pub sequence: u32,
    /// All that follows.
    pub data: &'a [u8],
}

impl<'a> Numbered<'a> {
    /// Bytes in front of the data.
    pub const HEAD_BYTES: usize = 4;

    /// Takes a protected body apart.
    ///
    /// # Errors
    /// [`XdrError::Truncated`].
    pub fn of(body: &'a [u8]) -> Result<Self, XdrError> {
        let mut reader = Reader::new(body);
        Ok(Self { sequence: reader.u32()?, data: reader.rest() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn a_credential_has_the_words_of_section_5() {
        let handle = ContextHandle(b"sixteen bytes ok");
        let credential = Credential { procedure: Procedure::Data, sequence: 7, service: 3, handle };
        // version 1, RPCSEC_GSS_DATA, seq_num, rpc_gss_svc_privacy, handle
        let expected = [words(&[1, 0, 7, 3, 16]), b"sixteen bytes ok".to_vec()].concat();
        assert_eq!(credential.encode_to_vec(), expected);
        assert_eq!(Credential::from_bytes(&expected), Ok(credential));
        for cut in 0..expected.len() {
            assert!(Credential::from_bytes(&expected[..cut]).is_err(), "cut at {cut}");
        }
        let init = words(&[1, 1, 0, 0, 0]);
        let begins = Credential::from_bytes(&init).unwrap();
        assert_eq!((begins.procedure, begins.handle.0), (Procedure::Init, &[][..]));
        assert!(Service::try_from(begins.service).is_err(), "its service does not matter");
        for other in [words(&[2, 1, 0, 1, 0]), words(&[1, 4, 0, 1, 0]), words(&[0, 1, 0, 1, 0])] {
            assert!(matches!(Credential::from_bytes(&other), Err(XdrError::UndefinedValue { .. })));
        }
    }

    #[test]
    fn protected_bodies_have_the_words_of_section_5_3_2() {
        let integ = words(&[8, 7, 99, 4, 0x0404_0000]);
        let signed = Signed::from_bytes(&integ).unwrap();
        assert_eq!(Numbered::of(signed.body), Ok(Numbered { sequence: 7, data: &words(&[99]) }));
        assert_eq!(signed.checksum, words(&[0x0404_0000]));
        assert_eq!(signed.encode_to_vec(), integ);
        let private = [words(&[5]), b"token\0\0\0".to_vec()].concat();
        assert_eq!(Sealed::from_bytes(&private), Ok(Sealed { body: b"token" }));
        assert_eq!(Sealed { body: b"token" }.encode_to_vec(), private);
        assert!(
            Signed::from_bytes(&words(&[8, 7, 99])).is_err() && Sealed::from_bytes(&words(&[5])).is_err()
        );
        assert_eq!(Numbered::of(b"abc"), Err(XdrError::Truncated { missing: 1 }));
    }

    #[test]
    fn tokens_and_checksums_have_limits() {
        let token = |bytes: usize| InitArgs { token: Token(&vec![7; bytes]) }.encode_to_vec();
        assert!(InitArgs::from_bytes(&token(TOKEN_BYTES_MAX)).is_ok());
        let limit = TOKEN_BYTES_MAX;
        let too_long = Err(XdrError::TooLong { length: limit + 1, limit });
        assert_eq!(InitArgs::from_bytes(&token(limit + 1)), too_long);
        let signed = |bytes: usize| Signed { body: b"body", checksum: &vec![7; bytes] }.encode_to_vec();
        assert!(Signed::from_bytes(&signed(CHECKSUM_BYTES_MAX)).is_ok());
        assert!(Signed::from_bytes(&signed(CHECKSUM_BYTES_MAX + 1)).is_err());
    }
}

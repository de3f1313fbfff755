//! The client's side: the token that begins a security context, and the server's proof. RFC 4120 3.2.2, 3.2.5, RFC 4121 4.1.

use std::fmt;

use zeroize::Zeroizing;

use crate::acceptor::Randomness;
use crate::ap_req::ContextFlags;
use crate::ccache::Credential;
use crate::crypto::{CryptoError, KeyUsage};
use crate::der::{
    BIT_STRING, Builder, DerError, GENERAL_STRING, GENERALIZED_TIME, OCTET_STRING, SEQUENCE, application,
    context,
};
use crate::fields::{EncryptedData, Fields, KeyFault, key, unsigned};
use crate::gss::{TokenId, frame, unframe};
use crate::name::{NameType, Principal};
use crate::per_message::{KeyOrigin, PerMessage, Side};
use crate::time::Time;
use crate::{Enctype, Key};

const AP_REQ: u8 = 14;
const AP_REP: u8 = 15;
const KRB_ERROR: u8 = 30;
const AUTHENTICATOR: u8 = 2;
const ENC_AP_REP_PART: u8 = 27;
const PROTOCOL_VERSION: i64 = 5;
/// MUTUAL-REQUIRED, bit 2 of the options of an AP-REQ. RFC 4120 5.5.1.
const MUTUAL_REQUIRED: u32 = 1 << 29;
/// The type of the checksum that has the GSS-API's flags, and its fixed part. RFC 4121 4.1.1.
const GSS_CHECKSUM: i64 = 0x8003;
const NO_BINDINGS: [u8; 20] = [16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Why a client does not go on with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InitiatorError {
    /// The server's token is none of Kerberos
    #[error("the server's token is malformed")]
    Malformed,
    /// The server has sent a KRB-ERROR
    #[error("the server refuses the ticket: KRB-ERROR {code}")]
    Refused {
        /// The error code. RFC 4120 7.5.9
        code: i64,
    },
    /// The server does not have the key of the ticket, or answers another token
    #[error("the server has not proved that it has the key of the ticket")]
    NoProof,
    /// The key that the server wants to use is of a type that is not known here
    #[error("the server wants to use encryption type {number}")]
    Enctype {
        /// Its number. RFC 3961 8
        number: i64,
    },
    /// The library refused
    #[error("the cryptographic library has refused")]
    Library,
}

impl From<DerError> for InitiatorError {
    fn from(_: DerError) -> Self {
        Self::Malformed
    }
}

impl From<CryptoError> for InitiatorError {
    fn from(_: CryptoError) -> Self {
        Self::Library
    }
}

impl From<KeyFault> for InitiatorError {
    fn from(fault: KeyFault) -> Self {
        match fault {
            KeyFault::Malformed => Self::Malformed,
            KeyFault::Enctype(number) => Self::Enctype { number },
        }
    }
}

/// A client that has sent its token and waits for the server's.
pub struct Initiator {
    session_key: Key,
    subkey: Key,
    ctime: Time,
    cusec: u32,
}

impl fmt::Debug for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initiator").field("ctime", &self.ctime).finish_non_exhaustive()
    }
}

impl Initiator {
    /// The token that shows a ticket and asks for proof of the server, with what the client wants of the context: `flags` has
    /// [`ContextFlags::MUTUAL`]. `cusec` are the microseconds of `now`, below
    /// 1,000,000: no two tokens for one ticket may have the same time.
    ///
    /// # Errors
    /// [`CryptoError`] if the library refuses.
    pub fn begin(
        credential: &Credential,
        flags: ContextFlags,
        now: Time,
        cusec: u32,
        randomness: &Randomness,
    ) -> Result<(Self, Vec<u8>), CryptoError> {
        let session_key = credential.session_key.clone();
        let subkey = Key::from_random(session_key.enctype(), &randomness.subkey);
        let initiator = Self { session_key, subkey, ctime: now, cusec };
        let number = u32::from_be_bytes(randomness.sequence_number) >> 2;
        let plain = Zeroizing::new(initiator.authenticator(&credential.client, flags, number));
        let sealer = initiator.session_key.deriver()?.sealer(KeyUsage::AP_REQ_AUTHENTICATOR)?;
        let sealed = sealer.sealed(&randomness.confounder, &plain)?;
        let token = ap_req(&credential.ticket, sealer.enctype(), &sealed);
        Ok((initiator, frame(TokenId::ApReq, &token)))
    }

    /// `[APPLICATION 2] SEQUENCE { authenticator-vno [0], crealm [1], cname [2], cksum [3], cusec [4], ctime [5], subkey
    /// [6], seq-number [7] }`.
    fn authenticator(&self, client: &Principal, flags: ContextFlags, sequence_number: u32) -> Vec<u8> {
        let checksum = [&NO_BINDINGS[..], &flags.bits().to_le_bytes()].concat();
        message(AUTHENTICATOR, |fields| {
            fields.element(context(7), |field| field.integer(sequence_number.into()));
            fields.element(context(6), |field| {
                put_typed(field, enctype_number(&self.subkey), self.subkey.as_bytes())
            });
            fields.element(context(5), |field| field.primitive(GENERALIZED_TIME, &self.ctime.to_text()));
            fields.element(context(4), |field| field.integer(self.cusec.into()));
            fields.element(context(3), |field| put_typed(field, GSS_CHECKSUM, &checksum));
            fields.element(context(2), |field| client.put(field, NameType::Principal));
            fields.element(context(1), |field| field.primitive(GENERAL_STRING, client.realm().as_bytes()));
            fields.element(context(0), |field| field.integer(PROTOCOL_VERSION));
        })
    }

    /// The keys of the context, once the server has proved itself.
    ///
    /// # Errors
    /// [`InitiatorError`].
    pub fn finish(self, token: &[u8]) -> Result<PerMessage, InitiatorError> {
        let (key, origin) = self.session_key(token)?;
        Ok(PerMessage::new(&key, Side::Initiator, origin)?)
    }

    /// The key of the context, once the server has proved itself. It is the server's if it has sent a subkey, and otherwise
    /// the client's. RFC 4121 2.
    ///
    /// # Errors
    /// [`InitiatorError`].
    pub fn session_key(self, token: &[u8]) -> Result<(Key, KeyOrigin), InitiatorError> {
        let message = match unframe(token) {
            Some((TokenId::ApRep, message)) => message,
            Some((TokenId::Error, message)) => return Err(refused(message)),
            Some((TokenId::ApReq, _)) | None => return Err(InitiatorError::Malformed),
        };
        let plain = self.open(message)?;
        let mut fields = Fields::of_message(&plain, ENC_AP_REP_PART)?;
        if fields.time(0)? != self.ctime || fields.integer(1)? != i64::from(self.cusec) {
            return Err(InitiatorError::NoProof);
        }
        let found = match fields.optional(2)? {
            Some(theirs) => (key(theirs)?, KeyOrigin::Acceptor),
            None => (self.subkey, KeyOrigin::Initiator),
        };
        let _sequence_number = fields.optional_integer(3)?.map(unsigned).transpose()?;
        Ok(found)
    }

    /// The content of `[APPLICATION 15] SEQUENCE { pvno [0], msg-type [1], enc-part [2] }`.
    fn open(&self, message: &[u8]) -> Result<Zeroizing<Vec<u8>>, InitiatorError> {
        let mut fields = Fields::of_message(message, AP_REP)?;
        if fields.integer(0)? != PROTOCOL_VERSION || fields.integer(1)? != i64::from(AP_REP) {
            return Err(InitiatorError::Malformed);
        }
        let sealed = EncryptedData::decode(fields.raw(2)?)?;
        if sealed.etype != enctype_number(&self.session_key) {
            return Err(InitiatorError::NoProof);
        }
        let opener = self.session_key.deriver()?.opener(KeyUsage::AP_REP)?;
        let mut cipher = Zeroizing::new(sealed.cipher.to_vec());
        let plain = opener.open(&mut cipher).map_err(|CryptoError| InitiatorError::NoProof)?;
        Ok(Zeroizing::new(plain.to_vec()))
    }
}

/// `[APPLICATION 30] SEQUENCE { pvno [0], msg-type [1], ctime [2] OPTIONAL, cusec [3] OPTIONAL, stime [4], susec [5],
/// error-code [6], ... }`. RFC 4120 5.9.1.
fn refused(message: &[u8]) -> InitiatorError {
    let code = || {
        let mut fields = Fields::of_message(message, KRB_ERROR)?;
        if fields.integer(0)? != PROTOCOL_VERSION || fields.integer(1)? != i64::from(KRB_ERROR) {
            return Err(DerError);
        }
        for optional in 2..=3 {
            fields.optional(optional)?;
        }
        let (_stime, _susec) = (fields.time(4)?, fields.integer(5)?);
        fields.integer(6)
    };
    code().map_or_else(InitiatorError::from, |code| InitiatorError::Refused { code })
}

/// `[APPLICATION 14] SEQUENCE { pvno [0], msg-type [1], ap-options [2], ticket [3], authenticator [4] }`.
fn ap_req(ticket: &[u8], enctype: Enctype, authenticator: &[u8]) -> Vec<u8> {
    message(AP_REQ, |fields| {
        fields.element(context(4), |field| {
            field.element(SEQUENCE, |data| {
                data.element(context(2), |field| field.primitive(OCTET_STRING, authenticator));
                data.element(context(0), |field| field.integer(enctype.number().into()));
            });
        });
        fields.element(context(3), |field| field.bytes(ticket));
        let options = [&[0][..], &MUTUAL_REQUIRED.to_be_bytes()].concat();
        fields.element(context(2), |field| field.primitive(BIT_STRING, &options));
        fields.element(context(1), |field| field.integer(AP_REQ.into()));
        fields.element(context(0), |field| field.integer(PROTOCOL_VERSION));
    })
}

/// A message: a SEQUENCE behind the message's own tag.
fn message(number: u8, fields: impl FnOnce(&mut Builder)) -> Vec<u8> {
    let mut builder = Builder::with_capacity(512);
    builder.element(application(number), |message| message.element(SEQUENCE, fields));
    builder.finish()
}

/// `SEQUENCE { type [0] Int32, value [1] OCTET STRING }`: a key or a checksum. RFC 4120 5.2.9.
fn put_typed(builder: &mut Builder, kind: i64, value: &[u8]) {
    builder.element(SEQUENCE, |fields| {
        fields.element(context(1), |field| field.primitive(OCTET_STRING, value));
        fields.element(context(0), |field| field.integer(kind));
    });
}

fn enctype_number(key: &Key) -> i64 {
    key.enctype().number().into()
}

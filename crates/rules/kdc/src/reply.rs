//! What the KDC says: AS-REP, TGS-REP, and why not. RFC 4120 5.4.2, 5.9.1.

use krb5::crypto::{CryptoError, Sealer};
use krb5::der::{
    BIT_STRING, Builder, DerError, GENERAL_STRING, GENERALIZED_TIME, OCTET_STRING, SEQUENCE, application,
    context,
};
use krb5::{Enctype, Key, NameError, NameType, Principal, Time};
use zeroize::Zeroizing;

use crate::request::Kind;

/// Why a request is refused. RFC 4120 7.5.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// KDC_ERR_S_PRINCIPAL_UNKNOWN
    UnknownService,
    /// KDC_ERR_BADOPTION
    BadOption,
    /// KDC_ERR_ETYPE_NOSUPP
    Enctype,
    /// KDC_ERR_CLIENT_REVOKED
    Revoked,
    /// KDC_ERR_PREAUTH_FAILED
    PreauthFailed,
    /// KDC_ERR_PREAUTH_REQUIRED
    PreauthRequired,
    /// KRB_AP_ERR_BAD_INTEGRITY
    BadIntegrity,
    /// KRB_AP_ERR_TKT_EXPIRED
    Expired,
    /// KRB_AP_ERR_BADMATCH
    BadMatch,
    /// KRB_AP_ERR_SKEW
    Skew,
    /// KRB_AP_ERR_MODIFIED
    Modified,
    /// KRB_ERR_GENERIC
    Generic,
    /// KDC_ERR_WRONG_REALM
    WrongRealm,
}

impl Code {
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::UnknownService => 7,
            Self::BadOption => 13,
            Self::Enctype => 14,
            Self::Revoked => 18,
            Self::PreauthFailed => 24,
            Self::PreauthRequired => 25,
            Self::BadIntegrity => 31,
            Self::Expired => 32,
            Self::BadMatch => 36,
            Self::Skew => 37,
            Self::Modified => 41,
            Self::Generic => 60,
            Self::WrongRealm => 68,
        }
    }
}

impl From<DerError> for Code {
    fn from(_: DerError) -> Self {
        Self::Generic
    }
}

impl From<NameError> for Code {
    fn from(_: NameError) -> Self {
        Self::Generic
    }
}

impl From<CryptoError> for Code {
    fn from(_: CryptoError) -> Self {
        Self::Generic
    }
}

/// PA-ENC-TIMESTAMP and PA-ETYPE-INFO2. RFC 4120 7.5.2.
pub(crate) const PA_ENC_TIMESTAMP: i64 = 2;
const PA_ETYPE_INFO2: i64 = 19;

/// A ticket for a client, and what the client must know of it.
pub(crate) struct Granted<'a> {
    pub(crate) client: &'a Principal,
    pub(crate) service: &'a Principal,
    pub(crate) session_key: &'a Key,
    pub(crate) flags: u32,
    pub(crate) auth_time: Time,
    pub(crate) start_time: Time,
    pub(crate) end_time: Time,
    pub(crate) nonce: u32,
    /// The Ticket
    pub(crate) ticket: &'a [u8],
}

impl Granted<'_> {
    /// `SEQUENCE { pvno [0], msg-type [1], padata [2] OPTIONAL, crealm [3], cname [4], ticket [5], enc-part [6] }`.
    /// `padata`: PA-DATA, if any.
    pub(crate) fn reply(
        &self,
        kind: Kind,
        padata: Option<&[u8]>,
        sealer: &Sealer,
        confounder: &[u8; 16],
    ) -> Result<Vec<u8>, CryptoError> {
        let number = if kind == Kind::As { 11 } else { 13 };
        let sealed = sealer.sealed(confounder, &Zeroizing::new(self.encrypted_part(kind)))?;
        let mut builder = Builder::with_capacity(1024);
        builder.element(application(number), |message| {
            message.element(SEQUENCE, |fields| {
                fields.element(context(6), |field| put_encrypted(field, sealer.enctype(), &sealed));
                fields.element(context(5), |field| field.bytes(self.ticket));
                fields.element(context(4), |field| self.client.put(field, NameType::Principal));
                put_text(fields, 3, self.client.realm());
                if let Some(padata) = padata {
                    fields.element(context(2), |field| field.bytes(padata));
                }
                fields.element(context(1), |field| field.integer(number.into()));
                fields.element(context(0), |field| field.integer(5));
            });
        });
        Ok(builder.finish())
    }

    /// EncASRepPart and EncTGSRepPart: `SEQUENCE { key [0], last-req [1], nonce [2], key-expiration [3] OPTIONAL,
    /// flags [4], authtime [5], starttime [6] OPTIONAL, endtime [7], renew-till [8] OPTIONAL, srealm [9], sname [10],
    /// caddr [11] OPTIONAL }`.
    fn encrypted_part(&self, kind: Kind) -> Vec<u8> {
        let number = if kind == Kind::As { 25 } else { 26 };
        let mut builder = Builder::with_capacity(512);
        builder.element(application(number), |message| {
            message.element(SEQUENCE, |fields| {
                fields.element(context(10), |field| self.service.put(field, NameType::Service));
                put_text(fields, 9, self.service.realm());
                put_time(fields, 7, self.end_time);
                put_time(fields, 6, self.start_time);
                put_time(fields, 5, self.auth_time);
                put_flags(fields, 4, self.flags);
                fields.element(context(2), |field| field.integer(self.nonce.into()));
                // one entry, of type 0: "no information"
                fields.element(context(1), |field| {
                    field.element(SEQUENCE, |list| {
                        list.element(SEQUENCE, |entry| {
                            put_time(entry, 1, self.auth_time);
                            entry.element(context(0), |field| field.integer(0));
                        });
                    });
                });
                put_key(fields, 0, self.session_key);
            });
        });
        builder.finish()
    }
}

/// METHOD-DATA: how the client is to prove its password. `SEQUENCE OF PA-DATA` with PA-ETYPE-INFO2 and an empty
/// PA-ENC-TIMESTAMP. RFC 4120 5.2.7.5, 5.9.1.
pub(crate) fn method_data(enctypes: &[Enctype], salt: &str) -> Vec<u8> {
    let mut builder = Builder::with_capacity(256);
    builder.element(SEQUENCE, |list| {
        put_padata(list, PA_ENC_TIMESTAMP, &[]);
        put_padata(list, PA_ETYPE_INFO2, &etype_info2(enctypes, salt));
    });
    builder.finish()
}

/// The padata of an AS-REP: the salt with which the client makes the key of the reply.
pub(crate) fn reply_padata(enctype: Enctype, salt: &str) -> Vec<u8> {
    let mut builder = Builder::with_capacity(128);
    builder.element(SEQUENCE, |list| put_padata(list, PA_ETYPE_INFO2, &etype_info2(&[enctype], salt)));
    builder.finish()
}

/// ETYPE-INFO2: `SEQUENCE OF SEQUENCE { etype [0] Int32, salt [1] KerberosString OPTIONAL, ... }`, the preferred one first.
fn etype_info2(enctypes: &[Enctype], salt: &str) -> Vec<u8> {
    let mut builder = Builder::with_capacity(128);
    builder.element(SEQUENCE, |list| {
        for enctype in enctypes.iter().rev() {
            list.element(SEQUENCE, |entry| {
                put_text(entry, 1, salt);
                entry.element(context(0), |field| field.integer(enctype.number().into()));
            });
        }
    });
    builder.finish()
}

fn put_padata(builder: &mut Builder, kind: i64, value: &[u8]) {
    builder.element(SEQUENCE, |fields| {
        fields.element(context(2), |field| field.primitive(OCTET_STRING, value));
        fields.element(context(1), |field| field.integer(kind));
    });
}

/// EncryptedData.
pub(crate) fn put_encrypted(builder: &mut Builder, enctype: Enctype, cipher: &[u8]) {
    builder.element(SEQUENCE, |fields| {
        fields.element(context(2), |field| field.primitive(OCTET_STRING, cipher));
        fields.element(context(0), |field| field.integer(enctype.number().into()));
    });
}

pub(crate) fn put_key(builder: &mut Builder, number: u8, key: &Key) {
    builder.element(context(number), |field| {
        field.element(SEQUENCE, |fields| {
            fields.element(context(1), |field| field.primitive(OCTET_STRING, key.as_bytes()));
            fields.element(context(0), |field| field.integer(key.enctype().number().into()));
        });
    });
}

pub(crate) fn put_time(builder: &mut Builder, number: u8, time: Time) {
    builder.element(context(number), |field| field.primitive(GENERALIZED_TIME, &time.to_text()));
}

pub(crate) fn put_text(builder: &mut Builder, number: u8, text: &str) {
    builder.element(context(number), |field| field.primitive(GENERAL_STRING, text.as_bytes()));
}

pub(crate) fn put_flags(builder: &mut Builder, number: u8, flags: u32) {
    let [a, b, c, d] = flags.to_be_bytes();
    builder.element(context(number), |field| field.primitive(BIT_STRING, &[0, a, b, c, d]));
}

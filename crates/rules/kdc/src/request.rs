//! KDC-REQ: what a client asks. RFC 4120 5.4.1.

use krb5::der::{INTEGER, OCTET_STRING, Reader, SEQUENCE, context};
use krb5::fields::{Fields, unsigned};
use krb5::{Principal, Time};

use crate::reply::Code;

/// `[APPLICATION 10]`
const AS_REQ: u8 = 10;
/// `[APPLICATION 12]`
const TGS_REQ: u8 = 12;
/// The most elements of padata; clients send up to eight.
const PADATA_MAX: usize = 32;
/// The most encryption types; clients name up to eight.
const ETYPES_MAX: usize = 64;

/// Which of both exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With a password
    As,
    /// With a ticket-granting ticket
    Tgs,
}

/// A request. Nothing in it is authenticated.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) kind: Kind,
    /// Types and values
    padata: Vec<(i64, &'a [u8])>,
    /// KDC-REQ-BODY as it was sent: what the checksum of a TGS-REQ covers
    pub(crate) body: &'a [u8],
    pub(crate) options: u32,
    /// In an AS-REQ
    pub(crate) client: Option<Principal>,
    pub(crate) realm: &'a str,
    pub(crate) service: Option<Principal>,
    /// Until when the ticket is wanted
    pub(crate) till: Time,
    pub(crate) nonce: u32,
    /// The numbers of encryption types, the preferred one first
    pub(crate) etypes: Vec<i64>,
}

impl<'a> Request<'a> {
    /// `SEQUENCE { pvno [1], msg-type [2], padata [3] SEQUENCE OF PA-DATA OPTIONAL, req-body [4] }`.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Code> {
        let kind = match Reader::new(bytes).peek_tag() {
            Some(tag) if tag == krb5::der::application(AS_REQ) => Kind::As,
            Some(tag) if tag == krb5::der::application(TGS_REQ) => Kind::Tgs,
            _ => return Err(Code::Generic),
        };
        let number = if kind == Kind::As { AS_REQ } else { TGS_REQ };
        let mut fields = Fields::of_message(bytes, number)?;
        if fields.integer(1)? != 5 || fields.integer(2)? != i64::from(number) {
            return Err(Code::Generic);
        }
        let padata = fields.optional(3)?.map(padata).transpose()?.unwrap_or_default();
        Self { kind, padata, ..Self::body(fields.raw(4)?)? }.checked()
    }

    /// `SEQUENCE { kdc-options [0], cname [1] OPTIONAL, realm [2], sname [3] OPTIONAL, from [4] OPTIONAL, till [5],
    /// rtime [6] OPTIONAL, nonce [7], etype [8] SEQUENCE OF Int32, ... }`. What follows is of no use here.
    fn body(bytes: &'a [u8]) -> Result<Self, Code> {
        let mut fields = Fields::of_sequence(bytes)?;
        let options = fields.flags(0)?;
        let client = fields.optional(1)?;
        let realm = fields.text(2)?;
        let service = fields.optional(3)?;
        let name = |name: Option<&[u8]>| name.map(|name| Principal::decode(name, realm)).transpose();
        let (client, service) = (name(client)?, name(service)?);
        fields.optional_time(4)?;
        let till = fields.time(5)?;
        fields.optional_time(6)?;
        let nonce = unsigned(fields.integer(7)?)?;
        let etypes = etypes(fields.raw(8)?)?;
        let realm = std::str::from_utf8(realm).map_err(|_| Code::Generic)?;
        let (kind, padata) = (Kind::As, Vec::new());
        Ok(Self { kind, padata, body: bytes, options, client, realm, service, till, nonce, etypes })
    }

    fn checked(self) -> Result<Self, Code> {
        if crate::options::are_possible(self.options) { Ok(self) } else { Err(Code::BadOption) }
    }

    /// The first element of padata of this type.
    pub(crate) fn padata(&self, wanted: i64) -> Option<&'a [u8]> {
        self.padata.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| *value)
    }
}

/// `SEQUENCE OF SEQUENCE { padata-type [1] Int32, padata-value [2] OCTET STRING }`.
fn padata(bytes: &[u8]) -> Result<Vec<(i64, &[u8])>, Code> {
    let mut reader = Reader::new(Reader::new(bytes).element(SEQUENCE)?);
    let mut elements = Vec::new();
    while !reader.is_empty() {
        if elements.len() == PADATA_MAX {
            return Err(Code::Generic);
        }
        let mut fields = Reader::new(reader.element(SEQUENCE)?);
        let kind = Reader::new(fields.element(context(1))?).integer()?;
        elements.push((kind, Reader::new(fields.element(context(2))?).element(OCTET_STRING)?));
    }
    Ok(elements)
}

fn etypes(bytes: &[u8]) -> Result<Vec<i64>, Code> {
    let mut reader = Reader::new(Reader::new(bytes).element(SEQUENCE)?);
    let mut etypes = Vec::new();
    while reader.peek_tag() == Some(INTEGER) {
        if etypes.len() == ETYPES_MAX {
            return Err(Code::Generic);
        }
        etypes.push(reader.integer()?);
    }
    if reader.is_empty() { Ok(etypes) } else { Err(Code::Generic) }
}

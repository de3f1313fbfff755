//! Tickets. RFC 4120 5.3.

use crate::der::{DerError, Reader, SEQUENCE};
use crate::fields::{EncryptedData, Fields, key};
use crate::name::Principal;
use crate::reason::Reason;
use crate::time::Time;
use crate::{Key, fields};

const TICKET: u8 = 1;
const ENC_TICKET_PART: u8 = 3;

/// AD-IF-RELEVANT. RFC 4120 5.2.6.1.
const IF_RELEVANT: i64 = 1;
/// AD-WIN2K-PAC. RFC 4120 7.5.4, [MS-KILE] 3.3.5.6.4.2.
const WIN2K_PAC: i64 = 128;
/// How deep containers of authorization data may lie in each other.
const CONTAINERS_MAX: u8 = 2;
/// The most elements in a list of authorization data.
const ELEMENTS_MAX: usize = 32;

/// A ticket as the client sent it. Nothing in it is authenticated.
#[derive(Debug)]
pub struct Ticket<'a> {
    /// The service; not authenticated
    pub service: Principal,
    /// A [`TicketContent`], encrypted with the service's key
    pub sealed: EncryptedData<'a>,
}

impl<'a> Ticket<'a> {
    /// `[APPLICATION 1] SEQUENCE { tkt-vno [0], realm [1], sname [2], enc-part [3] }`.
    ///
    /// # Errors
    /// The reason why it is none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Reason> {
        let mut fields = Fields::of_message(bytes, TICKET)?;
        if fields.integer(0)? != 5 {
            return Err(Reason::Version);
        }
        let realm = fields.text(1)?;
        let service = Principal::decode(fields.raw(2)?, realm)?;
        Ok(Self { service, sealed: EncryptedData::decode(fields.raw(3)?)? })
    }
}

/// What the KDC says about a client: the decrypted part of a ticket.
#[derive(Debug)]
pub struct TicketContent<'a> {
    /// What the KDC says of the ticket
    pub flags: TicketFlags,
    /// The key that client and service share
    pub session_key: Key,
    /// The client
    pub client: Principal,
    /// When the client proved itself to the KDC
    pub auth_time: Time,
    /// When the ticket begins
    pub start_time: Time,
    /// When it ends
    pub end_time: Time,
    /// AuthorizationData
    pub authorization_data: Option<&'a [u8]>,
}

/// TicketFlags. RFC 4120 5.3: bit 0 is the highest one.
#[derive(Clone, Copy, Debug)]
pub struct TicketFlags(u32);

impl TicketFlags {
    /// INVALID: it is postdated
    #[must_use]
    pub fn is_invalid(self) -> bool {
        self.0 & (1 << 24) != 0 // bit 7
    }

    /// TRANSITED-POLICY-CHECKED: the KDC has checked through which realms it came
    #[must_use]
    pub fn is_transited_policy_checked(self) -> bool {
        self.0 & (1 << 19) != 0 // bit 12
    }
}

impl<'a> TicketContent<'a> {
    /// `[APPLICATION 3] SEQUENCE { flags [0], key [1], crealm [2], cname [3], transited [4], authtime [5],
    /// starttime [6] OPTIONAL, endtime [7], renew-till [8] OPTIONAL, caddr [9] OPTIONAL,
    /// authorization-data [10] OPTIONAL }`.
    ///
    /// # Errors
    /// The reason why it is none.
    pub fn decode(plain: &'a [u8]) -> Result<Self, Reason> {
        let mut fields = Fields::of_message(plain, ENC_TICKET_PART)?;
        let flags = TicketFlags(fields.flags(0)?);
        let session_key = key(fields.raw(1)?)?;
        let realm = fields.text(2)?;
        let client = Principal::decode(fields.raw(3)?, realm)?;
        fields.raw(4)?;
        let auth_time = fields.time(5)?;
        // RFC 4120 5.3, starttime: if it is absent, authtime is the beginning
        let start_time = fields.optional_time(6)?.unwrap_or(auth_time);
        let end_time = fields.time(7)?;
        fields.optional_time(8)?;
        fields.optional(9)?;
        let authorization_data = fields.optional(10)?;
        Ok(Self { flags, session_key, client, auth_time, start_time, end_time, authorization_data })
    }

    /// The PAC, if there is one.
    ///
    /// # Errors
    /// The authorization data is malformed.
    pub fn pac(&self) -> Result<Option<&'a [u8]>, Reason> {
        let Some(list) = self.authorization_data else { return Ok(None) };
        Ok(find_pac(list, 0)?)
    }
}

/// The first PAC in AuthorizationData: `SEQUENCE OF SEQUENCE { ad-type [0] Int32, ad-data [1] OCTET STRING }`.
fn find_pac(list: &[u8], depth: u8) -> Result<Option<&[u8]>, DerError> {
    let mut reader = Reader::new(Reader::new(list).element(SEQUENCE)?);
    for _ in 0..ELEMENTS_MAX {
        if reader.is_empty() {
            return Ok(None);
        }
        let (_, element) = reader.element_and_encoding(SEQUENCE)?;
        let mut fields = Fields::of_sequence(element)?;
        let (kind, data) = (fields.integer(0)?, fields.octets(1)?);
        if kind == WIN2K_PAC {
            return Ok(Some(data));
        }
        if kind == IF_RELEVANT && depth < CONTAINERS_MAX {
            let inner = find_pac(data, depth.saturating_add(1))?;
            if inner.is_some() {
                return Ok(inner);
            }
        }
    }
    if reader.is_empty() { Ok(None) } else { Err(DerError) }
}

impl From<DerError> for Reason {
    fn from(_: DerError) -> Self {
        Self::Malformed
    }
}

impl From<fields::KeyFault> for Reason {
    fn from(fault: fields::KeyFault) -> Self {
        match fault {
            fields::KeyFault::Malformed => Self::Malformed,
            fields::KeyFault::Enctype(number) => Self::Enctype { number },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der::{Builder, OCTET_STRING, context, element};

    fn entry(kind: i64, data: &[u8]) -> Vec<u8> {
        let mut builder = Builder::default();
        builder.element(SEQUENCE, |fields| {
            fields.element(context(1), |field| field.primitive(OCTET_STRING, data));
            fields.element(context(0), |field| field.integer(kind));
        });
        builder.finish()
    }

    fn list(entries: &[Vec<u8>]) -> Vec<u8> {
        element(SEQUENCE, &entries.concat())
    }

    #[test]
    fn a_pac_is_found_in_two_containers_and_not_in_three() {
        let mut data = list(&[entry(2, b"other"), entry(WIN2K_PAC, b"pac")]);
        for _ in 0..=CONTAINERS_MAX {
            assert_eq!(find_pac(&data, 0), Ok(Some(&b"pac"[..])));
            data = list(&[entry(-2, b""), entry(IF_RELEVANT, &data)]);
        }
        assert_eq!(find_pac(&data, 0), Ok(None));
    }

    #[test]
    fn authorization_data_is_limited() {
        let entries = |count: usize| list(&vec![entry(2, b""); count]);
        assert_eq!(find_pac(&entries(0), 0), Ok(None));
        assert_eq!(find_pac(&entries(ELEMENTS_MAX), 0), Ok(None));
        assert_eq!(find_pac(&entries(ELEMENTS_MAX + 1), 0), Err(DerError));
        let whole = list(&[entry(IF_RELEVANT, &list(&[entry(WIN2K_PAC, b"pac")]))]);
        assert!((0..whole.len()).all(|length| find_pac(&whole[..length], 0).is_err()));
    }
}

//! Tickets of this KDC: made and opened with the same key. RFC 4120 5.3.

use acl::Sid;
use krb5::crypto::{CONFOUNDER_LEN, ChecksumKey, CryptoError, KeyUsage, Opener, Sealer};
use krb5::der::{Builder, OCTET_STRING, SEQUENCE, application, context};
use krb5::{Key, NameType, Principal, Ticket, Time};
use zeroize::Zeroizing;

use crate::pac::{self, Subject};
use crate::reply::{Code, put_encrypted, put_flags, put_key, put_text, put_time};

/// AD-IF-RELEVANT and AD-WIN2K-PAC. RFC 4120 5.2.6.1, [MS-KILE] 3.3.5.6.4.2.
const IF_RELEVANT: i64 = 1;
const WIN2K_PAC: i64 = 128;

/// What makes tickets for one service, and opens them.
pub(crate) struct TicketKey {
    sealer: Sealer,
    opener: Opener,
    pub(crate) pacs: ChecksumKey,
}

/// What a ticket says.
pub(crate) struct NewTicket<'a> {
    pub(crate) service: &'a Principal,
    pub(crate) client: &'a Principal,
    pub(crate) sid: Sid,
    /// The name of the domain of the SID
    pub(crate) domain: &'a str,
    pub(crate) session_key: &'a Key,
    pub(crate) flags: u32,
    pub(crate) auth_time: Time,
    pub(crate) start_time: Time,
    pub(crate) end_time: Time,
}

impl TicketKey {
    pub(crate) fn new(key: &Key) -> Result<Self, CryptoError> {
        let deriver = key.deriver()?;
        let (sealer, opener) = (deriver.sealer(KeyUsage::TICKET)?, deriver.opener(KeyUsage::TICKET)?);
        Ok(Self { sealer, opener, pacs: deriver.checksum_key(KeyUsage::PAC)? })
    }

    /// The Ticket. `kdc` makes the second signature of its PAC.
    pub(crate) fn seal(
        &self,
        new: &NewTicket<'_>,
        kdc: &ChecksumKey,
        confounder: &[u8; CONFOUNDER_LEN],
    ) -> Result<Vec<u8>, Code> {
        let pac = new.pac(&self.pacs, kdc)?;
        let sealed = self.sealer.sealed(confounder, &Zeroizing::new(new.content(&pac)))?;
        let mut builder = Builder::with_capacity(1024);
        builder.element(application(1), |message| {
            message.element(SEQUENCE, |fields| {
                fields.element(context(3), |field| put_encrypted(field, self.sealer.enctype(), &sealed));
                fields.element(context(2), |field| new.service.put(field, NameType::Service));
                put_text(fields, 1, new.service.realm());
                fields.element(context(0), |field| field.integer(5));
            });
        });
        Ok(builder.finish())
    }

    /// The bytes of a TicketContent.
    pub(crate) fn open(&self, ticket: &Ticket<'_>) -> Result<Zeroizing<Vec<u8>>, Code> {
        if ticket.sealed.etype != i64::from(self.opener.enctype().number()) {
            return Err(Code::Modified);
        }
        let mut sealed = Zeroizing::new(ticket.sealed.cipher.to_vec());
        let content = self.opener.open(&mut sealed).map_err(|_| Code::Modified)?;
        Ok(Zeroizing::new(content.to_vec()))
    }
}

impl NewTicket<'_> {
    /// The PAC: the same for the same ticket.
    pub(crate) fn pac(&self, server: &ChecksumKey, kdc: &ChecksumKey) -> Result<Vec<u8>, Code> {
        let subject = Subject {
            name: self.client.name(),
            domain: self.domain,
            sid: &self.sid,
            auth_time: self.auth_time,
        };
        pac::signed(&subject, server, kdc).ok_or(Code::Generic)
    }

    /// EncTicketPart: `[APPLICATION 3] SEQUENCE { flags [0], key [1], crealm [2], cname [3], transited [4], authtime [5],
    /// starttime [6] OPTIONAL, endtime [7], renew-till [8] OPTIONAL, caddr [9] OPTIONAL, authorization-data [10] }`.
    fn content(&self, pac: &[u8]) -> Vec<u8> {
        let mut builder = Builder::with_capacity(1024);
        builder.element(application(3), |message| {
            message.element(SEQUENCE, |fields| {
                let inner = authorization_data(WIN2K_PAC, pac);
                fields.element(context(10), |field| field.bytes(&authorization_data(IF_RELEVANT, &inner)));
                put_time(fields, 7, self.end_time);
                put_time(fields, 6, self.start_time);
                put_time(fields, 5, self.auth_time);
                // DOMAIN-X500-COMPRESS, and no realm
                fields.element(context(4), |field| {
                    field.element(SEQUENCE, |transited| {
                        transited.element(context(1), |field| field.primitive(OCTET_STRING, &[]));
                        transited.element(context(0), |field| field.integer(1));
                    });
                });
                fields.element(context(3), |field| self.client.put(field, NameType::Principal));
                put_text(fields, 2, self.client.realm());
                put_key(fields, 1, self.session_key);
                put_flags(fields, 0, self.flags);
            });
        });
        builder.finish()
    }
}

/// AuthorizationData with one element: `SEQUENCE OF SEQUENCE { ad-type [0] Int32, ad-data [1] OCTET STRING }`.
fn authorization_data(kind: i64, data: &[u8]) -> Vec<u8> {
    let mut builder = Builder::with_capacity(data.len().saturating_add(32));
    builder.element(SEQUENCE, |list| {
        list.element(SEQUENCE, |fields| {
            fields.element(context(1), |field| field.primitive(OCTET_STRING, data));
            fields.element(context(0), |field| field.integer(kind));
        });
    });
    builder.finish()
}

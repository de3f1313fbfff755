//! The second exchange: a ticket for the service, for a ticket-granting ticket. RFC 4120 3.3.

use krb5::crypto::KeyUsage;
use krb5::fields::{Fields, key};
use krb5::{ApReq, Enctype, Key, Principal, TicketContent, Time};
use zeroize::Zeroizing;

use crate::client::Clients;
use crate::exchange::{Answer, Kdc, Outcome, Randomness};
use crate::options;
use crate::reply::{Code, Granted};
use crate::request::{Kind, Request};
use crate::ticket::NewTicket;

/// PA-TGS-REQ: an AP-REQ with a ticket-granting ticket. RFC 4120 5.2.7.1.
const PA_TGS_REQ: i64 = 1;
/// `[APPLICATION 2]`
const AUTHENTICATOR: u8 = 2;

/// What the client says with the key of its ticket.
struct Authenticator {
    client: Principal,
    ctime: Time,
    subkey: Option<Key>,
}

impl Kdc {
    pub(crate) fn grant(
        &self,
        request: &Request<'_>,
        now: Time,
        randomness: &Randomness,
        clients: &dyn Clients,
    ) -> Result<Answer, Code> {
        if request.realm != self.settings().realm {
            return Err(Code::WrongRealm);
        }
        let service = request.service.clone().ok_or(Code::UnknownService)?;
        self.check_service(&service)?;
        let proof = request.padata(PA_TGS_REQ).ok_or(Code::Generic)?;
        let proof = ApReq::decode(proof).map_err(|_| Code::Generic)?;
        if !self.is_ticket_granting(&proof.ticket.service) || proof.is_user_to_user {
            return Err(Code::Generic);
        }
        let content = self.own.open(&proof.ticket)?;
        let ticket = TicketContent::decode(&content).map_err(|_| Code::Modified)?;
        if now.seconds_after(ticket.end_time) > 0 {
            return Err(Code::Expired);
        }
        let authenticator = authenticator(&proof, &ticket.session_key, request.body)?;
        if authenticator.client != ticket.client {
            return Err(Code::BadMatch);
        }
        if !self.is_near(authenticator.ctime, now) {
            return Err(Code::Skew);
        }
        let client = clients.client(ticket.client.name()).filter(|client| !client.is_disabled);
        let client = client.ok_or(Code::Revoked)?;
        let enctype = request.etypes.iter().find_map(|number| Enctype::from_number(*number));
        let session_key = randomness.session_key(enctype.ok_or(Code::Enctype)?);
        let new = NewTicket {
            service: &service,
            client: &ticket.client,
            sid: client.sid,
            domain: &self.settings().domain,
            session_key: &session_key,
            flags: options::SERVICE,
            auth_time: ticket.auth_time,
            start_time: now,
            end_time: self.end_time(now, request.till).min(ticket.end_time),
        };
        // Who has the name now, is who had it when the ticket was made.
        let same = new.pac(&self.own.pacs, &self.own.pacs)?;
        if ticket.pac().ok().flatten() != Some(same.as_slice()) {
            return Err(Code::Revoked);
        }
        let reply =
            self.granted(&new, &ticket.session_key, authenticator.subkey.as_ref(), request, randomness)?;
        Ok(Answer { reply, outcome: Outcome::Issued })
    }

    /// There are tickets for the services of this server, by any of its names.
    fn check_service(&self, service: &Principal) -> Result<(), Code> {
        let mut components = service.components();
        let (kind, host, rest) = (components.next(), components.next(), components.next());
        let offered =
            |kind: &str| self.settings().services.iter().any(|known| known.eq_ignore_ascii_case(kind));
        if kind.is_some_and(offered) && host.is_some() && rest.is_none() {
            Ok(())
        } else {
            Err(Code::UnknownService)
        }
    }

    /// RFC 4120 3.3.3: the reply is encrypted with the client's subkey, or else with the key of its ticket.
    fn granted(
        &self,
        new: &NewTicket<'_>,
        session_key: &Key,
        subkey: Option<&Key>,
        request: &Request<'_>,
        randomness: &Randomness,
    ) -> Result<Vec<u8>, Code> {
        let ticket = self.service.seal(new, &self.own.pacs, &randomness.ticket)?;
        let granted = Granted {
            client: new.client,
            service: new.service,
            session_key: new.session_key,
            flags: new.flags,
            auth_time: new.auth_time,
            start_time: new.start_time,
            end_time: new.end_time,
            nonce: request.nonce,
            ticket: &ticket,
        };
        let sealer = match subkey {
            Some(subkey) => subkey.deriver()?.sealer(KeyUsage::TGS_REP_SUBKEY)?,
            None => session_key.deriver()?.sealer(KeyUsage::TGS_REP_SESSION)?,
        };
        Ok(granted.reply(Kind::Tgs, None, &sealer, &randomness.reply)?)
    }
}

/// Opens the authenticator of a TGS-REQ: `[APPLICATION 2] SEQUENCE { authenticator-vno [0], crealm [1], cname [2],
/// cksum [3] OPTIONAL, cusec [4], ctime [5], subkey [6] OPTIONAL, ... }`. Its checksum covers the body of the request. RFC
/// 4120 3.3.2, 5.5.1.
fn authenticator(proof: &ApReq<'_>, session_key: &Key, body: &[u8]) -> Result<Authenticator, Code> {
    let enctype = session_key.enctype();
    if proof.authenticator.etype != i64::from(enctype.number()) {
        return Err(Code::BadIntegrity);
    }
    let deriver = session_key.deriver()?;
    let mut sealed = Zeroizing::new(proof.authenticator.cipher.to_vec());
    let plain = deriver.opener(KeyUsage::TGS_REQ_AUTHENTICATOR)?.open(&mut sealed);
    let mut fields = Fields::of_message(plain.map_err(|_| Code::BadIntegrity)?, AUTHENTICATOR)?;
    if fields.integer(0)? != 5 {
        return Err(Code::Generic);
    }
    let realm = fields.text(1)?;
    let client = Principal::decode(fields.raw(2)?, realm)?;
    let mut checksum = Fields::of_sequence(fields.optional(3)?.ok_or(Code::Modified)?)?;
    if checksum.integer(0)? != i64::from(enctype.checksum_number()) {
        return Err(Code::Modified);
    }
    let key = deriver.checksum_key(KeyUsage::TGS_REQ_CHECKSUM)?;
    key.verify(&[body], checksum.octets(1)?).map_err(|_| Code::Modified)?;
    fields.integer(4)?;
    let ctime = fields.time(5)?;
    let subkey = fields.optional(6)?.map(key_of).transpose()?;
    Ok(Authenticator { client, ctime, subkey })
}

fn key_of(bytes: &[u8]) -> Result<Key, Code> {
    key(bytes).map_err(|_| Code::Enctype)
}

//! The KDC, and its first exchange: a ticket-granting ticket for a password. RFC 4120 3.1.

use std::fmt;
use std::time::Duration;

use krb5::crypto::{CONFOUNDER_LEN, CryptoError, KeyUsage};
use krb5::fields::{EncryptedData, Fields};
use krb5::keytab::{Entry, Keytab};
use krb5::{Enctype, Key, KrbError, Principal, Time};
use zeroize::Zeroizing;

use crate::client::{Client, Clients};
use crate::options;
use crate::reply::{Code, Granted, PA_ENC_TIMESTAMP, method_data, reply_padata};
use crate::request::{Kind, Request};
use crate::ticket::{NewTicket, TicketKey};

/// The types of the keys that clients have, the better one first.
const CLIENT_ENCTYPES: [Enctype; 2] = [Enctype::Aes256Sha384, Enctype::Aes256Sha1];
/// The type of the KDC's own keys.
const OWN_ENCTYPE: Enctype = Enctype::Aes256Sha384;
/// The service for which ticket-granting tickets are.
const TICKET_GRANTING: &str = "krbtgt";
/// The most bytes of a request.
const REQUEST_BYTES_MAX: usize = 64 << 10;

/// What a KDC is for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The realm of the clients
    pub realm: String,
    /// The first components of the names of the services for which there are tickets; `cifs`. The host in the second one
    /// may be any: it is this server, by whichever name or address a client has found it
    pub services: Vec<String>,
    /// The name of the domain of the clients' SIDs
    pub domain: String,
    /// How much clocks may differ. RFC 4120 recommends 5 minutes
    pub clock_skew: Duration,
    /// How long tickets last
    pub lifetime: Duration,
}

/// A KDC. It does not change, so all threads may use one.
pub struct Kdc {
    settings: Settings,
    ticket_granting: Principal,
    pub(crate) own: TicketKey,
    pub(crate) service: TicketKey,
    service_key: Key,
    /// In place of the keys of clients that do not exist
    nobody: [Key; 2],
}

/// The random bytes for one answer. They are used once.
#[derive(Clone)]
pub struct Randomness {
    session_key: Zeroizing<[u8; 32]>,
    pub(crate) ticket: [u8; CONFOUNDER_LEN],
    pub(crate) reply: [u8; CONFOUNDER_LEN],
}

impl Randomness {
    /// Of 64 random bytes.
    #[must_use]
    pub fn new(key: [u8; 32], ticket: [u8; CONFOUNDER_LEN], reply: [u8; CONFOUNDER_LEN]) -> Self {
        Self { session_key: key.into(), ticket, reply }
    }

    pub(crate) fn session_key(&self, enctype: Enctype) -> Key {
        Key::from_random(enctype, &self.session_key)
    }
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Randomness")
    }
}

/// What the client is told, and what that means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// A message of RFC 4120 for the client
    pub reply: Vec<u8>,
    /// What is known of the client now
    pub outcome: Outcome,
}

/// What an exchange has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was proved, and no ticket made
    Open,
    /// This client has proved its password. The randomness was used
    Proved(String),
    /// A ticket was made for a ticket. The randomness was used
    Issued,
    /// The client has not proved what it says
    Refused {
        /// Why
        refusal: Refusal,
        /// The name that the client gave; logs must escape it
        client: String,
    },
}

/// Why a client is refused. Clients learn of the first two the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such client, or it has no keys
    UnknownClient,
    /// The password is wrong
    WrongPassword,
    /// The password is right, and the client disabled
    Disabled,
}

/// An AS-REQ that can be answered.
struct Asked<'a> {
    request: &'a Request<'a>,
    client: Principal,
    service: Principal,
    /// Whom the name stands for
    known: Option<Client>,
    /// The types that both have
    enctypes: Vec<Enctype>,
}

impl Kdc {
    /// A KDC with these random keys: of ticket-granting tickets, of the service's tickets, and one that nobody ever has.
    ///
    /// # Errors
    /// The realm cannot be one, or the library refuses.
    pub fn new(settings: Settings, random: &[Zeroizing<[u8; 32]>; 3]) -> Result<Self, CryptoError> {
        let [own, service, nobody] = random;
        let realm = &settings.realm;
        let ticket_granting = Principal::new(&[TICKET_GRANTING, realm], realm).map_err(|_| CryptoError)?;
        let service_key = Key::from_random(OWN_ENCTYPE, service);
        Ok(Self {
            ticket_granting,
            own: TicketKey::new(&Key::from_random(OWN_ENCTYPE, own))?,
            service: TicketKey::new(&service_key)?,
            service_key,
            nobody: CLIENT_ENCTYPES.map(|enctype| Key::from_random(enctype, nobody)),
            settings,
        })
    }

    /// What the KDC is for.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The key of the service's tickets, for the acceptor of the service.
    ///
    /// # Errors
    /// The library refuses.
    pub fn keytab(&self) -> Result<Keytab, CryptoError> {
        let entry =
            Entry::new(self.ticket_granting.clone(), 1, Time::from_unix(0), self.service_key.clone())?;
        Keytab::new(vec![entry]).map_err(|_| CryptoError)
    }

    /// Answers a request of a client.
    #[must_use]
    pub fn answer(
        &self,
        request: &[u8],
        now: Time,
        randomness: &Randomness,
        clients: &dyn Clients,
    ) -> Answer {
        let answered = match request.len() {
            0..=REQUEST_BYTES_MAX => Request::decode(request),
            _ => Err(Code::Generic),
        };
        let answered = answered.and_then(|request| match request.kind {
            Kind::As => self.authenticate(&request, now, randomness, clients),
            Kind::Tgs => self.grant(&request, now, randomness, clients),
        });
        answered.unwrap_or_else(|code| self.refused(code, now, None))
    }

    pub(crate) fn refused(&self, code: Code, now: Time, data: Option<&[u8]>) -> Answer {
        let error = KrbError { code: code.number(), now, service: &self.ticket_granting, data };
        Answer { reply: error.encode(), outcome: Outcome::Open }
    }

    pub(crate) fn is_ticket_granting(&self, service: &Principal) -> bool {
        *service == self.ticket_granting
    }

    /// How long a ticket lasts that is wanted until `till`. RFC 4120 3.1.3: a client that does not care asks for the epoch.
    pub(crate) fn end_time(&self, now: Time, till: Time) -> Time {
        let seconds = i64::try_from(self.settings.lifetime.as_secs()).unwrap_or(i64::MAX);
        let longest = now.plus(seconds);
        if till.as_unix() <= 0 { longest } else { till.min(longest) }
    }

    pub(crate) fn is_near(&self, time: Time, now: Time) -> bool {
        let skew = i64::try_from(self.settings.clock_skew.as_secs()).unwrap_or(i64::MAX);
        time.seconds_after(now).saturating_abs() <= skew
    }

    fn asked<'a>(&self, request: &'a Request<'a>, clients: &dyn Clients) -> Result<Asked<'a>, Code> {
        if request.realm != self.settings.realm {
            return Err(Code::WrongRealm);
        }
        let client = request.client.clone().ok_or(Code::Generic)?;
        let service = request.service.clone().ok_or(Code::UnknownService)?;
        if !self.is_ticket_granting(&service) {
            return Err(Code::UnknownService);
        }
        let offered = request.etypes.iter().filter_map(|number| Enctype::from_number(*number));
        let enctypes: Vec<_> = offered.filter(|enctype| CLIENT_ENCTYPES.contains(enctype)).collect();
        if enctypes.is_empty() {
            return Err(Code::Enctype);
        }
        let known = clients.client(client.name());
        Ok(Asked { request, client, service, known, enctypes })
    }

    /// RFC 4120 3.1.3, with a proof of the password always.
    fn authenticate(
        &self,
        request: &Request<'_>,
        now: Time,
        randomness: &Randomness,
        clients: &dyn Clients,
    ) -> Result<Answer, Code> {
        let asked = self.asked(request, clients)?;
        let Some(proof) = request.padata(PA_ENC_TIMESTAMP).filter(|proof| !proof.is_empty()) else {
            let data = method_data(&asked.enctypes, &asked.salt());
            return Ok(self.refused(Code::PreauthRequired, now, Some(&data)));
        };
        let (enctype, proved_at) = match self.proved(&asked, proof) {
            Ok(proved) => proved,
            Err(refusal) => {
                let reply = self.refused(Code::PreauthFailed, now, None).reply;
                return Ok(Answer { reply, outcome: asked.refused(refusal) });
            }
        };
        let Some(known) = &asked.known else { return Err(Code::Generic) };
        if known.is_disabled {
            let reply = self.refused(Code::Revoked, now, None).reply;
            return Ok(Answer { reply, outcome: asked.refused(Refusal::Disabled) });
        }
        // The client learns that its password is right.
        let outcome = Outcome::Proved(known.name.clone());
        if !self.is_near(proved_at, now) {
            return Ok(Answer { reply: self.refused(Code::Skew, now, None).reply, outcome });
        }
        let reply = self.ticket_granting_ticket(&asked, known, enctype, now, randomness)?;
        Ok(Answer { reply, outcome })
    }

    /// The time at which the client proved its password, and the type of the key. PA-ENC-TIMESTAMP, RFC 4120 5.2.7.2:
    /// EncryptedData with `SEQUENCE { patimestamp [0] KerberosTime, pausec [1] OPTIONAL }`. A client that does not exist
    /// costs as much time as one that does.
    fn proved(&self, asked: &Asked<'_>, proof: &[u8]) -> Result<(Enctype, Time), Refusal> {
        let wrong = if asked.known.is_some() { Refusal::WrongPassword } else { Refusal::UnknownClient };
        let sealed = EncryptedData::decode(proof).map_err(|_| wrong)?;
        let enctype = Enctype::from_number(sealed.etype).ok_or(wrong)?;
        let keys = asked.known.as_ref().map(|known| &known.keys);
        let nobody = self.nobody.iter().find(|key| key.enctype() == enctype);
        let key = keys.map_or(nobody, |keys| keys.of_type(enctype)).ok_or(wrong)?;
        let opener = key.deriver().and_then(|deriver| deriver.opener(KeyUsage::AS_REQ_TIMESTAMP));
        let mut sealed = Zeroizing::new(sealed.cipher.to_vec());
        let plain = opener.and_then(|opener| opener.open(&mut sealed).map(|plain| plain.to_vec()));
        let plain = plain.map_err(|_| wrong)?;
        let time = Fields::of_sequence(&plain).and_then(|mut fields| fields.time(0)).map_err(|_| wrong)?;
        if asked.known.is_some() { Ok((enctype, time)) } else { Err(wrong) }
    }

    fn ticket_granting_ticket(
        &self,
        asked: &Asked<'_>,
        known: &Client,
        enctype: Enctype,
        now: Time,
        randomness: &Randomness,
    ) -> Result<Vec<u8>, Code> {
        let session_key = randomness.session_key(enctype);
        let end_time = self.end_time(now, asked.request.till);
        let new = NewTicket {
            service: &asked.service,
            client: &asked.client,
            sid: known.sid,
            domain: &self.settings.domain,
            session_key: &session_key,
            flags: options::TICKET_GRANTING,
            auth_time: now,
            start_time: now,
            end_time,
        };
        let ticket = self.own.seal(&new, &self.own.pacs, &randomness.ticket)?;
        let granted = Granted {
            client: &asked.client,
            service: &asked.service,
            session_key: &session_key,
            flags: options::TICKET_GRANTING,
            auth_time: now,
            start_time: now,
            end_time,
            nonce: asked.request.nonce,
            ticket: &ticket,
        };
        let key = known.keys.of_type(enctype).ok_or(Code::Enctype)?;
        let sealer = key.deriver()?.sealer(KeyUsage::AS_REP)?;
        let padata = reply_padata(enctype, &known.keys.salt);
        Ok(granted.reply(Kind::As, Some(&padata), &sealer, &randomness.reply)?)
    }
}

impl Asked<'_> {
    /// What the client mixes with its password. One that does not exist gets what it would have had: RFC 4120 4, "the
    /// default salt string ... is the concatenation of the principal's realm and name components".
    fn salt(&self) -> String {
        match &self.known {
            Some(known) => known.keys.salt.clone(),
            None => format!("{}{}", self.client.realm(), self.client.name().replace('/', "")),
        }
    }

    fn refused(&self, refusal: Refusal) -> Outcome {
        Outcome::Refused { refusal, client: self.client.name().to_owned() }
    }
}

impl fmt::Debug for Kdc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kdc").field("settings", &self.settings).finish_non_exhaustive()
    }
}

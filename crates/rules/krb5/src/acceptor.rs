//! Accepting a client: RFC 4120 3.2.3, RFC 4121 4.1.
//!
//! The service's name and the options of an AP-REQ are not authenticated: a domain controller gives one account one key
//! for all its names. Nothing is decided by them, except which key is tried. What the client asks for is in the checksum
//! of the authenticator.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::ap_rep::Proof;
use crate::ap_req::{ApReq, Authenticator, ContextFlags};
use crate::channel::{Channel, Unbound};
use crate::crypto::{CONFOUNDER_LEN, CryptoError, Deriver, KeyUsage};
use crate::fields::EncryptedData;
use crate::gss::{Mechanism, TokenId, unframe_as};
use crate::keytab::{Entry, Keytab};
use crate::krb_error;
use crate::name::Principal;
use crate::pac::Pac;
use crate::per_message::{KeyOrigin, PerMessage, Side};
use crate::reason::Reason;
use crate::replay::{Noted, ReplayId, Replays};
use crate::ticket::{Ticket, TicketContent};
use crate::time::Time;
use crate::{Enctype, Key};

/// The most bytes of a token. Windows' own limit is 48,000.
pub const TOKEN_BYTES_MAX: usize = 64 << 10;
/// Sequence numbers begin below 2^30: some programs read them as signed numbers.
const SEQUENCE_NUMBER_BITS: u32 = 0x3fff_ffff;

/// Whether tickets must have a PAC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacRule {
    /// A PAC that is there must be right
    #[default]
    IfSent,
    /// There must be one with the user of a domain: for realms that are domains
    Required,
}

/// Whether the name of the service must be in the keytab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostRule {
    /// A ticket must name a service of the keytab
    #[default]
    Listed,
    /// The host may be any: for keys that no other server has
    Any,
}

/// What an acceptor accepts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The first components of the names of services, without regard to case: `cifs`
    pub services: Vec<String>,
    /// How much clocks may differ. RFC 4120 recommends 5 minutes
    pub clock_skew: Duration,
    /// Whether tickets must have a PAC
    pub pac: PacRule,
    /// Whether the name of the service must be in the keytab
    pub hosts: HostRule,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            services: ["cifs", "host"].map(str::to_owned).to_vec(),
            clock_skew: Duration::from_secs(300),
            pac: PacRule::default(),
            hosts: HostRule::default(),
        }
    }
}

/// Accepts the clients of a server. It does not change, so all threads may use one.
#[derive(Debug)]
pub struct Acceptor {
    keytab: Arc<Keytab>,
    settings: Settings,
    clock_skew: i64,
}

/// A client's token, and what is needed to answer it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The token with its GSS-API header
    pub token: &'a [u8],
    /// The current time
    pub now: Time,
    /// The TLS channel through which the token came; None: there is none, or it does not matter
    pub channel: Option<Channel>,
    /// Random bytes for the reply
    pub randomness: &'a Randomness,
}

/// The random bytes that one token needs. They are used once.
#[derive(Clone)]
pub struct Randomness {
    /// For the encryption of the reply
    pub confounder: [u8; CONFOUNDER_LEN],
    /// Becomes the session key, cut to its length, if the client asks for proof of the server
    pub subkey: Zeroizing<[u8; 32]>,
    /// Becomes the number of the first message
    pub sequence_number: [u8; 4],
}

/// A client that was accepted.
pub struct Accepted {
    /// The client, by the word of the KDC
    pub client: Principal,
    /// The service that the client asked for. It is not authenticated: for the log
    pub service: Principal,
    /// What the domain controller says of the client
    pub pac: Option<Pac>,
    /// What the client asked for
    pub flags: ContextFlags,
    /// When the client proved itself to the KDC
    pub auth_time: Time,
    /// The end of the ticket, after which the client must prove itself again
    pub end_time: Time,
    /// The type of the service's key
    pub ticket_enctype: Enctype,
    /// The token for the client: an AP-REP, or nothing if the client does not ask for proof of the server
    pub reply: Vec<u8>,
    /// The keys of what follows
    pub context: Context,
}

/// The keys and numbers of a security context.
#[derive(Clone, Debug)]
pub struct Context {
    key: Key,
    origin: KeyOrigin,
    sequence_number: u64,
    peer_sequence_number: u64,
}

impl Context {
    /// The session key, in its full length: our subkey if the client asked for proof of the server, otherwise the
    /// client's subkey or the ticket's key. RFC 4121 2.
    #[must_use]
    pub fn session_key(&self) -> &Key {
        &self.key
    }

    /// The keys that protect messages. They are derived here.
    ///
    /// # Errors
    /// [`CryptoError`] if the library refuses.
    pub fn per_message(&self) -> Result<PerMessage, CryptoError> {
        PerMessage::new(&self.key, Side::Acceptor, self.origin)
    }

    /// The number of our first message.
    #[must_use]
    pub fn sequence_number(&self) -> u64 {
        self.sequence_number
    }

    /// The number of the client's first message.
    #[must_use]
    pub fn peer_sequence_number(&self) -> u64 {
        self.peer_sequence_number
    }
}

/// A token that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why
    pub reason: Reason,
    /// The client, as soon as the ticket was found to be ours
    pub client: Option<Principal>,
    /// The service that the client asked for; the client chooses it
    pub service: Option<Principal>,
    /// A token with a KRB-ERROR for the client, if the token names a service
    pub reply: Option<Vec<u8>>,
}

/// A ticket that is ours.
struct Opened<'a> {
    entry: &'a Entry,
    /// The content behind a confounder
    plain: Zeroizing<Vec<u8>>,
}

/// The names that were seen before a token was refused.
#[derive(Default)]
struct Names {
    client: Option<Principal>,
    service: Option<Principal>,
}

impl Names {
    fn refused(self, reason: Reason, now: Time, mechanism: Mechanism) -> Refused {
        let token = |service| krb_error::token(mechanism, reason, now, service);
        let reply = self.service.as_ref().map(token);
        Refused { reason, client: self.client, service: self.service, reply }
    }
}

impl Acceptor {
    /// An acceptor with these keys.
    #[must_use]
    pub fn new(keytab: Keytab, settings: Settings) -> Self {
        let clock_skew = i64::try_from(settings.clock_skew.as_secs()).unwrap_or(i64::MAX);
        Self { keytab: Arc::new(keytab), settings, clock_skew }
    }

    /// An acceptor with the same keys and rules for services of other kinds, such as those of another protocol.
    #[must_use]
    pub fn for_services(&self, services: Vec<String>) -> Self {
        let settings = Settings { services, ..self.settings.clone() };
        Self { keytab: Arc::clone(&self.keytab), settings, clock_skew: self.clock_skew }
    }

    /// The keys.
    #[must_use]
    pub fn keytab(&self) -> &Keytab {
        &self.keytab
    }

    /// Accepts a client, or refuses it.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn accept(&self, request: &Request<'_>, replays: &dyn Replays) -> Result<Accepted, Refused> {
        self.accept_as(Framing::Kerberos, request, replays)
    }

    /// Accepts a client of IAKERB, which has got its ticket through us. `conversation` is all tokens before this one, of
    /// both sides, as they were on the way; none if the client has had its ticket.
    ///
    /// # Errors
    /// [`Refused`]; among others if the client does not protect the conversation, or knows another one.
    pub fn accept_iakerb(
        &self,
        request: &Request<'_>,
        conversation: &[u8],
        replays: &dyn Replays,
    ) -> Result<Accepted, Refused> {
        self.accept_as(Framing::Iakerb { conversation }, request, replays)
    }

    fn accept_as(
        &self,
        framing: Framing<'_>,
        request: &Request<'_>,
        replays: &dyn Replays,
    ) -> Result<Accepted, Refused> {
        let mut names = Names::default();
        let accepted = self.try_accept(framing, request, replays, &mut names);
        accepted.map_err(|reason| names.refused(reason, request.now, framing.mechanism()))
    }

    fn try_accept(
        &self,
        framing: Framing<'_>,
        request: &Request<'_>,
        replays: &dyn Replays,
        names: &mut Names,
    ) -> Result<Accepted, Reason> {
        let ap_req = decode(framing.mechanism(), request.token)?;
        let service = &ap_req.ticket.service;
        names.service = Some(service.clone());
        if ap_req.is_user_to_user {
            return Err(Reason::UserToUser);
        }
        let Opened { entry, plain } = self.open_ticket(&ap_req.ticket)?;
        let ticket = TicketContent::decode(plain.get(CONFOUNDER_LEN..).unwrap_or_default())?;
        names.client = Some(ticket.client.clone());
        self.check_times(&ticket, request.now)?;
        let session = ticket.session_key.deriver()?;
        let authenticator = open_authenticator(&ap_req.authenticator, &ticket.session_key, &session)?;
        self.check_authenticator(&authenticator, &ticket, request)?;
        if let Framing::Iakerb { conversation } = framing {
            check_conversation(&authenticator, conversation)?;
        }
        let pac = self.check_pac(&ticket, entry)?;
        if pac.as_ref().is_none_or(|pac| pac.logon.is_none()) {
            check_transited(&ticket, entry)?;
        }
        match replays.note(ReplayId::of(ap_req.authenticator.cipher), request.now) {
            Noted::First => {}
            Noted::Replayed => return Err(Reason::Replayed),
            Noted::Full => return Err(Reason::ReplayCacheFull),
        }
        let session = Session { key: &ticket.session_key, deriver: &session, mechanism: framing.mechanism() };
        let (context, reply) = reply(&authenticator, &session, request.randomness)?;
        Ok(Accepted {
            client: ticket.client,
            service: ap_req.ticket.service,
            pac,
            flags: authenticator.flags,
            auth_time: ticket.auth_time,
            end_time: ticket.end_time,
            ticket_enctype: entry.enctype(),
            reply,
            context,
        })
    }

    /// Opens a ticket with one of the keys that it may have been made with.
    fn open_ticket(&self, ticket: &Ticket<'_>) -> Result<Opened<'_>, Reason> {
        let EncryptedData { etype, kvno, cipher } = ticket.sealed;
        let first = ticket.service.components().next().unwrap_or_default();
        if !self.settings.services.iter().any(|offered| offered.eq_ignore_ascii_case(first)) {
            return Err(Reason::OtherService);
        }
        let enctype = Enctype::from_number(etype).ok_or(Reason::Enctype { number: etype })?;
        let hosts = self.settings.hosts;
        let mut keys = self.keytab.keys(&ticket.service, enctype, kvno, hosts).peekable();
        if keys.peek().is_none() {
            return Err(self.keytab.missing(&ticket.service, enctype, kvno));
        }
        for entry in keys {
            let mut plain = Zeroizing::new(cipher.to_vec());
            if let Ok(length) = entry.tickets.open(&mut plain).map(|content| content.len()) {
                plain.truncate(CONFOUNDER_LEN.saturating_add(length));
                return Ok(Opened { entry, plain });
            }
        }
        Err(Reason::WrongKey)
    }

    /// RFC 4120 3.2.3: the ticket must have begun, must not be marked invalid, and must not have ended, give or take the
    /// difference of clocks.
    fn check_times(&self, ticket: &TicketContent<'_>, now: Time) -> Result<(), Reason> {
        if ticket.flags.is_invalid() {
            return Err(Reason::InvalidTicket);
        }
        let (ahead, over) = (ticket.start_time.seconds_after(now), now.seconds_after(ticket.end_time));
        if ahead > self.clock_skew {
            return Err(Reason::NotYetValid { seconds: ahead });
        }
        if over > self.clock_skew { Err(Reason::Expired { seconds: over }) } else { Ok(()) }
    }

    fn check_authenticator(
        &self,
        authenticator: &Authenticator,
        ticket: &TicketContent<'_>,
        request: &Request<'_>,
    ) -> Result<(), Reason> {
        if authenticator.client != ticket.client {
            return Err(Reason::OtherClient);
        }
        let ahead = authenticator.ctime.seconds_after(request.now);
        if ahead.saturating_abs() > self.clock_skew {
            return Err(Reason::ClockSkew { seconds: ahead });
        }
        if authenticator.flags.contains(ContextFlags::DCE_STYLE) {
            return Err(Reason::DceStyle);
        }
        let checked = request.channel.map_or(Ok(()), |channel| channel.check(authenticator.bindings));
        checked.map_err(|unbound| match unbound {
            Unbound::Other => Reason::OtherChannel,
            Unbound::None => Reason::NoChannelBindings,
        })
    }

    fn check_pac(&self, ticket: &TicketContent<'_>, entry: &Entry) -> Result<Option<Pac>, Reason> {
        let pac = match ticket.pac()? {
            Some(bytes) => Some(Pac::decode(bytes, &entry.pacs, &ticket.client, ticket.auth_time)?),
            None => None,
        };
        let has_user = pac.as_ref().is_some_and(|pac| pac.logon.is_some());
        if self.settings.pac == PacRule::Required && !has_user { Err(Reason::NoPac) } else { Ok(pac) }
    }
}

/// RFC 4121, or IAKERB around the same messages.
#[derive(Clone, Copy)]
enum Framing<'a> {
    Kerberos,
    Iakerb { conversation: &'a [u8] },
}

impl Framing<'_> {
    fn mechanism(self) -> Mechanism {
        match self {
            Self::Kerberos => Mechanism::Kerberos,
            Self::Iakerb { .. } => Mechanism::Iakerb,
        }
    }
}

/// What a reply is protected with.
struct Session<'a> {
    key: &'a Key,
    deriver: &'a Deriver,
    mechanism: Mechanism,
}

/// draft-ietf-kitten-iakerb-03 5: the client's checksum, with its subkey, over all tokens that both have exchanged, so that
/// nobody changes the realm or a message of the KDC in between.
fn check_conversation(authenticator: &Authenticator, conversation: &[u8]) -> Result<(), Reason> {
    if conversation.is_empty() {
        return Ok(());
    }
    let finished = authenticator.finished.as_ref().ok_or(Reason::ConversationChanged)?;
    let subkey = authenticator.subkey.as_ref().ok_or(Reason::ConversationChanged)?;
    let checksum = crate::iakerb::finished_checksum(&finished.bytes, subkey.enctype());
    let checksum = checksum.ok_or(Reason::ConversationChanged)?;
    let key = subkey.deriver()?.checksum_key(finished.usage)?;
    key.verify(&[conversation], checksum).map_err(|_| Reason::ConversationChanged)
}

/// The AP-REQ in a token.
fn decode(mechanism: Mechanism, token: &[u8]) -> Result<ApReq<'_>, Reason> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Reason::TooLarge);
    }
    match unframe_as(mechanism, token) {
        Some((TokenId::ApReq, message)) => ApReq::decode(message),
        Some(_) => Err(Reason::Version),
        None => Err(Reason::NotKerberos),
    }
}

fn open_authenticator(
    sealed: &EncryptedData<'_>,
    session_key: &Key,
    session: &Deriver,
) -> Result<Authenticator, Reason> {
    if sealed.etype != i64::from(session_key.enctype().number()) {
        return Err(Reason::WrongAuthenticator);
    }
    let opener = session.opener(KeyUsage::AP_REQ_AUTHENTICATOR)?;
    let mut plain = Zeroizing::new(sealed.cipher.to_vec());
    let plain = opener.open(&mut plain).map_err(|_| Reason::WrongAuthenticator)?;
    Authenticator::decode(plain)
}

/// RFC 4120 2.7: "Application servers MUST either do the transited-realm checks themselves, or reject cross-realm tickets
/// without TRANSITED-POLICY-CHECKED set." Domain controllers check the realms and the SIDs of trusted domains by rules of
/// their own and do not set the flag, so this is for clients that are no users of a domain.
fn check_transited(ticket: &TicketContent<'_>, entry: &Entry) -> Result<(), Reason> {
    let is_own_realm = ticket.client.realm().eq_ignore_ascii_case(entry.principal().realm());
    if is_own_realm || ticket.flags.is_transited_policy_checked() {
        Ok(())
    } else {
        Err(Reason::TransitedUnchecked)
    }
}

/// The keys of what follows, and the token for the client. A client that wants proof of the server gets a subkey of
/// ours with it, so that a token which is sent again elsewhere leads to another session key.
fn reply(
    authenticator: &Authenticator,
    session: &Session<'_>,
    randomness: &Randomness,
) -> Result<(Context, Vec<u8>), Reason> {
    let theirs = authenticator.subkey.as_ref().unwrap_or(session.key);
    let peer_sequence_number = u64::from(authenticator.sequence_number);
    if !authenticator.flags.contains(ContextFlags::MUTUAL) {
        // RFC 4121 4.1: the acceptor has told no number, so it counts from the client's
        let sequence_number = peer_sequence_number;
        let (key, origin) = (theirs.clone(), KeyOrigin::Initiator);
        return Ok((Context { key, origin, sequence_number, peer_sequence_number }, Vec::new()));
    }
    let key = Key::from_random(theirs.enctype(), &randomness.subkey);
    let sequence_number = u32::from_be_bytes(randomness.sequence_number) & SEQUENCE_NUMBER_BITS;
    let Authenticator { ctime, cusec, .. } = *authenticator;
    let proof = Proof { ctime, cusec, subkey: &key, sequence_number };
    let token = proof.token(session.deriver, &randomness.confounder, session.mechanism)?;
    let (origin, sequence_number) = (KeyOrigin::Acceptor, u64::from(sequence_number));
    Ok((Context { key, origin, sequence_number, peer_sequence_number }, token))
}

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepted")
            .field("client", &self.client)
            .field("service", &self.service)
            .field("pac", &self.pac)
            .field("flags", &self.flags)
            .field("end_time", &self.end_time)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Randomness")
    }
}

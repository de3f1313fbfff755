//! The server's side of an authentication: SPNEGO around Kerberos or NTLM, or NTLM alone. RFC 4178 4.2, 5; [MS-SPNG].

mod iakerb;
mod kerberos;
mod negotiate;
mod ntlm;

use std::sync::Arc;

use krb5::Channel;

use crate::accounts::{Account, Accounts, Identity};
use crate::failure::{Failure, Reason};
use crate::iakerb::Iakerb;
use crate::kerberos::Kerberos;
use crate::mechanism::Mechanism;
use crate::ntlm::{self as mechanism, Challenge, ServerNames};
use crate::numbers::Identified;
use crate::session_key::SessionKey;
use crate::spnego::{NTLMSSP, Token};

use self::iakerb::{Exchange, Proxy};
use self::kerberos::{Next, Ticketed};
use self::negotiate::{Negotiation, begin, choose, continued, response};
use self::ntlm::{authenticate, complete, done, name};

/// How a server authenticates its clients.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server's names
    pub names: ServerNames,
    /// Whether clients without a name are admitted, as [`Identity::Anonymous`]. Off by default.
    pub allow_anonymous: bool,
    /// The account as which unknown users are admitted. None by default: unknown users are refused.
    pub guest: Option<Account>,
    /// How tickets are accepted. None: Kerberos is not offered.
    pub kerberos: Option<Arc<Kerberos>>,
    /// How clients with a password get tickets through this server. None: IAKERB is not offered.
    pub iakerb: Option<Arc<Iakerb>>,
    /// Whether NTLM is offered and accepted.
    pub ntlm: Ntlm,
}

/// Whether a server accepts NTLM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ntlm {
    /// It is offered and accepted.
    #[default]
    On,
    /// It is neither offered nor accepted, inside SPNEGO or bare.
    Off,
}

impl Config {
    /// The mechanisms that this server has, those that it prefers first.
    #[must_use]
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        let kerberos = self.kerberos.is_some().then_some(Mechanism::Kerberos);
        let iakerb = self.iakerb.is_some().then_some(Mechanism::Iakerb);
        let ntlm = (self.ntlm == Ntlm::On).then_some(Mechanism::Ntlm);
        kerberos.into_iter().chain(iakerb).chain(ntlm).collect()
    }
}

/// Random bytes for one authentication.
#[derive(Clone)]
pub struct Nonces {
    /// What an NTLM client proves its password with
    pub server_challenge: [u8; 8],
    /// What an encrypted part of a reply to a ticket begins with
    pub confounder: [u8; 16],
    /// The session's key, if the client wants the server to prove itself
    pub subkey: [u8; 32],
    /// The number of the first message that is protected with that key
    pub sequence_number: [u8; 4],
    /// For the tickets that a client of IAKERB gets
    pub kdc: [kdc::Randomness; 3],
}

impl std::fmt::Debug for Nonces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Nonces")
    }
}

impl Nonces {
    fn kerberos(&self) -> krb5::Randomness {
        let &Self { confounder, subkey, sequence_number, .. } = self;
        krb5::Randomness { confounder, subkey: subkey.into(), sequence_number }
    }
}

/// A successful authentication.
#[derive(Clone)]
pub struct Authenticated<I = Identity> {
    /// Who the client is
    pub identity: I,
    /// How that was proved
    pub mechanism: Mechanism,
    /// The key for signing and encryption; known to everyone unless `identity` is an account or a domain's user
    pub session_key: SessionKey,
    /// Whether the client protected the exchange with a MIC
    pub mic: bool,
    /// When the proof of the identity ends, in units of 100 ns since 1601; `None`: never
    pub expires: Option<u64>,
    /// The last token for the client; may be empty
    pub reply: Vec<u8>,
}

impl<I: std::fmt::Debug> std::fmt::Debug for Authenticated<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Authenticated");
        shown.field("identity", &self.identity).field("mic", &self.mic).finish_non_exhaustive()
    }
}

impl Authenticated<Identified> {
    /// What follows.
    fn step(self) -> Step {
        let (identity, rest) = self.parted();
        match identity {
            Identified::Known(identity) => Step::Done(rest.of(identity)),
            unnumbered @ Identified::Unnumbered(_) => Step::Ask(Box::new(rest.of(unnumbered))),
        }
    }

    /// Waits for the numbers of the user.
    async fn numbered(self, accounts: &dyn Accounts) -> Result<Authenticated, Failure> {
        let (identity, rest) = self.parted();
        let (user, service) = (identity.name(), identity.service());
        let identity = identity.numbered(accounts).await;
        let mechanism = Some(rest.mechanism);
        let failed = |reason| Failure { reason, user: Some(user), service, mechanism };
        identity.map(|identity| rest.of(identity)).map_err(failed)
    }

    fn parted(self) -> (Identified, Authenticated<()>) {
        let Self { identity, mechanism, session_key, mic, expires, reply } = self;
        (identity, Authenticated { identity: (), mechanism, session_key, mic, expires, reply })
    }
}

impl Authenticated<()> {
    fn of<I>(self, identity: I) -> Authenticated<I> {
        let Self { identity: (), mechanism, session_key, mic, expires, reply } = self;
        Authenticated { identity, mechanism, session_key, mic, expires, reply }
    }
}

/// What to do after a token.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, for as long as a logon takes")]
pub enum Step {
    /// Send the reply (STATUS_MORE_PROCESSING_REQUIRED) and pass the client's next token to `next`.
    Continue {
        /// The token for the client
        reply: Vec<u8>,
        /// The authentication in its next state
        next: Acceptor,
        /// The account whose password the client has proved with this token: the client learns that it is right
        proved: Option<String>,
    },
    /// The client has proved who it is, and its user's numbers are not known yet: wait for [`Step::numbered`].
    Ask(Box<Authenticated<Identified>>),
    /// The client has authenticated.
    Done(Authenticated),
    /// The authentication has failed.
    Fail(Failure),
}

impl Step {
    /// The same step, but not [`Step::Ask`]: waits for whoever is asked for the numbers of the user.
    pub async fn numbered(self, accounts: &dyn Accounts) -> Self {
        match self {
            Self::Ask(asking) => asking.numbered(accounts).await.map_or_else(Self::Fail, Self::Done),
            Self::Continue { .. } | Self::Done(_) | Self::Fail(_) => self,
        }
    }
}

/// One authentication of one client, in its current state.
#[derive(Debug)]
pub struct Acceptor {
    config: Arc<Config>,
    nonces: Nonces,
    timestamp: u64,
    channel: Option<Channel>,
    state: AcceptorState,
}

#[derive(Debug)]
enum AcceptorState {
    /// No token has come.
    Start,
    /// SPNEGO has selected a mechanism, which begins with the next token.
    Chosen(Negotiation),
    /// The ticket is good; the client is to protect the list of mechanisms.
    Confirming(Box<Ticketed>, Negotiation),
    /// The client talks to the KDC; None: outside SPNEGO.
    Proxying(Exchange, Option<Negotiation>),
    /// The challenge was sent to the client.
    Challenged(Challenge, Option<Negotiation>),
}

impl Acceptor {
    /// A new authentication. `nonces` are used once; `timestamp` is the current time, in units of 100 ns since 1601.
    pub fn new(config: Arc<Config>, nonces: Nonces, timestamp: u64) -> Self {
        Self { config, nonces, timestamp, channel: None, state: AcceptorState::Start }
    }

    /// The same for a client that comes through this TLS channel, to which its logon may be bound.
    #[must_use]
    pub fn through(self, channel: Option<Channel>) -> Self {
        Self { channel, ..self }
    }

    /// Bytes of the client's tokens, and of the answers to them, that are kept until the authentication is over. What the
    /// client has proved already does not count.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let of_list = |negotiation: &Negotiation| negotiation.mech_types.held_bytes();
        let (of_mechanism, negotiation) = match &self.state {
            AcceptorState::Start => (0, None),
            AcceptorState::Chosen(negotiation) | AcceptorState::Confirming(_, negotiation) => {
                (0, Some(negotiation))
            }
            AcceptorState::Proxying(exchange, negotiation) => (exchange.held_bytes(), negotiation.as_ref()),
            AcceptorState::Challenged(challenge, negotiation) => {
                (challenge.held_bytes(), negotiation.as_ref())
            }
        };
        of_mechanism.saturating_add(negotiation.map_or(0, of_list))
    }

    /// Takes the client's next token.
    pub fn step(self, token: &[u8], accounts: &dyn Accounts) -> Step {
        let agreed = self.mechanism(token);
        let failed = |failure: Failure| {
            let mechanism = failure.mechanism.or(agreed);
            Step::Fail(Failure { mechanism, ..failure })
        };
        self.advance(token, accounts).unwrap_or_else(failed)
    }

    /// The mechanism that is agreed on, or that the client's first token is of.
    fn mechanism(&self, token: &[u8]) -> Option<Mechanism> {
        match &self.state {
            AcceptorState::Start if mechanism::is_ntlm(token) => Some(Mechanism::Ntlm),
            AcceptorState::Start if krb5::iakerb::is_first(token) => Some(Mechanism::Iakerb),
            AcceptorState::Start => None,
            AcceptorState::Chosen(negotiation) | AcceptorState::Confirming(_, negotiation) => {
                Some(negotiation.mechanism)
            }
            AcceptorState::Proxying(..) => Some(Mechanism::Iakerb),
            AcceptorState::Challenged(..) => Some(Mechanism::Ntlm),
        }
    }

    fn advance(self, token: &[u8], accounts: &dyn Accounts) -> Result<Step, Failure> {
        let Self { config, nonces, timestamp, channel, state } = self;
        let server = Server { config: &config, nonces: &nonces, timestamp, channel, accounts };
        let next = match state {
            AcceptorState::Start if mechanism::is_ntlm(token) => server.bare_ntlm(token)?,
            AcceptorState::Start if krb5::iakerb::is_first(token) && config.iakerb.is_some() => {
                server.proxied(Exchange::default(), None, token, Naming::NotAgain)?
            }
            AcceptorState::Start => server.begun(token)?,
            AcceptorState::Chosen(negotiation) => {
                let token = response(token)?.response_token.ok_or(Reason::Malformed)?;
                server.first(negotiation, token, Naming::NotAgain)?
            }
            AcceptorState::Confirming(ticketed, negotiation) => {
                let mic = response(token)?.mech_list_mic;
                return ticketed.confirm(&negotiation, mic).map(Authenticated::step);
            }
            AcceptorState::Proxying(exchange, None) => {
                server.proxied(exchange, None, token, Naming::NotAgain)?
            }
            AcceptorState::Proxying(exchange, negotiation) => {
                let token = response(token)?.response_token.ok_or(Reason::Malformed)?;
                server.proxied(exchange, negotiation, token, Naming::NotAgain)?
            }
            AcceptorState::Challenged(challenge, None) => {
                let outcome = authenticate(&server, &challenge, token)?;
                return Ok(done(outcome, Vec::new()));
            }
            AcceptorState::Challenged(challenge, Some(negotiation)) => {
                let response = response(token)?;
                let token = response.response_token.ok_or(Reason::Malformed)?;
                let outcome = authenticate(&server, &challenge, token)?;
                let reply = complete(&negotiation, &outcome, response.mech_list_mic);
                let reply = reply.map_err(|failure| Failure { user: name(&outcome), ..failure })?;
                return Ok(done(outcome, reply));
            }
        };
        Ok(match next {
            First::Wait { reply, state, proved } => {
                Step::Continue { reply, next: Self { config, nonces, timestamp, channel, state }, proved }
            }
            First::Done(authenticated) => authenticated.step(),
        })
    }
}

/// What one step of an authentication works with.
struct Server<'a> {
    config: &'a Config,
    nonces: &'a Nonces,
    timestamp: u64,
    channel: Option<Channel>,
    accounts: &'a dyn Accounts,
}

/// What follows a token of a mechanism.
enum First {
    /// The client gets this token and continues.
    Wait { reply: Vec<u8>, state: AcceptorState, proved: Option<String> },
    /// The client has authenticated.
    Done(Box<Authenticated<Identified>>),
}

/// Whether an answer of SPNEGO names the mechanism. RFC 4178 4.2.2: the first one does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    Here,
    NotAgain,
}

impl First {
    fn wait(reply: Vec<u8>, state: AcceptorState) -> Self {
        Self::Wait { reply, state, proved: None }
    }
}

impl Server<'_> {
    fn challenge(&self, token: &[u8]) -> Result<Challenge, Reason> {
        Challenge::new(&self.config.names, token, self.nonces.server_challenge, self.timestamp)
    }

    fn bare_ntlm(&self, token: &[u8]) -> Result<First, Failure> {
        if self.config.ntlm == Ntlm::Off {
            return Err(Reason::NtlmOff.into());
        }
        let challenge = self.challenge(token)?;
        Ok(First::wait(challenge.message().to_vec(), AcceptorState::Challenged(challenge, None)))
    }

    /// Takes the first token of SPNEGO.
    fn begun(&self, token: &[u8]) -> Result<First, Failure> {
        let Ok(Token::Init(init)) = Token::decode(token) else {
            return Err(Reason::Malformed.into());
        };
        let (negotiation, optimistic) = begin(init, &self.config.mechanisms())?;
        match optimistic {
            None => Ok(First::wait(choose(&negotiation), AcceptorState::Chosen(negotiation))),
            Some(token) => {
                let mechanism = Some(negotiation.mechanism);
                let begun = self.first(negotiation, token, Naming::Here);
                begun.map_err(|failure| Failure { mechanism, ..failure })
            }
        }
    }

    /// Takes the first token of the selected mechanism.
    fn first(&self, negotiation: Negotiation, token: &[u8], naming: Naming) -> Result<First, Failure> {
        match (negotiation.mechanism, &self.config.kerberos) {
            (Mechanism::Kerberos, Some(kerberos)) => {
                let ticketed = kerberos::accept(self, kerberos, token)?;
                let oid = negotiation.oid().to_vec();
                Ok(answered(ticketed, negotiation, Some(&oid)))
            }
            (Mechanism::Iakerb, _) => self.proxied(Exchange::default(), Some(negotiation), token, naming),
            // without keys, Kerberos is not selected
            (Mechanism::Kerberos, None) | (Mechanism::Ntlm, _) => {
                let challenge = self.challenge(token)?;
                let supported = (naming == Naming::Here).then_some(NTLMSSP);
                let reply = continued(challenge.message(), supported);
                Ok(First::wait(reply, AcceptorState::Challenged(challenge, Some(negotiation))))
            }
        }
    }

    /// Takes a token of IAKERB.
    fn proxied(
        &self,
        exchange: Exchange,
        negotiation: Option<Negotiation>,
        token: &[u8],
        naming: Naming,
    ) -> Result<First, Failure> {
        // without a KDC, IAKERB is not selected
        let iakerb = self.config.iakerb.as_deref().ok_or(Reason::NoCommonMechanism)?;
        let proxy = Proxy { iakerb, server: self };
        let oid = |negotiation: &Negotiation| (naming == Naming::Here).then(|| negotiation.oid().to_vec());
        match proxy.step(exchange, token)? {
            iakerb::Next::Wait { reply, proved, exchange } => {
                let reply = match &negotiation {
                    Some(negotiation) => continued(&reply, oid(negotiation).as_deref()),
                    None => reply,
                };
                Ok(First::Wait { reply, state: AcceptorState::Proxying(exchange, negotiation), proved })
            }
            iakerb::Next::Ticketed(ticketed) => Ok(match negotiation {
                Some(negotiation) => {
                    let oid = oid(&negotiation);
                    answered(*ticketed, negotiation, oid.as_deref())
                }
                None => First::Done(Box::new(ticketed.bare())),
            }),
        }
    }
}

/// What a client with a good ticket gets.
fn answered(ticketed: Ticketed, negotiation: Negotiation, supported_mech: Option<&[u8]>) -> First {
    match ticketed.answer(&negotiation, supported_mech) {
        Next::Done(authenticated) => First::Done(authenticated),
        Next::Confirm(reply, ticketed) => {
            First::wait(reply, AcceptorState::Confirming(ticketed, negotiation))
        }
    }
}

#[cfg(test)]
mod tests;

//! The server's side of an authentication: SPNEGO around NTLM, or NTLM alone. RFC 4178 4.2, 5; [MS-SPNG].

use std::sync::Arc;

use crate::accounts::{Account, Accounts, Identity};
use crate::failure::{Failure, Reason};
use crate::ntlm::{self, Challenge, MessageSigner, NtlmAuthenticated, ServerNames, Side};
use crate::session_key::SessionKey;
use crate::spnego::{MechTypes, NTLMSSP, NegState, NegTokenInit, NegTokenResp, Token};

/// How a server authenticates its clients.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server's names
    pub names: ServerNames,
    /// Whether clients without a name are admitted, as [`Identity::Anonymous`]. Off by default.
    pub allow_anonymous: bool,
    /// The account as which unknown users are admitted. None by default: unknown users are refused.
    pub guest: Option<Account>,
}

/// A successful authentication.
#[derive(Clone)]
pub struct Authenticated {
    /// Who the client is
    pub identity: Identity,
    /// The key for signing and encryption; known to everyone unless `identity` is an account
    pub session_key: SessionKey,
    /// Whether the client protected the exchange with a MIC
    pub mic: bool,
    /// When the proof of the identity ends, in units of 100 ns since 1601; `None`: never
    pub expires: Option<u64>,
    /// The last token for the client; may be empty
    pub reply: Vec<u8>,
}

impl std::fmt::Debug for Authenticated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Authenticated");
        shown.field("identity", &self.identity).field("mic", &self.mic).finish_non_exhaustive()
    }
}

/// What to do after a token.
#[derive(Debug)]
pub enum Step {
    /// Send the reply (STATUS_MORE_PROCESSING_REQUIRED) and pass the client's next token to `next`.
    Continue {
        /// The token for the client
        reply: Vec<u8>,
        /// The authentication in its next state
        next: Acceptor,
    },
    /// The client has authenticated.
    Done(Authenticated),
    /// The authentication has failed.
    Fail(Failure),
}

/// One authentication of one client, in its current state.
#[derive(Debug)]
pub struct Acceptor {
    config: Arc<Config>,
    server_challenge: [u8; 8],
    timestamp: u64,
    state: AcceptorState,
}

#[derive(Debug)]
enum AcceptorState {
    /// No token has come.
    Start,
    /// SPNEGO has selected NTLM, which begins with the next token.
    Chosen(Negotiation),
    /// The challenge was sent to the client.
    Challenged(Challenge, Option<Negotiation>),
}

/// A SPNEGO negotiation: what its MIC covers, and whether a MIC is required.
#[derive(Debug)]
struct Negotiation {
    mech_types: MechTypes,
}

impl Negotiation {
    /// RFC 4178 5: the MIC may be omitted only if the mechanism is the initiator's preferred one.
    fn needs_mic(&self) -> bool {
        !self.mech_types.prefers(NTLMSSP)
    }
}

impl Acceptor {
    /// A new authentication. `server_challenge` is random and used once; `timestamp` is the current time, in units of
    /// 100 ns since 1601.
    pub fn new(config: Arc<Config>, server_challenge: [u8; 8], timestamp: u64) -> Self {
        Self { config, server_challenge, timestamp, state: AcceptorState::Start }
    }

    /// Takes the client's next token.
    pub fn step(self, token: &[u8], accounts: &dyn Accounts) -> Step {
        self.advance(token, accounts).unwrap_or_else(Step::Fail)
    }

    fn advance(self, token: &[u8], accounts: &dyn Accounts) -> Result<Step, Failure> {
        let Self { config, server_challenge, timestamp, state } = self;
        let wait = |reply, state| {
            let config = Arc::clone(&config);
            Step::Continue { reply, next: Self { config, server_challenge, timestamp, state } }
        };
        let challenge = |token: &[u8]| Challenge::new(&config.names, token, server_challenge, timestamp);
        match state {
            AcceptorState::Start if ntlm::is_ntlm(token) => {
                let challenge = challenge(token)?;
                Ok(wait(challenge.message().to_vec(), AcceptorState::Challenged(challenge, None)))
            }
            AcceptorState::Start => {
                let Ok(Token::Init(init)) = Token::decode(token) else {
                    return Err(Reason::Malformed.into());
                };
                let (negotiation, optimistic) = begin(init)?;
                if let Some(token) = optimistic {
                    let challenge = challenge(token)?;
                    let reply = incomplete(&challenge, Some(NTLMSSP));
                    Ok(wait(reply, AcceptorState::Challenged(challenge, Some(negotiation))))
                } else {
                    Ok(wait(choose(&negotiation), AcceptorState::Chosen(negotiation)))
                }
            }
            AcceptorState::Chosen(negotiation) => {
                let response = response(token)?;
                let challenge = challenge(response.response_token.ok_or(Reason::Malformed)?)?;
                let reply = incomplete(&challenge, None);
                Ok(wait(reply, AcceptorState::Challenged(challenge, Some(negotiation))))
            }
            AcceptorState::Challenged(challenge, None) => {
                let outcome = authenticate(&config, &challenge, token, accounts)?;
                Ok(done(outcome, Vec::new()))
            }
            AcceptorState::Challenged(challenge, Some(negotiation)) => {
                let response = response(token)?;
                let token = response.response_token.ok_or(Reason::Malformed)?;
                let outcome = authenticate(&config, &challenge, token, accounts)?;
                let reply = complete(&negotiation, &outcome, response.mech_list_mic);
                let reply = reply.map_err(|failure| Failure { user: name(&outcome), ..failure })?;
                Ok(done(outcome, reply))
            }
        }
    }
}

/// The name of the account whose password was right.
fn name(outcome: &NtlmAuthenticated) -> Option<String> {
    match &outcome.identity {
        Identity::Account(account) => Some(account.name.clone()),
        Identity::Guest(_) | Identity::Anonymous => None,
    }
}

/// The negotiation that an initiator's first token starts, and the token for NTLM in it. An optimistic token for
/// another mechanism is ignored (RFC 4178 4.2.1).
fn begin(init: NegTokenInit<'_>) -> Result<(Negotiation, Option<&[u8]>), Reason> {
    if !init.mech_types.offers(NTLMSSP) {
        return Err(Reason::NoCommonMechanism);
    }
    let optimistic = init.mech_token.filter(|_| init.mech_types.prefers(NTLMSSP));
    Ok((Negotiation { mech_types: init.mech_types }, optimistic))
}

/// The answer that selects NTLM without containing a token for it yet.
fn choose(negotiation: &Negotiation) -> Vec<u8> {
    let state = if negotiation.needs_mic() { NegState::RequestMic } else { NegState::AcceptIncomplete };
    NegTokenResp { neg_state: Some(state), supported_mech: Some(NTLMSSP), ..NegTokenResp::default() }.encode()
}

fn incomplete(challenge: &Challenge, supported_mech: Option<&[u8]>) -> Vec<u8> {
    NegTokenResp {
        neg_state: Some(NegState::AcceptIncomplete),
        supported_mech,
        response_token: Some(challenge.message()),
        mech_list_mic: None,
    }
    .encode()
}

fn response(token: &[u8]) -> Result<NegTokenResp<'_>, Reason> {
    match Token::decode(token) {
        Ok(Token::Resp(response)) if response.neg_state != Some(NegState::Reject) => Ok(response),
        Ok(_) | Err(_) => Err(Reason::Malformed),
    }
}

/// NTLM's verdict, and the server's policy on anonymous clients and guests.
fn authenticate(
    config: &Config,
    challenge: &Challenge,
    token: &[u8],
    accounts: &dyn Accounts,
) -> Result<NtlmAuthenticated, Failure> {
    match (challenge.authenticate(token, accounts), &config.guest) {
        (Ok(outcome), _) if outcome.identity == Identity::Anonymous && !config.allow_anonymous => {
            Err(Reason::Anonymous.into())
        }
        (Ok(outcome), _) => Ok(outcome),
        (Err((Reason::UnknownUser, _)), Some(guest)) => Ok(ntlm::guest(guest.clone())),
        (Err((reason, user)), _) => Err(Failure { reason, user }),
    }
}

/// Checks the client's MIC over the mechanism list, and answers with the server's. RFC 4178 5.
fn complete(
    negotiation: &Negotiation,
    outcome: &NtlmAuthenticated,
    mech_list_mic: Option<&[u8]>,
) -> Result<Vec<u8>, Failure> {
    let mut answer = None;
    match (mech_list_mic, &outcome.identity) {
        // there is no key with which anyone could check the MIC
        (_, Identity::Guest(_)) => {}
        (Some(mic), _) => {
            let list = &negotiation.mech_types.encoding;
            let signer = |side| MessageSigner::new(&outcome.session_key, outcome.flags, side);
            let (Some(mut client), Some(mut server)) = (signer(Side::Client), signer(Side::Server)) else {
                return Err(Reason::WrongMechListMic.into());
            };
            if !client.verify(list, mic) {
                return Err(Reason::WrongMechListMic.into());
            }
            answer = Some(server.sign(list));
        }
        (None, _) if negotiation.needs_mic() => return Err(Reason::MissingMechListMic.into()),
        (None, _) => {}
    }
    let mic = answer.as_ref().map(|mic| mic.as_slice());
    let state = Some(NegState::AcceptCompleted);
    Ok(NegTokenResp { neg_state: state, mech_list_mic: mic, ..NegTokenResp::default() }.encode())
}

fn done(outcome: NtlmAuthenticated, reply: Vec<u8>) -> Step {
    let NtlmAuthenticated { identity, session_key, mic, .. } = outcome;
    Step::Done(Authenticated { identity, session_key: session_key.into(), mic, expires: None, reply })
}

#[cfg(test)]
mod tests;

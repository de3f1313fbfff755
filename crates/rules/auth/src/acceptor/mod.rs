//! The server's side of an authentication: SPNEGO around NTLM, or NTLM alone. RFC 4178 4.2, 5; [MS-SPNG].

mod negotiate;
mod ntlm;

use std::sync::Arc;

use crate::accounts::{Account, Accounts, Identity};
use crate::failure::{Failure, Reason};
use crate::ntlm::{self as mechanism, Challenge, ServerNames};
use crate::session_key::SessionKey;
use crate::spnego::{NTLMSSP, Token};

use self::negotiate::{Negotiation, begin, choose, incomplete, response};
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
            AcceptorState::Start if mechanism::is_ntlm(token) => {
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

#[cfg(test)]
mod tests;

//! IAKERB as the mechanism of a negotiation, or alone: messages between the client and our KDC, and then a ticket.
//! draft-ietf-kitten-iakerb-03.

use kdc::{Outcome, Refusal};
use krb5::KrbError;
use krb5::iakerb::Proxied;

use crate::accounts::Identity;
use crate::failure::{Failure, Reason};
use crate::iakerb::{AccountClients, Iakerb};
use crate::mechanism::Mechanism;
use crate::numbers::Identified;

use super::Server;
use super::kerberos::{Ticketed, ticketed, unix_time};

/// The most messages of a client to the KDC; MIT's library sends three.
const ROUNDS_MAX: usize = 16;
/// The most bytes of both sides before the ticket.
const CONVERSATION_BYTES_MAX: usize = 128 << 10;
/// KRB_AP_ERR_IAKERB_KDC_NOT_FOUND. draft-ietf-kitten-iakerb-03 3.2.
const KDC_NOT_FOUND: i64 = 85;

/// What both sides have said so far.
#[derive(Default)]
pub(super) struct Exchange {
    /// All tokens, as they were on the way: the client's checksum covers them
    conversation: Vec<u8>,
    rounds: usize,
    /// How many tickets were made, each with random bytes of its own
    tickets: usize,
}

impl Exchange {
    /// Bytes of the tokens.
    pub(super) fn held_bytes(&self) -> usize {
        self.conversation.capacity()
    }
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").field("rounds", &self.rounds).finish_non_exhaustive()
    }
}

/// What follows a token.
pub(super) enum Next {
    /// The client gets this token and continues.
    Wait {
        reply: Vec<u8>,
        /// The account whose password the client has proved with this token.
        proved: Option<String>,
        exchange: Exchange,
    },
    /// The client has a good ticket.
    Ticketed(Box<Ticketed>),
}

/// What one step of an exchange works with.
pub(super) struct Proxy<'a> {
    pub(super) iakerb: &'a Iakerb,
    pub(super) server: &'a Server<'a>,
}

impl Proxy<'_> {
    /// Takes the client's next token: one for the KDC, or the ticket.
    pub(super) fn step(&self, exchange: Exchange, token: &[u8]) -> Result<Next, Failure> {
        match Proxied::decode(token) {
            Some(proxied) => self.forward(exchange, token, proxied),
            None => self.accept(&exchange, token).map(|ticketed| Next::Ticketed(Box::new(ticketed))),
        }
    }

    fn forward(&self, exchange: Exchange, token: &[u8], proxied: Proxied<'_>) -> Result<Next, Failure> {
        let Exchange { mut conversation, rounds, tickets } = exchange;
        if rounds == ROUNDS_MAX {
            return Err(Reason::TooManyRounds.into());
        }
        let Proxied { dialect, realm, message } = proxied;
        let (realm, message, outcome) = match (realm, message) {
            // a client that does not know the realm asks for it
            ("", []) => (self.iakerb.realm(), Vec::new(), Outcome::Open),
            ("", _) | (_, []) => return Err(Reason::Malformed.into()),
            (other, _) if other != self.iakerb.realm() => (other, self.no_such_realm(), Outcome::Open),
            (own, message) => {
                let randomness = self.server.nonces.kdc.get(tickets).ok_or(Reason::TooManyRounds)?;
                let clients = AccountClients(self.server.accounts);
                let now = unix_time(self.server.timestamp);
                let answer = self.iakerb.kdc.answer(message, now, randomness, &clients);
                (own, answer.reply, answer.outcome)
            }
        };
        let (proved, made) = match outcome {
            Outcome::Open => (None, 0),
            Outcome::Proved(name) => (Some(name), 1),
            Outcome::Issued => (None, 1),
            Outcome::Refused { refusal, client } => return Err(refused(refusal, client)),
        };
        let reply = Proxied { dialect, realm, message: &message }.encode();
        conversation.extend_from_slice(token);
        conversation.extend_from_slice(&reply);
        if conversation.len() > CONVERSATION_BYTES_MAX {
            return Err(Reason::TooManyRounds.into());
        }
        let tickets = tickets.saturating_add(made);
        let exchange = Exchange { conversation, rounds: rounds.saturating_add(1), tickets };
        Ok(Next::Wait { reply, proved, exchange })
    }

    /// KRB-ERROR for a realm whose KDC we are not.
    fn no_such_realm(&self) -> Vec<u8> {
        let realm = self.iakerb.realm();
        let service = krb5::Principal::new(&["krbtgt", realm], realm);
        let now = unix_time(self.server.timestamp);
        let error = |service| KrbError { code: KDC_NOT_FOUND, now, service, data: None }.encode();
        service.as_ref().map(error).unwrap_or_default()
    }

    fn accept(&self, exchange: &Exchange, token: &[u8]) -> Result<Ticketed, Failure> {
        let now = unix_time(self.server.timestamp);
        let randomness = self.server.nonces.kerberos();
        let request = krb5::Request { token, now, channel: self.server.channel, randomness: &randomness };
        let Iakerb { acceptor, replays, .. } = self.iakerb;
        let accepted = acceptor.accept_iakerb(&request, &exchange.conversation, &**replays);
        let accepted = accepted.map_err(|refused| Failure {
            reason: Reason::Ticket(refused.reason),
            user: refused.client.map(|client| client.name().to_owned()),
            service: refused.service.map(|service| service.to_string()),
            mechanism: Some(Mechanism::Iakerb),
        })?;
        let (user, service) = (Some(accepted.client.name().to_owned()), Some(accepted.service.to_string()));
        let identified = self.iakerb.identify(&accepted, self.server.accounts);
        let ticketed = identified.and_then(|account| {
            ticketed(Mechanism::Iakerb, accepted, now, Identified::Known(Identity::Account(account)))
        });
        ticketed.map_err(|reason| Failure { user, service, ..Failure::from(reason) })
    }
}

fn refused(refusal: Refusal, client: String) -> Failure {
    let reason = match refusal {
        Refusal::UnknownClient => Reason::UnknownUser,
        Refusal::WrongPassword => Reason::WrongPassword,
        Refusal::Disabled => Reason::Disabled,
    };
    Failure { user: Some(client), ..Failure::from(reason) }
}

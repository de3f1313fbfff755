//! Kerberos as the mechanism of a negotiation: a ticket, and whom it makes of its client. RFC 4121; RFC 4178 5.

use krb5::{Accepted, PerMessage, Time};

use crate::failure::{Failure, Reason};
use crate::kerberos::Kerberos;
use crate::mechanism::Mechanism;
use crate::numbers::Identified;
use crate::session_key::SessionKey;
use crate::spnego::{NegState, NegTokenResp};

use super::negotiate::Negotiation;
use super::{Authenticated, Server};

/// 100 ns, in which FILETIME counts, in a second.
const TICKS: u64 = 10_000_000;
/// Seconds from 1601-01-01, where FILETIME begins, to 1970-01-01.
const UNIX_EPOCH: i64 = 11_644_473_600;

/// A client with a good ticket.
#[derive(Debug)]
pub(super) struct Ticketed {
    identity: Identified,
    mechanism: Mechanism,
    session_key: SessionKey,
    /// Units of 100 ns since 1601
    expires: u64,
    /// Protects the list of mechanisms
    mic: PerMessage,
    own_sequence: u64,
    reply: Vec<u8>,
}

/// What follows a ticket.
#[derive(Debug)]
pub(super) enum Next {
    /// The client is to protect the list of mechanisms; it gets this token first.
    Confirm(Vec<u8>, Box<Ticketed>),
    /// The client has authenticated.
    Done(Box<Authenticated<Identified>>),
}

/// Takes an AP-REQ.
pub(super) fn accept(server: &Server<'_>, kerberos: &Kerberos, token: &[u8]) -> Result<Ticketed, Failure> {
    let (now, accounts) = (unix_time(server.timestamp), server.accounts);
    let request =
        krb5::Request { token, now, channel: server.channel, randomness: &server.nonces.kerberos() };
    let accepted = kerberos.acceptor.accept(&request, &*kerberos.replays).map_err(|refused| Failure {
        reason: Reason::Ticket(refused.reason),
        user: refused.client.map(|client| client.to_string()),
        service: refused.service.map(|service| service.to_string()),
        mechanism: Some(Mechanism::Kerberos),
    })?;
    let (user, service) = (Some(accepted.client.to_string()), Some(accepted.service.to_string()));
    let identity = kerberos.mapping.identify(&accepted, accounts);
    let ticketed = identity.and_then(|identity| ticketed(Mechanism::Kerberos, accepted, now, identity));
    ticketed.map_err(|reason| Failure { user, service, ..Failure::from(reason) })
}

/// What a ticket makes of a client that was identified by it.
pub(super) fn ticketed(
    mechanism: Mechanism,
    accepted: Accepted,
    now: Time,
    identity: Identified,
) -> Result<Ticketed, Reason> {
    // The acceptor allows for clocks that differ. A session that had ended when it began would be of no use, and its
    // client would begin another one with every request.
    if accepted.end_time <= now {
        return Err(Reason::TicketEnded { seconds: now.seconds_after(accepted.end_time) });
    }
    let key = SessionKey::new(accepted.context.session_key().as_bytes()).ok_or(Reason::Malformed)?;
    Ok(Ticketed {
        identity,
        mechanism,
        session_key: key,
        expires: filetime(accepted.end_time),
        mic: accepted.context.per_message().map_err(|_| Reason::Ticket(krb5::Reason::Library))?,
        own_sequence: accepted.context.sequence_number(),
        reply: accepted.reply,
    })
}

impl Ticketed {
    /// What the client gets for its ticket. RFC 4178 5: without a MIC only if the mechanism is the one that the client
    /// prefers. `supported_mech`: in the first answer, what the client calls the mechanism.
    pub(super) fn answer(self, negotiation: &Negotiation, supported_mech: Option<&[u8]>) -> Next {
        let response_token = Some(self.reply.as_slice()).filter(|reply| !reply.is_empty());
        let response = NegTokenResp { supported_mech, response_token, ..NegTokenResp::default() };
        if !negotiation.needs_mic() {
            let response = NegTokenResp { neg_state: Some(NegState::AcceptCompleted), ..response };
            let reply = response.encode();
            return Next::Done(Box::new(self.authenticated(reply, false)));
        }
        let mic = self.mic.mic(self.own_sequence, &[&negotiation.mech_types.encoding]);
        let mech_list_mic = Some(mic.as_ref());
        let response =
            NegTokenResp { neg_state: Some(NegState::AcceptIncomplete), mech_list_mic, ..response };
        Next::Confirm(response.encode(), Box::new(self))
    }

    /// Checks the client's MIC over the list of mechanisms.
    pub(super) fn confirm(
        self,
        negotiation: &Negotiation,
        mech_list_mic: Option<&[u8]>,
    ) -> Result<Authenticated<Identified>, Failure> {
        let user = Some(self.identity.name());
        let failed = |reason| Failure { user: user.clone(), ..Failure::from(reason) };
        let mic = mech_list_mic.ok_or_else(|| failed(Reason::MissingMechListMic))?;
        let list: &[&[u8]] = &[&negotiation.mech_types.encoding];
        self.mic.verify_mic(list, mic).map_err(|_| failed(Reason::WrongMechListMic))?;
        let neg_state = Some(NegState::AcceptCompleted);
        let reply = NegTokenResp { neg_state, ..NegTokenResp::default() }.encode();
        Ok(self.authenticated(reply, true))
    }

    /// The client outside SPNEGO, where there is no list to protect.
    pub(super) fn bare(mut self) -> Authenticated<Identified> {
        let reply = std::mem::take(&mut self.reply);
        self.authenticated(reply, false)
    }

    fn authenticated(self, reply: Vec<u8>, mic: bool) -> Authenticated<Identified> {
        let Self { identity, mechanism, session_key, expires, .. } = self;
        Authenticated { identity, mechanism, session_key, mic, expires: Some(expires), reply }
    }
}

pub(super) fn unix_time(timestamp: u64) -> Time {
    let seconds = i64::try_from(timestamp.checked_div(TICKS).unwrap_or_default()).unwrap_or(i64::MAX);
    Time::from_unix(seconds.saturating_sub(UNIX_EPOCH))
}

fn filetime(time: Time) -> u64 {
    u64::try_from(time.as_unix().saturating_add(UNIX_EPOCH)).unwrap_or_default().saturating_mul(TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [MS-DTYP] 2.3.3 counts from 1601; 1970 is 0x019db1ded53e8000 there.
    #[test]
    fn windows_and_unix_mean_the_same_second() {
        assert_eq!(unix_time(0x019d_b1de_d53e_8000), Time::from_unix(0));
        assert_eq!(filetime(Time::from_unix(0)), 0x019d_b1de_d53e_8000);
        assert_eq!(
            unix_time(filetime(Time::from_unix(1_796_000_000)) + 9_999_999),
            Time::from_unix(1_796_000_000)
        );
        assert_eq!(unix_time(u64::MAX).as_unix(), 1_833_029_933_770);
    }
}

//! The client's side of an authentication: NTLM or a Kerberos ticket inside SPNEGO.

use krb5::ChannelBindings;

use crate::ntlm::{
    AnswerOptions, AnsweringClient, MessageSigner, NegotiateFlags, Side, answer, negotiate_message,
};
use crate::session_key::SessionKey;
use crate::spnego::{KERBEROS, MechTypes, NTLMSSP, NegState, NegTokenInit, NegTokenResp, Token};

/// The user who logs on.
#[derive(Clone)]
pub struct Credentials {
    /// The user's name
    pub user: String,
    /// The user's domain; may be empty
    pub domain: String,
    /// NTOWFv1 of the password ([`crate::nt_hash`])
    pub nt_hash: [u8; 16],
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}\\{})", self.domain, self.user)
    }
}

/// The random bytes and the time that one authentication needs.
#[derive(Clone, Copy)]
pub struct Randomness {
    /// Random bytes
    pub client_challenge: [u8; 8],
    /// Random bytes
    pub session_key: [u8; 16],
    /// The current time, in units of 100 ns since 1601
    pub timestamp: u64,
}

/// The server's token is not the expected one, or the server did not prove itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InitiatorError {
    /// Not the expected token
    #[error("the server sent a malformed or unexpected token")]
    Malformed,
    /// The server refused
    #[error("the server refused the negotiation")]
    Rejected,
    /// The mechanism list was changed in transit, or the server does not know the session's key
    #[error("the server's integrity code over the mechanism list is wrong or missing")]
    MechListMic,
}

/// What to do after a server's token.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, for as long as a logon takes")]
pub enum InitiatorStep {
    /// Send the token, and pass the server's answer to `next`. The key is the session key, if the server accepts.
    Continue {
        /// The token for the server
        token: Vec<u8>,
        /// The session's key
        session_key: SessionKey,
        /// The authentication in its next state
        next: Initiator,
    },
    /// The server has accepted, and has proved knowledge of the key.
    Done,
}

impl std::fmt::Debug for InitiatorStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Continue { .. } => "Continue",
            Self::Done => "Done",
        })
    }
}

/// One authentication, in its current state.
pub struct Initiator {
    credentials: Credentials,
    randomness: Randomness,
    options: AnswerOptions,
    state: InitiatorState,
}

enum InitiatorState {
    Negotiated { negotiate: Vec<u8> },
    Answered { server: Option<MessageSigner> },
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Initiator({:?})", self.credentials)
    }
}

impl Initiator {
    /// Begins an authentication, and returns the first token.
    pub fn start(credentials: Credentials, randomness: Randomness) -> (Vec<u8>, Self) {
        let negotiate = negotiate_message();
        let init =
            NegTokenInit { mech_types: mech_types(), mech_token: Some(&negotiate), mech_list_mic: None };
        let token = init.encode();
        let state = InitiatorState::Negotiated { negotiate };
        (token, Self { credentials, randomness, options: AnswerOptions::default(), state })
    }

    /// The same, bound to a TLS channel.
    #[must_use]
    pub fn bound_to(self, channel_bindings: Option<ChannelBindings>) -> Self {
        Self { options: AnswerOptions { channel_bindings, ..self.options }, ..self }
    }

    /// Takes the server's next token. The last one comes with the final SESSION_SETUP response.
    ///
    /// # Errors
    /// [`InitiatorError`].
    pub fn step(self, token: &[u8]) -> Result<InitiatorStep, InitiatorError> {
        let Ok(Token::Resp(response)) = Token::decode(token) else { return Err(InitiatorError::Malformed) };
        if response.neg_state == Some(NegState::Reject) {
            return Err(InitiatorError::Rejected);
        }
        match self.state {
            InitiatorState::Negotiated { ref negotiate } => {
                let challenge = response.response_token.ok_or(InitiatorError::Malformed)?;
                let (message, session_key, flags) =
                    answer(&self.answer(), negotiate, challenge).map_err(|_| InitiatorError::Malformed)?;
                let (token, server) = respond(&message, &session_key, flags);
                let next = Self { state: InitiatorState::Answered { server }, ..self };
                Ok(InitiatorStep::Continue { token, session_key: session_key.into(), next })
            }
            InitiatorState::Answered { server } => {
                if let Some(mut server) = server {
                    let mic = response.mech_list_mic.ok_or(InitiatorError::MechListMic)?;
                    if !server.verify(&mech_types().encoding, mic) {
                        return Err(InitiatorError::MechListMic);
                    }
                }
                Ok(InitiatorStep::Done)
            }
        }
    }

    fn answer(&self) -> AnsweringClient<'_> {
        AnsweringClient {
            user: &self.credentials.user,
            domain: &self.credentials.domain,
            nt_hash: &self.credentials.nt_hash,
            client_challenge: self.randomness.client_challenge,
            session_key: self.randomness.session_key,
            timestamp: self.randomness.timestamp,
            options: self.options,
        }
    }
}

/// The first token of a client that offers Kerberos alone, around the token with its ticket. RFC 4178 4.2.1.
#[must_use]
pub fn offer_ticket(ticket: &[u8]) -> Vec<u8> {
    let mech_types = MechTypes::new(&[KERBEROS]);
    NegTokenInit { mech_types, mech_token: Some(ticket), mech_list_mic: None }.encode()
}

/// The server's answer to a ticket, in its token. With one mechanism on offer there is nothing that could have been
/// changed, so the answer is complete, without a code over the list. RFC 4178 5.
///
/// # Errors
/// [`InitiatorError::Malformed`], [`InitiatorError::Rejected`].
pub fn answer_to_ticket(token: &[u8]) -> Result<&[u8], InitiatorError> {
    let Ok(Token::Resp(response)) = Token::decode(token) else { return Err(InitiatorError::Malformed) };
    match (response.neg_state, response.response_token) {
        (Some(NegState::AcceptCompleted), Some(answer)) => Ok(answer),
        (Some(NegState::Reject), _) => Err(InitiatorError::Rejected),
        _ => Err(InitiatorError::Malformed),
    }
}

fn mech_types() -> MechTypes {
    MechTypes::new(&[NTLMSSP])
}

/// The token with the AUTHENTICATE_MESSAGE and a MIC over the mechanism list, and the signer that checks the server's
/// MIC.
fn respond(
    message: &[u8],
    session_key: &[u8; 16],
    flags: NegotiateFlags,
) -> (Vec<u8>, Option<MessageSigner>) {
    let mic = MessageSigner::new(session_key, flags, Side::Client)
        .map(|mut client| client.sign(&mech_types().encoding));
    let response = NegTokenResp {
        response_token: Some(message),
        mech_list_mic: mic.as_ref().map(|mic| mic.as_slice()),
        ..NegTokenResp::default()
    };
    (response.encode(), MessageSigner::new(session_key, flags, Side::Server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_offered_alone() {
        let token = offer_ticket(b"ap-req");
        let Ok(Token::Init(init)) = Token::decode(&token) else { panic!("{token:x?}") };
        assert_eq!((init.mech_types.oids, init.mech_token), (vec![KERBEROS.to_vec()], Some(&b"ap-req"[..])));
    }

    #[test]
    fn the_answer_to_a_ticket_must_be_the_last_one() {
        let answer = |neg_state, response_token| {
            let token = NegTokenResp { neg_state, response_token, ..NegTokenResp::default() }.encode();
            answer_to_ticket(&token).map(<[u8]>::to_vec)
        };
        let token = Some(&b"ap-rep"[..]);
        assert_eq!(answer(Some(NegState::AcceptCompleted), token), Ok(b"ap-rep".to_vec()));
        assert_eq!(answer(Some(NegState::Reject), None), Err(InitiatorError::Rejected));
        for (state, token) in [
            (Some(NegState::AcceptIncomplete), token),
            (Some(NegState::RequestMic), token),
            (None, token),
            (Some(NegState::AcceptCompleted), None),
        ] {
            assert_eq!(answer(state, token), Err(InitiatorError::Malformed), "{state:?}");
        }
        assert_eq!(answer_to_ticket(b"nonsense"), Err(InitiatorError::Malformed));
        assert_eq!(answer_to_ticket(&offer_ticket(b"ap-req")), Err(InitiatorError::Malformed));
    }
}

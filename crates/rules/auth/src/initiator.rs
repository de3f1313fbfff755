//! The client's side of an authentication: NTLM inside SPNEGO.

use crate::ntlm::{
    AnswerOptions, AnsweringClient, MessageSigner, NegotiateFlags, Side, answer, negotiate_message,
};
use crate::session_key::SessionKey;
use crate::spnego::{MechTypes, NTLMSSP, NegState, NegTokenInit, NegTokenResp, Token};

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

//! NTLM, [MS-NLMP]: only NTLMv2, connection-oriented, in Unicode.

mod acceptor;
mod av_pair;
mod crypto;
mod initiator;
mod message;
mod signature;

pub(crate) use acceptor::guest;
pub use acceptor::{Challenge, NtlmAuthenticated, ServerNames};
pub use av_pair::{AvFlags, AvId, AvPairs};
pub use crypto::{nt_proof, ntowf_v2, session_base_key};
pub use initiator::{AnswerOptions, AnsweringClient, answer, negotiate_message};
pub use message::{
    AuthenticateMessage, ChallengeMessage, MessageError, NegotiateFlags, NegotiateMessage, is_ntlm,
};
pub use signature::{MessageSigner, Side};

#[cfg(test)]
mod tests;

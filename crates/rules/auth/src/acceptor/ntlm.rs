//! NTLM as the mechanism of a negotiation: what becomes of its answer.

use crate::accounts::Identity;
use crate::failure::{Failure, Reason};
use crate::mechanism::Mechanism;
use crate::ntlm::{self, Challenge, MessageSigner, NtlmAuthenticated, Side};
use crate::spnego::{NegState, NegTokenResp};

use super::negotiate::Negotiation;
use super::{Authenticated, Config, Server, Step};

/// NTLM's verdict, and the server's policy on anonymous clients and guests. They prove nothing that somebody in between could
/// pass on, so they need not be bound to their channel.
pub(super) fn authenticate(
    server: &Server<'_>,
    challenge: &Challenge,
    token: &[u8],
) -> Result<NtlmAuthenticated, Failure> {
    let Config { guest, allow_anonymous, .. } = server.config;
    match (challenge.authenticate(token, server.channel.as_ref(), server.accounts), guest) {
        (Ok(outcome), _) if outcome.identity == Identity::Anonymous && !allow_anonymous => {
            Err(Reason::Anonymous.into())
        }
        (Ok(outcome), _) => Ok(outcome),
        (Err((Reason::UnknownUser, _)), Some(guest)) => Ok(ntlm::guest(guest.clone())),
        (Err((reason, user)), _) => Err(Failure { user, ..Failure::from(reason) }),
    }
}

/// Checks the client's MIC over the mechanism list, and answers with the server's. RFC 4178 5.
pub(super) fn complete(
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

pub(super) fn done(outcome: NtlmAuthenticated, reply: Vec<u8>) -> Step {
    let NtlmAuthenticated { identity, session_key, mic, .. } = outcome;
    let mechanism = Mechanism::Ntlm;
    Step::Done(Authenticated {
        identity,
        mechanism,
        session_key: session_key.into(),
        mic,
        expires: None,
        reply,
    })
}

/// The name of the account whose password was right.
pub(super) fn name(outcome: &NtlmAuthenticated) -> Option<String> {
    match &outcome.identity {
        Identity::Account(account) => Some(account.name.clone()),
        Identity::Domain(_) | Identity::Guest(_) | Identity::Anonymous => None,
    }
}

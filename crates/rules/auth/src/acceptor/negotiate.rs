//! SPNEGO around a mechanism: which one is selected, and what the initiator is told. RFC 4178 4.2, 5.

use crate::failure::Reason;
use crate::ntlm::Challenge;
use crate::spnego::{MechTypes, NTLMSSP, NegState, NegTokenInit, NegTokenResp, Token};

/// A SPNEGO negotiation: what its MIC covers, and whether a MIC is required.
#[derive(Debug)]
pub(super) struct Negotiation {
    pub(super) mech_types: MechTypes,
}

impl Negotiation {
    /// RFC 4178 5: the MIC may be omitted only if the mechanism is the initiator's preferred one.
    pub(super) fn needs_mic(&self) -> bool {
        !self.mech_types.prefers(NTLMSSP)
    }
}

/// The negotiation that an initiator's first token starts, and the token for NTLM in it. An optimistic token for
/// another mechanism is ignored (RFC 4178 4.2.1).
pub(super) fn begin(init: NegTokenInit<'_>) -> Result<(Negotiation, Option<&[u8]>), Reason> {
    if !init.mech_types.offers(NTLMSSP) {
        return Err(Reason::NoCommonMechanism);
    }
    let optimistic = init.mech_token.filter(|_| init.mech_types.prefers(NTLMSSP));
    Ok((Negotiation { mech_types: init.mech_types }, optimistic))
}

/// The answer that selects NTLM without containing a token for it yet.
pub(super) fn choose(negotiation: &Negotiation) -> Vec<u8> {
    let state = if negotiation.needs_mic() { NegState::RequestMic } else { NegState::AcceptIncomplete };
    NegTokenResp { neg_state: Some(state), supported_mech: Some(NTLMSSP), ..NegTokenResp::default() }.encode()
}

pub(super) fn incomplete(challenge: &Challenge, supported_mech: Option<&[u8]>) -> Vec<u8> {
    NegTokenResp {
        neg_state: Some(NegState::AcceptIncomplete),
        supported_mech,
        response_token: Some(challenge.message()),
        mech_list_mic: None,
    }
    .encode()
}

pub(super) fn response(token: &[u8]) -> Result<NegTokenResp<'_>, Reason> {
    match Token::decode(token) {
        Ok(Token::Resp(response)) if response.neg_state != Some(NegState::Reject) => Ok(response),
        Ok(_) | Err(_) => Err(Reason::Malformed),
    }
}

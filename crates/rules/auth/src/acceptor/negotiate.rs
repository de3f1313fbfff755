//! SPNEGO around a mechanism: which one is selected, and what the initiator is told. RFC 4178 4.2, 5.

use crate::failure::Reason;
use crate::mechanism::Mechanism;
use crate::spnego::{MechTypes, NTLMSSP, NegState, NegTokenInit, NegTokenResp, Token};

/// A SPNEGO negotiation: the selected mechanism, what its MIC covers, and whether a MIC is required.
#[derive(Debug)]
pub(super) struct Negotiation {
    pub(super) mech_types: MechTypes,
    /// The selected mechanism: the first one of the list that this server has.
    pub(super) mechanism: Mechanism,
    /// What the initiator calls it.
    oid: Vec<u8>,
}

impl Negotiation {
    /// RFC 4178 5: the MIC may be omitted only if the mechanism is the initiator's preferred one.
    pub(super) fn needs_mic(&self) -> bool {
        !self.mech_types.prefers(&self.oid)
    }

    /// What the initiator calls the selected mechanism.
    pub(super) fn oid(&self) -> &[u8] {
        &self.oid
    }
}

/// The negotiation that an initiator's first token starts, and the token for the selected mechanism in it. An optimistic
/// token for another mechanism is ignored (RFC 4178 4.2.1).
pub(super) fn begin<'a>(
    init: NegTokenInit<'a>,
    offered: &[Mechanism],
) -> Result<(Negotiation, Option<&'a [u8]>), Reason> {
    let NegTokenInit { mech_types, mech_token, .. } = init;
    let by = |oid: &[u8]| offered.iter().copied().find(|mechanism| mechanism.oids().contains(&oid));
    let mut known = mech_types.oids.iter().filter_map(|oid| Some((oid.clone(), by(oid)?)));
    let refused = if mech_types.offers(NTLMSSP) { Reason::NtlmOff } else { Reason::NoCommonMechanism };
    let (oid, mechanism) = known.next().ok_or(refused)?;
    let negotiation = Negotiation { mech_types, mechanism, oid };
    let optimistic = mech_token.filter(|_| !negotiation.needs_mic());
    Ok((negotiation, optimistic))
}

/// The answer that selects the mechanism without containing a token for it yet.
pub(super) fn choose(negotiation: &Negotiation) -> Vec<u8> {
    let state = if negotiation.needs_mic() { NegState::RequestMic } else { NegState::AcceptIncomplete };
    NegTokenResp { neg_state: Some(state), supported_mech: Some(&negotiation.oid), ..NegTokenResp::default() }
        .encode()
}

/// The answer with a token of a mechanism that goes on. RFC 4178 4.2.2: the mechanism is named in the first one only.
pub(super) fn continued(token: &[u8], supported_mech: Option<&[u8]>) -> Vec<u8> {
    NegTokenResp {
        neg_state: Some(NegState::AcceptIncomplete),
        supported_mech,
        response_token: Some(token),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spnego::{KERBEROS, MS_KERBEROS};

    /// 1.3.6.1.4.1.311.2.2.30, which Windows may offer first. [MS-NEGOEX] 1.9.
    const NEGOEX: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 30];

    fn begun(oids: &[&[u8]], offered: &[Mechanism]) -> Result<(Mechanism, Vec<u8>, bool, bool), Reason> {
        let init = NegTokenInit {
            mech_types: MechTypes::new(oids),
            mech_token: Some(b"token"),
            mech_list_mic: None,
        };
        let (negotiation, optimistic) = begin(init, offered)?;
        let needs_mic = negotiation.needs_mic();
        assert_eq!(optimistic.is_none(), needs_mic, "an optimistic token is for the preferred mechanism");
        let state = if needs_mic { NegState::RequestMic } else { NegState::AcceptIncomplete };
        let chosen = choose(&negotiation);
        let Ok(Token::Resp(answer)) = Token::decode(&chosen) else { panic!("an answer") };
        assert_eq!((answer.neg_state, answer.supported_mech), (Some(state), Some(negotiation.oid())));
        Ok((negotiation.mechanism, negotiation.oid().to_vec(), needs_mic, optimistic.is_some()))
    }

    #[test]
    fn the_first_mechanism_of_the_client_that_the_server_has_is_selected() {
        let (kerberos, ntlm) = (Mechanism::Kerberos, Mechanism::Ntlm);
        let (both, tickets, passwords) = ([kerberos, ntlm], [kerberos], [ntlm]);
        let windows: [&[u8]; 3] = [MS_KERBEROS, KERBEROS, NTLMSSP];
        for offered in [&both[..], &tickets] {
            assert_eq!(begun(&windows, offered), Ok((kerberos, MS_KERBEROS.to_vec(), false, true)));
            assert_eq!(begun(&[KERBEROS], offered), Ok((kerberos, KERBEROS.to_vec(), false, true)));
        }
        assert_eq!(begun(&windows, &passwords), Ok((ntlm, NTLMSSP.to_vec(), true, false)));
        assert_eq!(begun(&[KERBEROS, MS_KERBEROS], &passwords), Err(Reason::NoCommonMechanism));
        let negoex: [&[u8]; 3] = [NEGOEX, KERBEROS, NTLMSSP];
        assert_eq!(begun(&negoex, &both), Ok((kerberos, KERBEROS.to_vec(), true, false)));
        let ntlm_first: [&[u8]; 2] = [NTLMSSP, MS_KERBEROS];
        for offered in [&both[..], &passwords] {
            assert_eq!(begun(&ntlm_first, offered), Ok((ntlm, NTLMSSP.to_vec(), false, true)));
            assert_eq!(begun(&[NEGOEX], offered), Err(Reason::NoCommonMechanism));
        }
        // who prefers NTLM and has a ticket, too
        assert_eq!(begun(&ntlm_first, &tickets), Ok((kerberos, MS_KERBEROS.to_vec(), true, false)));
        for offered in [&tickets[..], &[]] {
            assert_eq!(begun(&[NTLMSSP, NEGOEX], offered), Err(Reason::NtlmOff));
        }
    }
}

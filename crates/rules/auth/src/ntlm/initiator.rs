//! The client's side of NTLMv2. [MS-NLMP] 3.1.5.1.

use krb5::ChannelBindings;

use super::av_pair::{AvFlags, AvId, AvPairs, put_end, put_pair, put_raw_pair};
use super::crypto::{hmac_md5, nt_proof, ntowf_v2, rc4_once, session_base_key};
use super::message::{
    AuthenticateMessage, ChallengeMessage, MIC, MessageError, NegotiateFlags, NegotiateMessage, utf16,
};

/// The flags that this client asks for.
const WANTED: NegotiateFlags = NegotiateFlags::UNICODE
    .union(NegotiateFlags::REQUEST_TARGET)
    .union(NegotiateFlags::SIGN)
    .union(NegotiateFlags::NTLM)
    .union(NegotiateFlags::ALWAYS_SIGN)
    .union(NegotiateFlags::EXTENDED_SESSION_SECURITY)
    .union(NegotiateFlags::BITS_128)
    .union(NegotiateFlags::KEY_EXCH)
    .union(NegotiateFlags::BITS_56);

/// The NEGOTIATE_MESSAGE of this client.
pub fn negotiate_message() -> Vec<u8> {
    NegotiateMessage { flags: WANTED }.encode()
}

/// How a client answers a challenge. The default is correct; other values imitate older clients and test servers.
#[derive(Clone, Copy, Debug)]
pub struct AnswerOptions {
    /// Set MsvAvFlags and compute a MIC.
    pub mic: bool,
    /// Return the server's target information.
    pub target_info: bool,
    /// Choose the session key, if the server allows that.
    pub key_exchange: bool,
    /// The TLS channel to which the answer is bound.
    pub channel_bindings: Option<ChannelBindings>,
}

impl Default for AnswerOptions {
    fn default() -> Self {
        Self { mic: true, target_info: true, key_exchange: true, channel_bindings: None }
    }
}

/// The client that answers, and its random bytes.
#[derive(Clone, Copy)]
pub struct AnsweringClient<'a> {
    /// The user's name
    pub user: &'a str,
    /// The user's domain; may be empty
    pub domain: &'a str,
    /// NTOWFv1 of the password ([`crate::nt_hash`])
    pub nt_hash: &'a [u8; 16],
    /// ClientChallenge: random
    pub client_challenge: [u8; 8],
    /// ExportedSessionKey, if keys are exchanged: random
    pub session_key: [u8; 16],
    /// The current time in units of 100 ns since 1601, used if the server sends none
    pub timestamp: u64,
    /// How to answer
    pub options: AnswerOptions,
}

/// The AUTHENTICATE_MESSAGE that answers a challenge, the session key and the flags in force.
///
/// `negotiate` and `challenge` are the previous messages, as they were sent.
///
/// # Errors
/// [`MessageError`] for bytes that are not a challenge, or malformed target information.
pub fn answer(
    with: &AnsweringClient<'_>,
    negotiate: &[u8],
    challenge: &[u8],
) -> Result<(Vec<u8>, [u8; 16], NegotiateFlags), MessageError> {
    let server = ChallengeMessage::decode(challenge)?;
    let mut flags = server.flags & (WANTED | NegotiateFlags::TARGET_INFO);
    if !with.options.key_exchange {
        flags.remove(NegotiateFlags::KEY_EXCH);
    }
    let domain = utf16(with.domain);
    let response_key = ntowf_v2(with.nt_hash, with.user, &domain);
    let temp = temp(with, server.target_info)?;
    let proof = nt_proof(&response_key, &server.server_challenge, &temp);
    let key_exchange_key = session_base_key(&response_key, &proof);
    let (session_key, encrypted) = if flags.contains(NegotiateFlags::KEY_EXCH) {
        (with.session_key, rc4_once(&key_exchange_key, &with.session_key).to_vec())
    } else {
        (key_exchange_key, Vec::new())
    };
    let mut message = AuthenticateMessage {
        lm_response: &[0; 24],
        nt_response: &[proof.as_slice(), &temp].concat(),
        domain: &domain,
        user: &utf16(with.user),
        workstation: &[],
        encrypted_session_key: &encrypted,
        flags,
        mic: with.options.mic.then_some([0; 16]),
    }
    .encode();
    if with.options.mic {
        let mic = hmac_md5(&session_key, &[negotiate, challenge, &message]);
        for (byte, value) in message.iter_mut().skip(MIC.start).zip(mic) {
            *byte = value;
        }
    }
    Ok((message, session_key, flags))
}

/// NTLMv2_CLIENT_CHALLENGE and four bytes of zeros: "temp" of [MS-NLMP] 3.3.2.
fn temp(with: &AnsweringClient<'_>, target_info: &[u8]) -> Result<Vec<u8>, MessageError> {
    let mut pairs = Vec::new();
    let mut timestamp = with.timestamp.to_le_bytes();
    if with.options.target_info && !target_info.is_empty() {
        let given = AvPairs::decode(target_info)?;
        if let Some(time) = given.find(AvId::Timestamp) {
            timestamp = time.try_into().map_err(|_| MessageError)?;
        }
        for (number, value) in given.iter() {
            put_raw_pair(&mut pairs, number, value);
        }
    }
    if with.options.mic {
        put_pair(&mut pairs, AvId::Flags, &AvFlags::MIC.bits().to_le_bytes());
    }
    if let Some(bindings) = with.options.channel_bindings {
        put_pair(&mut pairs, AvId::ChannelBindings, bindings.as_bytes());
    }
    put_end(&mut pairs);
    let mut temp = vec![1, 1, 0, 0, 0, 0, 0, 0];
    temp.extend_from_slice(&timestamp);
    temp.extend_from_slice(&with.client_challenge);
    temp.extend_from_slice(&[0; 4]);
    temp.extend_from_slice(&pairs);
    temp.extend_from_slice(&[0; 4]);
    Ok(temp)
}

//! The server's side of NTLMv2. [MS-NLMP] 3.2.5.1.
//!
//! The client's proof (NTProofStr) is always compared. Whether there is also a MIC to check is stated in the AV_PAIRs
//! that the proof covers, so an attacker in the middle cannot remove it.

use krb5::{Channel, ChannelBindings, Unbound};

use crate::accounts::{Account, Accounts, local_name};
use crate::{Identity, Reason};

use super::av_pair::{AvFlags, AvId, AvPairs, put_end, put_pair};
use super::crypto::{ntowf_v2, rc4_once, session_base_key, verify_hmac_md5};
use super::message::{
    AuthenticateMessage, ChallengeMessage, MIC, NegotiateFlags, NegotiateMessage, text, utf16,
};

/// The names of a server.
#[derive(Clone, Debug)]
pub struct ServerNames {
    /// NetBIOS name of the computer, in upper case
    pub nb_computer: String,
    /// NetBIOS name of its domain or workgroup
    pub nb_domain: String,
    /// DNS name of the computer
    pub dns_computer: String,
    /// DNS name of its domain; empty for a standalone machine
    pub dns_domain: String,
}

/// The flags that a client gets if it asks for them, in addition to those that are always set.
const GRANTED: NegotiateFlags = NegotiateFlags::UNICODE
    .union(NegotiateFlags::SIGN)
    .union(NegotiateFlags::SEAL)
    .union(NegotiateFlags::NTLM)
    .union(NegotiateFlags::ALWAYS_SIGN)
    .union(NegotiateFlags::EXTENDED_SESSION_SECURITY)
    .union(NegotiateFlags::BITS_128)
    .union(NegotiateFlags::KEY_EXCH)
    .union(NegotiateFlags::BITS_56);
const ALWAYS: NegotiateFlags = NegotiateFlags::NTLM
    .union(NegotiateFlags::TARGET_TYPE_SERVER)
    .union(NegotiateFlags::REQUEST_TARGET)
    .union(NegotiateFlags::TARGET_INFO)
    .union(NegotiateFlags::VERSION);

/// NTProofStr and the fixed part of NTLMv2_CLIENT_CHALLENGE. [MS-NLMP] 2.2.2.7, 2.2.2.8.
const PROOF_LEN: usize = 16;
const CLIENT_CHALLENGE_FIXED: usize = 28;

/// A challenge that was sent to a client, and against which its answer is checked.
#[derive(Clone, Debug)]
pub struct Challenge {
    negotiate: Vec<u8>,
    message: Vec<u8>,
    server_challenge: [u8; 8],
    flags: NegotiateFlags,
}

/// The result of a successful NTLM authentication.
#[derive(Clone)]
pub struct NtlmAuthenticated {
    /// Who the client is
    pub identity: Identity,
    /// ExportedSessionKey
    pub session_key: [u8; 16],
    /// The flags in force, for [`super::MessageSigner`]
    pub flags: NegotiateFlags,
    /// Whether the messages were protected by a MIC
    pub mic: bool,
}

impl std::fmt::Debug for NtlmAuthenticated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("NtlmAuthenticated");
        shown.field("identity", &self.identity).field("flags", &self.flags).field("mic", &self.mic);
        shown.finish_non_exhaustive()
    }
}

impl Challenge {
    /// Answers a NEGOTIATE_MESSAGE. `server_challenge` is random; `timestamp` is the time in units of 100 ns since
    /// 1601.
    ///
    /// # Errors
    /// [`Reason::Malformed`]; [`Reason::NoUnicode`] for a client that does not support Unicode.
    pub fn new(
        names: &ServerNames,
        negotiate: &[u8],
        server_challenge: [u8; 8],
        timestamp: u64,
    ) -> Result<Self, Reason> {
        let client = NegotiateMessage::decode(negotiate).map_err(|_| Reason::Malformed)?;
        if !client.flags.contains(NegotiateFlags::UNICODE) {
            return Err(Reason::NoUnicode);
        }
        let flags = (client.flags & GRANTED) | ALWAYS;
        let message = ChallengeMessage {
            flags,
            server_challenge,
            target_name: &utf16(&names.nb_computer),
            target_info: &target_info(names, timestamp),
        }
        .encode();
        Ok(Self { negotiate: negotiate.to_vec(), message, server_challenge, flags })
    }

    /// Bytes of both messages.
    pub(crate) fn held_bytes(&self) -> usize {
        self.negotiate.capacity().saturating_add(self.message.capacity())
    }

    /// A challenge that another implementation sent, for tests.
    #[cfg(test)]
    pub(super) fn of(negotiate: &[u8], message: &[u8]) -> Self {
        let decoded = ChallengeMessage::decode(message).unwrap();
        let (server_challenge, flags) = (decoded.server_challenge, decoded.flags);
        Self { negotiate: negotiate.to_vec(), message: message.to_vec(), server_challenge, flags }
    }

    /// The CHALLENGE_MESSAGE to send.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Checks the AUTHENTICATE_MESSAGE that answers this challenge and came through this TLS channel, if any. An anonymous
    /// client is reported as such; the caller decides whether to admit it.
    ///
    /// # Errors
    /// The reason of the failure.
    pub fn authenticate(
        &self,
        authenticate: &[u8],
        channel: Option<&Channel>,
        accounts: &dyn Accounts,
    ) -> Result<NtlmAuthenticated, (Reason, Option<String>)> {
        let message = AuthenticateMessage::decode(authenticate).map_err(|_| (Reason::Malformed, None))?;
        let flags = message.flags & self.flags;
        if is_anonymous(&message) {
            let session_key = exported_key(&[0; 16], flags, &message).map_err(|reason| (reason, None))?;
            return Ok(NtlmAuthenticated { identity: Identity::Anonymous, session_key, flags, mic: false });
        }
        // The encoding matters only if the client gives a name.
        if !flags.contains(NegotiateFlags::UNICODE) {
            return Err((Reason::NoUnicode, None));
        }
        let user = text(message.user).map_err(|_| (Reason::Malformed, None))?;
        let answer = Answer { authenticate, message: &message, flags, user: &user, channel };
        self.check(&answer, accounts).map_err(|reason| (reason, Some(user)))
    }

    fn check(&self, answer: &Answer<'_>, accounts: &dyn Accounts) -> Result<NtlmAuthenticated, Reason> {
        let &Answer { authenticate, message, flags, user, channel } = answer;
        let response = Ntlmv2Response::parse(message.nt_response)?;
        // The response is computed with the name as the client wrote it.
        let account = accounts.find(local_name(user));
        // an unknown user costs as much time as a known one
        let known = account.as_ref().map(|account| account.nt_hash);
        let response_key = ntowf_v2(&known.flatten().unwrap_or_default(), user, message.domain);
        let right = verify_hmac_md5(&response_key, &[&self.server_challenge, response.temp], response.proof);
        let account = match (account, right) {
            (Some(Account { nt_hash: None, .. }), _) => return Err(Reason::NoNtHash),
            (Some(account), true) => account,
            (Some(_), false) => return Err(Reason::WrongPassword),
            (None, _) => return Err(Reason::UnknownUser),
        };
        let key_exchange_key = session_base_key(&response_key, response.proof);
        let session_key = exported_key(&key_exchange_key, flags, message)?;
        let mic = response.av_pairs.flags().contains(AvFlags::MIC);
        if mic {
            self.check_mic(authenticate, message, &session_key)?;
        }
        channel.map_or(Ok(()), |channel| check_channel(channel, response.av_pairs))?;
        if account.disabled {
            return Err(Reason::Disabled);
        }
        Ok(NtlmAuthenticated { identity: Identity::Account(account), session_key, flags, mic })
    }

    /// [MS-NLMP] 3.2.5.1.2: the MIC is HMAC_MD5(ExportedSessionKey, the three messages), with zeros in its own place.
    fn check_mic(
        &self,
        authenticate: &[u8],
        message: &AuthenticateMessage<'_>,
        session_key: &[u8; 16],
    ) -> Result<(), Reason> {
        let mic = message.mic.ok_or(Reason::MissingMic)?;
        let (before, rest) = authenticate.split_at_checked(MIC.start).ok_or(Reason::MissingMic)?;
        let after = rest.get(MIC.len()..).ok_or(Reason::MissingMic)?;
        let parts = [&self.negotiate, &self.message, before, &[0; 16], after];
        if verify_hmac_md5(session_key, &parts, &mic) { Ok(()) } else { Err(Reason::WrongMic) }
    }
}

/// A client's answer to a challenge.
struct Answer<'a> {
    /// The message as it came
    authenticate: &'a [u8],
    message: &'a AuthenticateMessage<'a>,
    /// The flags in force
    flags: NegotiateFlags,
    user: &'a str,
    channel: Option<&'a Channel>,
}

/// [MS-NLMP] 2.2.2.1, MsvAvChannelBindings: "An all-zero value of the hash is used to indicate absence of channel bindings."
/// The client's proof covers the pairs.
fn check_channel(channel: &Channel, pairs: AvPairs<'_>) -> Result<(), Reason> {
    let theirs = match pairs.find(AvId::ChannelBindings) {
        Some(sent) => ChannelBindings::sent(sent.try_into().map_err(|_| Reason::Malformed)?),
        None => None,
    };
    channel.check(theirs).map_err(|unbound| match unbound {
        Unbound::Other => Reason::OtherChannel,
        Unbound::None => Reason::NoChannelBindings,
    })
}

/// [MS-NLMP] 3.2.5.1.2: no name, no NT response, and an LM response that is empty or one zero byte.
fn is_anonymous(message: &AuthenticateMessage<'_>) -> bool {
    message.user.is_empty() && message.nt_response.is_empty() && matches!(message.lm_response, [] | [0])
}

/// An NtChallengeResponse of NTLMv2, split into its parts.
struct Ntlmv2Response<'a> {
    proof: &'a [u8; PROOF_LEN],
    /// Everything that the proof covers besides the server's challenge.
    temp: &'a [u8],
    av_pairs: AvPairs<'a>,
}

impl<'a> Ntlmv2Response<'a> {
    fn parse(response: &'a [u8]) -> Result<Self, Reason> {
        match response.len() {
            0 => return Err(Reason::EmptyResponse),
            24 => return Err(Reason::Ntlmv1),
            _ => {}
        }
        let (proof, temp) = response.split_first_chunk::<PROOF_LEN>().ok_or(Reason::Malformed)?;
        let (fixed, pairs) = temp.split_first_chunk::<CLIENT_CHALLENGE_FIXED>().ok_or(Reason::Malformed)?;
        if !fixed.starts_with(&[1, 1]) {
            return Err(Reason::Malformed); // RespType, HiRespType
        }
        let av_pairs = AvPairs::decode(pairs).map_err(|_| Reason::Malformed)?;
        Ok(Self { proof, temp, av_pairs })
    }
}

/// ExportedSessionKey: the client's choice if keys are exchanged, otherwise the key that both sides computed.
fn exported_key(
    key_exchange_key: &[u8; 16],
    flags: NegotiateFlags,
    message: &AuthenticateMessage<'_>,
) -> Result<[u8; 16], Reason> {
    if !flags.contains(NegotiateFlags::KEY_EXCH) {
        return Ok(*key_exchange_key);
    }
    let encrypted = message.encrypted_session_key.try_into().map_err(|_| Reason::Malformed)?;
    Ok(rc4_once(key_exchange_key, encrypted))
}

/// TargetInfo: the names of this server, and its time. [MS-NLMP] 2.2.2.1, 3.2.5.1.1.
fn target_info(names: &ServerNames, timestamp: u64) -> Vec<u8> {
    let mut pairs = Vec::new();
    put_pair(&mut pairs, AvId::NbDomainName, &utf16(&names.nb_domain));
    put_pair(&mut pairs, AvId::NbComputerName, &utf16(&names.nb_computer));
    put_pair(&mut pairs, AvId::DnsDomainName, &utf16(&names.dns_domain));
    put_pair(&mut pairs, AvId::DnsComputerName, &utf16(&names.dns_computer));
    put_pair(&mut pairs, AvId::Timestamp, &timestamp.to_le_bytes());
    put_end(&mut pairs);
    pairs
}

/// The result for a guest: there is no password, so there is no key.
pub(crate) fn guest(account: Account) -> NtlmAuthenticated {
    let identity = Identity::Guest(account);
    NtlmAuthenticated { identity, session_key: [0; 16], flags: NegotiateFlags::empty(), mic: false }
}

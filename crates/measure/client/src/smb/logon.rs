//! NEGOTIATE and SESSION_SETUP ([MS-SMB2] 3.2.4.2.2, 3.2.4.2.3) on a connection that says nothing else meanwhile.

use auth::{Credentials, Initiator, InitiatorStep, Randomness};
use krb5::ContextFlags;
use smb_proto::dialect::{Cipher, SigningAlgorithm};
use smb_proto::preauth::PreauthHash;
use smb_proto::signing::Sender;
use smb_wire::negotiate::{self, Capabilities, SecurityMode};
use smb_wire::negotiate_context::{HashAlgorithm, NegotiateContext};
use smb_wire::session_setup::{self, RequestFlags, SessionFlags};
use smb_wire::{Command, Guid, Header, HeaderFlags, NtStatus, Target, frame, header};

use super::protection::{Keys, Protection};
use super::status::fault;
use crate::{Fault, FaultKind, Result, Security, Wire, World, ticket};

/// What the client wants of a Kerberos context: as much as the other clients.
const CONTEXT_FLAGS: ContextFlags = ContextFlags::MUTUAL
    .union(ContextFlags::REPLAY)
    .union(ContextFlags::SEQUENCE)
    .union(ContextFlags::CONFIDENTIALITY)
    .union(ContextFlags::INTEGRITY);

/// A connection that has negotiated.
pub(super) struct Negotiated<W> {
    pub(super) wire: W,
    pub(super) read_bytes_max: u32,
    pub(super) write_bytes_max: u32,
    pub(super) cipher: Option<Cipher>,
    pub(super) algorithm: SigningAlgorithm,
    pub(super) server_requires_signing: bool,
    pub(super) capabilities: Capabilities,
    pub(super) credits: u16,
    pub(super) next_message_id: u64,
    preauth: PreauthHash,
}

/// A connection that has logged on.
pub(super) struct LoggedOn {
    pub(super) session_id: u64,
    pub(super) flags: SessionFlags,
    pub(super) keys: Keys,
    pub(super) protection: Protection,
}

/// A session that a further connection is bound to.
#[derive(Clone, Copy)]
pub(super) struct Binding<'a> {
    pub(super) session_id: u64,
    pub(super) keys: &'a Keys,
}

/// How the user proves who it is.
pub(super) enum Proof {
    Password(Credentials),
    Ticket(krb5::ccache::Credential),
}

/// What a connection is to become.
struct Joining<'a> {
    security: &'a Security,
    binding: Option<Binding<'a>>,
    channel: u32,
}

impl Joining<'_> {
    /// [MS-SMB2] 3.2.4.2.3: a request that binds is signed with the session's key.
    fn old(&self, algorithm: SigningAlgorithm) -> Result<Option<Protection>> {
        self.binding.map(|b| b.keys.protection(algorithm, self.channel)).transpose()
    }

    fn session_id(&self) -> u64 {
        self.binding.map_or(0, |b| b.session_id)
    }
}

fn accepted(reply: &[u8]) -> Result<()> {
    match Header::decode(reply).map_err(broken)?.status() {
        NtStatus::SUCCESS => Ok(()),
        refused => Err(fault("SESSION_SETUP", refused)),
    }
}

fn broken(error: impl std::fmt::Display) -> Fault {
    Fault::protocol(format!("a reply that is not a message: {error}"))
}

impl<W: Wire> Negotiated<W> {
    /// Negotiates SMB 3.1.1 with what `security` offers. `salt` is random.
    pub(super) fn over(wire: W, security: &Security, client_guid: Guid, salt: [u8; 32]) -> Result<Self> {
        let mut this = Self {
            wire,
            read_bytes_max: 65536,
            write_bytes_max: 65536,
            cipher: None,
            algorithm: SigningAlgorithm::AesCmac,
            server_requires_signing: false,
            capabilities: Capabilities::empty(),
            credits: 1,
            next_message_id: 0,
            preauth: PreauthHash::new(),
        };
        let request = negotiate::Request {
            security_mode: security.mode(),
            capabilities: Capabilities::LARGE_MTU | Capabilities::MULTI_CHANNEL | Capabilities::ENCRYPTION,
            client_guid,
            dialects: vec![negotiate::Dialect::Smb311],
            contexts: vec![
                NegotiateContext::PreauthIntegrity {
                    hash_algorithms: vec![HashAlgorithm::Sha512],
                    salt: &salt,
                },
                NegotiateContext::Encryption(security.ciphers.iter().map(|c| c.id().into()).collect()),
                NegotiateContext::Signing(security.algorithms.iter().map(|a| a.id().into()).collect()),
            ],
        };
        let mut message = this.header(Command::Negotiate, 0);
        request.encode(&mut message).map_err(broken)?;
        let reply = this.exchange(&mut message, None)?;
        this.agree(&reply)?;
        this.preauth.update(&message);
        this.preauth.update(&reply);
        Ok(this)
    }

    fn agree(&mut self, reply: &[u8]) -> Result<()> {
        let status = Header::decode(reply).map_err(broken)?.status();
        if status != NtStatus::SUCCESS {
            return Err(fault("NEGOTIATE of SMB 3.1.1", status));
        }
        let response = negotiate::Response::decode(reply).map_err(broken)?;
        if response.dialect != negotiate::Dialect::Smb311 {
            return Err(Fault::new(FaultKind::Refused, "the server does not speak SMB 3.1.1"));
        }
        (self.read_bytes_max, self.write_bytes_max) = (response.max_read_size, response.max_write_size);
        self.capabilities = response.capabilities;
        self.server_requires_signing = response.security_mode.contains(SecurityMode::SIGNING_REQUIRED);
        for context in &response.contexts {
            match context {
                NegotiateContext::Encryption(ciphers) => {
                    self.cipher = ciphers.first().and_then(|c| Cipher::from_id((*c).into()));
                }
                NegotiateContext::Signing(algorithms) => {
                    let chosen = algorithms.first().and_then(|a| SigningAlgorithm::from_id((*a).into()));
                    self.algorithm =
                        chosen.ok_or_else(|| Fault::protocol("the server chose an unknown signature"))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Logs on, or becomes a further channel of a session.
    pub(super) fn log_on(
        &mut self,
        world: &impl World,
        proof: &Proof,
        security: &Security,
        binding: Option<Binding<'_>>,
        channel: u32,
    ) -> Result<LoggedOn> {
        let joining = Joining { security, binding, channel };
        match proof {
            Proof::Password(credentials) => self.with_password(credentials, randomness(world)?, &joining),
            Proof::Ticket(credential) => {
                self.with_ticket(ticket::shown(world, credential, CONTEXT_FLAGS)?, &joining)
            }
        }
    }

    fn with_password(
        &mut self,
        credentials: &Credentials,
        randomness: Randomness,
        joining: &Joining<'_>,
    ) -> Result<LoggedOn> {
        let (token, initiator) = Initiator::start(credentials.clone(), randomness);
        let mut preauth = self.preauth;
        let old = joining.old(self.algorithm)?;
        let mut session_id = joining.session_id();
        let (sent, reply) = self.setup(session_id, &token, joining.security, old.as_ref())?;
        let head = Header::decode(&reply).map_err(broken)?;
        if head.status() != NtStatus::MORE_PROCESSING_REQUIRED {
            return Err(fault("SESSION_SETUP", head.status()));
        }
        preauth.update(&sent);
        preauth.update(&reply);
        session_id = head.session_id;
        let response = session_setup::Response::decode(&reply).map_err(broken)?;
        let step = initiator.step(response.security_buffer).map_err(broken)?;
        let InitiatorStep::Continue { token, session_key, next } = step else {
            return Err(Fault::protocol("the server is content too early"));
        };
        let (sent, mut reply) = self.setup(session_id, &token, joining.security, old.as_ref())?;
        preauth.update(&sent);
        accepted(&reply)?;
        let on = self.keyed(session_id, session_key.as_bytes(), &preauth, joining, &mut reply)?;
        let response = session_setup::Response::decode(&reply).map_err(broken)?;
        match next.step(response.security_buffer) {
            Ok(InitiatorStep::Done) => Ok(on),
            Ok(InitiatorStep::Continue { .. }) => {
                Err(Fault::protocol("the server asks for one token too many"))
            }
            Err(error) => Err(Fault::new(FaultKind::WrongSignature, error.to_string())),
        }
    }

    /// One token of the client's and one of the server's: RFC 4121 with mutual authentication.
    fn with_ticket(
        &mut self,
        (initiator, token): (krb5::Initiator, Vec<u8>),
        joining: &Joining<'_>,
    ) -> Result<LoggedOn> {
        let mut preauth = self.preauth;
        let old = joining.old(self.algorithm)?;
        let token = auth::offer_ticket(&token);
        let (sent, mut reply) = self.setup(joining.session_id(), &token, joining.security, old.as_ref())?;
        preauth.update(&sent);
        accepted(&reply)?;
        let session_id = Header::decode(&reply).map_err(broken)?.session_id;
        let response = session_setup::Response::decode(&reply).map_err(broken)?;
        let unproven = |why: String| Fault::new(FaultKind::WrongSignature, why);
        let answer =
            auth::answer_to_ticket(response.security_buffer).map_err(|why| unproven(why.to_string()))?;
        let (key, _) = initiator.session_key(answer).map_err(|why| unproven(why.to_string()))?;
        self.keyed(session_id, key.as_bytes(), &preauth, joining, &mut reply)
    }

    /// What follows from the key of a logon. The server signs its last reply, which proves that it has the key, too
    /// ([MS-SMB2] 3.2.5.3.1).
    fn keyed(
        &self,
        session_id: u64,
        key: &[u8],
        preauth: &PreauthHash,
        joining: &Joining<'_>,
        reply: &mut [u8],
    ) -> Result<LoggedOn> {
        let Joining { binding, channel, .. } = *joining;
        let keys = binding.map_or_else(|| Keys::new(self.cipher, key, preauth, session_id), |b| *b.keys);
        let protection = match binding {
            None => keys.protection(self.algorithm, channel)?,
            Some(_) => keys.of_channel(self.algorithm, key, preauth, channel)?,
        };
        let flags = session_setup::Response::decode(reply).map_err(broken)?.session_flags;
        if flags.intersects(SessionFlags::IS_GUEST | SessionFlags::IS_NULL) {
            let text = "the server made the user a guest: the account or the password is not known there";
            return Err(Fault::new(FaultKind::WrongPassword, text));
        }
        let unproven =
            |_| Fault::new(FaultKind::WrongSignature, "the server does not know the session's key");
        protection.signing.verify(reply, Sender::Server).map_err(unproven)?;
        Ok(LoggedOn { session_id, flags, keys, protection })
    }

    fn setup(
        &mut self,
        session_id: u64,
        token: &[u8],
        security: &Security,
        old: Option<&Protection>,
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut flags = RequestFlags::empty();
        flags.set(RequestFlags::BINDING, old.is_some());
        let mode = if security.require_signing {
            session_setup::SecurityMode::SIGNING_REQUIRED
        } else {
            session_setup::SecurityMode::SIGNING_ENABLED
        };
        let request = session_setup::Request {
            flags,
            security_mode: mode,
            capabilities: Capabilities::empty(),
            previous_session_id: 0,
            security_buffer: token,
        };
        let mut message = self.header(Command::SessionSetup, session_id);
        request.encode(&mut message).map_err(broken)?;
        let reply = self.exchange(&mut message, old)?;
        Ok((message, reply))
    }

    /// The header of the next request.
    fn header(&mut self, command: Command, session_id: u64) -> Vec<u8> {
        let head = Header {
            credit_charge: u16::from(command != Command::Negotiate),
            status_or_channel_sequence: 0,
            command,
            credits: 64,
            flags: HeaderFlags::empty(),
            next_command: 0,
            message_id: self.next_message_id,
            target: Target::Sync { tree_id: 0 },
            session_id,
            signature: [0; 16],
        };
        self.next_message_id += 1;
        self.credits = self.credits.saturating_sub(1);
        let mut message = Vec::with_capacity(256);
        message.extend_from_slice(&head.to_bytes());
        debug_assert_eq!(message.len(), header::LEN);
        message
    }

    /// Sends a request, signed if there is a key, and takes its reply.
    fn exchange(&mut self, message: &mut [u8], key: Option<&Protection>) -> Result<Vec<u8>> {
        if let Some(key) = key {
            key.signing.sign(message, Sender::Client).map_err(broken)?;
        }
        let prefix = frame::encode_prefix(message.len()).map_err(broken)?;
        self.wire.send(&prefix)?;
        self.wire.send(message)?;
        loop {
            let reply = self.wire.receive()?;
            let head = Header::decode(&reply).map_err(broken)?;
            self.credits = self.credits.saturating_add(head.credits);
            if head.status() != NtStatus::PENDING {
                return Ok(reply);
            }
        }
    }
}

/// What a logon needs of chance, and of the time of day.
fn randomness(world: &impl World) -> Result<Randomness> {
    let mut randomness = Randomness { client_challenge: [0; 8], session_key: [0; 16], timestamp: 0 };
    world.random(&mut randomness.client_challenge)?;
    world.random(&mut randomness.session_key)?;
    let now = world.now();
    randomness.timestamp =
        smb_wire::FileTime::from_unix(i64::try_from(now.as_secs()).unwrap_or(0), now.subsec_nanos()).0;
    Ok(randomness)
}

//! One connection of an SMB 3.1.1 session: negotiation, logon, signed requests and their replies ([MS-SMB2] 3.2).

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use auth::{Credentials, Initiator, InitiatorStep, Randomness, nt_hash};
use smb_proto::dialect::{Dialect, SigningAlgorithm};
use smb_proto::keys::{SessionKeys, channel_signing_key};
use smb_proto::preauth::PreauthHash;
use smb_proto::signing::{Sender, SigningKey};
use smb_wire::negotiate::{self, Capabilities, SecurityMode};
use smb_wire::negotiate_context::{HashAlgorithm, NegotiateContext};
use smb_wire::oplock_break::{Acknowledgment, LeaseBreak, LeaseBreakFlags, Notification};
use smb_wire::session_setup::{self, RequestFlags};
use smb_wire::{Command, FileTime, Guid, Header, HeaderFlags, NtStatus, Target, frame};

use crate::machine;
use crate::pipe::ClientEnd;
use crate::servers::{Front, PASSWORD, USER};
use crate::world::{PATIENCE, World};

/// Credits that a channel tries to have.
const CREDITS_WANTED: u16 = 64;

/// The reply to a request: its header, and the whole message.
pub(super) type Answer = (Header, Vec<u8>);

/// The values of a session that its further channels need.
#[derive(Clone, Copy)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) tree_id: u32,
    keys: SessionKeys,
}

/// One channel.
pub(super) struct Channel {
    world: Rc<World>,
    client: u32,
    end: ClientEnd,
    next: u64,
    credits: u16,
    preauth: PreauthHash,
    algorithm: SigningAlgorithm,
    signing: Option<SigningKey>,
    session_id: u64,
    pub(super) tree_id: u32,
    /// Requests without a reply yet, by message id, with the time when they were sent.
    asked: HashMap<u64, Duration>,
    /// The requests among them that acknowledge a break.
    acknowledging: HashSet<u64>,
    /// Lease breaks that have arrived and have not been processed.
    pub(super) breaks: Vec<LeaseBreak>,
}

impl Channel {
    /// Connects and negotiates. `None` when the servers are stopped, or the connection ends.
    pub(super) async fn open(
        world: &Rc<World>,
        client: u32,
        guid: Guid,
        algorithm: SigningAlgorithm,
    ) -> Option<Self> {
        let end = world.connect(Front::Smb, client)?;
        let mut this = Self {
            world: Rc::clone(world),
            client,
            end,
            next: 0,
            credits: 1,
            preauth: PreauthHash::new(),
            algorithm,
            signing: None,
            session_id: 0,
            tree_id: 0,
            asked: HashMap::new(),
            acknowledging: HashSet::new(),
            breaks: Vec::new(),
        };
        let mut salt = [0; 32];
        world.fill(&mut salt);
        let request = negotiate::Request {
            security_mode: SecurityMode::SIGNING_REQUIRED,
            capabilities: Capabilities::LARGE_MTU | Capabilities::MULTI_CHANNEL | Capabilities::LEASING,
            client_guid: guid,
            dialects: vec![negotiate::Dialect::Smb311],
            contexts: vec![
                NegotiateContext::PreauthIntegrity {
                    hash_algorithms: vec![HashAlgorithm::Sha512],
                    salt: &salt,
                },
                NegotiateContext::Signing(vec![algorithm.id().into()]),
            ],
        };
        let (sent, (head, reply)) =
            this.exchange(Command::Negotiate, |out| request.encode(out).is_ok()).await?;
        this.preauth.update(&sent);
        this.preauth.update(&reply);
        this.expect("NEGOTIATE", head.status(), NtStatus::SUCCESS).then_some(this)
    }

    /// Logs on: makes a new session, or a further channel of a session.
    pub(super) async fn log_on(&mut self, bound: Option<Session>, previous: u64) -> Option<Session> {
        let mut randomness = Randomness { client_challenge: [0; 8], session_key: [0; 16], timestamp: 0 };
        self.world.fill(&mut randomness.client_challenge);
        self.world.fill(&mut randomness.session_key);
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        randomness.timestamp = FileTime::from_unix(now.as_secs().cast_signed(), now.subsec_nanos()).0;
        let (user, domain) = (USER.to_owned(), String::new());
        let credentials = Credentials { user, domain, nt_hash: nt_hash(PASSWORD) };
        let (token, initiator) = Initiator::start(credentials, randomness);
        if let Some(session) = &bound {
            self.session_id = session.id;
            self.signing = SigningKey::new(self.algorithm, &session.keys.signing).ok();
        }
        let mut preauth = self.preauth;
        let (sent, (head, reply)) = self.setup(&token, bound.is_some(), previous).await?;
        if !self.expect("SESSION_SETUP", head.status(), NtStatus::MORE_PROCESSING_REQUIRED) {
            return None;
        }
        preauth.update(&sent);
        preauth.update(&reply);
        self.session_id = head.session_id;
        let response = session_setup::Response::decode(&reply).ok()?;
        let Ok(InitiatorStep::Continue { token, session_key, .. }) = initiator.step(response.security_buffer)
        else {
            self.world.fail(self.client, "the server's challenge is none".to_owned());
            return None;
        };
        let (sent, (head, _)) = self.setup(&token, bound.is_some(), previous).await?;
        preauth.update(&sent);
        if !self.expect("SESSION_SETUP", head.status(), NtStatus::SUCCESS) {
            return None;
        }
        let key = session_key.as_bytes();
        let keys = bound.map_or_else(
            || SessionKeys::derive(Dialect::Smb311, None, key, &preauth),
            |session| session.keys,
        );
        let signing = match bound {
            None => keys.signing,
            Some(_) => channel_signing_key(Dialect::Smb311, key, &preauth),
        };
        self.signing = SigningKey::new(self.algorithm, &signing).ok();
        self.tree_id = bound.map_or(0, |session| session.tree_id);
        Some(Session { id: self.session_id, tree_id: self.tree_id, keys })
    }

    async fn setup(&mut self, token: &[u8], is_bound: bool, previous: u64) -> Option<(Vec<u8>, Answer)> {
        let mut flags = RequestFlags::empty();
        flags.set(RequestFlags::BINDING, is_bound);
        let request = session_setup::Request {
            flags,
            security_mode: session_setup::SecurityMode::SIGNING_REQUIRED,
            capabilities: Capabilities::empty(),
            previous_session_id: previous,
            security_buffer: token,
        };
        self.exchange(Command::SessionSetup, |out| request.encode(out).is_ok()).await
    }

    fn expect(&self, what: &str, status: NtStatus, expected: NtStatus) -> bool {
        if status != expected {
            self.world.note(self.client, what, &[status.0.into()]);
        }
        // The session may be gone by then, and all places may be taken.
        let allowed = [NtStatus::USER_SESSION_DELETED, NtStatus::REQUEST_NOT_ACCEPTED];
        if status != expected && !allowed.contains(&status) {
            self.world.fail(self.client, format!("{what}: {status:?}"));
        }
        status == expected
    }

    /// Whether the credits allow this many more requests.
    pub(super) fn has_credits(&self, requests: usize) -> bool {
        usize::from(self.credits) >= requests
    }

    /// Whether data is on its way to the client.
    pub(super) fn has_more(&self) -> bool {
        self.end.has_more()
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_over()
    }

    pub(super) fn cut(&self) {
        self.world.cut(&self.end, self.client);
    }

    /// Sends a request, and returns the message and its id. `body` appends the part after the header.
    pub(super) fn send(
        &mut self,
        command: Command,
        body: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> (u64, Vec<u8>) {
        let id = self.next;
        self.next += 1;
        self.credits = self.credits.saturating_sub(1);
        let head = Header {
            credit_charge: u16::from(command != Command::Negotiate),
            status_or_channel_sequence: 0,
            command,
            credits: CREDITS_WANTED.saturating_sub(self.credits),
            flags: HeaderFlags::empty(),
            next_command: 0,
            message_id: id,
            target: Target::Sync { tree_id: self.tree_id },
            session_id: self.session_id,
            signature: [0; 16],
        };
        let mut message = head.to_bytes().to_vec();
        let is_encoded = body(&mut message);
        debug_assert!(is_encoded);
        if let Some(key) = &self.signing {
            let is_signed = key.sign(&mut message, Sender::Client).is_ok();
            debug_assert!(is_signed);
        }
        if let Ok(prefix) = frame::encode_prefix(message.len()) {
            self.end.send(&[&prefix[..], &message].concat());
        }
        self.asked.insert(id, machine::elapsed());
        (id, message)
    }

    /// Returns the next reply. Notes breaks, and skips interim responses. `None` when the connection has ended.
    pub(super) async fn answer(&mut self) -> Option<Answer> {
        loop {
            let mut frame = self.end.message(whole).await?;
            let mut message = frame.split_off(4);
            let Ok(head) = Header::decode(&message) else {
                self.world.fail(self.client, "a frame without a header".to_owned());
                return None;
            };
            if head.command == Command::OplockBreak && head.message_id == u64::MAX {
                self.is_broken(&message);
                continue;
            }
            self.credits = self.credits.saturating_add(head.credits);
            if head.status() == NtStatus::PENDING {
                continue;
            }
            let Some(begun) = self.asked.remove(&head.message_id) else {
                self.world.fail(self.client, format!("request {} was answered twice", head.message_id));
                return None;
            };
            if let Some(key) = &self.signing
                && head.flags.contains(HeaderFlags::SIGNED)
                && key.verify(&mut message, Sender::Server).is_err()
                && head.command != Command::SessionSetup
            {
                self.world.fail(self.client, format!("{:?} has a wrong signature", head.command));
                return None;
            }
            self.world.answered(self.client, begun);
            if self.acknowledging.remove(&head.message_id) {
                self.is_acknowledged(head.status());
                continue;
            }
            return Some((head, message));
        }
    }

    /// Notes a break, and at once acknowledges it if it needs an acknowledgment ([MS-SMB2] 3.2.5.19.2).
    fn is_broken(&mut self, message: &[u8]) {
        let lease = match Notification::decode(message) {
            Ok(Notification::Lease(lease)) => lease,
            other => return self.world.fail(self.client, format!("a break of what nobody has: {other:?}")),
        };
        self.breaks.push(lease);
        if lease.flags.contains(LeaseBreakFlags::ACK_REQUIRED) {
            let (lease_key, lease_state) = (lease.lease_key, lease.new_lease_state);
            let request = Acknowledgment::Lease { lease_key, lease_state };
            let (id, _) = self.send(Command::OplockBreak, |out| {
                request.encode(out);
                true
            });
            self.acknowledging.insert(id);
        }
    }

    /// Checks the reply to an acknowledgment. Meanwhile the lease may have been broken further, or be gone with its
    /// session.
    fn is_acknowledged(&self, status: NtStatus) {
        const LATE: &[NtStatus] = &[
            NtStatus::SUCCESS,
            NtStatus::UNSUCCESSFUL,
            NtStatus::OBJECT_NAME_NOT_FOUND,
            NtStatus::REQUEST_NOT_ACCEPTED,
            NtStatus::USER_SESSION_DELETED,
        ];
        self.world.note(self.client, "smb break acknowledged", &[status.0.into()]);
        if !LATE.contains(&status) {
            self.world.fail(self.client, format!("smb break acknowledged: {status:?}"));
        }
    }

    /// Sends a request alone on the connection, and returns its reply.
    async fn exchange(
        &mut self,
        command: Command,
        body: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Option<(Vec<u8>, Answer)> {
        let (_, message) = self.send(command, body);
        let begun = machine::elapsed();
        match tokio::time::timeout(PATIENCE, self.answer()).await {
            Ok(answer) => Some((message, answer?)),
            Err(_) => {
                self.world.fail(self.client, format!("{command:?} of {begun:?} was never answered"));
                None
            }
        }
    }

    /// Sends a request alone on the connection, and returns its reply.
    pub(super) async fn ask(
        &mut self,
        command: Command,
        body: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Option<Answer> {
        self.exchange(command, body).await.map(|(_, answer)| answer)
    }
}

/// The length of the frame that begins here, including its prefix.
fn whole(received: &[u8]) -> Option<usize> {
    let prefix = received.first_chunk::<4>()?;
    Some(4 + frame::decode_prefix(*prefix).ok()?)
}

//! A client that does what it is told, also what no honest client would do. It knows nothing of the server's code: the
//! tests of the whole program have it, too.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use auth::{Credentials, Initiator, InitiatorStep, Randomness, nt_hash};
use krb5::ChannelBindings;
use smb_proto::dialect::{Cipher, Dialect, SigningAlgorithm};
use smb_proto::preauth::PreauthHash;
use smb_wire::create::{CreateDisposition, CreateOptions, ImpersonationLevel, OplockLevel, ShareAccess};
use smb_wire::negotiate::{Capabilities, SecurityMode};
use smb_wire::negotiate_context::{HashAlgorithm, NegotiateContext, TransportFlags};
use smb_wire::session_setup::{self, SessionFlags};
use smb_wire::{
    AccessMask, Command, FileAttributes, FileId, Guid, Header, HeaderFlags, NtStatus, Target, chain, close,
    create, frame, header, negotiate, read, tree_connect, write,
};

use super::protection::Protection;

/// How long the client waits for an answer before the test fails.
const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const CLIENT_GUID: Guid = Guid([0xC1; 16]);

/// A message from the server.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) header: Header,
    /// From the header on.
    pub(crate) message: Vec<u8>,
    /// Whether it came encrypted.
    pub(crate) encrypted: bool,
}

impl Reply {
    pub(crate) fn status(&self) -> NtStatus {
        self.header.status()
    }

    pub(crate) fn is_signed(&self) -> bool {
        self.header.flags.contains(HeaderFlags::SIGNED)
    }

    /// The reply, if it is a success.
    pub(crate) fn ok(self) -> Result<Self, NtStatus> {
        if self.status() == NtStatus::SUCCESS { Ok(self) } else { Err(self.status()) }
    }
}

/// One request of a compound.
pub(crate) struct Element {
    pub(crate) command: Command,
    pub(crate) related: bool,
    pub(crate) body: Vec<u8>,
}

/// A connection. Its fields say what the next request carries.
pub(crate) struct Client {
    stream: TcpStream,
    /// What is sent together with what follows.
    held: Option<Vec<u8>>,
    pub(crate) next_message_id: u64,
    /// Credits asked for with each request.
    pub(crate) credits_asked: u16,
    pub(crate) dialect: Dialect,
    /// What the client offers in SMB 3.1.1.
    pub(crate) ciphers: Vec<Cipher>,
    pub(crate) signing_algorithms: Vec<SigningAlgorithm>,
    pub(crate) transport: Option<TransportFlags>,
    pub(crate) security_mode: SecurityMode,
    pub(crate) capabilities: Capabilities,
    pub(crate) client_guid: Guid,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) signing_algorithm: SigningAlgorithm,
    pub(crate) preauth: PreauthHash,
    pub(crate) session_id: u64,
    pub(crate) session_flags: SessionFlags,
    pub(crate) tree_id: u32,
    pub(crate) previous_session_id: u64,
    /// Whether SESSION_SETUP asks to bind the connection to a session.
    pub(crate) binding: bool,
    /// The keys of the channel that a binding makes: the answer that says that it has succeeded is signed with them.
    channel: Option<Protection>,
    pub(crate) protection: Option<Protection>,
    /// Whether requests are signed, and whether encrypted.
    pub(crate) sign: bool,
    pub(crate) encrypt: bool,
    /// The TLS channel to which a password is bound.
    pub(crate) channel_bindings: Option<ChannelBindings>,
}

impl Client {
    /// A connection on which nothing has been said.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// The same, over a connection that stands.
    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            held: None,
            next_message_id: 0,
            credits_asked: 64,
            dialect: Dialect::Smb202,
            ciphers: Cipher::ALL.to_vec(),
            signing_algorithms: SigningAlgorithm::ALL.to_vec(),
            transport: None,
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::ENCRYPTION | Capabilities::LARGE_MTU,
            client_guid: CLIENT_GUID,
            cipher: None,
            signing_algorithm: SigningAlgorithm::HmacSha256,
            preauth: PreauthHash::new(),
            session_id: 0,
            session_flags: SessionFlags::empty(),
            tree_id: 0,
            previous_session_id: 0,
            binding: false,
            channel: None,
            protection: None,
            sign: false,
            encrypt: false,
            channel_bindings: None,
        }
    }

    /// The client's own address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    // --- messages ---

    /// The header of the next request.
    pub(crate) fn header(&mut self, command: Command) -> Header {
        let message_id = self.next_message_id;
        self.next_message_id += 1;
        Header {
            credit_charge: u16::from(self.dialect > Dialect::Smb202),
            status_or_channel_sequence: 0,
            command,
            credits: self.credits_asked,
            flags: HeaderFlags::empty(),
            next_command: 0,
            message_id,
            target: Target::Sync { tree_id: self.tree_id },
            session_id: self.session_id,
            signature: [0; 16],
        }
    }

    /// Sends a message with this header and body, protected as the client is told.
    pub(crate) fn send_with(&mut self, header: &Header, body: &[u8]) -> Vec<u8> {
        let mut message = header.to_bytes().to_vec();
        message.extend_from_slice(body);
        if let Some(protection) = &self.protection {
            if self.encrypt {
                self.send_frame(&protection.seal(&message));
                return message;
            }
            if self.sign {
                protection.sign(&mut message);
            }
        }
        self.send_frame(&message);
        message
    }

    pub(crate) fn send(&mut self, command: Command, body: &[u8]) -> Header {
        let header = self.header(command);
        self.send_with(&header, body);
        header
    }

    /// Sends bytes as a frame.
    pub(crate) fn send_frame(&mut self, bytes: &[u8]) {
        self.send_raw(&frame::encode_prefix(bytes.len()).unwrap());
        self.send_raw(bytes);
    }

    /// Sends bytes as they are; the server may have gone.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        match &mut self.held {
            Some(held) => held.extend_from_slice(bytes),
            None => drop(self.stream.write_all(bytes)),
        }
    }

    /// Sends several messages in one piece.
    pub(crate) fn together(&mut self, send: impl FnOnce(&mut Self)) {
        self.held = Some(Vec::new());
        send(self);
        let held = self.held.take().unwrap();
        self.send_raw(&held);
    }

    /// Ends the connection with a reset: what the server sends from now on is not taken.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// The next frame from the server, decrypted, its messages verified; `None` when the server has closed.
    pub(crate) fn try_receive_all(&mut self) -> Option<Vec<Reply>> {
        let mut frame = self.receive_frame()?;
        let encrypted = frame.first() == Some(&0xFD);
        if encrypted {
            frame = self.protection.as_ref().unwrap().open(&mut frame);
        }
        let ranges: Vec<_> = chain::Chain::new(&frame).map(Result::unwrap).collect();
        let mut replies = Vec::new();
        for range in ranges {
            let message = frame[range].to_vec();
            let header = Header::decode(&message).unwrap();
            assert!(header.flags.contains(HeaderFlags::SERVER_TO_REDIR), "a response");
            // Of a session that has ended nobody has the key: the request's signature comes back.
            let bound = header.command == Command::SessionSetup && header.status() == NtStatus::SUCCESS;
            let protection = self.channel.as_ref().filter(|_| bound).or(self.protection.as_ref());
            if header.flags.contains(HeaderFlags::SIGNED)
                && header.status() != NtStatus::USER_SESSION_DELETED
                && let Some(protection) = protection
            {
                protection.verify(&mut message.clone());
            }
            replies.push(Reply { header, message, encrypted });
        }
        Some(replies)
    }

    fn receive_frame(&mut self) -> Option<Vec<u8>> {
        let mut prefix = [0; 4];
        match self.stream.read_exact(&mut prefix) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => panic!("no answer within {TIMEOUT:?}"),
            Err(_) => return None,
        }
        let mut frame = vec![0; frame::decode_prefix(prefix).unwrap()];
        self.stream.read_exact(&mut frame).unwrap();
        Some(frame)
    }

    pub(crate) fn receive_all(&mut self) -> Vec<Reply> {
        self.try_receive_all().expect("the server has closed the connection")
    }

    /// The next message, which must be alone in its frame.
    pub(crate) fn receive(&mut self) -> Reply {
        let mut replies = self.receive_all();
        assert_eq!(replies.len(), 1, "one message");
        replies.remove(0)
    }

    /// Waits until the server closes the connection; panics if it answers.
    pub(crate) fn expect_closed(&mut self) {
        assert!(self.try_receive_all().is_none(), "the server should close the connection without an answer");
    }

    /// Sends a request and takes its answer.
    pub(crate) fn call(&mut self, command: Command, body: &[u8]) -> Reply {
        let header = self.send(command, body);
        let reply = self.receive();
        assert_eq!((reply.header.message_id, reply.header.command), (header.message_id, command));
        reply
    }

    /// The bytes of a compound, each message signed if the client signs.
    pub(crate) fn compound(&mut self, elements: &[Element]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut start = 0;
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                let next = chain::link(&mut out, start).unwrap();
                self.sign_part(&mut out[start..]);
                start = next;
            }
            let mut header = self.header(element.command);
            header.flags.set(HeaderFlags::RELATED_OPERATIONS, element.related);
            if element.related {
                header.session_id = u64::MAX;
                header.target = Target::Sync { tree_id: u32::MAX };
            }
            header.encode_into(&mut out);
            out.extend_from_slice(&element.body);
        }
        self.sign_part(&mut out[start..]);
        out
    }

    fn sign_part(&self, message: &mut [u8]) {
        if let (true, Some(protection)) = (self.sign && !self.encrypt, &self.protection) {
            protection.sign(message);
        }
    }

    /// Sends a compound and takes its answers, in however many frames they come.
    pub(crate) fn call_compound(&mut self, elements: &[Element]) -> Vec<Reply> {
        let frame = self.compound(elements);
        match (&self.protection, self.encrypt) {
            (Some(protection), true) => {
                let sealed = protection.seal(&frame);
                self.send_frame(&sealed);
            }
            _ => self.send_frame(&frame),
        }
        let mut replies = Vec::new();
        while replies.len() < elements.len() {
            replies.extend(self.receive_all());
        }
        replies
    }

    // --- sessions and trees ---

    pub(crate) fn negotiate_request<'a>(
        &self,
        dialects: &[Dialect],
        salt: &'a [u8],
    ) -> negotiate::Request<'a> {
        let mut contexts = Vec::new();
        if dialects.contains(&Dialect::Smb311) {
            let hash_algorithms = vec![HashAlgorithm::Sha512];
            contexts.push(NegotiateContext::PreauthIntegrity { hash_algorithms, salt });
            contexts.push(NegotiateContext::Encryption(self.ciphers.iter().map(|c| c.id().into()).collect()));
            let algorithms = self.signing_algorithms.iter().map(|a| a.id().into()).collect();
            contexts.push(NegotiateContext::Signing(algorithms));
            contexts.extend(self.transport.map(NegotiateContext::Transport));
        }
        negotiate::Request {
            security_mode: self.security_mode,
            capabilities: self.capabilities,
            client_guid: self.client_guid,
            dialects: dialects.iter().map(|dialect| dialect.revision().into()).collect(),
            contexts,
        }
    }

    /// Negotiates; the answer is decoded, and what was agreed on is kept.
    pub(crate) fn negotiate(&mut self, dialects: &[Dialect]) -> Reply {
        let request = self.negotiate_request(dialects, &[7; 32]);
        let mut body = vec![0; header::LEN];
        request.encode(&mut body).unwrap();
        let header = self.header(Command::Negotiate);
        let sent = self.send_with(&header, &body[header::LEN..]);
        let reply = self.receive();
        if reply.status() != NtStatus::SUCCESS {
            return reply;
        }
        let response = negotiate::Response::decode(&reply.message).unwrap();
        self.dialect = Dialect::from_revision(response.dialect.into()).unwrap();
        self.signing_algorithm = SigningAlgorithm::default_of(self.dialect);
        self.cipher = match self.dialect {
            Dialect::Smb300 | Dialect::Smb302 => {
                response.capabilities.contains(Capabilities::ENCRYPTION).then_some(Cipher::Aes128Ccm)
            }
            _ => None,
        };
        for context in &response.contexts {
            match context {
                NegotiateContext::Encryption(ciphers) => self.cipher = Cipher::from_id(ciphers[0].into()),
                NegotiateContext::Signing(algorithms) => {
                    self.signing_algorithm = SigningAlgorithm::from_id(algorithms[0].into()).unwrap();
                }
                _ => {}
            }
        }
        if self.dialect == Dialect::Smb311 {
            self.preauth.update(&sent);
            self.preauth.update(&reply.message);
        }
        reply
    }

    /// Sends one SESSION_SETUP with this token; gives the message as sent and the answer.
    pub(crate) fn session_setup(&mut self, token: &[u8]) -> (Vec<u8>, Reply) {
        let body = self.session_setup_body(token);
        let header = self.header(Command::SessionSetup);
        let sent = self.send_with(&header, &body);
        (sent, self.receive())
    }

    /// Authenticates: a new session when `session_id` is 0, else again. The final answer must be signed and verified.
    pub(crate) fn log_in(&mut self, user: &str, password: &str) -> Result<Reply, NtStatus> {
        let (reply, initiator) = self.authenticate(user, password)?;
        if reply.status() != NtStatus::SUCCESS {
            self.protection = None;
            return Err(reply.status());
        }
        assert!(reply.is_signed() || reply.encrypted, "the last answer proves that the server knows the key");
        let response = session_setup::Response::decode(&reply.message).unwrap();
        assert!(matches!(initiator.step(response.security_buffer).unwrap(), InitiatorStep::Done));
        self.session_flags = response.session_flags;
        self.sign = true;
        Ok(reply)
    }

    /// Authenticates as far as the final answer, whatever it says, and makes keys as an account's user does.
    pub(crate) fn authenticate(
        &mut self,
        user: &str,
        password: &str,
    ) -> Result<(Reply, Initiator), NtStatus> {
        let again = self.protection.is_some();
        let credentials =
            Credentials { user: user.to_owned(), domain: String::new(), nt_hash: nt_hash(password) };
        let randomness = Randomness { client_challenge: [3; 8], session_key: [4; 16], timestamp: 1 << 57 };
        let (token, initiator) = Initiator::start(credentials, randomness);
        let initiator = initiator.bound_to(self.channel_bindings);
        let mut preauth = self.preauth;
        let (sent, reply) = self.session_setup(&token);
        if reply.status() != NtStatus::MORE_PROCESSING_REQUIRED {
            return Err(reply.status());
        }
        preauth.update(&sent);
        preauth.update(&reply.message);
        self.session_id = reply.header.session_id;
        let response = session_setup::Response::decode(&reply.message).unwrap();
        let InitiatorStep::Continue { token, session_key, next } =
            initiator.step(response.security_buffer).unwrap()
        else {
            panic!("the server is content too early")
        };
        let request = self.session_setup_body(&token);
        let header = self.header(Command::SessionSetup);
        let sent = self.send_with(&header, &request);
        preauth.update(&sent);
        if self.binding {
            let session = self.protection.as_ref().expect("the keys of the session");
            let key = session_key.as_bytes();
            let channel = session.of_channel(self.dialect, self.signing_algorithm, key, &preauth);
            self.channel = Some(channel);
        } else if !again {
            self.protection = Some(Protection::new(
                self.dialect,
                self.cipher,
                self.signing_algorithm,
                session_key.as_bytes(),
                &preauth,
                self.session_id,
            ));
        }
        Ok((self.receive(), next))
    }

    pub(crate) fn session_setup_body(&self, token: &[u8]) -> Vec<u8> {
        let mut flags = session_setup::RequestFlags::empty();
        flags.set(session_setup::RequestFlags::BINDING, self.binding);
        let request = session_setup::Request {
            flags,
            security_mode: session_setup::SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::empty(),
            previous_session_id: self.previous_session_id,
            security_buffer: token,
        };
        let mut body = Vec::new();
        request.encode(&mut body).unwrap();
        body
    }

    /// Makes this connection, which has negotiated, a channel of another one's session, and uses its tree.
    pub(crate) fn bind(&mut self, owner: &Self, user: &str, password: &str) -> Result<(), NtStatus> {
        self.session_id = owner.session_id;
        self.tree_id = owner.tree_id;
        self.protection = owner.protection.as_ref().map(Protection::of_session);
        self.sign = true;
        self.bind_with_keys(user, password)
    }

    /// The same with the keys that the connection has now.
    pub(crate) fn bind_with_keys(&mut self, user: &str, password: &str) -> Result<(), NtStatus> {
        self.binding = true;
        let outcome = self.authenticate(user, password).and_then(|(reply, _)| reply.ok());
        self.binding = false;
        let channel = self.channel.take();
        outcome.map(|reply| {
            assert!(reply.is_signed(), "the last answer proves that the server knows the channel's key");
            self.protection = channel;
        })
    }

    pub(crate) fn tree_connect_path(&mut self, path: &str) -> Reply {
        let request = tree_connect::Request { flags: tree_connect::RequestFlags::empty(), path: path.into() };
        let mut body = Vec::new();
        request.encode(&mut body).unwrap();
        self.call(Command::TreeConnect, &body)
    }

    /// Connects to a share; further requests go there.
    pub(crate) fn tree_connect(&mut self, share: &str) -> Result<tree_connect::Response, NtStatus> {
        let reply = self.tree_connect_path(&format!(r"\\server\{share}")).ok()?;
        self.tree_id = reply.header.tree_id().unwrap();
        Ok(tree_connect::Response::decode(&reply.message).unwrap())
    }

    // --- files ---

    /// Opens or creates a file. A CREATE that has to wait, for a file that is being removed for instance, is answered twice.
    pub(crate) fn create(&mut self, name: &str, disposition: CreateDisposition) -> Result<FileId, NtStatus> {
        let mut reply = self.call(Command::Create, &create_body(name, disposition, CreateOptions::empty()));
        while reply.status() == NtStatus::PENDING {
            reply = self.receive();
        }
        let reply = reply.ok()?;
        Ok(create::Response::decode(&reply.message).unwrap().file_id)
    }

    pub(crate) fn close(&mut self, file_id: FileId) -> Result<(), NtStatus> {
        self.call(Command::Close, &close_body(file_id)).ok().map(|_| ())
    }

    pub(crate) fn write(&mut self, file_id: FileId, offset: u64, data: &[u8]) -> Result<(), NtStatus> {
        self.call(Command::Write, &write_body(file_id, offset, data)).ok().map(|_| ())
    }

    pub(crate) fn read(&mut self, file_id: FileId, offset: u64, length: u32) -> Result<Vec<u8>, NtStatus> {
        let reply = self.call(Command::Read, &read_body(file_id, offset, length)).ok()?;
        Ok(read::Response::decode(&reply.message).unwrap().data.to_vec())
    }

    /// Whether the server still answers.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.call(Command::Echo, &[4, 0, 0, 0]).status() == NtStatus::SUCCESS
    }
}

pub(crate) fn create_body(name: &str, disposition: CreateDisposition, options: CreateOptions) -> Vec<u8> {
    let request = create::Request {
        requested_oplock_level: OplockLevel::None,
        impersonation_level: ImpersonationLevel::Impersonation,
        desired_access: AccessMask::from_bits_retain(0x0012_019F) | AccessMask::DELETE,
        file_attributes: FileAttributes::NORMAL,
        share_access: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
        create_disposition: disposition,
        create_options: options,
        name: name.into(),
        contexts: Vec::new(),
    };
    // Offsets and padding count from the header.
    let mut out = vec![0; header::LEN];
    request.encode(&mut out).unwrap();
    out.split_off(header::LEN)
}

pub(crate) fn close_body(file_id: FileId) -> Vec<u8> {
    let mut body = Vec::new();
    close::Request { flags: close::CloseFlags::empty(), file_id }.encode(&mut body);
    body
}

pub(crate) fn write_body(file_id: FileId, offset: u64, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    write::Request::new(file_id, offset, data, write::WriteFlags::empty()).encode(&mut body).unwrap();
    body
}

pub(crate) fn read_body(file_id: FileId, offset: u64, length: u32) -> Vec<u8> {
    let request = read::Request {
        padding: 0x50,
        flags: read::RequestFlags::empty(),
        length,
        offset,
        file_id,
        minimum_count: 0,
        channel: read::Channel::None,
        remaining_bytes: 0,
        channel_info: &[],
    };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    body
}

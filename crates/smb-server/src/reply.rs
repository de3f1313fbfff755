//! Replies: headers, credits, compounds, signatures, encryption. [MS-SMB2] 3.3.4.1.

use std::sync::Arc;

use net::Buffer;
use smb_proto::channel::Channel;
use smb_proto::credits::{self, CREDITS_MAX, CREDITS_MAX_UNAUTHENTICATED};
use smb_proto::encryption::TRANSFORM_HEADER_LEN;
use smb_proto::related::Chain;
use smb_proto::session::{Principal, SessionCrypto};
use smb_proto::signing::Sender;
use smb_wire::{Command, Header, HeaderFlags, NtStatus, Target, error_response, frame, header};

use crate::connection::Connection;
use crate::context::RequestContext;
use crate::status::Failure;

/// A compound as far as it has been answered.
#[derive(Debug, Default)]
pub(crate) struct Compound {
    /// What a related request takes over from the one before it.
    pub(crate) chain: Chain,
    /// What encrypts the answers; `None`: they are not encrypted.
    encryption: Option<Arc<SessionCrypto>>,
    /// The answers so far, linked; all but the last are signed.
    answers: Option<Answers>,
}

#[derive(Debug)]
struct Answers {
    buffer: Buffer,
    /// Where the last answer starts.
    last: usize,
    /// What signs the last answer.
    signer: Option<Arc<Channel>>,
}

impl Compound {
    /// A frame of which nothing has been answered.
    pub(crate) fn new(encryption: Option<Arc<SessionCrypto>>) -> Self {
        Self { encryption, ..Self::default() }
    }

    /// Adds an answer: a whole message, its header written.
    fn push(&mut self, message: Buffer, signer: Option<Arc<Channel>>) -> Result<(), ReplyError> {
        let answers = match self.answers.take() {
            None => Answers { buffer: message, last: 0, signer },
            Some(mut before) => {
                let start = before.buffer.len();
                let next = before.buffer.append_with(|bytes, origin| {
                    smb_wire::chain::link(bytes, origin.saturating_add(before.last)).map(|at| at - origin)
                });
                let next = next.map_err(|_| ReplyError("a compound of more than 4 GiB"))?;
                debug_assert!(next >= start, "linking pads");
                before.sign()?;
                before.buffer.append(&message);
                // 3.3.4.1.3: "The length of the last response in the compounded responses SHOULD be padded to a multiple
                // of 8 bytes."
                let odd = message.len() % 8;
                before.buffer.append([0; 8].get(odd..).filter(|_| odd > 0).unwrap_or_default());
                Answers { buffer: before.buffer, last: next, signer }
            }
        };
        self.answers = Some(answers);
        Ok(())
    }

    /// The frame with all answers so far; `None` when there is none.
    fn take_frame(&mut self) -> Result<Option<Buffer>, ReplyError> {
        let Some(mut answers) = self.answers.take() else { return Ok(None) };
        answers.sign()?;
        enclose(answers.buffer, self.encryption.as_deref()).map(Some)
    }

    /// The frame with all answers so far, to be sent. On a fault of this program the connection ends.
    pub(crate) fn finish(mut self, conn: &Connection) -> Option<Buffer> {
        self.take_frame().unwrap_or_else(|fault| {
            conn.disconnect(fault.0);
            None
        })
    }
}

impl Answers {
    fn sign(&mut self) -> Result<(), ReplyError> {
        let Some(signer) = &self.signer else { return Ok(()) };
        sign(signer, self.buffer.get_mut(self.last..).unwrap_or_default())
    }
}

/// Signs a message with the key of a channel, if it has one.
fn sign(channel: &Channel, message: &mut [u8]) -> Result<(), ReplyError> {
    let Some(key) = &channel.signing else { return Ok(()) };
    key.sign(message, Sender::Server).map_err(|_| ReplyError("signing failed"))
}

/// A reply that cannot be sent: a fault of this program.
#[derive(Debug)]
struct ReplyError(&'static str);

/// Answers a request: the handler's buffer with its header, or an error response.
pub(crate) fn complete(ctx: &RequestContext, outcome: Result<Buffer, Failure>) {
    let (status, mut message) = match outcome {
        Ok(message) => (ctx.status(), message),
        Err(failure) => (failure.status, error_message(ctx, &failure)),
    };
    write_header(ctx, status, ctx.async_id.get(), &mut message);
    let mut signer = signs(ctx, status).then(|| ctx.channel.get().cloned()).flatten();
    if ctx.header.command == Command::SessionSetup
        && ctx.header.next_command == 0
        && let Some(signer) = signer.take()
        && let Err(fault) = sign(&signer, &mut message)
    {
        // Signed already: the answers to a binding go into its preauthentication hash as they are sent.
        return ctx.connection.disconnect(fault.0);
    }
    extend_preauth(ctx, status, &message);
    let mut compound = ctx.compound.borrow_mut();
    // Only a failed CREATE leaves the related requests behind it without a file. 3.3.5.2.7.2 would have them share the
    // failure of any request about a file; Windows and Samba do not, and clients count on that.
    compound.chain.leave(ctx.header.command == Command::Create, status);
    if let Err(fault) = compound.push(message, signer) {
        ctx.connection.disconnect(fault.0);
    }
}

/// One message as a frame, for one that no request context is for; `None` when it is too long or cannot be encrypted.
pub(crate) fn frame_of(
    header: &Header,
    mut message: Buffer,
    encryption: Option<&SessionCrypto>,
) -> Option<Buffer> {
    header.write_to(message.first_chunk_mut()?);
    enclose(message, encryption).ok()
}

/// Messages as a frame: encrypted, if they are to be, behind the prefix.
fn enclose(mut messages: Buffer, encryption: Option<&SessionCrypto>) -> Result<Buffer, ReplyError> {
    if let Some(crypto) = encryption {
        let sealer = crypto.sealer.as_ref().ok_or(ReplyError("no key to encrypt with"))?;
        messages.prepend(&[0; TRANSFORM_HEADER_LEN]);
        sealer.seal(&mut messages).map_err(|_| ReplyError("encryption failed"))?;
    }
    let prefix = frame::encode_prefix(messages.len()).map_err(|_| ReplyError("a frame that is too long"))?;
    messages.prepend(&prefix);
    Ok(messages)
}

/// Sends the answers of the compound so far, then the interim response in a frame of its own. [MS-SMB2] 3.3.4.2.
pub(crate) fn send_interim(ctx: &RequestContext, async_id: u64) {
    let mut message = error_message(ctx, &NtStatus::PENDING.into());
    write_header(ctx, NtStatus::PENDING, Some(async_id), &mut message);
    let mut compound = ctx.compound.borrow_mut();
    let before = compound.take_frame();
    // Not signed: its signature would use the nonce of the final response. [MS-SMB2] 3.3.4.1.1.
    let interim = compound.push(message, None).and_then(|()| compound.take_frame());
    for frame in [before, interim] {
        match frame {
            Ok(Some(frame)) => ctx.connection.outbox.send(frame),
            Ok(None) => {}
            Err(fault) => ctx.connection.disconnect(fault.0),
        }
    }
}

/// An error response without its header. [MS-SMB2] 2.2.2, 3.3.4.4.
fn error_message(ctx: &RequestContext, failure: &Failure) -> Buffer {
    let mut message = ctx.reply(failure.data.len().saturating_add(16));
    let in_context =
        ctx.connection.dialect().is_some_and(|d| d >= crate::Dialect::Smb311) && !failure.data.is_empty();
    let context = in_context
        .then(|| error_response::Response::context(error_response::ERROR_ID_DEFAULT, &failure.data).ok())
        .flatten();
    let response = match &context {
        Some(data) => error_response::Response { context_count: 1, data },
        None => error_response::Response { context_count: 0, data: &failure.data },
    };
    let written = message.append_with(|bytes, _| response.encode(bytes));
    debug_assert!(written.is_ok(), "error data is short");
    message
}

fn write_header(ctx: &RequestContext, status: NtStatus, async_id: Option<u64>, message: &mut Buffer) {
    let mut header = ctx.header.response(status);
    if let Some(session) = ctx.session.get() {
        header.session_id = session.id;
    }
    match (async_id, ctx.tree.get()) {
        (Some(async_id), _) => header.target = Target::Async { async_id },
        (None, Some(tree)) => header.target = Target::Sync { tree_id: tree.id },
        (None, None) => {}
    }
    if status == NtStatus::USER_SESSION_DELETED && ctx.session.get().is_none() && !ctx.encrypted {
        // There is no key to sign with. Windows sends the request's signature back, and clients that insist on signed
        // answers read the status of no other.
        header.flags |= ctx.header.flags & HeaderFlags::SIGNED;
        header.signature = ctx.header.signature;
    }
    header.credits = grant_credits(ctx);
    if let Some(room) = message.first_chunk_mut::<{ header::LEN }>() {
        header.write_to(room);
    }
}

/// 3.3.4.1.2. What went asynchronous has got its credits with the interim response.
fn grant_credits(ctx: &RequestContext) -> u16 {
    if ctx.granted.replace(true) {
        return 0;
    }
    let limit = if ctx.login.get().is_some() { CREDITS_MAX } else { CREDITS_MAX_UNAUTHENTICATED };
    let charge = ctx.connection.credit_charge(&ctx.header);
    credits::grant(&mut ctx.connection.window.borrow_mut(), charge, ctx.header.credits, limit)
}

/// 3.3.4.1.1: whether the response is signed. What is encrypted is not.
fn signs(ctx: &RequestContext, status: NtStatus) -> bool {
    if ctx.encrypted {
        return false;
    }
    let request_signed = ctx.header.flags.contains(HeaderFlags::SIGNED);
    let Some(login) = ctx.login.get() else { return false };
    // 3.3.5.5.3: the response that makes the session valid proves that the server knows its key.
    let proves = ctx.header.command == Command::SessionSetup
        && status == NtStatus::SUCCESS
        && login.principal == Principal::User;
    request_signed || login.signing_required || proves
}

/// 3.3.5.4, 3.3.5.5: the responses to NEGOTIATE and SESSION_SETUP go into the preauthentication hash, the last one of a
/// session apart.
fn extend_preauth(ctx: &RequestContext, status: NtStatus, message: &[u8]) {
    match (ctx.header.command, status) {
        (Command::Negotiate, NtStatus::SUCCESS) => ctx.connection.extend_preauth(message),
        (Command::SessionSetup, NtStatus::MORE_PROCESSING_REQUIRED) => {
            if let Some(session) = ctx.session.get() {
                ctx.connection.extend_setup_preauth(session.id, message);
            }
        }
        _ => {}
    }
}

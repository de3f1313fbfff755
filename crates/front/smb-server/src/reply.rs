//! Replies: headers, credits, and whether to sign. [MS-SMB2] 3.3.4.1.

use net::Buffer;
use smb_proto::credits::{self, CREDITS_MAX, CREDITS_MAX_UNAUTHENTICATED};
use smb_proto::session::Principal;
use smb_wire::{Command, HeaderFlags, NtStatus, Target, error_response, header};

use crate::compound::sign;
use crate::context::{RequestContext, message};
use crate::status::Failure;

/// Bytes of an error response without data, after its header.
const ERROR_BYTES: usize = 16;

/// Answers a request: the handler's buffer with its header, or an error response.
pub(crate) fn complete(ctx: &RequestContext, outcome: Result<Buffer, Failure>) {
    let (status, mut message) = match outcome {
        Ok(message) => (ctx.status(), message),
        Err(failure) => {
            drop(ctx.take_room());
            (failure.status, error_message(ctx, &failure))
        }
    };
    write_header(ctx, status, ctx.async_id.get(), &mut message);
    let mut signer = ctx.envelope.channel.clone().filter(|_| signs(ctx, status));
    if ctx.header.command == Command::SessionSetup
        && ctx.header.next_command == 0
        && let Some(signer) = signer.take()
        && let Err(fault) = sign(&signer, &mut message)
    {
        // The reply is signed already: replies to a binding go into its preauthentication hash as they are sent.
        return ctx.connection.disconnect(fault.0);
    }
    extend_preauth(ctx, status, &message);
    let mut compound = ctx.compound.borrow_mut();
    // Only a failed CREATE leaves the related requests after it without a file. 3.3.5.2.7.2 would have them share the
    // failure of any request about a file; Windows and Samba do not, and clients rely on that.
    compound.chain.leave(ctx.header.command == Command::Create, status);
    if let Err(fault) = compound.push(message, signer) {
        ctx.connection.disconnect(fault.0);
    }
    ctx.take_room().into_iter().for_each(|room| compound.keep_room(room));
}

/// Sends the replies of the compound so far, then the interim response in its own frame. [MS-SMB2] 3.3.4.2.
pub(crate) fn send_interim(ctx: &RequestContext, async_id: u64) {
    let mut message = error_message(ctx, &NtStatus::PENDING.into());
    write_header(ctx, NtStatus::PENDING, Some(async_id), &mut message);
    let mut compound = ctx.compound.borrow_mut();
    let before = compound.take_frame();
    let _room = compound.take_room(); // the replies that it was for are sent below
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
    let mut message = message(failure.data.len().saturating_add(ERROR_BYTES));
    let in_context =
        ctx.connection.dialect().is_some_and(|d| d >= crate::Dialect::Smb311) && !failure.data.is_empty();
    let context =
        in_context.then(|| error_response::Response::context(failure.error_id, &failure.data).ok()).flatten();
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
    if let Some(session_id) = ctx.envelope.session_id {
        header.session_id = session_id;
    }
    match (async_id, ctx.envelope.tree_id) {
        (Some(async_id), _) => header.target = Target::Async { async_id },
        (None, Some(tree_id)) => header.target = Target::Sync { tree_id },
        (None, None) => {}
    }
    if status == NtStatus::USER_SESSION_DELETED && ctx.envelope.session_id.is_none() && !ctx.encrypted {
        // There is no key to sign with. Windows returns the request's signature, and clients that insist on signed
        // replies read the status of no other.
        header.flags |= ctx.header.flags & HeaderFlags::SIGNED;
        header.signature = ctx.header.signature;
    }
    header.credits = grant_credits(ctx);
    if let Some(room) = message.first_chunk_mut::<{ header::LEN }>() {
        header.write_to(room);
    }
}

/// 3.3.4.1.2: the credits to grant. A request that became asynchronous got its credits with the interim response.
fn grant_credits(ctx: &RequestContext) -> u16 {
    if ctx.granted.replace(true) {
        return 0;
    }
    let limit = if ctx.envelope.logged_on.is_some() { CREDITS_MAX } else { CREDITS_MAX_UNAUTHENTICATED };
    let charge = ctx.connection.credit_charge(&ctx.header);
    credits::grant(&mut ctx.connection.window.borrow_mut(), charge, ctx.header.credits, limit)
}

/// 3.3.4.1.1: whether the response is signed. Encrypted responses are not.
fn signs(ctx: &RequestContext, status: NtStatus) -> bool {
    if ctx.encrypted {
        return false;
    }
    let request_signed = ctx.header.flags.contains(HeaderFlags::SIGNED);
    let Some(login) = ctx.envelope.logged_on else { return false };
    // 3.3.5.5.3: the response that makes the session valid proves that the server knows its key.
    let proves = ctx.header.command == Command::SessionSetup
        && status == NtStatus::SUCCESS
        && login.principal == Principal::User;
    request_signed || login.signing_required || proves
}

/// 3.3.5.4, 3.3.5.5: adds the responses to NEGOTIATE and SESSION_SETUP to the preauthentication hash, except for the
/// last one of a session.
fn extend_preauth(ctx: &RequestContext, status: NtStatus, message: &[u8]) {
    match (ctx.header.command, status) {
        (Command::Negotiate, NtStatus::SUCCESS) => ctx.connection.extend_preauth(message),
        (Command::SessionSetup, NtStatus::MORE_PROCESSING_REQUIRED) => {
            if let Some(session_id) = ctx.envelope.session_id {
                ctx.connection.extend_setup_preauth(session_id, message);
            }
        }
        _ => {}
    }
}

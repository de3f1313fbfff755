//! The steps of [MS-SMB2] 3.3.5.2, in the order of the specification, one function each.
//!
//! What breaks the transport's rules ends the connection ([`Violation`]); what breaks a request's rules is its
//! answer ([`Failure`]).

use bytes::{Buf, BytesMut};
use smb_proto::encryption::{self, TRANSFORM_HEADER_LEN};
use smb_proto::signing::Sender;
use smb_wire::chain::Chain;
use smb_wire::{Command, Header, HeaderFlags, NtStatus, header, smb1, transform};

use crate::connection::{Connection, Encryption};
use crate::context::RequestContext;
use crate::status::Failure;

/// A client that breaks the rules of the transport: the connection ends, for the reason given (for the log).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Violation(pub(crate) String);

impl From<&str> for Violation {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// What a frame is, by its first bytes. [MS-SMB2] 3.3.5.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An SMB1 message: only NEGOTIATE is understood.
    Smb1,
    /// A message, or a compound.
    Plain,
    /// An encrypted one.
    Encrypted,
}

/// What a frame is.
///
/// # Errors
/// A frame of no protocol, or a compressed one, which was not negotiated.
pub(crate) fn frame_kind(frame: &[u8]) -> Result<FrameKind, Violation> {
    match frame.first_chunk::<4>() {
        Some(&header::PROTOCOL_ID) => Ok(FrameKind::Plain),
        Some(&transform::PROTOCOL_ID) => Ok(FrameKind::Encrypted),
        Some(&smb1::PROTOCOL_ID) => Ok(FrameKind::Smb1),
        _ => Err("not an SMB message".into()),
    }
}

/// 3.3.5.2.1.1: decrypts a frame in place, and takes off its transform header.
///
/// # Errors
/// Whatever is wrong with it: "the server MUST disconnect the connection".
pub(crate) fn decrypt(conn: &Connection, frame: &mut BytesMut) -> Result<Encryption, Violation> {
    let session_id = encryption::session_id(frame).ok_or("a truncated transform header")?;
    let session = conn.bound(session_id).ok_or("encrypted for a session that is not there")?.session;
    if session.ended.is_set() {
        return Err("encrypted for a session that has ended".into());
    }
    let crypto = session.login().and_then(|login| login.crypto.clone());
    let crypto = crypto.ok_or("encrypted for a session without keys")?;
    let opener = crypto.opener.as_ref().ok_or("encrypted without a cipher")?;
    opener.open(frame).map_err(|e| Violation(e.to_string()))?;
    frame.advance(TRANSFORM_HEADER_LEN);
    Ok(Encryption { session_id, crypto })
}

/// 3.3.5.2.2, 3.3.5.2.3, 3.3.5.2.6 and 3.3.5.2.7, as far as they concern the connection: walks the messages of a frame
/// and uses up their identifiers.
///
/// # Errors
/// A malformed header or chain, an unknown command, an identifier that the client may not use, a request before the
/// connection is negotiated, an encrypted message of another session.
///
/// Gives whether one of the messages must be finished, whatever becomes of the connection.
pub(crate) fn check_frame(
    conn: &Connection,
    frame: &[u8],
    encryption: Option<&Encryption>,
) -> Result<bool, Violation> {
    let mut must_end = false;
    for (index, range) in Chain::new(frame).enumerate() {
        let range = range.map_err(|e| Violation(e.to_string()))?;
        let message = frame.get(range).unwrap_or_default();
        let header = Header::decode(message).map_err(|e| Violation(e.to_string()))?;
        if index >= conn.server.config.limits.compound_max {
            return Err("too many requests in a compound".into());
        }
        check_header(conn, &header, index)?;
        let own_session = index == 0 || !header.flags.contains(HeaderFlags::RELATED_OPERATIONS);
        if encryption.is_some_and(|e| own_session && e.session_id != header.session_id) {
            return Err("a message of another session than it is encrypted for".into());
        }
        check_sequence(conn, &header)?;
        must_end |= must_be_finished(header.command);
    }
    Ok(must_end)
}

/// Whether a request goes on to its end, also when its connection has ended. That of what changes something must be known,
/// as the client may send it again on another channel. What takes opens or sessions out of their tables must close them all:
/// nobody else would find them there.
fn must_be_finished(command: Command) -> bool {
    let closes =
        matches!(command, Command::Close | Command::TreeDisconnect | Command::Logoff | Command::SessionSetup);
    closes || command == Command::Create || is_guarded(command)
}

/// 3.3.5.2.10: the commands that fail when a newer request may have overtaken them.
pub(crate) fn is_guarded(command: Command) -> bool {
    matches!(command, Command::Write | Command::SetInfo | Command::Ioctl)
}

/// 3.3.5.2.2, 3.3.5.2.6: whether the connection takes this command at all. An unknown one inside a compound does not end
/// the connection, as the requests before it have answers: it fails.
fn check_header(conn: &Connection, header: &Header, index: usize) -> Result<(), Violation> {
    if header.flags.contains(HeaderFlags::SERVER_TO_REDIR) {
        return Err("a response from a client".into());
    }
    let negotiated = conn.negotiated.get().is_some();
    match header.command {
        Command::Unknown(_) | Command::ServerToClientNotification if index == 0 => {
            Err("an unknown command".into())
        }
        Command::Negotiate if negotiated => Err("a second NEGOTIATE".into()),
        Command::Negotiate => Ok(()),
        _ if !negotiated => Err("a request before NEGOTIATE".into()),
        _ => Ok(()),
    }
}

/// 3.3.5.2.3: "If the server determines that the MessageId or the range of MessageIds ... is not in the window ... the
/// server SHOULD terminate the connection".
fn check_sequence(conn: &Connection, header: &Header) -> Result<(), Violation> {
    if header.command == Command::Cancel {
        return Ok(());
    }
    let charge = conn.credit_charge(header);
    let used = conn.window.borrow_mut().consume(header.message_id, charge);
    used.map_err(|e| Violation(format!("{e}: {} (charge {charge})", header.message_id)))
}

/// 3.3.5.2.4 to 3.3.5.2.11: finds the session and the tree connect of a request, and checks that it is protected as they
/// demand. What was found is set in `ctx` even if the request fails.
///
/// # Errors
/// The answer to the request.
pub(crate) fn admit(ctx: &RequestContext, message: &mut [u8]) -> Result<(), Failure> {
    let related = ctx.is_related();
    let entered = ctx.compound.borrow_mut().chain.enter(related);
    // Found in any case: the answer is signed with its key.
    find_session(ctx, related && entered.is_ok())?;
    entered?;
    if !ctx.encrypted {
        verify_signature(ctx, message)?;
    }
    if needs_session(ctx.header.command) {
        check_session(ctx)?;
    }
    if needs_tree(ctx.header.command) {
        find_tree(ctx, related)?;
    }
    Ok(())
}

/// Looks up the session, if the request names one.
fn find_session(ctx: &RequestContext, related: bool) -> Result<(), Failure> {
    let own = ctx.header.session_id;
    let id = match ctx.header.command {
        Command::Negotiate | Command::Cancel => own,
        // In a related one the identifier says nothing, as ever; nor can it name a session that the frame is not
        // encrypted for.
        Command::SessionSetup if !related => own,
        _ => ctx.compound.borrow_mut().chain.session_id(related, own)?,
    };
    if let Some(bound) = ctx.connection.bound(id).filter(|bound| !bound.session.ended.is_set()) {
        if let Some(login) = bound.session.login() {
            let _ = ctx.login.set(login);
        }
        if let Some(channel) = bound.channel {
            let _ = ctx.channel.set(channel);
        }
        let _ = ctx.session.set(bound.session);
    } else if needs_session(ctx.header.command) {
        ctx.compound.borrow_mut().chain.session_not_found();
    }
    Ok(())
}

/// 3.3.5.2.4: Verifying the Signature.
fn verify_signature(ctx: &RequestContext, message: &mut [u8]) -> Result<(), Failure> {
    let signed = ctx.header.flags.contains(HeaderFlags::SIGNED);
    match ctx.header.command {
        Command::Negotiate if signed => return Err(NtStatus::INVALID_PARAMETER.into()),
        // A binding is signed with the key of a session that is not on this connection; its handler sees to it.
        Command::SessionSetup if ctx.session.get().is_none() => return Ok(()),
        _ => {}
    }
    if signed {
        let _ = ctx.session()?;
        let channel = ctx.channel.get().and_then(|channel| channel.signing.as_ref());
        let key = channel.ok_or(NtStatus::NOT_SUPPORTED)?;
        return key.verify(message, Sender::Client).map_err(|_| NtStatus::ACCESS_DENIED.into());
    }
    let required = ctx.login.get().is_some_and(|login| {
        // Authenticating again is not demanded to be encrypted, but must not be slipped in by somebody else.
        let again = login.encrypt_data && ctx.header.command == Command::SessionSetup;
        login.signing_required || again
    });
    // A CANCEL without a signature harms nobody but its own connection, and clients send it so.
    if required && ctx.header.command != Command::Cancel {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    Ok(())
}

fn needs_session(command: Command) -> bool {
    !matches!(command, Command::Negotiate | Command::SessionSetup | Command::Echo | Command::Cancel)
}

fn needs_tree(command: Command) -> bool {
    needs_session(command) && !matches!(command, Command::Logoff | Command::TreeConnect)
}

/// 3.3.5.2.9: Verifying the Session.
fn check_session(ctx: &RequestContext) -> Result<(), Failure> {
    let session = ctx.session()?;
    let exempt = matches!(ctx.header.command, Command::Logoff | Command::Close | Command::Lock);
    session.state.lock().rules.check_usable(exempt)?;
    if ctx.login()?.encrypt_data && !ctx.encrypted {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    Ok(())
}

/// 3.3.5.2.11: Verifying the Tree Connect.
fn find_tree(ctx: &RequestContext, related: bool) -> Result<(), Failure> {
    let own = ctx.header.tree_id().unwrap_or(0);
    let id = ctx.compound.borrow_mut().chain.tree_id(related, own)?;
    let Some(tree) = ctx.session()?.tree(id) else {
        ctx.compound.borrow_mut().chain.tree_not_found();
        return Err(NtStatus::NETWORK_NAME_DELETED.into());
    };
    let refused = tree.encrypt_data && !ctx.encrypted;
    let _ = ctx.tree.set(tree);
    if refused { Err(NtStatus::ACCESS_DENIED.into()) } else { Ok(()) }
}

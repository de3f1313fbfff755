//! Checks of the connection: frames, and the messages in them. [MS-SMB2] 3.3.5.2.1 to 3.3.5.2.3.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use smb_proto::encryption::{self, TRANSFORM_HEADER_LEN};
use smb_proto::session::SessionCrypto;
use smb_wire::chain::Chain;
use smb_wire::{Command, Header, HeaderFlags, header, smb1, transform};

use super::Violation;
use crate::connection::Connection;
use crate::handler;

/// The kind of a frame, by its first bytes. [MS-SMB2] 3.3.5.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An SMB1 message, of which only NEGOTIATE is supported.
    Smb1,
    /// A message, or a compound.
    Plain,
    /// An encrypted message or compound.
    Encrypted,
}

/// How a frame was encrypted.
#[derive(Debug)]
pub(crate) struct Encryption {
    /// The session named in the transform header.
    pub(crate) session_id: u64,
    /// The keys of that session.
    pub(crate) crypto: Arc<SessionCrypto>,
}

/// The kind of a frame.
///
/// # Errors
/// A frame of an unknown protocol, or a compressed one, since compression is never negotiated.
pub(crate) fn frame_kind(frame: &[u8]) -> Result<FrameKind, Violation> {
    match frame.first_chunk::<4>() {
        Some(&header::PROTOCOL_ID) => Ok(FrameKind::Plain),
        Some(&transform::PROTOCOL_ID) => Ok(FrameKind::Encrypted),
        Some(&smb1::PROTOCOL_ID) => Ok(FrameKind::Smb1),
        _ => Err("not an SMB message".into()),
    }
}

/// 3.3.5.2.1.1: decrypts a frame in place, and removes its transform header.
///
/// # Errors
/// Anything wrong with the frame: "the server MUST disconnect the connection".
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

/// The messages of a frame that the connection accepts.
pub(crate) struct Checked {
    first: Option<Header>,
    /// The headers of a compound after the first.
    others: Vec<Header>,
    /// Whether one of the messages must be finished even if the connection ends.
    pub(crate) must_be_finished: bool,
}

impl Checked {
    /// The headers of the messages, in order.
    pub(crate) fn into_headers(self) -> impl Iterator<Item = Header> {
        self.first.into_iter().chain(self.others)
    }
}

/// 3.3.5.2.2, 3.3.5.2.3, 3.3.5.2.6 and 3.3.5.2.7, as far as they concern the connection: walks the messages of a frame
/// and uses up their identifiers.
///
/// # Errors
/// A malformed header or chain, an unknown command, an identifier that the client may not use, a request before the
/// connection is negotiated, an encrypted message of another session.
pub(crate) fn check_frame(
    conn: &Connection,
    frame: &[u8],
    encryption: Option<&Encryption>,
) -> Result<Checked, Violation> {
    let mut checked = Checked { first: None, others: Vec::new(), must_be_finished: false };
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
        checked.must_be_finished |= handler::operation(header.command).must_be_finished();
        if index == 0 {
            checked.first = Some(header);
        } else {
            checked.others.push(header);
        }
    }
    Ok(checked)
}

/// 3.3.5.2.2, 3.3.5.2.6: whether the connection accepts this command at all. An unknown command inside a compound does
/// not end the connection, as the requests before it have replies; the command fails.
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

//! Unsolicited messages of the server: breaks of oplocks and leases. [MS-SMB2] 3.3.4.6, 3.3.4.7.

use std::sync::Arc;

use net::Buffer;
use smb_proto::session::SessionCrypto;
use smb_wire::oplock_break::Notification;
use smb_wire::{Command, Header, HeaderFlags, Target, header};

use crate::compound;
use crate::endpoint::Endpoint;
use crate::state::session::Session;

/// The MessageId of every notification.
const MESSAGE_ID: u64 = u64::MAX;

/// The session has no working channel, so its client cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no channel of the session is left")]
pub(crate) struct NoChannel;

impl Session {
    /// Sends a notification over the first channel that accepts it. The notification is encrypted if the session or (as
    /// the caller states) the share demands that, and never signed. "If the server fails to send the notification to
    /// the client, the server MUST retry the send using an alternate connection": see [`Endpoint::post`]. If the
    /// channel ends ([`Endpoint::ended`]) before the client has acknowledged the notification, it may be lost, and must
    /// be sent again.
    ///
    /// Returns the channel's connection. This may be called from any shard, and never waits.
    ///
    /// # Errors
    /// [`NoChannel`] when no channel is left.
    pub(crate) fn notify(
        &self,
        notification: &Notification,
        share_encrypts: bool,
    ) -> Result<Arc<Endpoint>, NoChannel> {
        let (endpoints, encryption) = {
            let state = self.state.lock();
            let login = state.login.as_ref().filter(|login| login.encrypt_data || share_encrypts);
            (state.endpoints.clone(), login.and_then(|login| login.crypto.clone()))
        };
        for endpoint in endpoints.into_iter().filter(|endpoint| !endpoint.ended.is_set()) {
            let encryption = encryption.as_deref().filter(|_| !endpoint.is_secured());
            let frame = frame(self.id, notification, encryption).ok_or(NoChannel)?;
            if endpoint.post(frame) {
                return Ok(endpoint);
            }
        }
        Err(NoChannel)
    }
}

impl Session {
    /// Whether messages to the client in this session must be encrypted.
    pub(crate) fn encrypts(&self, share_encrypts: bool) -> bool {
        let login = self.login();
        login.is_some_and(|login| (login.encrypt_data || share_encrypts) && login.crypto.is_some())
    }
}

/// Puts a notification that belongs to no session, unchanged, into a connection's mailbox. Returns false if the mailbox
/// does not accept it.
pub(crate) fn post(endpoint: &Endpoint, notification: &Notification) -> bool {
    frame(0, notification, None).is_some_and(|frame| endpoint.post(frame))
}

/// The notification as a frame; `None` when it cannot be encrypted.
fn frame(session_id: u64, notification: &Notification, encryption: Option<&SessionCrypto>) -> Option<Buffer> {
    let mut message = Buffer::with_capacity(header::LEN + 64);
    message.append(&[0; header::LEN]);
    message.append_with(|bytes, _| notification.encode(bytes));
    compound::frame_of(&header(session_id, notification), message, encryption)
}

fn header(session_id: u64, notification: &Notification) -> Header {
    Header {
        credit_charge: 0,
        status_or_channel_sequence: 0,
        command: Command::OplockBreak,
        credits: 0,
        flags: HeaderFlags::SERVER_TO_REDIR,
        next_command: 0,
        message_id: MESSAGE_ID,
        target: Target::Sync { tree_id: 0 },
        // 3.3.4.6: "The server SHOULD set the SessionId ... to Open.Session.SessionId"; 3.3.4.7: "to 0".
        session_id: match notification {
            Notification::Oplock(_) => session_id,
            Notification::Lease(_) => 0,
        },
        signature: [0; 16],
    }
}

#[cfg(test)]
mod tests {
    use net::Outbox;
    use smb_proto::negotiate::{Negotiated, Offer, negotiate};
    use smb_proto::preauth::PreauthHash;
    use smb_proto::session::{Principal, Protection, Session as Rules};
    use smb_wire::create::OplockLevel;
    use smb_wire::negotiate::{Capabilities, Dialect, Request, SecurityMode};
    use smb_wire::oplock_break::OplockBreak;
    use smb_wire::{FileId, Guid, frame as framing, transform};

    use super::*;
    use crate::config::Limits;

    const SESSION: u64 = 0x4711;
    const BREAK: Notification = Notification::Oplock(OplockBreak {
        oplock_level: OplockLevel::None,
        file_id: FileId { persistent: 1, volatile: 2 },
    });

    fn negotiated() -> Negotiated {
        let request = Request {
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::ENCRYPTION,
            client_guid: Guid::default(),
            dialects: vec![Dialect::Smb300],
            contexts: vec![],
        };
        negotiate(&Offer::default(), &request).unwrap()
    }

    fn endpoint(connection: u64, outbox: &Outbox) -> Arc<Endpoint> {
        let address = ([127, 0, 0, 1], 445).into();
        Endpoint::new(
            connection,
            net::Peer { address, local: address, shard: 0, transport: net::Transport::Tcp },
            outbox,
        )
    }

    #[test]
    fn a_break_goes_plain_unless_the_session_encrypts() {
        let plain = frame(SESSION, &BREAK, None).unwrap();
        let header = Header::decode(&plain[framing::PREFIX_LEN..]).unwrap();
        assert_eq!((header.message_id, header.session_id), (u64::MAX, SESSION));
        assert!(!header.flags.contains(HeaderFlags::SIGNED));
        assert_eq!(Notification::decode(&plain[framing::PREFIX_LEN..]), Ok(BREAK));
        let crypto = SessionCrypto::new(&negotiated(), SESSION, &[1; 16], &PreauthHash::new(), [0; 4]);
        let sealed = frame(SESSION, &BREAK, Some(&crypto.unwrap())).unwrap();
        assert_eq!(sealed[framing::PREFIX_LEN..][..4], transform::PROTOCOL_ID);
    }

    #[test]
    fn a_break_goes_over_the_first_channel_that_lives() {
        let rules = Rules::begin(SESSION, &negotiated(), 4);
        let session = Session::new(rules, &Limits::default());
        assert_eq!(session.notify(&BREAK, false).unwrap_err(), NoChannel);
        let (one, two) = (Outbox::new(1), Outbox::new(2));
        {
            let mut state = session.state.lock();
            state.rules.authenticated(Principal::User, None, false, Protection::Off, Protection::Off);
            state.endpoints = vec![endpoint(1, &one), endpoint(2, &two)];
        }
        let sent: Vec<_> = (0..3).map(|_| session.notify(&BREAK, false).map(|e| e.connection)).collect();
        assert_eq!(sent, [Ok(1), Ok(2), Ok(2)]);
        assert_eq!(session.notify(&BREAK, false).unwrap_err(), NoChannel, "no channel takes any more");
        let (three, four) = (Outbox::new(1), Outbox::new(1));
        let endpoints = vec![endpoint(3, &three), endpoint(4, &four)];
        endpoints[0].ended.set();
        session.state.lock().endpoints = endpoints;
        assert_eq!(session.notify(&BREAK, false).map(|e| e.connection), Ok(4), "the first has ended");
    }
}

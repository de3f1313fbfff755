//! Sessions. [MS-SMB2] 3.3.1.8, 3.3.5.5.
//!
//! [`Session`] is the state from which the server decides. [`SessionCrypto`] holds its keys, which are made once when
//! authentication succeeds, never change, and are shared by all connections of the session.

use std::sync::Arc;
use std::time::Instant;

use smb_wire::negotiate::Capabilities;
use smb_wire::{Guid, NtStatus};

use crate::channel::{Channel, ChannelList};
use crate::dialect::{Cipher, Dialect, SigningAlgorithm};
use crate::encryption::{Opener, Sealer};
use crate::keys::SessionKeys;
use crate::negotiate::Negotiated;
use crate::preauth::PreauthHash;
use crate::signing::SigningKey;

/// Session.State, apart from Expired, which follows from the time ([`Session::is_expired`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Authentication is under way, for the first time or again.
    InProgress,
    /// Requests are served.
    Valid,
}

/// Who authenticates in a session that has been valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The user to whom the session belongs
    Owner,
    /// Another user, or a guest
    Another,
    /// A client that gives no name
    Nobody,
}

/// How strictly a protection (signing or encryption) applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Not offered.
    Off,
    /// Used when the client asks for it.
    Enabled,
    /// Required of every client.
    Required,
}

/// Who has authenticated, as far as the protocol's rules need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Principal {
    /// An account
    User,
    /// Session.IsGuest
    Guest,
    /// Session.IsAnonymous
    Anonymous,
}

/// Why a connection cannot become a channel of a session. [MS-SMB2] 3.3.5.5, step 4, and 3.3.5.5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BindingRefusal {
    /// The session signs with AES-GMAC, the connection with a weaker algorithm.
    #[error("the session signs with AES-GMAC, the connection does not")]
    WeakerSigning,
    /// The connection signs with AES-GMAC, the session does not.
    #[error("the connection signs with AES-GMAC, the session does not")]
    StrongerSigning,
    /// Multichannel is switched off, or the connection's dialect does not support it.
    #[error("multichannel is switched off, or the connection's dialect does not have it")]
    NotMultichannel,
    /// The connection's dialect differs from the session's.
    #[error("the connection has another dialect than the session")]
    Dialect,
    /// The request is not signed.
    #[error("the request is not signed")]
    NotSigned,
    /// The session is being authenticated.
    #[error("the session is being authenticated")]
    InProgress,
    /// The credentials of the session have expired.
    #[error("the session has expired")]
    Expired,
    /// The session is a guest or anonymous session: it has no key.
    #[error("the session is that of a guest or of nobody, and has no key")]
    NoKey,
    /// The session already has this connection as a channel.
    #[error("the session is on this connection already")]
    AlreadyBound,
    /// The connection's cipher differs from the session's.
    #[error("the connection has another cipher than the session")]
    Cipher,
    /// The request is not signed with the key of the session.
    #[error("the signature is not that of the session's key")]
    Signature,
    /// The session has as many channels as it may have.
    #[error("the session has as many channels as it may have")]
    TooManyChannels,
    /// The authentication failed.
    #[error("the authentication failed")]
    Authentication,
    /// Another user authenticated.
    #[error("another user authenticated")]
    User,
    /// The session has ended meanwhile.
    #[error("the session has ended meanwhile")]
    Ended,
}

impl BindingRefusal {
    /// The status of the response. Where the specification is silent, or differs from Windows, this follows Windows
    /// (according to Samba's smb2.session tests): both signing refusals, `User`, `Cipher`.
    pub fn status(self) -> NtStatus {
        match self {
            Self::WeakerSigning => NtStatus::REQUEST_OUT_OF_SEQUENCE,
            Self::StrongerSigning | Self::NoKey => NtStatus::NOT_SUPPORTED,
            Self::NotMultichannel | Self::InProgress | Self::AlreadyBound => NtStatus::REQUEST_NOT_ACCEPTED,
            Self::Dialect | Self::NotSigned | Self::Cipher => NtStatus::INVALID_PARAMETER,
            Self::Expired => NtStatus::NETWORK_SESSION_EXPIRED,
            Self::Signature | Self::User => NtStatus::ACCESS_DENIED,
            Self::TooManyChannels => NtStatus::INSUFFICIENT_RESOURCES,
            Self::Authentication => NtStatus::LOGON_FAILURE,
            Self::Ended => NtStatus::USER_SESSION_DELETED,
        }
    }
}

/// A key could not be prepared: the cryptographic library failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session's keys could not be prepared")]
pub struct KeyError;

/// The prepared keys of a session.
#[derive(Debug)]
pub struct SessionCrypto {
    /// All derived keys
    pub keys: SessionKeys,
    /// Session.SigningKey: signs SESSION_SETUP, including the binding of channels
    pub signing: SigningKey,
    /// Session.EncryptionKey; `None` without a cipher
    pub sealer: Option<Sealer>,
    /// Session.DecryptionKey; `None` without a cipher
    pub opener: Option<Opener>,
}

impl SessionCrypto {
    /// Derives and prepares the keys of a session for which authentication produced `authenticated`.
    ///
    /// `preauth` is the session's chain up to the last SESSION_SETUP request; `salt` is random (see [`Sealer::new`]).
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn new(
        connection: &Negotiated,
        session_id: u64,
        authenticated: &[u8],
        preauth: &PreauthHash,
        salt: [u8; 4],
    ) -> Result<Self, KeyError> {
        let keys = SessionKeys::derive(connection.dialect, connection.cipher, authenticated, preauth);
        let signing = SigningKey::new(connection.signing_algorithm, &keys.signing).map_err(|_| KeyError)?;
        let (mut sealer, mut opener) = (None, None);
        if let (Some(cipher), Some(out), Some(into)) = (connection.cipher, &keys.encryption, &keys.decryption)
        {
            let made = Sealer::new(cipher, out.as_bytes(), session_id, salt).map_err(|_| KeyError)?;
            sealer = Some(made);
            opener = Some(Opener::new(cipher, into.as_bytes()).map_err(|_| KeyError)?);
        }
        Ok(Self { keys, signing, sealer, opener })
    }
}

/// A session, as far as the protocol's rules are concerned. The server keeps identity, tree connects and opens beside
/// it.
#[derive(Debug)]
pub struct Session {
    /// Session.SessionId
    pub id: u64,
    /// Session.State
    pub state: State,
    /// Session.ExpirationTime: when the credentials end; `None` is infinity
    pub expiration: Option<Instant>,
    /// Session.Connection.Dialect
    pub dialect: Dialect,
    /// Session.Connection.CipherId
    pub cipher: Option<Cipher>,
    /// Session.Connection.SigningAlgorithmId
    pub signing_algorithm: SigningAlgorithm,
    /// Session.Connection.ClientGuid
    pub client_guid: Guid,
    /// Whether SMB2_GLOBAL_CAP_MULTI_CHANNEL is in Connection.ClientCapabilities of the first connection
    pub client_multichannel: bool,
    /// Whether SMB2_GLOBAL_CAP_MULTI_CHANNEL is in Connection.ServerCapabilities of the first connection
    pub multichannel: bool,
    /// Session.IsGuest, Session.IsAnonymous; meaningful once the session has been valid
    pub principal: Principal,
    /// Session.SigningRequired
    pub signing_required: bool,
    /// Session.EncryptData
    pub encrypt_data: bool,
    /// The keys; `None` before the first authentication, and where authentication produced none (anonymous, guest)
    pub crypto: Option<Arc<SessionCrypto>>,
    /// Session.ChannelList
    pub channels: ChannelList,
}

impl Session {
    /// A new session, whose first SESSION_SETUP request has arrived. [MS-SMB2] 3.3.5.5.1.
    pub fn begin(id: u64, connection: &Negotiated, channels_max: usize) -> Self {
        Self {
            id,
            state: State::InProgress,
            expiration: None,
            dialect: connection.dialect,
            cipher: connection.cipher,
            signing_algorithm: connection.signing_algorithm,
            client_guid: connection.client_guid,
            client_multichannel: connection.client_capabilities.contains(Capabilities::MULTI_CHANNEL),
            multichannel: connection.server_capabilities.contains(Capabilities::MULTI_CHANNEL),
            principal: Principal::User,
            signing_required: false,
            encrypt_data: false,
            crypto: None,
            channels: ChannelList::new(channels_max),
        }
    }

    /// The first authentication has succeeded. [MS-SMB2] 3.3.5.5.3: decides whether messages must be signed or
    /// encrypted.
    ///
    /// `crypto` is `None` where authentication produced no key; such a session neither signs nor encrypts.
    /// `client_requires_signing` is SMB2_NEGOTIATE_SIGNING_REQUIRED in the SecurityMode of NEGOTIATE or of
    /// SESSION_SETUP.
    pub fn authenticated(
        &mut self,
        principal: Principal,
        crypto: Option<Arc<SessionCrypto>>,
        client_requires_signing: bool,
        signing: Protection,
        encryption: Protection,
    ) {
        let keyed = crypto.is_some() && principal == Principal::User;
        let can_encrypt = crypto.as_ref().is_some_and(|crypto| crypto.sealer.is_some());
        self.principal = principal;
        self.encrypt_data = keyed && can_encrypt && encryption == Protection::Required;
        let wanted = signing == Protection::Required || client_requires_signing;
        self.signing_required = keyed && wanted && !self.encrypt_data;
        self.crypto = crypto;
        self.state = State::Valid;
    }

    /// A session that has its keys gets a further SESSION_SETUP and authenticates again. [MS-SMB2] 3.3.5.5.2. The keys
    /// and the protection do not change.
    pub fn reauthenticate(&mut self) {
        self.state = State::InProgress;
    }

    /// The connection on which the session was authenticating again has ended, and other channels are left: they
    /// continue as before.
    pub fn abandon_reauthentication(&mut self) {
        if self.state == State::InProgress && !self.channels.is_empty() {
            self.state = State::Valid;
        }
    }

    /// A further authentication of the session has succeeded, with credentials that end at `expiration`. The session is
    /// valid again.
    ///
    /// [MS-SMB2] leaves open whether it may be another user; Windows admits one (according to Samba's smb2.session
    /// tests), and so does this server while neither the old nor the new credentials end. Credentials that end are
    /// renewed by their owner only. A client that gives no name leaves the end as it is.
    ///
    /// # Errors
    /// STATUS_ACCESS_DENIED for another user.
    pub fn authenticated_again(
        &mut self,
        who: Again,
        expiration: Option<Instant>,
        now: Instant,
    ) -> Result<(), NtStatus> {
        let end = match who {
            Again::Owner => expiration,
            Again::Nobody if !self.is_expired(now) => self.expiration,
            Again::Another if self.expiration.is_none() && expiration.is_none() => None,
            Again::Nobody | Again::Another => return Err(NtStatus::ACCESS_DENIED),
        };
        self.expiration = end;
        self.state = State::Valid;
        Ok(())
    }

    /// Whether the session is in the state Expired: its credentials have ended.
    pub fn is_expired(&self, now: Instant) -> bool {
        self.expiration.is_some_and(|end| end <= now)
    }

    /// Checks whether a request other than SESSION_SETUP is served. [MS-SMB2] 3.3.5.2.9.
    ///
    /// `exempt` is set for LOGOFF, CLOSE and LOCK, which an expired session still serves.
    ///
    /// # Errors
    /// STATUS_USER_SESSION_DELETED for a session that has never been valid, STATUS_NETWORK_SESSION_EXPIRED for one that
    /// has expired, even while it authenticates again (3.3.5.5.2).
    pub fn check_usable(&self, exempt: bool, now: Instant) -> Result<(), NtStatus> {
        let has_been_valid = self.crypto.is_some() || !self.channels.is_empty();
        if self.state == State::InProgress && !has_been_valid {
            return Err(NtStatus::USER_SESSION_DELETED);
        }
        // Otherwise the old credentials remain valid while the session authenticates again.
        if self.is_expired(now) && !exempt { Err(NtStatus::NETWORK_SESSION_EXPIRED) } else { Ok(()) }
    }

    /// Checks whether another connection may bind to this session, before the request's signature is verified with
    /// Session.SigningKey. [MS-SMB2] 3.3.5.5, step 4.
    ///
    /// `signed` is SMB2_FLAGS_SIGNED of the request. The caller checks that the session exists (otherwise
    /// STATUS_USER_SESSION_DELETED). "If Session.Connection.ClientGuid is not the same as Connection.ClientGuid, the
    /// server MAY fail the request": this server does not, like Windows, since the client must know the session's key
    /// and the user's password.
    ///
    /// # Errors
    /// Why the connection may not bind.
    pub fn check_binding(
        &self,
        connection: u64,
        negotiated: &Negotiated,
        signed: bool,
        now: Instant,
    ) -> Result<(), BindingRefusal> {
        let gmac = SigningAlgorithm::AesGmac;
        match (self.signing_algorithm == gmac, negotiated.signing_algorithm == gmac) {
            (true, false) => return Err(BindingRefusal::WeakerSigning),
            (false, true) => return Err(BindingRefusal::StrongerSigning),
            _ => {}
        }
        if !negotiated.dialect.is_smb3() {
            return Err(BindingRefusal::NotMultichannel);
        }
        if self.dialect != negotiated.dialect {
            return Err(BindingRefusal::Dialect);
        }
        if !signed {
            return Err(BindingRefusal::NotSigned);
        }
        if self.state == State::InProgress {
            return Err(BindingRefusal::InProgress);
        }
        if self.is_expired(now) {
            return Err(BindingRefusal::Expired);
        }
        if self.principal != Principal::User || self.crypto.is_none() {
            return Err(BindingRefusal::NoKey);
        }
        if self.channels.find(connection).is_some() {
            return Err(BindingRefusal::AlreadyBound);
        }
        // the session's keys belong to one cipher
        if self.cipher != negotiated.cipher {
            return Err(BindingRefusal::Cipher);
        }
        Ok(())
    }

    /// Adds a further channel, which signs with a key of its own. [MS-SMB2] 3.3.5.5.3.
    ///
    /// # Errors
    /// [`BindingRefusal::Ended`] when no other channel is left, [`BindingRefusal::TooManyChannels`] at the limit.
    pub fn bind(&mut self, channel: Channel) -> Result<Arc<Channel>, BindingRefusal> {
        if self.channels.is_empty() {
            return Err(BindingRefusal::Ended);
        }
        let channel = Arc::new(channel);
        self.channels.insert(Arc::clone(&channel)).map_err(|_| BindingRefusal::TooManyChannels)?;
        Ok(channel)
    }

    /// Adds the first channel, which signs with the session's own key.
    ///
    /// # Errors
    /// [`KeyError`] if the key cannot be prepared or the session may have no channel at all.
    pub fn add_first_channel(&mut self, connection: u64) -> Result<Arc<Channel>, KeyError> {
        let channel = match &self.crypto {
            Some(crypto) => Channel::first(connection, self.signing_algorithm, &crypto.keys.signing)
                .map_err(|_| KeyError)?,
            None => Channel { connection, signing: None },
        };
        let channel = Arc::new(channel);
        self.channels.insert(Arc::clone(&channel)).map_err(|_| KeyError)?;
        Ok(channel)
    }
}

/// Allocates SessionIds: never 0 or all ones, and unique in the server. They count up from a random start, so clients
/// can read no meaning into them, and an identifier from an earlier run of the server is not reused.
#[derive(Debug)]
pub struct SessionIds {
    next: u64,
}

impl SessionIds {
    /// Starts after `first`, which is random.
    pub fn new(first: u64) -> Self {
        Self { next: first }
    }

    /// The next identifier.
    pub fn allocate(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        while self.next == 0 || self.next == u64::MAX {
            self.next = self.next.wrapping_add(1);
        }
        self.next
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use smb_wire::negotiate::{Dialect as WireDialect, Request, SecurityMode};

    use super::*;
    use crate::negotiate::{Offer, negotiate};

    #[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
    fn some_moment() -> Instant {
        Instant::now()
    }

    fn connection(dialect: u16) -> Negotiated {
        let request = Request {
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::ENCRYPTION,
            client_guid: Guid::default(),
            dialects: vec![WireDialect::from(dialect)],
            contexts: vec![],
        };
        negotiate(&Offer::default(), &request).unwrap()
    }

    fn valid(dialect: u16, signing: Protection, encryption: Protection, client_requires: bool) -> Session {
        let connection = connection(dialect);
        let mut session = Session::begin(9, &connection, 4);
        let crypto = SessionCrypto::new(&connection, 9, &[7; 16], &PreauthHash::new(), [1; 4]).unwrap();
        session.authenticated(Principal::User, Some(Arc::new(crypto)), client_requires, signing, encryption);
        session.add_first_channel(1).unwrap();
        session
    }

    #[test]
    fn a_session_is_served_from_authentication_to_expiry() {
        let mut session = Session::begin(9, &connection(0x0300), 4);
        let end = some_moment();
        let before = end.checked_sub(Duration::from_nanos(1)).unwrap();
        assert_eq!(session.check_usable(true, end), Err(NtStatus::USER_SESSION_DELETED));
        session = valid(0x0300, Protection::Enabled, Protection::Enabled, false);
        assert_eq!(session.check_usable(false, end), Ok(()));
        session.reauthenticate();
        assert_eq!((session.state, session.check_usable(false, end)), (State::InProgress, Ok(())));
        session.expiration = Some(end);
        for state in [State::Valid, State::InProgress] {
            session.state = state;
            assert_eq!(session.check_usable(false, before), Ok(()));
            assert_eq!(session.check_usable(false, end), Err(NtStatus::NETWORK_SESSION_EXPIRED));
            assert_eq!(session.check_usable(true, end), Ok(()));
        }
    }

    #[test]
    fn credentials_that_end_are_renewed_by_their_owner_only() {
        let now = some_moment();
        let (past, later) = (Some(now), now.checked_add(Duration::from_secs(9)));
        let denied = Err(NtStatus::ACCESS_DENIED);
        let cases = [
            (None, Again::Owner, None, Ok(None)),
            (None, Again::Owner, later, Ok(later)),
            (None, Again::Another, None, Ok(None)),
            (None, Again::Another, later, denied),
            (None, Again::Nobody, None, Ok(None)),
            (later, Again::Owner, later, Ok(later)),
            (later, Again::Owner, None, Ok(None)),
            (later, Again::Another, None, denied),
            (later, Again::Another, later, denied),
            (later, Again::Nobody, None, Ok(later)),
            (past, Again::Owner, later, Ok(later)),
            (past, Again::Another, later, denied),
            (past, Again::Nobody, None, denied),
        ];
        for (before, who, after, expected) in cases {
            let mut session = valid(0x0300, Protection::Enabled, Protection::Enabled, false);
            session.expiration = before;
            session.reauthenticate();
            let outcome = session.authenticated_again(who, after, now).map(|()| session.expiration);
            assert_eq!(outcome, expected, "{before:?} {who:?} {after:?}");
            let state = if expected.is_ok() { State::Valid } else { State::InProgress };
            assert_eq!(session.state, state);
        }
    }

    #[test]
    fn signing_and_encryption_follow_both_sides() {
        use Protection::{Enabled, Off, Required};
        let cases = [
            (0x0300, Enabled, Enabled, false, (false, false)),
            (0x0300, Required, Off, false, (true, false)),
            (0x0300, Enabled, Off, true, (true, false)),
            (0x0300, Required, Required, true, (false, true)), // encryption takes the place of signing
            (0x0210, Required, Required, false, (true, false)), // SMB 2.1 cannot encrypt
        ];
        for (dialect, signing, encryption, client, expected) in cases {
            let session = valid(dialect, signing, encryption, client);
            assert_eq!((session.signing_required, session.encrypt_data), expected, "{dialect:x}");
        }
    }

    #[test]
    fn an_anonymous_session_neither_signs_nor_encrypts() {
        let mut session = Session::begin(9, &connection(0x0300), 4);
        let required = Protection::Required;
        session.authenticated(Principal::Anonymous, None, true, required, required);
        assert_eq!((session.signing_required, session.encrypt_data), (false, false));
        assert!(session.add_first_channel(1).unwrap().signing.is_none());
        let answer = session.check_binding(2, &connection(0x0300), true, some_moment());
        assert_eq!(answer, Err(BindingRefusal::NoKey));
    }

    #[test]
    fn a_connection_binds_under_the_rules_of_3_3_5_5() {
        use BindingRefusal as Refusal;
        let valid = |dialect| valid(dialect, Protection::Enabled, Protection::Enabled, false);
        let session = || valid(0x0300);
        let (same, now) = (connection(0x0300), some_moment());
        assert_eq!(session().check_binding(2, &same, true, now), Ok(()));
        assert_eq!(session().check_binding(2, &same, false, now), Err(Refusal::NotSigned));
        assert_eq!(session().check_binding(1, &same, true, now), Err(Refusal::AlreadyBound));
        assert_eq!(session().check_binding(2, &connection(0x0302), true, now), Err(Refusal::Dialect));
        assert_eq!(session().check_binding(2, &connection(0x0210), true, now), Err(Refusal::NotMultichannel));
        assert_eq!(valid(0x0210).check_binding(2, &same, true, now), Err(Refusal::Dialect));
        let mut unlike = same.clone();
        unlike.cipher = None;
        assert_eq!(session().check_binding(2, &unlike, true, now), Err(Refusal::Cipher));
        unlike = same.clone();
        unlike.signing_algorithm = SigningAlgorithm::AesGmac;
        assert_eq!(session().check_binding(2, &unlike, true, now), Err(Refusal::StrongerSigning));
        unlike.signing_algorithm = SigningAlgorithm::HmacSha256;
        assert_eq!(session().check_binding(2, &unlike, true, now), Ok(()));
        let mut gmac = session();
        gmac.signing_algorithm = SigningAlgorithm::AesGmac;
        assert_eq!(gmac.check_binding(2, &same, true, now), Err(Refusal::WeakerSigning));
        let mut expired = session();
        expired.expiration = Some(now);
        assert_eq!(expired.check_binding(2, &same, true, now), Err(Refusal::Expired));
        let mut again = session();
        again.reauthenticate();
        assert_eq!(again.check_binding(2, &same, true, now), Err(Refusal::InProgress));
    }

    #[test]
    fn channels_are_added_up_to_the_limit_while_one_is_left() {
        let channel = |connection| Channel { connection, signing: None };
        let mut session = valid(0x0300, Protection::Enabled, Protection::Enabled, false);
        assert!((2..=4).all(|connection| session.bind(channel(connection)).is_ok()));
        assert_eq!(session.bind(channel(5)).unwrap_err(), BindingRefusal::TooManyChannels);
        for connection in 1..=4 {
            session.channels.remove(connection);
        }
        assert_eq!(session.bind(channel(5)).unwrap_err(), BindingRefusal::Ended);
    }

    #[test]
    fn session_identifiers_are_never_special() {
        let mut ids = SessionIds::new(u64::MAX - 2);
        assert_eq!([ids.allocate(), ids.allocate(), ids.allocate()], [u64::MAX - 1, 1, 2]);
    }
}

//! Why a token is refused, and what its client is told.

use crate::crypto::CryptoError;
use crate::name::NameError;
use crate::pac::PacError;

/// Why a token is refused, for the log. Clients are told only the number of an error of Kerberos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The token has more than 64 KiB
    #[error("the token is larger than 64 KiB")]
    TooLarge,
    /// Not a token of Kerberos
    #[error("the token is not one of Kerberos")]
    NotKerberos,
    /// Not the bytes of an AP-REQ
    #[error("the token is malformed")]
    Malformed,
    /// A name in the token
    #[error("the token has a name that cannot be used: {0}")]
    Name(#[from] NameError),
    /// Another version of Kerberos, or another message
    #[error("the token is not an AP-REQ of Kerberos 5")]
    Version,
    /// The client asks for authentication between users
    #[error("the client asks for user-to-user authentication, which does not exist here")]
    UserToUser,
    /// A key of a type that is not used here
    #[error("encryption type {number} is not accepted, only AES (17 to 20): let the account use AES")]
    Enctype {
        /// The number of the encryption type
        number: i64,
    },
    /// The ticket is for a service of another kind
    #[error("the ticket is for a service that is not offered here")]
    OtherService,
    /// The keytab has no key for that name
    #[error("the keytab has no key for the service: add its name to the account and export the keytab again")]
    NoSuchService,
    /// The keytab has that name, but with other encryption types
    #[error("the keytab has no key of encryption type {number} for the service: export the keytab again")]
    NoSuchEnctype {
        /// The number of the ticket's encryption type
        number: i64,
    },
    /// The keytab has that name, but keys of other versions
    #[error(
        "the ticket was made with version {wanted} of the service's key, and the keytab has version {newest}: export \
         the keytab again, or let the client get a new ticket"
    )]
    NoSuchKeyVersion {
        /// The version in the ticket
        wanted: u32,
        /// The newest version in the keytab
        newest: u32,
    },
    /// The ticket does not open with our key
    #[error("the ticket was not made with the key in the keytab: export the keytab again")]
    WrongKey,
    /// The ticket is marked invalid
    #[error("the ticket is marked as not valid yet (postdated)")]
    InvalidTicket,
    /// The ticket begins later
    #[error("the ticket begins {seconds} s from now: compare the clocks of this machine and the KDC")]
    NotYetValid {
        /// Seconds until the ticket begins
        seconds: i64,
    },
    /// The ticket has ended
    #[error("the ticket has ended {seconds} s ago")]
    Expired {
        /// Seconds since the ticket has ended
        seconds: i64,
    },
    /// The authenticator does not open with the ticket's key
    #[error("the authenticator was not made with the key of the ticket")]
    WrongAuthenticator,
    /// The authenticator names another client than the ticket
    #[error("the authenticator names another client than the ticket")]
    OtherClient,
    /// The authenticator has no GSS-API checksum
    #[error("the authenticator has no GSS-API checksum (0x8003)")]
    NoGssChecksum,
    /// The client wants a third message
    #[error("the client asks for the three messages of DCE, which do not exist here")]
    DceStyle,
    /// The client's clock differs
    #[error(
        "the client's clock differs by {seconds} s from the clock of this machine: compare both with the KDC's"
    )]
    ClockSkew {
        /// Seconds that the client's clock is ahead of ours; negative if it is behind
        seconds: i64,
    },
    /// The client is bound to another channel
    #[error("the client is bound to another TLS channel: somebody may be in between")]
    OtherChannel,
    /// The client is not bound to its channel
    #[error("the client does not bind itself to its TLS channel, and smb-channel-binding requires it")]
    NoChannelBindings,
    /// The KDC did not check through which realms the ticket came
    #[error("the ticket comes from another realm, and its KDC did not check the realms in between")]
    TransitedUnchecked,
    /// There is no PAC
    #[error("the ticket has no PAC, and this server requires one")]
    NoPac,
    /// The PAC is refused
    #[error("the PAC is refused: {0}")]
    Pac(#[from] PacError),
    /// The tokens of IAKERB before the ticket are not those that the client sent and got
    #[error("what client and KDC said to each other was changed on the way: somebody may be in between")]
    ConversationChanged,
    /// The token was used before
    #[error("the token was used before")]
    Replayed,
    /// Nothing more can be remembered
    #[error("more tokens came than can be remembered: try again in some minutes")]
    ReplayCacheFull,
    /// The library refused
    #[error("the cryptographic library has refused")]
    Library,
}

/// What kind of a refusal this is: what a protocol tells its client, and how loud the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonClass {
    /// The token is not one that a client of this server sends
    Malformed,
    /// The client did not prove what it had to
    Denied,
    /// A clock is wrong
    Clock,
    /// The ticket has ended: the client needs a new one
    Expired,
    /// Our keys do not fit: somebody must look at the keytab
    Keytab,
    /// The server has too much to do
    Busy,
}

impl Reason {
    /// A name for metrics and logs that does not change.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::TooLarge => "too-large",
            Self::NotKerberos => "not-kerberos",
            Self::Malformed => "malformed",
            Self::Name(_) => "name",
            Self::Version => "version",
            Self::UserToUser => "user-to-user",
            Self::Enctype { .. } => "enctype",
            Self::OtherService => "other-service",
            Self::NoSuchService => "no-such-service",
            Self::NoSuchEnctype { .. } => "no-such-enctype",
            Self::NoSuchKeyVersion { .. } => "no-such-key-version",
            Self::WrongKey => "wrong-key",
            Self::InvalidTicket => "invalid-ticket",
            Self::NotYetValid { .. } => "not-yet-valid",
            Self::Expired { .. } => "expired",
            Self::WrongAuthenticator => "wrong-authenticator",
            Self::OtherClient => "other-client",
            Self::NoGssChecksum => "no-gss-checksum",
            Self::DceStyle => "dce-style",
            Self::ClockSkew { .. } => "clock-skew",
            Self::OtherChannel => "other-channel",
            Self::NoChannelBindings => "no-channel-bindings",
            Self::TransitedUnchecked => "transited-unchecked",
            Self::NoPac => "no-pac",
            Self::Pac(_) => "pac",
            Self::ConversationChanged => "conversation-changed",
            Self::Replayed => "replayed",
            Self::ReplayCacheFull => "replay-cache-full",
            Self::Library => "library",
        }
    }

    /// What kind of a refusal this is.
    #[must_use]
    pub fn class(self) -> ReasonClass {
        match self {
            Self::TooLarge
            | Self::NotKerberos
            | Self::Malformed
            | Self::Name(_)
            | Self::Version
            | Self::UserToUser
            | Self::NoGssChecksum
            | Self::DceStyle => ReasonClass::Malformed,
            Self::InvalidTicket
            | Self::WrongAuthenticator
            | Self::OtherClient
            | Self::OtherService
            | Self::OtherChannel
            | Self::NoChannelBindings
            | Self::TransitedUnchecked
            | Self::NoPac
            | Self::Pac(_)
            | Self::ConversationChanged
            | Self::Replayed => ReasonClass::Denied,
            Self::NotYetValid { .. } | Self::ClockSkew { .. } => ReasonClass::Clock,
            Self::Expired { .. } => ReasonClass::Expired,
            Self::Enctype { .. }
            | Self::NoSuchService
            | Self::NoSuchEnctype { .. }
            | Self::NoSuchKeyVersion { .. }
            | Self::WrongKey => ReasonClass::Keytab,
            Self::ReplayCacheFull | Self::Library => ReasonClass::Busy,
        }
    }

    /// The error-code of a KRB-ERROR. RFC 4120 7.5.9.
    pub(crate) fn error_code(self) -> i64 {
        match self {
            Self::Enctype { .. } => 14,                                 // KDC_ERR_ETYPE_NOSUPP
            Self::WrongAuthenticator | Self::ConversationChanged => 31, // KRB_AP_ERR_BAD_INTEGRITY
            Self::Expired { .. } => 32,                                 // KRB_AP_ERR_TKT_EXPIRED
            Self::InvalidTicket | Self::NotYetValid { .. } => 33,       // KRB_AP_ERR_TKT_NYV
            Self::Replayed => 34,                                       // KRB_AP_ERR_REPEAT
            Self::OtherService => 35,                                   // KRB_AP_ERR_NOT_US
            Self::OtherClient => 36,                                    // KRB_AP_ERR_BADMATCH
            Self::ClockSkew { .. } => 37,                               // KRB_AP_ERR_SKEW
            Self::Version => 39,                                        // KRB_AP_ERR_BADVERSION
            Self::NotKerberos => 40,                                    // KRB_AP_ERR_MSG_TYPE
            Self::WrongKey | Self::Pac(_) => 41,                        // KRB_AP_ERR_MODIFIED
            Self::NoSuchKeyVersion { .. } => 44,                        // KRB_AP_ERR_BADKEYVER
            Self::NoSuchService | Self::NoSuchEnctype { .. } => 45,     // KRB_AP_ERR_NOKEY
            Self::NoGssChecksum => 50,                                  // KRB_AP_ERR_INAPP_CKSUM
            Self::TransitedUnchecked => 28,                             // KDC_ERR_PATH_NOT_ACCEPTED
            Self::TooLarge
            | Self::Malformed
            | Self::Name(_)
            | Self::UserToUser
            | Self::DceStyle
            | Self::OtherChannel
            | Self::NoChannelBindings
            | Self::NoPac
            | Self::ReplayCacheFull
            | Self::Library => 60, // KRB_ERR_GENERIC
        }
    }
}

impl From<CryptoError> for Reason {
    fn from(_: CryptoError) -> Self {
        Self::Library
    }
}

//! Why an authentication failed, and what the client is told.

use crate::mechanism::Mechanism;

/// Why an authentication failed, for logs. Clients are told only the [`Reason::class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The account does not exist
    #[error("there is no such account")]
    UnknownUser,
    /// The account has no NT hash
    #[error(
        "the account has no NT hash: its password was set while ntlm was off; set it again, or let the client use Kerberos"
    )]
    NoNtHash,
    /// The client offers NTLM alone, which is switched off
    #[error(
        "the client offers NTLM only, and ntlm is off: it must use Kerberos; connect by name, with a ticket (docs/without-ntlm.md)"
    )]
    NtlmOff,
    /// The response does not prove the account's password
    #[error("wrong password")]
    WrongPassword,
    /// The password was right, but the account may not log on
    #[error("the account is disabled")]
    Disabled,
    /// No name was given, and anonymous clients are not admitted
    #[error("anonymous clients are not admitted")]
    Anonymous,
    /// There is no NTLMv2 response
    #[error("the client sent no NTLMv2 response")]
    EmptyResponse,
    /// The response is one of NTLM version 1
    #[error("the client uses NTLM version 1")]
    Ntlmv1,
    /// The response announces a MIC, but there is none
    #[error("the announced message integrity code is missing")]
    MissingMic,
    /// The messages were changed in transit
    #[error("the message integrity code is wrong")]
    WrongMic,
    /// The response is bound to another TLS channel
    #[error("the client is bound to another TLS channel: somebody may be in between")]
    OtherChannel,
    /// The response is bound to no TLS channel
    #[error("the client does not bind itself to its TLS channel, and smb-channel-binding requires it")]
    NoChannelBindings,
    /// The SPNEGO mechanism list needs a MIC and has none
    #[error("the mechanism list is not protected")]
    MissingMechListMic,
    /// The SPNEGO mechanism list was changed in transit
    #[error("the mechanism list's integrity code is wrong")]
    WrongMechListMic,
    /// The client offers no mechanism that this server has
    #[error("the client offers no mechanism that this server has")]
    NoCommonMechanism,
    /// The ticket is refused
    #[error("the ticket is refused: {0}")]
    Ticket(krb5::Reason),
    /// The ticket has ended by this machine's clock, within the difference that clocks may have
    #[error(
        "the ticket ended {seconds} s ago: the client needs a new one; check the clocks of both if it has one"
    )]
    TicketEnded {
        /// Seconds since its end
        seconds: i64,
    },
    /// The user is of another domain than the server, whose users have no number here
    #[error(
        "the user is of another domain than this server, or of one that domain-sid does not name: only users of these domains are mapped"
    )]
    OtherDomain,
    /// The ticket names no SID, and the realm is not one whose principals are accounts
    #[error("the ticket has no SID, and its realm is not in account-realm: nobody is made of its user")]
    NoSid,
    /// No account has the name of the principal
    #[error(
        "the realm is in account-realm, but no account has the name of the principal: add it (anabranch user add)"
    )]
    UnknownPrincipal,
    /// The user's number would be one of the system's
    #[error(
        "the user's number would be below 1000, above 4294967294 or beyond those of its domain: choose another domain-id-base or domain-id-mapping"
    )]
    ReservedId,
    /// Whoever knows the numbers of the user's domain says that the user has none
    #[error(
        "the user has no number here, by the word of those whom domain-id-mapping names: give the user and its first group numbers there (docs/kerberos.md)"
    )]
    NoNumber,
    /// The number that the user was given belongs to the system
    #[error(
        "the number of the user or of its first group is below 1000 or above 4294967294, by the word of those whom domain-id-mapping names: give it another one there"
    )]
    SystemNumber,
    /// Whoever knows the numbers of the user's domain has not answered
    #[error(
        "those whom domain-id-mapping names have not said which number the user has, and nothing is known from before: see whether they answer (docs/kerberos.md)"
    )]
    NumbersUnavailable,
    /// The client of IAKERB asks too often, or too much
    #[error("the client sends more messages for the KDC than a logon needs")]
    TooManyRounds,
    /// The client does not support Unicode
    #[error("the client does not negotiate Unicode")]
    NoUnicode,
    /// The token is malformed, or not the expected one
    #[error("a malformed or unexpected token")]
    Malformed,
}

/// What a client is told of a failure. Each class is one status of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// STATUS_LOGON_FAILURE: the same for an unknown user and a wrong password
    LogonFailure,
    /// STATUS_LOGON_FAILURE, for a client that was not guessing a password
    TicketRefused,
    /// STATUS_TIME_DIFFERENCE_AT_DC: the clocks differ
    TimeDifference,
    /// STATUS_ACCOUNT_DISABLED: only told to a client that knows the password
    AccountDisabled,
    /// STATUS_NTLM_BLOCKED: NTLM is not accepted, whatever the password
    NtlmBlocked,
    /// STATUS_NO_LOGON_SERVERS: the client may try again
    NoAnswer,
    /// STATUS_ACCESS_DENIED
    AccessDenied,
    /// STATUS_INVALID_PARAMETER
    InvalidToken,
}

impl Reason {
    /// What the client is told.
    pub fn class(self) -> FailureClass {
        match self {
            Self::UnknownUser
            | Self::WrongPassword
            | Self::NoNtHash
            | Self::EmptyResponse
            | Self::Ntlmv1
            // Who is bound to another channel does not learn whether the password was right.
            | Self::OtherChannel
            | Self::NoChannelBindings => FailureClass::LogonFailure,
            // [MS-ERREF] 2.3.1: "The authentication failed because NTLM was blocked." Samba answers the same.
            Self::NtlmOff => FailureClass::NtlmBlocked,
            Self::Ticket(reason) => match reason.class() {
                krb5::ReasonClass::Malformed => FailureClass::InvalidToken,
                krb5::ReasonClass::Clock => FailureClass::TimeDifference,
                krb5::ReasonClass::Denied
                | krb5::ReasonClass::Expired
                | krb5::ReasonClass::Keytab
                | krb5::ReasonClass::Busy => FailureClass::TicketRefused,
            },
            Self::TicketEnded { .. }
            | Self::OtherDomain
            | Self::NoSid
            | Self::UnknownPrincipal
            | Self::ReservedId
            | Self::NoNumber
            | Self::SystemNumber => FailureClass::TicketRefused,
            Self::NumbersUnavailable => FailureClass::NoAnswer,
            Self::Disabled => FailureClass::AccountDisabled,
            Self::Anonymous => FailureClass::AccessDenied,
            Self::MissingMic
            | Self::WrongMic
            | Self::MissingMechListMic
            | Self::WrongMechListMic
            | Self::NoCommonMechanism
            | Self::NoUnicode
            | Self::TooManyRounds
            | Self::Malformed => FailureClass::InvalidToken,
        }
    }
}

/// A failed authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason
    pub reason: Reason,
    /// The name that the client gave. The client chooses it, so logs must escape it
    pub user: Option<String>,
    /// The service for which the client has shown a ticket. The client chooses it, too
    pub service: Option<String>,
    /// With what the client wanted to authenticate; None: that had not been agreed
    pub mechanism: Option<Mechanism>,
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self { reason, user: None, service: None, mechanism: None }
    }
}

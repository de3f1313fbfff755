//! Settings that are one of several words, and what they stand for.

use clap::ValueEnum;
use gateway::settings::{GroupsBy, NfsTls};
use serde::{Deserialize, Serialize};
use smb_server::{ChannelBinding, Ntlm, Protection};

/// How strongly something is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Requirement {
    /// Disabled.
    Off,
    /// The client decides.
    Enabled,
    /// Clients without it are refused.
    Required,
}

/// Whether NTLM is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NtlmGiven {
    /// It is offered and accepted.
    On,
    /// Clients without Kerberos are refused.
    Off,
}

impl NtlmGiven {
    pub(super) fn whole(self) -> Ntlm {
        match self {
            Self::On => Ntlm::On,
            Self::Off => Ntlm::Off,
        }
    }
}

/// Whether a logon must be bound to its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ChannelBindingGiven {
    /// What clients say of their connection is not looked at.
    Off,
    /// Clients that bind themselves must be bound to this connection.
    Accepted,
    /// All clients over QUIC must be bound to their connection.
    Required,
}

impl ChannelBindingGiven {
    pub(super) fn whole(self) -> ChannelBinding {
        match self {
            Self::Off => ChannelBinding::Off,
            Self::Accepted => ChannelBinding::Accepted,
            Self::Required => ChannelBinding::Required,
        }
    }
}

/// TLS of NFS clients (RFC 9289).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NfsTlsGiven {
    /// Disabled.
    Off,
    /// The client decides.
    Offered,
    /// Clients without it are refused.
    Required,
    /// Clients without it, and without a certificate of `nfs-client-ca`, are refused.
    Mutual,
}

impl NfsTlsGiven {
    pub(super) fn whole(self) -> NfsTls {
        match self {
            Self::Off => NfsTls::Off,
            Self::Offered => NfsTls::Offered,
            Self::Required => NfsTls::Required,
            Self::Mutual => NfsTls::Mutual,
        }
    }
}

/// How the server announces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DiscoveryGiven {
    /// WS-Discovery: the Network view of Windows.
    Wsd,
    /// DNS-SD over mDNS: macOS and Linux.
    Mdns,
}

impl DiscoveryGiven {
    pub(super) fn whole(given: &[Self]) -> discovery::Protocols {
        discovery::Protocols { wsd: given.contains(&Self::Wsd), mdns: given.contains(&Self::Mdns) }
    }
}

/// Which users of NFS clients are mapped to nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Squash {
    /// No user: root of a client is root on the server.
    None,
    /// The root user.
    Root,
    /// Every user.
    All,
}

/// Who says in which groups the users of NFS clients are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NfsGroupsGiven {
    /// The client, which can name 16 groups.
    Client,
    /// This machine: accounts, tickets and the name service.
    Server,
}

impl NfsGroupsGiven {
    pub(super) fn whole(self) -> GroupsBy {
        match self {
            Self::Client => GroupsBy::Client,
            Self::Server => GroupsBy::Server,
        }
    }
}

impl Requirement {
    pub(super) fn protection(self) -> Protection {
        match self {
            Self::Off => Protection::Off,
            Self::Enabled => Protection::Enabled,
            Self::Required => Protection::Required,
        }
    }
}

impl Squash {
    pub(super) fn whole(self) -> share::Squash {
        match self {
            Self::None => share::Squash::None,
            Self::Root => share::Squash::Root,
            Self::All => share::Squash::All,
        }
    }
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    /// One line of text for each event.
    Text,
    /// One JSON object for each event.
    Json,
}

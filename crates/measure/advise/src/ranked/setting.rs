//! The settings that advice is about, and which rows measure them.

use load::result::{Key, Protocol};
use serde::Serialize;

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// Channels of an SMB session (R1 to R4).
    SmbChannels,
    /// Connections of an NFS mount (R7, R8).
    NfsConnections,
    /// Read-ahead of an NFS mount (R11).
    ReadAhead,
    /// The signing algorithm (R17).
    SmbSigning,
    /// Encryption (R19).
    SmbEncryption,
    /// The share's metadata cache (R13).
    MetadataCache,
    /// Operations under way at a time (R9).
    QueueDepth,
    /// Interfaces without receive-side scaling (R5).
    ReceiveSideScaling,
    /// Channels that were asked for and are missing (R6).
    MissingChannels,
    /// Mounts of one server that differ in nconnect (R10).
    Mounts,
    /// Slots of an NFS session (R12).
    Slots,
    /// The client's link (R14).
    ClientLink,
    /// The share's plan (R15).
    Plan,
    /// The limit of one file (R16).
    OneFile,
    /// The network between client and server (R18).
    Network,
    /// Repetitions of the measurement (R20).
    Repetitions,
    /// Addresses of the server (R21).
    Addresses,
}

/// How a row shows a value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shown {
    /// The value.
    pub value: String,
    /// What the value has to be held against.
    pub base: Key,
}

impl Setting {
    /// Those that rows of results measure.
    pub(super) const ALL: [Self; 7] = [
        Self::SmbChannels,
        Self::NfsConnections,
        Self::ReadAhead,
        Self::SmbSigning,
        Self::SmbEncryption,
        Self::MetadataCache,
        Self::QueueDepth,
    ];

    /// The setting that a rule is about.
    pub(super) fn of_rule(rule: u8) -> Self {
        match rule {
            1..=4 => Self::SmbChannels,
            5 => Self::ReceiveSideScaling,
            6 => Self::MissingChannels,
            7 | 8 => Self::NfsConnections,
            9 => Self::QueueDepth,
            10 => Self::Mounts,
            11 => Self::ReadAhead,
            12 => Self::Slots,
            13 => Self::MetadataCache,
            14 => Self::ClientLink,
            15 => Self::Plan,
            16 => Self::OneFile,
            17 => Self::SmbSigning,
            18 => Self::Network,
            19 => Self::SmbEncryption,
            21 => Self::Addresses,
            _ => Self::Repetitions,
        }
    }

    /// Its name, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SmbChannels => "SMB channels",
            Self::NfsConnections => "NFS connections",
            Self::ReadAhead => "read-ahead",
            Self::SmbSigning => "SMB signing",
            Self::SmbEncryption => "SMB encryption",
            Self::MetadataCache => "metadata cache",
            Self::QueueDepth => "operations under way",
            Self::ReceiveSideScaling => "receive-side scaling",
            Self::MissingChannels => "missing channels",
            Self::Mounts => "mounts",
            Self::Slots => "NFS slots",
            Self::ClientLink => "client's link",
            Self::Plan => "plan of the share",
            Self::OneFile => "files",
            Self::Network => "network",
            Self::Repetitions => "repetitions",
            Self::Addresses => "addresses of the server",
        }
    }

    /// The value of the base, for people.
    pub(super) fn base_value(self) -> &'static str {
        match self {
            Self::ReadAhead => READ_AHEAD_DEFAULT,
            Self::SmbSigning => SIGNING_BASE,
            Self::SmbEncryption => "none",
            Self::MetadataCache => "off",
            Self::QueueDepth => "64",
            _ => "1",
        }
    }

    /// The value that a row shows, and the key of the row that it has to be held against. None: the row says nothing about it.
    pub(super) fn shown(self, protocol: Protocol, key: &Key) -> Option<Shown> {
        let with = |name: &str, value: &str| {
            let mut base = key.clone();
            base.settings.insert(name.to_owned(), value.to_owned());
            base
        };
        let among = |name: &str, values: &[&str]| {
            key.settings.get(name).filter(|value| values.contains(&value.as_str())).cloned()
        };
        let is_smb = protocol == Protocol::Smb;
        match self {
            Self::SmbChannels if is_smb => of_connections(key),
            Self::NfsConnections if matches!(protocol, Protocol::Nfs3 | Protocol::Nfs41) => {
                of_connections(key)
            }
            Self::ReadAhead => {
                let value = among("readahead", &["15xrsize", "15MiB"])?;
                // Another read-ahead may be another number of operations under way: the family says which.
                Some(Shown { value, base: with("readahead", READ_AHEAD_DEFAULT) })
            }
            Self::SmbSigning if is_smb => {
                let value = among("security", &["HMAC-SHA256", "AES-128-GMAC", "AES-128-GCM"])?;
                Some(Shown { value, base: with("security", SIGNING_BASE) })
            }
            Self::SmbEncryption if is_smb => {
                let value = among("security", &["AES-128-GCM", "AES-256-GCM"])?;
                Some(Shown { value, base: with("security", "none") })
            }
            Self::QueueDepth => of_depth(key),
            _ => None,
        }
    }

    /// Rows are held against each other whatever else of their keys follows from the setting.
    pub(super) fn is_same_work(self, base: &Key, other: &Key) -> bool {
        match self {
            Self::ReadAhead => {
                Key { queue_depth: base.queue_depth, block_bytes: base.block_bytes, ..other.clone() } == *base
            }
            _ => base == other,
        }
    }
}

/// The read-ahead that Linux has by itself from 5.4 on.
const READ_AHEAD_DEFAULT: &str = "128KiB";
/// The signing algorithm of SMB 3.0 and 3.0.2, and of clients that do not negotiate another one.
pub(super) const SIGNING_BASE: &str = "AES-128-CMAC";
/// The deepest queue that brings anything (document 3.11).
const DEEPEST: u32 = 64;

fn of_connections(key: &Key) -> Option<Shown> {
    let base = Key { connections: 1, ..key.clone() };
    (key.connections > 1).then(|| Shown { value: key.connections.to_string(), base })
}

fn of_depth(key: &Key) -> Option<Shown> {
    let depth = key.threads.checked_mul(key.queue_depth)?;
    let fits = depth > DEEPEST && key.threads > 0 && DEEPEST.is_multiple_of(key.threads) && key.clients == 1;
    fits.then(|| Shown {
        value: depth.to_string(),
        base: Key { queue_depth: DEEPEST / key.threads, ..key.clone() },
    })
}

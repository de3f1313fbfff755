//! What is known about a client's work, its way to the server, and the server.

use serde::{Deserialize, Serialize};

use load::result::{Interface, Protocol};

use super::advice::Verdict;

/// What is known. What is not known is `None` or empty, and a rule that needs it says nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Facts {
    /// How the share is spoken to.
    pub protocol: Option<Protocol>,
    /// What the server is sold as; the documents give other advice for each.
    pub profile: Profile,
    /// Measurements behind the figures, without those that were thrown away. `None`: the figures are counters of real work.
    pub runs: Option<u32>,
    /// What the client does.
    pub work: Work,
    /// The client's connections.
    pub path: Path,
    /// NFS mounts of the client.
    pub mounts: Vec<Mount>,
    /// The client's kernel, such as (6, 1), where it is Linux.
    pub linux: Option<(u32, u32)>,
    /// How much may be under way on the client's NFS session, or in its slot table.
    pub slots: Option<Slots>,
    /// What was reached.
    pub reached: Reached,
    /// What may be reached at most.
    pub limits: Limits,
    /// Where the time goes.
    pub latency: Latencies,
    /// How messages are protected.
    pub security: Security,
    /// What changes were measured to bring, here.
    pub effects: Vec<Effect>,
}

/// What a server is sold as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Azure Files: at most 4 channels, one file at most 8,000 IOPS and 1,024 MiB/s.
    AzureFiles,
    /// Azure NetApp Files: sequential reads grow beyond 4 channels.
    AzureNetappFiles,
    /// Anything else.
    #[default]
    Other,
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Work {
    /// Threads that do it.
    pub threads: Option<u32>,
    /// Files that they work on at a time.
    pub files: Option<u32>,
    /// Operations under way at a time, of all threads together.
    pub queue_depth: Option<f64>,
    /// Bytes of the average read or write.
    pub io_bytes: Option<f64>,
    /// Part of reads and writes that are writes, 0 to 1.
    pub write_share: Option<f64>,
    /// One block after the other.
    pub sequential: Option<bool>,
    /// Part of all operations that read or write no data, 0 to 1.
    pub metadata_share: Option<f64>,
}

impl Work {
    /// Most of it is about names and attributes.
    pub(super) fn is_mostly_metadata(&self) -> bool {
        self.metadata_share.is_some_and(|share| share > 0.5)
    }
}

/// The client's connections to the server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Path {
    /// Channels or connections that it has.
    pub connections: Option<u32>,
    /// The most that it could have.
    pub connections_max: Option<u32>,
    /// Why it has fewer, in words, as far as the server knows.
    pub why_fewer: Vec<String>,
    /// The client's interfaces on the way to the server.
    pub interfaces: Vec<Interface>,
    /// Addresses that the server offers the share on.
    pub server_endpoints: Option<u32>,
}

/// An NFS mount.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mount {
    /// Where it is mounted.
    pub directory: String,
    /// The server's address.
    pub server: String,
    /// What its `nconnect` option asks for.
    pub nconnect: u32,
    /// Bytes of its largest read.
    pub read_bytes: Option<u64>,
    /// KiB that it reads ahead.
    pub read_ahead_kib: Option<u64>,
}

/// How many requests may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Slots {
    /// As many as were granted.
    pub granted: u32,
    /// The most that were in use at a time.
    pub most_in_use: u32,
}

/// What was reached.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reached {
    /// Reads and writes a second.
    pub iops: Option<f64>,
    /// Their bytes a second.
    pub bytes: Option<f64>,
    /// Reads and writes a second on the busiest file.
    pub file_iops: Option<f64>,
    /// Their bytes a second.
    pub file_bytes: Option<f64>,
    /// Part of the operations that waited for the share's plan, 0 to 1.
    pub throttled_share: Option<f64>,
}

/// What may be reached at most.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Of the share, a second.
    pub iops: Option<f64>,
    /// Of the share, bytes a second.
    pub bytes: Option<f64>,
    /// Of one file, a second.
    pub file_iops: Option<f64>,
    /// Of one file, bytes a second.
    pub file_bytes: Option<f64>,
    /// Of the client's links or virtual machine, bytes a second.
    pub client_bytes: Option<f64>,
    /// Burst credits that are left.
    pub credits: Option<f64>,
    /// Burst credits that are used a second, less those that are regained.
    pub credits_used: Option<f64>,
}

/// Where the time goes, in microseconds for the mean operation.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Latencies {
    /// As the client sees it.
    pub end_to_end_us: Option<f64>,
    /// In the server.
    pub server_us: Option<f64>,
}

/// How messages are protected.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Security {
    /// The signing algorithm where messages are signed, such as `AES-128-CMAC`.
    pub signing: Option<String>,
    /// The cipher where they are encrypted, such as `AES-128-GCM`.
    pub cipher: Option<String>,
    /// How busy the busiest CPU of the client or server is, 0 to 1.
    pub busiest_cpu: Option<f64>,
}

/// What a change was measured to bring: the rate with it by the rate without it, in one interleaved run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Effect {
    /// What was changed.
    pub change: Change,
    /// The median of the ratios.
    pub ratio: f64,
    /// The ends of their 95 % interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// So many channels instead of one.
    Channels(u32),
    /// So many NFS connections instead of one.
    Connections(u32),
    /// Encryption instead of none.
    Encryption,
    /// Metadata caching instead of none.
    MetadataCache,
}

impl Facts {
    /// What so many connections or channels instead of one were measured to bring: as many as `most`, else the next fewer that
    /// were measured.
    pub(super) fn effect_of_connections(&self, most: u32) -> Option<&Effect> {
        let count = |effect: &&Effect| match effect.change {
            Change::Channels(n) | Change::Connections(n) => Some(n).filter(|n| *n > 1 && *n <= most),
            Change::Encryption | Change::MetadataCache => None,
        };
        self.effects.iter().filter(|effect| count(effect).is_some()).max_by_key(count)
    }

    /// What more than this many connections or channels were measured to bring over this many: good where their whole interval
    /// lies above, bad where it lies below or where more are worse than one. None where that is not measured.
    pub(super) fn beyond(&self, count: u32) -> Option<(&Effect, Verdict)> {
        let base = self.effects.iter().find(
            |effect| matches!(effect.change, Change::Channels(n) | Change::Connections(n) if n == count),
        );
        let more = |effect: &&Effect| matches!(effect.change, Change::Channels(n) | Change::Connections(n) if n > count);
        let best = self.effects.iter().filter(more).max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        let verdict = match base {
            None if best.verdict() == Verdict::Red => Verdict::Red,
            None => return None,
            Some(base) if best.low > base.high => Verdict::Green,
            Some(base) if best.high < base.low || best.verdict() == Verdict::Red => Verdict::Red,
            Some(_) => Verdict::Yellow,
        };
        Some((best, verdict))
    }

    /// What a change was measured to bring, if it was.
    pub(super) fn effect(&self, which: impl Fn(Change) -> bool) -> Option<&Effect> {
        self.effects.iter().find(|effect| which(effect.change))
    }

    pub(super) fn is_smb(&self) -> bool {
        self.protocol == Some(Protocol::Smb)
    }

    pub(super) fn is_nfs(&self) -> bool {
        matches!(self.protocol, Some(Protocol::Nfs3 | Protocol::Nfs41))
    }
}

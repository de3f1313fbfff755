//! What one setting gave, repetition by repetition.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::statistics::{Estimate, estimate};

/// Everything of one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was set.
    pub key: Key,
    /// Statements of the documents that this row belongs to, such as `1.25`.
    #[serde(default)]
    pub documents: Vec<String>,
    /// The measurements, without the first pass.
    pub repetitions: Vec<Repetition>,
    /// All repetitions together. [`Row::aggregate`] makes it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub measure: Option<Measure>,
}

/// What is set for a row. Rows of a file with equal keys do not exist.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// Channels of an SMB session or connections of an NFS client.
    pub connections: u32,
    /// Bytes of each read or write; 0 for metadata.
    pub block_bytes: u64,
    /// What is done.
    pub mix: Mix,
    /// At random places of the files instead of one block after the other.
    pub random: bool,
    /// Files that the load is spread over.
    pub files: u32,
    /// Threads, as an application has them: each has `queue_depth` operations under way.
    pub threads: u32,
    /// Operations under way at a time, for each thread.
    pub queue_depth: u32,
    /// Client machines or processes.
    #[serde(default = "one")]
    pub clients: u32,
    /// What else a family varies, by name, such as `signing` = `AES-128-GMAC`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub settings: BTreeMap<String, String>,
}

/// What a row does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// Reads and writes: so many reads of a hundred operations.
    ReadPercent(u8),
    /// Cycles of create, open, close, stat, list and delete of small files.
    Metadata,
}

/// What a client asks a server for; a class of latencies of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Data of a file.
    Read,
    /// Data to a file.
    Write,
    /// A new file.
    Create,
    /// A file that is there.
    Open,
    /// The end of an open.
    Close,
    /// Attributes.
    Stat,
    /// The names of a directory.
    List,
    /// The end of a file.
    Delete,
    /// One whole cycle of the metadata workload: from the first request to the last reply.
    Cycle,
}

/// One measurement of a row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Repetition {
    /// When it began, in seconds since the run did.
    pub began_seconds: f64,
    /// How long it was measured, in seconds.
    pub seconds: f64,
    /// What was done and how long each took.
    pub operations: BTreeMap<Operation, Tally>,
    /// Operations that failed. They are in no tally.
    #[serde(default)]
    pub errors: u64,
    /// Blocks that came back with other bytes than they had to.
    #[serde(default)]
    pub wrong_blocks: u64,
    /// Times that connections were made again before it, because some had been lost.
    #[serde(default)]
    pub reconnects: u64,
    /// CPU time of the client, user and system, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_cpu_seconds: Option<f64>,
    /// CPU time of the server in seconds, where it runs on this machine or tells.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_cpu_seconds: Option<f64>,
    /// What the server has counted meanwhile, where it tells.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<ServerCounters>,
    /// Channels or connections that carried it.
    #[serde(default)]
    pub connections: u32,
    /// Bytes of data that each of them carried.
    #[serde(default)]
    pub connection_bytes: Vec<u64>,
}

/// Operations of one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// How many were done.
    pub count: u64,
    /// Bytes of data that they moved.
    #[serde(default)]
    pub bytes: u64,
    /// How long each took, from the moment that it could have been sent.
    pub latency: Histogram,
}

/// What a server says it did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ServerCounters {
    /// Operations of all kinds.
    pub operations: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Operations that had to wait for the share's plan.
    #[serde(default)]
    pub throttled: u64,
    /// Time spent in the server, in seconds, over all operations.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_latency_seconds: Option<f64>,
}

impl ServerCounters {
    /// What was counted since an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let time =
            |now: Option<f64>, then: Option<f64>| now.zip(then).map(|(now, then)| (now - then).max(0.0));
        Self {
            operations: self.operations.saturating_sub(earlier.operations),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            server_latency_seconds: time(self.server_latency_seconds, earlier.server_latency_seconds),
        }
    }
}

/// All repetitions of a row together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Operations a second (cycles a second for metadata).
    pub rate: Estimate,
    /// Bytes of data a second; absent where no data was moved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub throughput: Option<Estimate>,
    /// Latencies of all operations of all repetitions, by kind.
    pub latency: BTreeMap<Operation, Latency>,
    /// CPU time of the client for each operation, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_cpu_us: Option<Estimate>,
    /// CPU time of the server for each operation, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_cpu_us: Option<Estimate>,
    /// The part of the bytes read that the server knows nothing of: they came from a cache in between. 0 to 1; absent
    /// where the server does not tell, or nothing was read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_cache: Option<Estimate>,
}

/// Percentiles of merged bins, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Operations behind it.
    pub count: u64,
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// 90 of 100 took no longer.
    pub p90_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1000.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Latency {
    /// The percentiles of a histogram. `None` when nothing was counted.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let us = |percent| histogram.percentile(percent).map(|ns| ns / 1000.0);
        Some(Self {
            count: histogram.total(),
            mean_us: histogram.mean()? / 1000.0,
            p50_us: us(50.0)?,
            p90_us: us(90.0)?,
            p99_us: us(99.0)?,
            p999_us: us(99.9)?,
            max_us: us(100.0)?,
        })
    }
}

impl Operation {
    /// Is part of a cycle that is counted as a whole: it is in no rate.
    #[must_use]
    pub fn is_part_of_cycle(self) -> bool {
        !matches!(self, Self::Read | Self::Write | Self::Cycle)
    }
}

impl Repetition {
    /// Operations that were done: reads, writes and cycles.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.whole().map(|tally| tally.count).sum()
    }

    /// Bytes of data that were moved.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.whole().map(|tally| tally.bytes).sum()
    }

    /// Operations a second. `None` for a measurement of no length or without an operation.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        per(self.done(), self.seconds)
    }

    /// Bytes of data a second. `None` where none were moved.
    #[must_use]
    pub fn throughput(&self) -> Option<f64> {
        per(self.bytes(), self.seconds)
    }

    /// CPU time of the server for each operation, in microseconds. `None` where it is not known.
    #[must_use]
    pub fn server_cpu_us(&self) -> Option<f64> {
        self.cpu_us(self.server_cpu_seconds)
    }

    /// The part of the bytes read that the server has not sent meanwhile, by its own count.
    fn cached_part(&self) -> Option<f64> {
        let read = self.operations.get(&Operation::Read)?.bytes;
        let server = self.server?;
        #[expect(clippy::cast_precision_loss, reason = "a part of a whole")]
        (read > 0).then(|| (1.0 - server.read_bytes as f64 / read as f64).max(0.0))
    }

    pub(super) fn whole(&self) -> impl Iterator<Item = &Tally> {
        self.operations.iter().filter(|(operation, _)| !operation.is_part_of_cycle()).map(|(_, tally)| tally)
    }

    fn cpu_us(&self, seconds: Option<f64>) -> Option<f64> {
        let rate = per(self.done(), 1e6)?;
        seconds.map(|s| s / rate)
    }
}

impl Row {
    /// A row without measurements.
    #[must_use]
    pub fn new(key: Key, documents: &[&str]) -> Self {
        let documents = documents.iter().map(|&d| d.to_owned()).collect();
        Self { key, documents, repetitions: Vec::new(), measure: None }
    }

    /// Operations a second of each repetition; 0 where none was done.
    #[must_use]
    pub fn rates(&self) -> Vec<f64> {
        self.repetitions.iter().map(|r| r.rate().unwrap_or(0.0)).collect()
    }

    /// The latencies of one kind of operation, all repetitions merged.
    #[must_use]
    pub fn latency(&self, operation: Operation) -> Histogram {
        Histogram::merged(
            self.repetitions.iter().filter_map(|r| r.operations.get(&operation)).map(|t| &t.latency),
        )
    }

    /// Sets [`Row::measure`] from the repetitions; to nothing when no repetition did anything.
    pub fn aggregate(&mut self) {
        let over = |figure: &dyn Fn(&Repetition) -> Option<f64>| {
            let values: Vec<f64> = self.repetitions.iter().filter_map(figure).collect();
            estimate(&values)
        };
        let kinds = self.repetitions.iter().flat_map(|r| r.operations.keys().copied());
        let latency = kinds.filter_map(|kind| Some((kind, Latency::of(&self.latency(kind))?))).collect();
        // A repetition in which nothing was done counts, unless nothing was done in any.
        let rates = self.rates();
        let rate = estimate(&rates).filter(|_| rates.iter().any(|rate| *rate > 0.0));
        self.measure = rate.map(|rate| Measure {
            rate,
            throughput: over(&Repetition::throughput),
            latency,
            client_cpu_us: over(&|r| r.cpu_us(r.client_cpu_seconds)),
            server_cpu_us: over(&Repetition::server_cpu_us),
            from_cache: over(&Repetition::cached_part),
        });
    }
}

impl Key {
    /// The row is about what the server has in no cache.
    pub(crate) fn is_out_of_cache(&self) -> bool {
        self.settings.get("cache").is_some_and(|cache| cache == "out")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connections={}", self.connections)?;
        if self.block_bytes > 0 {
            write!(f, " bs={}", Size(self.block_bytes))?;
        }
        let order = if self.random { "rand" } else { "" };
        match self.mix {
            Mix::ReadPercent(100) => write!(f, " op={order}read")?,
            Mix::ReadPercent(0) => write!(f, " op={order}write")?,
            Mix::ReadPercent(reads) => write!(f, " op={order}rw reads={reads}%")?,
            Mix::Metadata => write!(f, " op=metadata")?,
        }
        write!(f, " files={} threads={} qd={}", self.files, self.threads, self.queue_depth)?;
        if self.clients > 1 {
            write!(f, " clients={}", self.clients)?;
        }
        self.settings.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// A number of bytes as people write block sizes: `4KiB`, `1MiB`, `512B`.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1 << 20 && n % (1 << 20) == 0 => write!(f, "{}MiB", n >> 20),
            n if n >= 1 << 10 && n % (1 << 10) == 0 => write!(f, "{}KiB", n >> 10),
            n => write!(f, "{n}B"),
        }
    }
}

fn one() -> u32 {
    1
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn per(count: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0 && count > 0).then(|| count as f64 / seconds)
}

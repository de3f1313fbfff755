//! What calls cost: counters and histograms for one API name and protocol. [`crate::account`] keeps them by client.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use limits::Limit;

use crate::in_use::Uses;
use crate::{Client, Protocol, timings};

macro_rules! apis {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// What a client asked for: an SMB command, an NFSv3 procedure or an NFSv4 operation. Those with the same name and
        /// meaning share an API name; [`Protocol`] tells them apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Api { $($(#[$doc])* $name),+ }

        impl Api {
            /// All API names, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name in metrics.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
        }
    };
}

apis! {
    /// SMB CREATE, NFS CREATE.
    Create,
    /// SMB CLOSE, NFSv4 CLOSE.
    Close,
    /// SMB READ, NFS READ.
    Read,
    /// SMB WRITE, NFS WRITE.
    Write,
    /// SMB FLUSH.
    Flush,
    /// SMB LOCK, NFSv4 LOCK.
    Lock,
    /// SMB IOCTL.
    Ioctl,
    /// SMB QUERY_DIRECTORY.
    QueryDirectory,
    /// SMB CHANGE_NOTIFY.
    ChangeNotify,
    /// SMB QUERY_INFO.
    QueryInfo,
    /// SMB SET_INFO.
    SetInfo,
    /// SMB OPLOCK_BREAK acknowledgment.
    OplockBreak,
    /// SMB TREE_CONNECT.
    TreeConnect,
    /// SMB TREE_DISCONNECT.
    TreeDisconnect,
    /// NFS GETATTR.
    GetAttr,
    /// NFS SETATTR.
    SetAttr,
    /// NFS LOOKUP.
    Lookup,
    /// NFS ACCESS.
    Access,
    /// NFS READLINK.
    ReadLink,
    /// NFS MKDIR.
    MkDir,
    /// NFS SYMLINK.
    SymLink,
    /// NFS MKNOD.
    MkNod,
    /// NFS REMOVE.
    Remove,
    /// NFS RMDIR.
    RmDir,
    /// NFS RENAME.
    Rename,
    /// NFS LINK.
    Link,
    /// NFS READDIR.
    ReadDir,
    /// NFS READDIRPLUS.
    ReadDirPlus,
    /// NFS FSSTAT.
    FsStat,
    /// NFS FSINFO.
    FsInfo,
    /// NFS PATHCONF.
    PathConf,
    /// NFS COMMIT.
    Commit,
    /// MOUNT MNT.
    Mount,
    /// NFSv4 OPEN.
    Open,
    /// NFSv4 OPEN_DOWNGRADE.
    OpenDowngrade,
    /// NFSv4 LOCKT.
    LockTest,
    /// NFSv4 LOCKU.
    Unlock,
    /// NFSv4 DELEGRETURN.
    DelegReturn,
    /// NFSv4 VERIFY and NVERIFY.
    Verify,
    /// NFSv4 SECINFO and SECINFO_NO_NAME.
    SecInfo,
    /// NFSv4.2 SEEK.
    Seek,
    /// NFSv4.2 ALLOCATE.
    Allocate,
    /// NFSv4.2 DEALLOCATE.
    Deallocate,
    /// NFSv4.2 READ_PLUS.
    ReadPlus,
    /// NFSv4.2 COPY.
    Copy,
    /// The part of an NFSv4.2 COPY that was done after the reply.
    Offload,
    /// NFSv4.2 OFFLOAD_STATUS.
    OffloadStatus,
    /// NFSv4.2 OFFLOAD_CANCEL.
    OffloadCancel,
    /// NFSv4.2 CLONE.
    Clone,
    /// NFSv4.2 IO_ADVISE.
    IoAdvise,
    /// NFSv4 GETXATTR (RFC 8276).
    GetXattr,
    /// NFSv4 SETXATTR (RFC 8276).
    SetXattr,
    /// NFSv4 LISTXATTRS (RFC 8276).
    ListXattrs,
    /// NFSv4 REMOVEXATTR (RFC 8276).
    RemoveXattr,
}

impl Api {
    /// Whether the operation moves data. All others are about names and attributes, as in the metadata share of Azure Files.
    #[must_use]
    pub fn moves_data(self) -> bool {
        self.is_read() || self.is_write()
    }

    /// Whether its bytes are sent to the client: Egress.
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::ReadPlus)
    }

    /// Whether its bytes are received from the client: Ingress.
    #[must_use]
    pub fn is_write(self) -> bool {
        self == Self::Write
    }
}

/// Buckets of a latency histogram: [`bucket_limit`].
pub const HISTOGRAM_BUCKETS: usize = 24;

/// The upper limit of a bucket: 2^n microseconds; the last bucket has none.
#[must_use]
pub fn bucket_limit(bucket: usize) -> Option<Duration> {
    (bucket + 1 < HISTOGRAM_BUCKETS).then(|| Duration::from_micros(1 << bucket))
}

fn bucket_of(nanos: u64) -> usize {
    let micros = nanos / 1_000;
    bits(micros.saturating_sub(1)).min(HISTOGRAM_BUCKETS - 1)
}

/// Buckets of the histogram of sizes: [`size_limit`].
pub const SIZE_BUCKETS: usize = 16;

/// The upper limit of a bucket of sizes, in bytes: 2^(9 + n), so that one ends at 16 KiB; the last bucket has none.
#[must_use]
pub fn size_limit(bucket: usize) -> Option<u64> {
    (bucket + 1 < SIZE_BUCKETS).then(|| 512 << bucket)
}

fn size_bucket_of(bytes: u64) -> usize {
    bits(bytes.saturating_sub(1) / 512).min(SIZE_BUCKETS - 1)
}

/// The position of the highest bit set, from 1; 0 for zero.
fn bits(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()) as usize
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Successfully.
    Done,
    /// With an error that concerns the client: a missing name, a permission, a lock.
    Refused,
    /// With an error of the server or of its storage (Azure Monitor: it counts against Availability).
    Failed,
}

/// The counters of one connection for one API name and protocol. Only the connection's thread writes them; other threads
/// read.
#[derive(Debug)]
pub(crate) struct Cell {
    calls: AtomicU64,
    errors: AtomicU64,
    faults: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
    latency: [AtomicU64; HISTOGRAM_BUCKETS],
    /// The round-trip times of the connection, one for each call.
    network: WaitCell,
    /// Calls by the sum of `latency` and round trip.
    end_to_end: [AtomicU64; HISTOGRAM_BUCKETS],
    sizes: [AtomicU64; SIZE_BUCKETS],
    /// Counters of calls that waited, if any did.
    waits: OnceLock<Box<WaitCells>>,
    /// The files and opens that reads and writes have used.
    uses: OnceLock<Box<Uses>>,
}

/// Counters of calls that waited.
#[derive(Debug, Default)]
struct WaitCells {
    limit: WaitCell,
    queue: WaitCell,
    /// Calls that waited, by their whole time, and by the part left for the storage. For all other calls the two are the
    /// same.
    latency: [AtomicU64; HISTOGRAM_BUCKETS],
    storage: [AtomicU64; HISTOGRAM_BUCKETS],
    throttled: [AtomicU64; Limit::ALL.len()],
}

#[derive(Debug, Default)]
struct WaitCell {
    nanos: AtomicU64,
    histogram: [AtomicU64; HISTOGRAM_BUCKETS],
}

impl WaitCell {
    fn add(&self, nanos: u64) {
        if nanos > 0 {
            add(&self.nanos, nanos);
            add(&self.histogram[bucket_of(nanos)], 1);
        }
    }
}

/// Only a store to memory: no other thread writes this counter.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// Nanoseconds in 64 bits, enough for some centuries.
fn nanos(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos().into())
}

fn read<const N: usize>(counters: &[AtomicU64; N]) -> [u64; N] {
    std::array::from_fn(|n| counters[n].load(Ordering::Relaxed))
}

impl Default for Cell {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            calls: zero(),
            errors: zero(),
            faults: zero(),
            bytes: zero(),
            nanos: zero(),
            latency: std::array::from_fn(|_| zero()),
            network: WaitCell::default(),
            end_to_end: std::array::from_fn(|_| zero()),
            sizes: std::array::from_fn(|_| zero()),
            waits: OnceLock::new(),
            uses: OnceLock::new(),
        }
    }
}

impl Cell {
    pub(crate) fn count(&self, measure: &Measure, ended: Instant, bytes: u64, outcome: Outcome) {
        let latency = nanos(ended.saturating_duration_since(measure.begun));
        let round_trip = nanos(measure.round_trip);
        add(&self.calls, 1);
        add(&self.nanos, latency);
        add(&self.latency[bucket_of(latency)], 1);
        self.network.add(round_trip);
        add(&self.end_to_end[bucket_of(latency.saturating_add(round_trip))], 1);
        match outcome {
            Outcome::Done if measure.api.moves_data() => add(&self.sizes[size_bucket_of(bytes)], 1),
            Outcome::Done => {}
            Outcome::Refused => add(&self.errors, 1),
            Outcome::Failed => {
                add(&self.errors, 1);
                add(&self.faults, 1);
            }
        }
        if bytes > 0 {
            add(&self.bytes, bytes);
        }
        let spent = timings::take();
        if let Some(used) = spent.used {
            self.uses.get_or_init(Box::default).note(used, ended);
        }
        if spent.has_waited() {
            let waits = self.waits.get_or_init(Box::default);
            let (limit, queue) = (nanos(spent.limit), nanos(spent.queue));
            waits.limit.add(limit);
            waits.queue.add(queue);
            let storage = latency.saturating_sub(limit).saturating_sub(queue);
            add(&waits.latency[bucket_of(latency)], 1);
            add(&waits.storage[bucket_of(storage)], 1);
            if let Some(limit) = spent.throttled {
                add(&waits.throttled[limit as usize], 1);
            }
        }
    }

    /// Calls by the time left for the storage. For calls that did not wait that is their whole time.
    fn storage(&self) -> [u64; HISTOGRAM_BUCKETS] {
        let waits = self.waits.get().map(|waits| (read(&waits.latency), read(&waits.storage)));
        let all = read(&self.latency);
        let Some((waited, left)) = waits else { return all };
        std::array::from_fn(|n| (all[n] + left[n]).saturating_sub(waited[n]))
    }

    /// The files and opens that the calls have used.
    pub(crate) fn uses(&self) -> Option<&Uses> {
        self.uses.get().map(Box::as_ref)
    }

    pub(crate) fn counts(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let waits = self.waits.get();
        let waited = |cell: &WaitCell| Waited {
            time: Duration::from_nanos(load(&cell.nanos)),
            histogram: read(&cell.histogram),
        };
        Counts {
            calls: load(&self.calls),
            errors: load(&self.errors),
            faults: load(&self.faults),
            bytes: load(&self.bytes),
            time: Duration::from_nanos(load(&self.nanos)),
            latency: read(&self.latency),
            network: waited(&self.network),
            end_to_end: read(&self.end_to_end),
            storage: self.storage(),
            sizes: read(&self.sizes),
            limit: waits.map(|waits| waited(&waits.limit)).unwrap_or_default(),
            queue: waits.map(|waits| waited(&waits.queue)).unwrap_or_default(),
            throttled: waits.map(|waits| read(&waits.throttled)).unwrap_or_default(),
        }
    }
}

/// The counts of one client for one API name and protocol at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The client; [`Client::Unknown`] for all clients together that are not counted separately.
    pub client: Client,
    /// The protocol.
    pub protocol: Protocol,
    /// The API name.
    pub api: Api,
    /// The counts.
    pub counts: Counts,
}

/// Counters at one moment. The mean queue depth over an interval is the growth of `time` divided by the length of the
/// interval (Little's law).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Calls that ended (Azure Monitor: Transactions).
    pub calls: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Those of the errors that were faults of the server or of its storage.
    pub faults: u64,
    /// Payload bytes (Azure Monitor: Egress of reads, Ingress of writes).
    pub bytes: u64,
    /// Time from the arrival of the request to its reply, summed (Azure Monitor: SuccessServerLatency, of one call).
    pub time: Duration,
    /// Calls by that time ([`bucket_limit`]).
    pub latency: [u64; HISTOGRAM_BUCKETS],
    /// The round-trip time of each call's connection, where known.
    pub network: Waited,
    /// Calls by the sum of `time` and `network` (Azure Monitor: SuccessE2ELatency).
    pub end_to_end: [u64; HISTOGRAM_BUCKETS],
    /// Calls by the part of their time left for the work itself ([`Counts::storage_time`]).
    pub storage: [u64; HISTOGRAM_BUCKETS],
    /// Reads and writes by their size ([`size_limit`]).
    pub sizes: [u64; SIZE_BUCKETS],
    /// Time that calls waited for the budget of the share.
    pub limit: Waited,
    /// Time that calls waited for a thread of the pool for blocking work.
    pub queue: Waited,
    /// Calls by the limit that they waited for longest, in the order of [`Limit::ALL`].
    pub throttled: [u64; Limit::ALL.len()],
}

/// How long calls have waited for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waited {
    /// The sum.
    pub time: Duration,
    /// Calls that waited, by how long ([`bucket_limit`]).
    pub histogram: [u64; HISTOGRAM_BUCKETS],
}

impl Counts {
    /// The time left for the work itself: the storage, and what the server does around it.
    #[must_use]
    pub fn storage_time(&self) -> Duration {
        self.time.saturating_sub(self.limit.time).saturating_sub(self.queue.time)
    }

    /// The time of all calls together, including the round trips to the clients (Azure Monitor: SuccessE2ELatency, of one
    /// call).
    #[must_use]
    pub fn end_to_end_time(&self) -> Duration {
        self.time + self.network.time
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.faults += other.faults;
        self.bytes += other.bytes;
        self.time += other.time;
        add_each(&mut self.latency, &other.latency);
        self.network.add(&other.network);
        add_each(&mut self.end_to_end, &other.end_to_end);
        add_each(&mut self.storage, &other.storage);
        add_each(&mut self.sizes, &other.sizes);
        self.limit.add(&other.limit);
        self.queue.add(&other.queue);
        add_each(&mut self.throttled, &other.throttled);
    }
}

impl Waited {
    fn add(&mut self, other: &Self) {
        self.time += other.time;
        add_each(&mut self.histogram, &other.histogram);
    }
}

fn add_each<const N: usize>(counts: &mut [u64; N], others: &[u64; N]) {
    counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
}

/// Azure Monitor's ResponseType of a call that succeeded after it waited for a limit.
#[must_use]
pub fn response_type(api: Api, limit: Limit) -> &'static str {
    match limit {
        Limit::Iops => "SuccessWithShareIopsThrottling",
        Limit::Read => "SuccessWithShareEgressThrottling",
        Limit::Write => "SuccessWithShareIngressThrottling",
        Limit::Throughput if api.is_write() => "SuccessWithShareIngressThrottling",
        Limit::Throughput => "SuccessWithShareEgressThrottling",
        Limit::ClientIops
        | Limit::ClientThroughput
        | Limit::Metadata
        | Limit::FileIops
        | Limit::FileThroughput => "SuccessWithThrottling",
    }
}

/// One call under measurement.
#[derive(Debug, Clone, Copy)]
#[must_use = "a call that is begun must be ended to be counted"]
pub struct Measure {
    pub(crate) api: Api,
    pub(crate) protocol: Protocol,
    begun: Instant,
    round_trip: Duration,
}

impl Measure {
    /// Begins to measure a call that began at this time.
    pub fn begin(api: Api, protocol: Protocol, begun: Instant) -> Self {
        Self { api, protocol, begun, round_trip: Duration::ZERO }
    }

    /// Sets the round-trip time of the call's connection, where known.
    pub fn over(self, round_trip: Option<Duration>) -> Self {
        Self { round_trip: round_trip.unwrap_or_default(), ..self }
    }

    /// When the call began.
    #[must_use]
    pub fn begun(&self) -> Instant {
        self.begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_their_limit_says() {
        for nanos in [0, 999, 1_000, 1_001, 2_000, 2_001, 1_000_000, 3_999_999_999, u64::MAX] {
            let latency = Duration::from_nanos(nanos);
            let bucket = bucket_of(super::nanos(latency));
            let micros = Duration::from_micros(u64::try_from(latency.as_micros()).unwrap());
            assert!(bucket_limit(bucket).is_none_or(|limit| micros <= limit), "{nanos}");
            assert!(bucket == 0 || bucket_limit(bucket - 1).is_some_and(|limit| micros > limit), "{nanos}");
        }
    }

    #[test]
    fn sizes_turn_at_16_kib() {
        let bucket = |bytes| size_limit(size_bucket_of(bytes));
        assert_eq!((bucket(0), bucket(512), bucket(513)), (Some(512), Some(512), Some(1024)));
        assert_eq!((bucket(16_384), bucket(16_385)), (Some(16_384), Some(32_768)));
        assert_eq!((bucket(8 << 20), bucket((8 << 20) + 1)), (Some(8 << 20), None));
    }

    #[test]
    fn apis_are_numbered_in_order() {
        for (number, api) in Api::ALL.iter().enumerate() {
            assert_eq!(*api as usize, number);
        }
    }
}

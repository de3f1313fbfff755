//! What calls cost: counters and histograms per API name, protocol, client and share.
//!
//! Only the client's own counters are touched when a call ends; totals are added up when somebody looks.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use limits::Limit;
use parking_lot::RwLock;

use crate::{Client, Protocol, timings};

macro_rules! apis {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// What a client asked for: an SMB command, an NFSv3 procedure or an NFSv4 operation. Where two have one of the
        /// same name and meaning they share it; [`Protocol`] tells them apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Api { $($(#[$doc])* $name),+ }

        impl Api {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name in metrics.
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
    /// What of an NFSv4.2 COPY was done behind its answer.
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
    /// Whether it moves data; all else is about names and attributes, as in the metadata share of Azure Files.
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

fn bucket_of(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    let bits = micros.saturating_sub(1).checked_ilog2().map_or(0, |log| log as usize + 1);
    bits.min(HISTOGRAM_BUCKETS - 1)
}

/// Buckets of the histogram of sizes: [`size_limit`].
pub const SIZE_BUCKETS: usize = 16;

/// The upper limit of a bucket of sizes, in bytes: 2^(9 + n), so that one ends at 16 KiB; the last bucket has none.
#[must_use]
pub fn size_limit(bucket: usize) -> Option<u64> {
    (bucket + 1 < SIZE_BUCKETS).then(|| 512 << bucket)
}

fn size_bucket_of(bytes: u64) -> usize {
    let units = bytes.div_ceil(512).max(1);
    let log = (units - 1).checked_ilog2().map_or(0, |log| log as usize + 1);
    log.min(SIZE_BUCKETS - 1)
}

/// Clients of a share that are counted apart at a time; all others are counted together.
pub const CLIENTS_MAX: usize = 1024;

/// The counters of one API name of one protocol.
#[derive(Debug)]
pub struct Cell {
    /// Calls that ended.
    pub calls: AtomicU64,
    /// Calls that failed.
    pub errors: AtomicU64,
    /// Payload bytes received and sent.
    pub bytes: AtomicU64,
    /// Time from the arrival of the request to its answer, summed, in nanoseconds.
    pub nanos: AtomicU64,
    /// Calls by that time.
    pub latency: [AtomicU64; HISTOGRAM_BUCKETS],
    /// Reads and writes by their size ([`size_limit`]).
    pub sizes: [AtomicU64; SIZE_BUCKETS],
    /// Of calls that waited, if any did.
    waits: OnceLock<Box<WaitCells>>,
}

/// Counters of calls that waited.
#[derive(Debug, Default)]
struct WaitCells {
    limit: WaitCell,
    queue: WaitCell,
    throttled: [AtomicU64; Limit::ALL.len()],
}

#[derive(Debug, Default)]
struct WaitCell {
    nanos: AtomicU64,
    histogram: [AtomicU64; HISTOGRAM_BUCKETS],
}

impl WaitCell {
    fn add(&self, waited: Duration) {
        if !waited.is_zero() {
            add(&self.nanos, nanos(waited));
            add(&self.histogram[bucket_of(waited)], 1);
        }
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
            bytes: zero(),
            nanos: zero(),
            latency: std::array::from_fn(|_| zero()),
            sizes: std::array::from_fn(|_| zero()),
            waits: OnceLock::new(),
        }
    }
}

impl Cell {
    fn count(&self, measure: &Measure, bytes: u64, ok: bool) {
        let latency = measure.begun.elapsed();
        add(&self.calls, 1);
        add(&self.nanos, nanos(latency));
        add(&self.latency[bucket_of(latency)], 1);
        if !ok {
            add(&self.errors, 1);
        }
        if bytes > 0 {
            add(&self.bytes, bytes);
        }
        if ok && measure.api.moves_data() {
            add(&self.sizes[size_bucket_of(bytes)], 1);
        }
        let spent = timings::take();
        if spent != timings::Timings::default() {
            let waits = self.waits.get_or_init(Box::default);
            waits.limit.add(spent.limit);
            waits.queue.add(spent.queue);
            if let Some(limit) = spent.throttled {
                add(&waits.throttled[limit as usize], 1);
            }
        }
    }

    fn counts(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let waits = self.waits.get();
        let waited = |cell: &WaitCell| Waited {
            time: Duration::from_nanos(load(&cell.nanos)),
            histogram: read(&cell.histogram),
        };
        Counts {
            calls: load(&self.calls),
            errors: load(&self.errors),
            bytes: load(&self.bytes),
            time: Duration::from_nanos(load(&self.nanos)),
            latency: read(&self.latency),
            sizes: read(&self.sizes),
            limit: waits.map(|waits| waited(&waits.limit)).unwrap_or_default(),
            queue: waits.map(|waits| waited(&waits.queue)).unwrap_or_default(),
            throttled: waits.map(|waits| read(&waits.throttled)).unwrap_or_default(),
        }
    }
}

/// What one client has called by one name of one protocol, at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The client; [`Client::Unknown`] for those above [`CLIENTS_MAX`], all together.
    pub client: Client,
    /// The protocol.
    pub protocol: Protocol,
    /// The name.
    pub api: Api,
    /// How much.
    pub counts: Counts,
}

/// Counters, read at a moment. The mean queue depth of an interval is what `time` has grown by, divided by its length
/// (Little's law).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Calls that ended (Azure Monitor: Transactions).
    pub calls: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Payload bytes (Azure Monitor: Egress of reads, Ingress of writes).
    pub bytes: u64,
    /// Time from the arrival of the request to its answer, summed (Azure Monitor: SuccessServerLatency, of one call).
    pub time: Duration,
    /// Calls by that time ([`bucket_limit`]).
    pub latency: [u64; HISTOGRAM_BUCKETS],
    /// Reads and writes by their size ([`size_limit`]).
    pub sizes: [u64; SIZE_BUCKETS],
    /// Time waited for the budget of the share.
    pub limit: Waited,
    /// Time waited for a thread of the pool that does what may block.
    pub queue: Waited,
    /// Calls by the limit that they waited for longest, in the order of [`Limit::ALL`].
    pub throttled: [u64; Limit::ALL.len()],
}

/// What calls have waited for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waited {
    /// Summed.
    pub time: Duration,
    /// Calls that waited, by how long ([`bucket_limit`]).
    pub histogram: [u64; HISTOGRAM_BUCKETS],
}

impl Counts {
    /// The time that is left for the work itself: the storage, and what the server does around it.
    #[must_use]
    pub fn storage_time(&self) -> Duration {
        self.time.saturating_sub(self.limit.time).saturating_sub(self.queue.time)
    }

    /// Adds what others have counted.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.time += other.time;
        add_each(&mut self.latency, &other.latency);
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

/// Azure Monitor's ResponseType of a call that succeeded after it had waited for a limit.
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

/// All counters of one client.
type Cells = Box<[OnceLock<Box<Cell>>]>;

/// All counters of one share.
#[derive(Debug)]
pub struct Accounting {
    /// Added up when somebody looks.
    totals: Vec<Cell>,
    clients: RwLock<HashMap<Client, Cells>>,
}

fn index(api: Api, protocol: Protocol) -> usize {
    protocol as usize * Api::ALL.len() + api as usize
}

fn cells<T>(make: impl Fn() -> T) -> impl Iterator<Item = T> {
    (0..Protocol::ALL.len() * Api::ALL.len()).map(move |_| make())
}

impl Default for Accounting {
    fn default() -> Self {
        Self { totals: cells(Cell::default).collect(), clients: RwLock::default() }
    }
}

/// One call under measurement.
#[derive(Debug, Clone, Copy)]
#[must_use = "a call that is begun must be ended to be counted"]
pub struct Measure {
    api: Api,
    protocol: Protocol,
    client: Client,
    begun: Instant,
}

impl Measure {
    /// A call begins.
    pub fn begin(api: Api, protocol: Protocol) -> Self {
        Self { api, protocol, client: Client::Unknown, begun: Instant::now() }
    }

    /// The same call, of this client.
    pub fn of(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// When the call began.
    #[must_use]
    pub fn begun(&self) -> Instant {
        self.begun
    }
}

impl Accounting {
    /// The counters of one API name of one protocol, of all clients together, as they are now. What calls have waited for
    /// is told by [`Accounting::snapshot`].
    #[must_use]
    pub fn cell(&self, api: Api, protocol: Protocol) -> &Cell {
        let index = index(api, protocol);
        let total = &self.totals[index];
        let clients = self.clients.read();
        let of_clients = || clients.values().filter_map(|cells| cells[index].get());
        // Counters only grow, and of two who look at the same time the later one has the larger sum.
        let sum = |counter: &dyn Fn(&Cell) -> &AtomicU64| {
            let sum = of_clients().map(|cell| counter(cell).load(Ordering::Relaxed)).sum();
            counter(total).fetch_max(sum, Ordering::Relaxed);
        };
        sum(&|cell| &cell.calls);
        sum(&|cell| &cell.errors);
        sum(&|cell| &cell.bytes);
        sum(&|cell| &cell.nanos);
        (0..HISTOGRAM_BUCKETS).for_each(|n| sum(&|cell| &cell.latency[n]));
        (0..SIZE_BUCKETS).for_each(|n| sum(&|cell| &cell.sizes[n]));
        total
    }

    /// What every client has called by every name, as far as it has.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Record> {
        let clients = self.clients.read();
        let mut records = Vec::new();
        for (client, cells) in clients.iter() {
            for protocol in Protocol::ALL {
                for api in Api::ALL.iter().copied() {
                    if let Some(cell) = cells[index(api, protocol)].get() {
                        records.push(Record { client: *client, protocol, api, counts: cell.counts() });
                    }
                }
            }
        }
        records.sort_by_key(|record| (record.client, record.protocol as usize, record.api as usize));
        records
    }

    /// A call has ended, having moved `bytes` of payload. What it has waited for is taken from the operation that is polled
    /// ([`timings`]).
    pub fn end(&self, measure: Measure, bytes: u64, ok: bool) {
        let index = index(measure.api, measure.protocol);
        let count = |cells: &Cells| cells[index].get_or_init(Box::default).count(&measure, bytes, ok);
        {
            let clients = self.clients.read();
            let is_full = clients.len() > CLIENTS_MAX; // those above the limit are in
            let others = || clients.get(&Client::Unknown).filter(|_| is_full);
            if let Some(cells) = clients.get(&measure.client).or_else(others) {
                return count(cells);
            }
        }
        let mut clients = self.clients.write();
        let client = if clients.len() < CLIENTS_MAX { measure.client } else { Client::Unknown };
        count(clients.entry(client).or_insert_with(|| cells(OnceLock::new).collect()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_their_limit_says() {
        for nanos in [0, 999, 1_000, 1_001, 2_000, 2_001, 1_000_000, 3_999_999_999, u64::MAX] {
            let latency = Duration::from_nanos(nanos);
            let bucket = bucket_of(latency);
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
    fn clients_are_counted_apart_and_those_above_the_limit_together() {
        let accounting = Accounting::default();
        let client = |n: usize| Client::Guid(u128::try_from(n).unwrap().to_le_bytes());
        for n in 0..CLIENTS_MAX + 10 {
            accounting.end(Measure::begin(Api::Read, Protocol::Smb).of(client(n)), 4096, true);
        }
        let records = accounting.snapshot();
        assert_eq!(records.len(), CLIENTS_MAX + 1);
        assert_eq!((records[0].client, records[0].counts.calls), (Client::Unknown, 10));
        assert!(records[1..].iter().all(|r| r.counts.calls == 1 && r.counts.sizes[3] == 1));
        let total = accounting.cell(Api::Read, Protocol::Smb);
        assert_eq!(total.bytes.load(Ordering::Relaxed), 4096 * (CLIENTS_MAX as u64 + 10));
    }

    #[tokio::test]
    async fn what_a_call_waited_for_is_told_apart() {
        let accounting = Accounting::default();
        let second = Duration::from_secs(1);
        let call = std::pin::pin!(async {
            let measure = Measure::begin(Api::Write, Protocol::Smb);
            timings::waited(Limit::Throughput, second);
            timings::queued(second * 2);
            tokio::task::yield_now().await;
            accounting.end(measure, 1, true);
            accounting.end(measure, 1, true);
        });
        timings::scope(call).await;
        let counts = accounting.snapshot()[0].counts;
        assert_eq!((counts.limit.time, counts.queue.time), (second, second * 2), "once");
        assert_eq!(counts.throttled[Limit::Throughput as usize], 1);
        assert_eq!(response_type(Api::Write, Limit::Throughput), "SuccessWithShareIngressThrottling");
        assert_eq!(counts.limit.histogram.iter().sum::<u64>(), 1);
    }

    #[test]
    fn calls_are_counted_in_their_own_cell() {
        let accounting = Accounting::default();
        accounting.end(Measure::begin(Api::Read, Protocol::Nfs3), 4096, true);
        accounting.end(Measure::begin(Api::Read, Protocol::Nfs3), 0, false);
        let cell = accounting.cell(Api::Read, Protocol::Nfs3);
        assert_eq!(cell.calls.load(Ordering::Relaxed), 2);
        assert_eq!(cell.errors.load(Ordering::Relaxed), 1);
        assert_eq!(cell.bytes.load(Ordering::Relaxed), 4096);
        assert_eq!(cell.latency.iter().map(|c| c.load(Ordering::Relaxed)).sum::<u64>(), 2);
        assert_eq!(accounting.cell(Api::Read, Protocol::Smb).calls.load(Ordering::Relaxed), 0);
        for (number, api) in Api::ALL.iter().enumerate() {
            assert_eq!(*api as usize, number);
        }
    }
}

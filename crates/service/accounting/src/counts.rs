//! What calls cost: counters and histograms for one operation. [`crate::account`] keeps them by client.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use limits::{Counted, Limit, Scope};

use crate::in_use::Uses;
use crate::{Api, Client, Cost, Ending, Outcome};

/// Buckets of a latency histogram: [`bucket_limit`].
pub const HISTOGRAM_BUCKETS: usize = 24;

/// The upper limit of a bucket: 2^n microseconds; the last bucket has none.
#[must_use]
pub fn bucket_limit(bucket: usize) -> Option<Duration> {
    (bucket + 1 < HISTOGRAM_BUCKETS).then(|| Duration::from_micros(1 << bucket))
}

/// The bucket that something belongs to which took so long.
#[must_use]
pub fn bucket_of(time: Duration) -> usize {
    bucket_of_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn bucket_of_nanos(nanos: u64) -> usize {
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

/// The counters of one connection for one operation. Only the connection's thread writes them; other threads
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
            add(&self.histogram[bucket_of_nanos(nanos)], 1);
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
    pub(crate) fn count(&self, cost: &Cost, ending: &Ending) {
        let Ending { at, round_trip, bytes, outcome } = *ending;
        let latency = nanos(at.saturating_duration_since(cost.begun));
        let round_trip = nanos(round_trip.unwrap_or_default());
        add(&self.calls, 1);
        add(&self.nanos, latency);
        add(&self.latency[bucket_of_nanos(latency)], 1);
        self.network.add(round_trip);
        add(&self.end_to_end[bucket_of_nanos(latency.saturating_add(round_trip))], 1);
        match outcome {
            Outcome::Done if cost.api.moves_data() => add(&self.sizes[size_bucket_of(bytes)], 1),
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
        if let Some(used) = cost.used {
            self.uses.get_or_init(Box::default).note(used, at);
        }
        let spent = cost.waits;
        if spent.is_any() {
            let waits = self.waits.get_or_init(Box::default);
            let (limit, queue) = (nanos(spent.limit), nanos(spent.queue));
            waits.limit.add(limit);
            waits.queue.add(queue);
            let storage = latency.saturating_sub(limit).saturating_sub(queue);
            add(&waits.latency[bucket_of_nanos(latency)], 1);
            add(&waits.storage[bucket_of_nanos(storage)], 1);
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

/// The counts of one client for one operation at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The client; [`Client::Unknown`] for all clients together that are not counted separately.
    pub client: Client,
    /// The operation, or one of those that are counted together with it.
    pub api: &'static Api,
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
pub fn response_type(api: &Api, limit: Limit) -> &'static str {
    match (limit.scope(), limit.counted()) {
        (Scope::Share, Counted::Operations) => "SuccessWithShareIopsThrottling",
        (Scope::Share, Counted::BytesRead) => "SuccessWithShareEgressThrottling",
        (Scope::Share, Counted::BytesWritten) => "SuccessWithShareIngressThrottling",
        (Scope::Share, Counted::Bytes) if api.is_write() => "SuccessWithShareIngressThrottling",
        (Scope::Share, Counted::Bytes) => "SuccessWithShareEgressThrottling",
        (Scope::Share, Counted::MetadataOperations) | (Scope::Client | Scope::File, _) => {
            "SuccessWithThrottling"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_their_limit_says() {
        for nanos in [0, 999, 1_000, 1_001, 2_000, 2_001, 1_000_000, 3_999_999_999, u64::MAX] {
            let latency = Duration::from_nanos(nanos);
            let bucket = bucket_of_nanos(super::nanos(latency));
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
}

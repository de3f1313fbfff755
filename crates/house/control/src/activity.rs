//! The activity in the shares: `/v1/activity`. Counters since the server started; two readings give a rate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use share::{Api, CacheCounts, Counts, InUse, Record, Share, bucket_limit, size_limit};

/// The largest small read or write. The documentation's advice depends on this value (docs/advice.md).
const SMALL_BYTES: u64 = 16 * 1024;

/// A file or open counts as in use if it was used within this time.
const IN_USE_WITHIN: Duration = Duration::from_secs(10);

/// All shares that are served, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// The shares.
    pub shares: Vec<ShareActivity>,
}

/// One share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShareActivity {
    /// The name of the share.
    pub name: String,
    /// The plan of the share.
    pub plan: String,
    /// The limits of the plan, by name: operations and bytes per second. A limit that is missing does not apply.
    pub limits: BTreeMap<String, u64>,
    /// The most bytes that the share holds; none without a limit.
    pub capacity_bytes: Option<u64>,
    /// Bytes that the files occupy; none before they were counted, and without a capacity.
    #[serde(default)]
    pub used_bytes: Option<u64>,
    /// Files and directories, at the last count.
    #[serde(default)]
    pub files: Option<u64>,
    /// Burst credits that are left; none without bursts.
    pub burst_credits: Option<u64>,
    /// The limits that operations are waiting for now.
    pub throttled: Vec<String>,
    /// Operations that wait for a limit.
    pub waiting: u64,
    /// How much has waited for each limit. Limits for which nothing has waited are left out.
    #[serde(default)]
    pub waits: Vec<LimitWaits>,
    /// The activity of the metadata cache; none if there is no cache.
    #[serde(default)]
    pub cache: Option<CacheActivity>,
    /// By protocol and API name. Calls that were never made are left out.
    pub apis: Vec<ApiActivity>,
    /// All calls, by their time from arrival to answer. Times that no call took are left out.
    #[serde(default)]
    pub latencies: Vec<LatencyCount>,
    /// Reads that succeeded, by their size. Sizes that no read had are left out.
    #[serde(default)]
    pub read_sizes: Vec<SizeCount>,
    /// Writes that succeeded, by their size.
    #[serde(default)]
    pub write_sizes: Vec<SizeCount>,
}

/// Calls that took more than half of this time, and at most all of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyCount {
    /// The time; none: longer than all others.
    pub seconds_max: Option<f64>,
    /// The number of calls.
    pub calls: u64,
}

/// Reads or writes of more than half of this size, and at most all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// The size; none: larger than all others.
    pub bytes_max: Option<u64>,
    /// The number of calls.
    pub calls: u64,
}

/// What has waited for one limit since the server started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitWaits {
    /// The limit's name.
    pub limit: String,
    /// Operations that waited for it.
    pub operations: u64,
    /// How long they waited, all together.
    pub seconds: f64,
}

/// What a metadata cache has done since the share was opened, and what it contains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheActivity {
    /// Answers from memory.
    pub hits: u64,
    /// Answers from the storage, because the cache had none.
    pub misses: u64,
    /// Changes that were reported to the cache.
    pub invalidations: u64,
    /// Directories of which something is cached.
    pub directories: u64,
    /// Memory that the cache uses.
    pub bytes: u64,
}

impl From<CacheCounts> for CacheActivity {
    fn from(counts: CacheCounts) -> Self {
        let kinds = [counts.names, counts.attributes, counts.listings, counts.handles];
        Self {
            hits: counts.absent + kinds.iter().map(|kind| kind.hits).sum::<u64>(),
            misses: kinds.iter().map(|kind| kind.misses).sum(),
            invalidations: counts.invalidations,
            directories: counts.directories as u64,
            bytes: counts.bytes as u64,
        }
    }
}

/// The calls of one API name over one protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiActivity {
    /// The protocol.
    pub protocol: String,
    /// The name.
    pub api: String,
    /// Calls that were answered.
    pub calls: u64,
    /// Calls that were answered with an error.
    pub errors: u64,
    /// Bytes of payload, received and sent.
    pub bytes: u64,
    /// Reads and writes of at most 16 KiB.
    #[serde(default)]
    pub small: u64,
    /// Calls that waited for a limit of the share.
    #[serde(default)]
    pub throttled: u64,
    /// Time from arrival to answer, of all calls together.
    pub seconds: f64,
    /// The part of that time spent waiting for the limits of the share.
    #[serde(default)]
    pub limit_seconds: f64,
    /// The part of that time spent waiting for a thread that may block.
    #[serde(default)]
    pub queue_seconds: f64,
    /// The rest of that time: the storage, and the server around it.
    #[serde(default)]
    pub storage_seconds: f64,
    /// In addition, the network: the round trip time of the connection of each call.
    #[serde(default)]
    pub network_seconds: f64,
}

/// The activity of one client: `/v1/clients/{client}/activity`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientActivity {
    /// The client: the ClientGuid of an SMB client, the address of an NFS client.
    pub client: String,
    /// The shares to which the client has made calls.
    pub shares: Vec<ClientShareActivity>,
}

/// The activity of one client in one share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientShareActivity {
    /// The share.
    pub name: String,
    /// Files that the client has read or written in the last ten seconds: an estimate, exact for small numbers.
    pub files_in_use: u64,
    /// Opens through which the client has done so; NFSv3 has none.
    pub opens_in_use: u64,
    /// By protocol and API name. Calls that the client never made are left out.
    pub apis: Vec<ApiActivity>,
}

/// The activity in these shares.
pub(crate) fn of(shares: &[Arc<Share>]) -> Activity {
    Activity { shares: shares.iter().map(|share| of_share(share)).collect() }
}

/// The activity in a share.
pub(crate) fn of_share(share: &Share) -> ShareActivity {
    let status = share.limits_status();
    let rates = limits::Limit::ALL
        .iter()
        .filter_map(|limit| Some((limit.name().to_owned(), status.limits.rate(*limit)?)));
    let apis = add_up(&share.accounting().snapshot());
    ShareActivity {
        name: share.name().to_owned(),
        plan: status.plan.to_string(),
        limits: rates.collect(),
        capacity_bytes: status.limits.capacity,
        used_bytes: status.used,
        files: status.files,
        burst_credits: status.credits,
        throttled: status.throttled.iter().map(|limit| limit.name().to_owned()).collect(),
        waiting: status.waiting as u64,
        waits: status
            .waits
            .iter()
            .map(|(limit, waits)| LimitWaits {
                limit: limit.name().to_owned(),
                operations: waits.operations,
                seconds: waits.time.as_secs_f64(),
            })
            .collect(),
        cache: share.cache_counts().map(CacheActivity::from),
        latencies: latencies(apis.values()),
        read_sizes: sizes(apis.iter().filter(|(api, _)| api.moves_data() && !api.is_write())),
        write_sizes: sizes(apis.iter().filter(|(api, _)| api.is_write())),
        apis: apis.into_iter().map(api_activity).collect(),
    }
}

fn latencies<'a>(counts: impl Iterator<Item = &'a Counts>) -> Vec<LatencyCount> {
    let mut sum = Counts::default();
    counts.for_each(|counts| sum.add(counts));
    let with_limit = |(bucket, calls): (usize, &u64)| LatencyCount {
        seconds_max: bucket_limit(bucket).map(|limit| limit.as_secs_f64()),
        calls: *calls,
    };
    sum.latency.iter().enumerate().map(with_limit).filter(|count| count.calls > 0).collect()
}

fn sizes<'a>(counts: impl Iterator<Item = (&'a &'static Api, &'a Counts)>) -> Vec<SizeCount> {
    let mut sum = Counts::default();
    counts.for_each(|(_, counts)| sum.add(counts));
    let with_limit =
        |(bucket, calls): (usize, &u64)| SizeCount { bytes_max: size_limit(bucket), calls: *calls };
    sum.sizes.iter().enumerate().map(with_limit).filter(|count| count.calls > 0).collect()
}

fn api_activity((api, counts): (&Api, Counts)) -> ApiActivity {
    let is_small = |bucket: &usize| size_limit(*bucket).is_some_and(|bytes| bytes <= SMALL_BYTES);
    let small =
        counts.sizes.iter().enumerate().filter(|(bucket, _)| is_small(bucket)).map(|(_, calls)| calls);
    ApiActivity {
        protocol: api.protocol.to_owned(),
        api: api.name.to_owned(),
        calls: counts.calls,
        errors: counts.errors,
        bytes: counts.bytes,
        small: small.sum(),
        throttled: counts.throttled.iter().sum(),
        seconds: counts.time.as_secs_f64(),
        limit_seconds: counts.limit.time.as_secs_f64(),
        queue_seconds: counts.queue.time.as_secs_f64(),
        storage_seconds: counts.storage_time().as_secs_f64(),
        network_seconds: counts.network.time.as_secs_f64(),
    }
}

/// The activity of a client in each share to which it has made calls; None if there is no such client.
pub(crate) fn of_client(shares: &[Arc<Share>], name: &str) -> Option<ClientActivity> {
    let of_share = |share: &Arc<Share>| {
        let accounting = share.accounting();
        let mut records = accounting.snapshot();
        records.retain(|record| record.client.to_string() == name);
        let client = records.first()?.client;
        let InUse { files, opens } = accounting.in_use(client, IN_USE_WITHIN);
        let apis = add_up(&records).into_iter().map(api_activity).collect();
        Some(ClientShareActivity {
            name: share.name().to_owned(),
            files_in_use: files,
            opens_in_use: opens,
            apis,
        })
    };
    let shares: Vec<_> = shares.iter().filter_map(of_share).collect();
    (!shares.is_empty()).then(|| ClientActivity { client: name.to_owned(), shares })
}

/// The calls of all clients together, by operation.
pub(crate) fn add_up(records: &[Record]) -> BTreeMap<&'static Api, Counts> {
    let mut sums: BTreeMap<_, Counts> = BTreeMap::new();
    for Record { api, counts, .. } in records {
        sums.entry(*api).or_default().add(counts);
    }
    sums
}

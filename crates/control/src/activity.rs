//! What is going on in the shares: `/v1/activity`. Counters since the server started; two looks make a rate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use share::{Api, CacheCounts, Counts, InUse, Protocol, Record, Share, size_limit};

/// What counts as small: the documents' advice turns on it (docs/advice.md).
const SMALL_BYTES: u64 = 16 * 1024;

/// What was used within so long is in use.
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
    /// Its name.
    pub name: String,
    /// What is provisioned.
    pub plan: String,
    /// What that comes to: operations and bytes in a second, by the limit's name. What is not there is not limited.
    pub limits: BTreeMap<String, u64>,
    /// Bytes that the share holds at most; none without a limit.
    pub capacity_bytes: Option<u64>,
    /// Bytes that its files have; none before they were counted, and without a capacity.
    #[serde(default)]
    pub used_bytes: Option<u64>,
    /// Files and directories, as they were counted last.
    #[serde(default)]
    pub files: Option<u64>,
    /// Burst credits that are left; none without bursts.
    pub burst_credits: Option<u64>,
    /// The limits that operations are waiting for at this moment.
    pub throttled: Vec<String>,
    /// Operations that wait for a limit.
    pub waiting: u64,
    /// What has waited for which limit: those that anything has waited for.
    #[serde(default)]
    pub waits: Vec<LimitWaits>,
    /// What the metadata cache does; none where there is none.
    #[serde(default)]
    pub cache: Option<CacheActivity>,
    /// By protocol and API name: those that were called.
    pub apis: Vec<ApiActivity>,
}

/// What has waited for one limit since the server started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitWaits {
    /// The limit's name.
    pub limit: String,
    /// Operations that waited for it.
    pub operations: u64,
    /// How long, all together.
    pub seconds: f64,
}

/// What a metadata cache has done since the share was opened, and what it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheActivity {
    /// Answers from memory.
    pub hits: u64,
    /// Answers from the storage, for want of one.
    pub misses: u64,
    /// Changes that it was told of.
    pub invalidations: u64,
    /// Directories of which something is kept.
    pub directories: u64,
    /// Memory of what is kept.
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
    /// Those answered with an error.
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
    /// Of that, waiting for the limits of the share.
    #[serde(default)]
    pub limit_seconds: f64,
    /// Of that, waiting for a thread that may block.
    #[serde(default)]
    pub queue_seconds: f64,
    /// Of that, what is left: the storage, and the server around it.
    #[serde(default)]
    pub storage_seconds: f64,
    /// Beside that, the way to the clients and back: the round trip of the connection of each call.
    #[serde(default)]
    pub network_seconds: f64,
}

/// What one client does: `/v1/clients/{client}/activity`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientActivity {
    /// The client: the ClientGuid of an SMB client, the address of an NFS client.
    pub client: String,
    /// The shares that it has called anything of.
    pub shares: Vec<ClientShareActivity>,
}

/// What one client does in one share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientShareActivity {
    /// The share.
    pub name: String,
    /// Files that it has read or written in the last ten seconds: an estimate, exact for a few.
    pub files_in_use: u64,
    /// Opens that it has done so with; NFSv3 has none.
    pub opens_in_use: u64,
    /// By protocol and API name: those that it has called.
    pub apis: Vec<ApiActivity>,
}

/// What is going on in these shares.
pub(crate) fn of(shares: &[Arc<Share>]) -> Activity {
    Activity { shares: shares.iter().map(|share| of_share(share)).collect() }
}

/// What is going on in a share.
pub(crate) fn of_share(share: &Share) -> ShareActivity {
    let status = share.limits_status();
    let rates = limits::Limit::ALL
        .iter()
        .filter_map(|limit| Some((limit.name().to_owned(), status.limits.rate(*limit)?)));
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
        apis: apis(share),
    }
}

fn apis(share: &Share) -> Vec<ApiActivity> {
    add_up(&share.accounting().snapshot()).into_iter().map(api_activity).collect()
}

fn api_activity((protocol, api, counts): (Protocol, Api, Counts)) -> ApiActivity {
    let is_small = |bucket: &usize| size_limit(*bucket).is_some_and(|bytes| bytes <= SMALL_BYTES);
    let small =
        counts.sizes.iter().enumerate().filter(|(bucket, _)| is_small(bucket)).map(|(_, calls)| calls);
    ApiActivity {
        protocol: protocol.name().to_owned(),
        api: api.name().to_owned(),
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

/// What a client does in each of the shares that it has called anything of; none where there is no such client.
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

/// What all clients have called together, by protocol and name, in the order of their numbers.
pub(crate) fn add_up(records: &[Record]) -> Vec<(Protocol, Api, Counts)> {
    let mut sums = BTreeMap::new();
    for Record { protocol, api, counts, .. } in records {
        let key = (*protocol as usize, *api as usize);
        sums.entry(key).or_insert_with(|| (*protocol, *api, Counts::default())).2.add(counts);
    }
    sums.into_values().collect()
}

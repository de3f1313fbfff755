//! The accounting of the shares as Prometheus text (exposition format 0.0.4). docs/metrics.md describes every family.

mod cluster;
mod identity;
mod pools;
mod quotas;
mod replications;
mod snapshots;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use limits::Limit;
use share::{
    Api, CacheCounts, Client, Counts, HISTOGRAM_BUCKETS, LimitsStatus, QuotaStatus, Record, SIZE_BUCKETS,
    Share, StoreHealth, Waited, bucket_limit, response_type, size_limit,
};

use crate::activity::add_up;
use crate::clients::Clients;
use crate::cluster::GatewayFigures;
use crate::configuration::Reload;
use crate::counters::{Counters, LookupCounts, MechanismLogons, Occupied};
use crate::health;
use crate::pools::Pool;
use crate::replications::ReplicationFigures;
use crate::served::ServedShares;
use crate::snapshots::SnapshotFigures;

/// The state of a share at one moment.
struct Look {
    /// The vserver that has the share; None: the server itself.
    vserver: Option<String>,
    name: String,
    records: Vec<Record>,
    status: LimitsStatus,
    /// Granted, broken, revoked.
    grants: [u64; 3],
    cache: Option<CacheCounts>,
    alarms: Vec<&'static str>,
    /// The number of opens, and the most that there may be.
    opens: (usize, usize),
    store: StoreHealth,
    quotas: Option<QuotaStatus>,
}

/// What is connected to the server at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Connected {
    pub(crate) smb_sessions: usize,
    pub(crate) smb_channels: usize,
    pub(crate) nfs_clients: usize,
    pub(crate) nfs_connections: usize,
}

impl From<&Clients> for Connected {
    fn from(clients: &Clients) -> Self {
        Self {
            smb_sessions: clients.smb_sessions.len(),
            smb_channels: clients.smb_sessions.iter().map(|session| session.channels.len()).sum(),
            nfs_clients: clients.nfs_clients.len(),
            nfs_connections: clients.nfs_clients.iter().map(|client| client.connections.len()).sum(),
        }
    }
}

/// The server apart from its shares, at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfServer {
    pub(crate) counters: Counters,
    pub(crate) connected: Connected,
    pub(crate) lookups: Vec<LookupCounts>,
    pub(crate) occupied: Vec<Occupied>,
    pub(crate) shards_stuck: usize,
    pub(crate) reload: Reload,
    pub(crate) snapshots: Vec<SnapshotFigures>,
    pub(crate) replications: Vec<ReplicationFigures>,
    pub(crate) pools: Vec<Pool>,
    /// None: the server is no gateway of a cluster.
    pub(crate) gateway: Option<GatewayFigures>,
    pub(crate) certificate_expires: Option<SystemTime>,
    pub(crate) up: Duration,
}

impl Look {
    fn at(vserver: Option<&str>, share: &Share) -> Self {
        let counts = share.grant_counts();
        let grants = [&counts.granted, &counts.broken, &counts.revoked];
        Self {
            vserver: vserver.map(str::to_owned),
            name: share.name().to_owned(),
            records: share.accounting().snapshot(),
            status: share.limits_status(),
            grants: grants.map(|count| count.load(Ordering::Relaxed)),
            cache: share.cache_counts(),
            alarms: health::alarms(share),
            opens: share.open_count(),
            store: share.store_health(),
            quotas: share.quota_glance(),
        }
    }

    fn labels(&self) -> String {
        share_labels(self.vserver.as_deref(), &self.name)
    }

    /// The calls of all clients, by name and protocol, with their labels.
    fn calls(&self) -> impl Iterator<Item = Called> {
        add_up(&self.records).into_iter().map(|(api, counts)| {
            let labels = format!("{},protocol=\"{}\",api=\"{}\"", self.labels(), api.protocol, api.name);
            Called { labels, api, counts }
        })
    }
}

/// The calls of one name over one protocol.
struct Called {
    labels: String,
    api: &'static Api,
    counts: Counts,
}

/// The labels of a share. Those of the server itself have no vserver.
fn share_labels(vserver: Option<&str>, share: &str) -> String {
    let of_share = format!("share=\"{}\"", escape(share));
    match vserver {
        None => of_share,
        Some(vserver) => format!("{of_share},vserver=\"{}\"", escape(vserver)),
    }
}

/// The audience of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Anybody who reaches the address: no client is named.
    Everybody,
    /// Callers who have presented a token.
    Administrators,
}

pub(crate) fn render(shares: &ServedShares, server: &OfServer, audience: Audience) -> String {
    let (mut looks, mut awaited) = (Vec::new(), Vec::new());
    for (vserver, table) in shares.tables() {
        looks.extend(table.in_order().iter().map(|share| Look::at(vserver, share)));
        awaited.extend(table.awaited().map(|(_, name)| share_labels(vserver, name)));
    }
    write_all(&looks, &awaited, server, audience)
}

/// `awaited` has the labels of the shares whose storage does not answer yet.
fn write_all(looks: &[Look], awaited: &[String], server: &OfServer, audience: Audience) -> String {
    let mut text = Text::default();
    text.family("anabranch_build_info", "gauge", "The program's version.");
    text.line("", &format!("version=\"{}\"", env!("CARGO_PKG_VERSION")), 1);
    text.family("anabranch_uptime_seconds", "gauge", "Time since the server started.");
    text.line("", "", format_args!("{:.3}", server.up.as_secs_f64()));
    write_server(&mut text, server);
    identity::write_lookups(&mut text, &server.lookups);
    identity::write_contexts(&mut text, &server.counters.contexts);
    write_reload(&mut text, &server.reload);
    write_certificate(&mut text, server.certificate_expires);
    let calls: Vec<Called> = looks.iter().flat_map(Look::calls).collect();
    write_calls(&mut text, &calls);
    write_latency(&mut text, &calls);
    if audience == Audience::Administrators {
        write_clients(&mut text, looks);
        let of_share = |look| quotas::OfShare::of(look);
        quotas::write(&mut text, &looks.iter().filter_map(of_share).collect::<Vec<_>>());
    }
    write_limits(&mut text, looks);
    write_size(&mut text, looks);
    write_grants(&mut text, looks);
    write_cache(&mut text, looks);
    write_opens(&mut text, looks);
    write_stores(&mut text, looks);
    write_alarms(&mut text, looks, awaited);
    snapshots::write(&mut text, &server.snapshots);
    replications::write(&mut text, &server.replications);
    pools::write(&mut text, &server.pools);
    cluster::write(&mut text, server.gateway.as_ref());
    text.0
}

fn write_server(text: &mut Text, server: &OfServer) {
    for counter in server.counters.all() {
        text.family(counter.name, "counter", counter.help);
        text.line("", "", counter.count);
    }
    let help = "SMB logons by what the client wanted to log on with.";
    text.family("anabranch_logons_by_mechanism_total", "counter", help);
    for MechanismLogons { mechanism, succeeded, failed } in server.counters.logons_by_mechanism {
        text.line("", &format!("mechanism=\"{mechanism}\",result=\"success\""), succeeded);
        text.line("", &format!("mechanism=\"{mechanism}\",result=\"failure\""), failed);
    }
    let Connected { smb_sessions, smb_channels, nfs_clients, nfs_connections } = server.connected;
    for (name, help, value) in [
        ("anabranch_smb_sessions", "SMB sessions.", smb_sessions),
        ("anabranch_smb_channels", "Channels of SMB sessions.", smb_channels),
        ("anabranch_nfs_clients", "Addresses of connected NFS clients.", nfs_clients),
        ("anabranch_nfs_connections", "NFS connections.", nfs_connections),
        ("anabranch_shards_stuck", "Shards that are held up.", server.shards_stuck),
    ] {
        text.family(name, "gauge", help);
        text.line("", "", value);
    }
    let label = |occupied: &Occupied| format!("protocol=\"{}\"", occupied.protocol);
    text.family("anabranch_connections", "gauge", "Connections.");
    for occupied in &server.occupied {
        text.line("", &label(occupied), occupied.connections);
    }
    text.family("anabranch_connections_limit", "gauge", "Connections that there can be.");
    for occupied in &server.occupied {
        text.line("", &label(occupied), occupied.max);
    }
}

fn write_certificate(text: &mut Text, expires: Option<SystemTime>) {
    let help = "When the certificate of the control address expires.";
    text.family("anabranch_certificate_expiry_timestamp_seconds", "gauge", help);
    if let Some(since_epoch) = expires.and_then(|expires| expires.duration_since(UNIX_EPOCH).ok()) {
        text.line("", "", since_epoch.as_secs());
    }
}

fn write_reload(text: &mut Text, reload: &Reload) {
    let help = "Attempts to read the configuration again.";
    text.family("anabranch_configuration_reloads_total", "counter", help);
    text.line("", "result=\"success\"", reload.succeeded);
    text.line("", "result=\"failure\"", reload.failed);
    let help = "Whether the last attempt to read the configuration again succeeded.";
    text.family("anabranch_configuration_last_reload_successful", "gauge", help);
    text.line("", "", u8::from(reload.last_succeeded));
    let help = "When the configuration in effect was read.";
    text.family("anabranch_configuration_read_timestamp_seconds", "gauge", help);
    text.line("", "", reload.read);
}

fn write_calls(text: &mut Text, calls: &[Called]) {
    type Counter = fn(&Called) -> Option<u64>;
    let counters: [(&str, &str, Counter); 6] = [
        ("anabranch_requests_total", "Requests answered.", |called| Some(called.counts.calls)),
        ("anabranch_request_errors_total", "Requests answered with an error.", |called| {
            Some(called.counts.errors)
        }),
        ("anabranch_request_faults_total", "Requests that failed by a fault of the server.", |called| {
            Some(called.counts.faults)
        }),
        ("anabranch_request_bytes_total", "Payload bytes received and sent.", |called| {
            Some(called.counts.bytes)
        }),
        ("anabranch_ingress_bytes_total", "Bytes that clients wrote.", |called| {
            called.api.is_write().then_some(called.counts.bytes)
        }),
        ("anabranch_egress_bytes_total", "Bytes that clients read.", |called| {
            called.api.is_read().then_some(called.counts.bytes)
        }),
    ];
    for (name, help, counter) in counters {
        text.family(name, "counter", help);
        for called in calls {
            if let Some(count) = counter(called) {
                text.line("", &called.labels, count);
            }
        }
    }
    text.family("anabranch_io_size_bytes", "histogram", "Reads and writes by their size.");
    for called in calls.iter().filter(|called| called.api.moves_data()) {
        let limit = |n| size_limit(n).map(|bytes| bytes.to_string());
        text.histogram(&called.labels, &called.counts.sizes[..SIZE_BUCKETS], limit, called.counts.bytes);
    }
}

fn write_latency(text: &mut Text, calls: &[Called]) {
    let limit = |n| bucket_limit(n).map(|limit| limit.as_secs_f64().to_string());
    text.family(
        "anabranch_request_duration_seconds",
        "histogram",
        "Time from the arrival of a request to its reply.",
    );
    for Called { labels, counts, .. } in calls {
        text.histogram(labels, &counts.latency[..HISTOGRAM_BUCKETS], limit, counts.time.as_secs_f64());
    }
    type Part = fn(&Counts) -> &Waited;
    let parts: [(&str, &str, Part); 3] = [
        (
            "anabranch_request_limit_seconds",
            "Waiting time of requests that waited for limits of the share.",
            |counts| &counts.limit,
        ),
        (
            "anabranch_request_queue_seconds",
            "Waiting time of requests that waited for a thread that may block.",
            |counts| &counts.queue,
        ),
        (
            "anabranch_request_network_seconds",
            "Round trip of the connection of each request, where it is known; not part of the duration.",
            |counts| &counts.network,
        ),
    ];
    for (name, help, part) in parts {
        text.family(name, "histogram", help);
        for Called { labels, counts, .. } in calls {
            let part = part(counts);
            if !part.time.is_zero() {
                text.histogram(labels, &part.histogram, limit, part.time.as_secs_f64());
            }
        }
    }
    let help = "The rest of the time of a request: the storage, and the server around it.";
    text.family("anabranch_request_storage_seconds", "histogram", help);
    for Called { labels, counts, .. } in calls {
        text.histogram(labels, &counts.storage, limit, counts.storage_time().as_secs_f64());
    }
    let help = "Sum of the duration of a request and the round trip of its connection.";
    text.family("anabranch_request_end_to_end_seconds", "histogram", help);
    for Called { labels, counts, .. } in calls {
        text.histogram(labels, &counts.end_to_end, limit, counts.end_to_end_time().as_secs_f64());
    }
    write_throttled(text, calls);
}

fn write_throttled(text: &mut Text, calls: &[Called]) {
    let help = "Requests that waited for a limit, by the limit for which they waited longest.";
    text.family("anabranch_throttled_requests_total", "counter", help);
    for Called { labels, api, counts } in calls {
        for (limit, count) in Limit::ALL.iter().zip(counts.throttled).filter(|(_, count)| *count > 0) {
            let (limit, kind) = (limit.name(), response_type(api, *limit));
            text.line("", &format!("{labels},limit=\"{limit}\",response_type=\"{kind}\""), count);
        }
    }
}

/// Per client, without API names: with them, a thousand clients would produce a hundred thousand lines.
fn write_clients(text: &mut Text, looks: &[Look]) {
    let mut clients: BTreeMap<String, Counts> = BTreeMap::new();
    for look in looks {
        for Record { client, api, counts } in &look.records {
            let labels = client_labels(look, *client, api.protocol);
            clients.entry(labels).or_default().add(counts);
        }
    }
    type Counter = fn(&Counts) -> f64;
    #[expect(clippy::cast_precision_loss, reason = "Prometheus has nothing but floating point")]
    let counters: [(&str, &str, Counter); 5] = [
        ("anabranch_client_requests_total", "Requests of a client.", |counts| counts.calls as f64),
        ("anabranch_client_request_bytes_total", "Payload bytes of a client.", |counts| counts.bytes as f64),
        (
            "anabranch_client_request_seconds_total",
            "Time of the requests of a client, from arrival to reply.",
            |counts| counts.time.as_secs_f64(),
        ),
        ("anabranch_client_limit_seconds_total", "Time that requests waited for limits.", |counts| {
            counts.limit.time.as_secs_f64()
        }),
        (
            "anabranch_client_network_seconds_total",
            "In addition, the round trips of the connections of a client.",
            |counts| counts.network.time.as_secs_f64(),
        ),
    ];
    for (name, help, counter) in counters {
        text.family(name, "counter", help);
        for (labels, counts) in &clients {
            text.line("", labels, counter(counts));
        }
    }
}

fn client_labels(look: &Look, client: Client, protocol: &str) -> String {
    format!("{},protocol=\"{protocol}\",client=\"{client}\"", look.labels())
}

fn write_limits(text: &mut Text, looks: &[Look]) {
    text.family("anabranch_plan_info", "gauge", "The plan of a share.");
    for look in looks {
        let plan = escape(&look.status.plan.to_string());
        text.line("", &format!("{},plan=\"{plan}\"", look.labels()), 1);
    }
    let of_limit = |look: &Look, limit: Limit| format!("{},limit=\"{}\"", look.labels(), limit.name());
    let counts_operations = |limit: Limit| limit.name().ends_with("iops");
    for (name, help, operations) in [
        ("anabranch_limit_operations_per_second", "Operations per second that a limit allows.", true),
        ("anabranch_limit_bytes_per_second", "Bytes per second that a limit allows.", false),
    ] {
        text.family(name, "gauge", help);
        for look in looks {
            for limit in Limit::ALL.iter().filter(|limit| counts_operations(**limit) == operations) {
                if let Some(rate) = look.status.limits.rate(*limit) {
                    text.line("", &of_limit(look, *limit), rate);
                }
            }
        }
    }
    text.family("anabranch_limit_reached", "gauge", "Whether operations wait for a limit at this moment.");
    for look in looks {
        for limit in Limit::ALL.iter().filter(|limit| look.status.limits.rate(**limit).is_some()) {
            let reached = look.status.throttled.contains(limit);
            text.line("", &of_limit(look, *limit), u8::from(reached));
        }
    }
    text.family("anabranch_limit_waiting", "gauge", "Operations that wait for limits at this moment.");
    for look in looks {
        text.line("", &look.labels(), look.status.waiting);
    }
    text.family("anabranch_limit_waits_total", "counter", "Operations that have waited for a limit.");
    for look in looks {
        for (limit, waits) in &look.status.waits {
            text.line("", &of_limit(look, *limit), waits.operations);
        }
    }
    text.family("anabranch_limit_wait_seconds_total", "counter", "Time that operations have waited.");
    for look in looks {
        for (limit, waits) in &look.status.waits {
            text.line("", &of_limit(look, *limit), waits.time.as_secs_f64());
        }
    }
}

fn write_size(text: &mut Text, looks: &[Look]) {
    type Gauge = fn(&LimitsStatus) -> Option<u64>;
    let gauges: [(&str, &str, Gauge); 6] = [
        ("anabranch_capacity_bytes", "Provisioned bytes.", |status| status.limits.capacity),
        ("anabranch_used_bytes", "Bytes in files.", |status| status.used),
        ("anabranch_files", "Files and directories at the last count.", |status| status.files),
        (
            "anabranch_burst_operations_per_second",
            "Operations per second while there are burst credits.",
            |status| status.limits.burst.map(|burst| burst.iops),
        ),
        ("anabranch_burst_credits", "Remaining burst credits.", |status| status.credits),
        ("anabranch_burst_credits_limit", "Burst credits that can be saved up.", |status| {
            status.limits.burst.map(|burst| burst.credits)
        }),
    ];
    for (name, help, gauge) in gauges {
        text.family(name, "gauge", help);
        for look in looks {
            if let Some(value) = gauge(&look.status) {
                text.line("", &look.labels(), value);
            }
        }
    }
}

fn write_grants(text: &mut Text, looks: &[Look]) {
    let families = [
        ("anabranch_grants_total", "Oplocks, leases and delegations granted or extended."),
        ("anabranch_grant_breaks_total", "Breaks and recalls sent to clients."),
        ("anabranch_grants_revoked_total", "Grants revoked from clients that did not answer."),
    ];
    for (index, (name, help)) in families.into_iter().enumerate() {
        text.family(name, "counter", help);
        for look in looks {
            text.line("", &look.labels(), look.grants[index]);
        }
    }
}

fn write_cache(text: &mut Text, looks: &[Look]) {
    let cached = || looks.iter().filter_map(|look| Some((look.labels(), look.cache?)));
    let kinds = |cache: &CacheCounts| {
        [
            ("name", cache.names.hits, Some(cache.names.misses)),
            ("absent", cache.absent, None),
            ("attributes", cache.attributes.hits, Some(cache.attributes.misses)),
            ("listing", cache.listings.hits, Some(cache.listings.misses)),
            ("handle", cache.handles.hits, Some(cache.handles.misses)),
        ]
    };
    text.family("anabranch_cache_hits_total", "counter", "Answers of the metadata cache.");
    for (labels, cache) in cached() {
        for (kind, hits, _) in kinds(&cache) {
            text.line("", &format!("{labels},kind=\"{kind}\""), hits);
        }
    }
    text.family("anabranch_cache_misses_total", "counter", "Answers of the storage instead of the cache.");
    for (labels, cache) in cached() {
        for (kind, _, misses) in kinds(&cache) {
            if let Some(misses) = misses {
                text.line("", &format!("{labels},kind=\"{kind}\""), misses);
            }
        }
    }
    text.family("anabranch_cache_invalidations_total", "counter", "Changes reported to the cache.");
    for (labels, cache) in cached() {
        text.line("", &labels, cache.invalidations);
    }
    text.family("anabranch_cache_directories", "gauge", "Directories of which the cache keeps something.");
    for (labels, cache) in cached() {
        text.line("", &labels, cache.directories);
    }
    text.family("anabranch_cache_bytes", "gauge", "Memory of the cache.");
    for (labels, cache) in cached() {
        text.line("", &labels, cache.bytes);
    }
}

fn write_opens(text: &mut Text, looks: &[Look]) {
    text.family("anabranch_opens", "gauge", "Opens of files and directories.");
    for look in looks {
        text.line("", &look.labels(), look.opens.0);
    }
    text.family("anabranch_opens_limit", "gauge", "Opens that there may be.");
    for look in looks {
        text.line("", &look.labels(), look.opens.1);
    }
}

fn write_stores(text: &mut Text, looks: &[Look]) {
    text.family("anabranch_store_calls", "gauge", "Calls to the storage that are under way.");
    for look in looks {
        text.line("", &look.labels(), look.store.under_way);
    }
    text.family(
        "anabranch_store_calls_waiting",
        "gauge",
        "Requests that wait for a thread to call the storage.",
    );
    for look in looks {
        text.line("", &look.labels(), look.store.waiting);
    }
    let help = "How long the oldest call to the storage has been under way.";
    text.family("anabranch_store_longest_call_seconds", "gauge", help);
    for look in looks {
        text.line("", &look.labels(), look.store.longest.unwrap_or_default().as_secs_f64());
    }
}

fn write_alarms(text: &mut Text, looks: &[Look], awaited: &[String]) {
    text.family("anabranch_share_alarm", "gauge", "Whether something is wrong with the storage of a share.");
    for look in looks {
        for kind in health::ALARMS {
            let is_raised = look.alarms.contains(&kind);
            text.line("", &format!("{},kind=\"{kind}\"", look.labels()), u8::from(is_raised));
        }
    }
    for labels in awaited {
        text.line("", &format!("{labels},kind=\"stuck\""), 1);
    }
}

/// The text written so far, and the current metric family.
#[derive(Default)]
struct Text(String, &'static str);

impl Text {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.1 = name;
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, suffix: &str, labels: &str, value: impl std::fmt::Display) {
        let name = self.1;
        let _ = if labels.is_empty() {
            writeln!(self.0, "{name}{suffix} {value}")
        } else {
            writeln!(self.0, "{name}{suffix}{{{labels}}} {value}")
        };
    }

    /// `limit` is the upper end of a bucket. The last bucket has none.
    fn histogram(
        &mut self,
        labels: &str,
        buckets: &[u64],
        limit: impl Fn(usize) -> Option<String>,
        sum: impl std::fmt::Display,
    ) {
        let mut count = 0;
        for (index, bucket) in buckets.iter().enumerate() {
            count += bucket;
            let limit = limit(index).unwrap_or_else(|| "+Inf".to_owned());
            self.line("_bucket", &format!("{labels},le=\"{limit}\""), count);
        }
        self.line("_sum", labels, sum);
        // The sum of the buckets is used, not the number of calls: the two may have been read a moment apart.
        self.line("_count", labels, count);
    }
}

/// A label's value: backslash, quote and line feed are escaped.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;

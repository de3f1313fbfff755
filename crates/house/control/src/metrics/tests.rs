//! Every metric family is described, and everything described exists.

use std::collections::BTreeSet;
use std::sync::Arc;

use share::{
    Call, Caller, Ending, Identity, Outcome, Proof, QuotaAccount, QuotaRule, QuotaSubject, Settings, ShareId,
    ShareTable, Standing,
};

use super::*;
use crate::cluster::Takeovers;
use crate::counters::ContextCounts;
use crate::pools::RemovedDirectory;
use crate::replications::Replication;
use crate::served::ServedVserver;
use crate::trace::operation;

fn call(protocol: &str, api: &str) -> Call {
    let caller = Caller::new(Identity::unix(0, 0, Vec::new()), Proof::Stated);
    Call::new(operation(protocol, api).unwrap(), caller, std::time::Instant::now())
}

fn ending(bytes: u64, outcome: Outcome) -> Ending {
    Ending { at: std::time::Instant::now(), round_trip: None, bytes, outcome }
}

fn logons() -> [MechanismLogons; 3] {
    let by = |mechanism, succeeded, failed| MechanismLogons { mechanism, succeeded, failed };
    [by("kerberos", 9, 1), by("iakerb", 0, 0), by("ntlm", 2, 4)]
}

fn contexts() -> ContextCounts {
    ContextCounts { present: 6, max: 9, begun: 8, refused: 2, expired: 5, displaced: 1, calls: [1, 2, 3] }
}

/// A share that has a policy, and one whose storage has no snapshots.
fn snapshots() -> Vec<SnapshotFigures> {
    let share = |name: &str| SnapshotFigures { share: name.to_owned(), ..SnapshotFigures::default() };
    let figures = SnapshotFigures {
        count: Some(3),
        newest: Some(1_700_000_001),
        policy: Some("office".to_owned()),
        taken: 5,
        failed: 2,
        problem: Some("it is behind".to_owned()),
        ..share("da\"ta")
    };
    vec![figures, share("plain")]
}

fn replica() -> ReplicationFigures {
    let replication =
        Replication { state: "broken".to_owned(), as_of: Some(9), failures: 2, ..Replication::default() };
    ReplicationFigures { share: "co\"py".to_owned(), replication, received: 7 }
}

/// Each of these lines is one of the text.
fn check_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(&format!("\n{line}\n")), "{line}");
    }
}

/// A pool whose file system answers.
fn pool() -> Pool {
    let removed = |problem: Option<&str>| RemovedDirectory {
        problem: problem.map(str::to_owned),
        ..RemovedDirectory::default()
    };
    Pool {
        name: "fa\"st".to_owned(),
        shares: 2,
        deleted_shares: 1,
        promised: 30,
        capacity: Some(100),
        free: Some(60),
        removing: vec![removed(None), removed(Some("mounted")), removed(None)],
        ..Pool::default()
    }
}

#[test]
fn a_pool_has_sizes_and_what_waits_to_be_removed() {
    let silent =
        Pool { name: "silent".to_owned(), problem: Some("it does not answer".to_owned()), ..Pool::default() };
    let unknown = Pool { name: "unknown".to_owned(), ..Pool::default() };
    let pools = vec![pool(), silent, unknown];
    let server = OfServer { pools, ..OfServer::default() };
    let text = render(&ShareTable::default().present().into(), &server, Audience::Everybody);
    check_lines(
        &text,
        &[
            "anabranch_pool_available{pool=\"fa\\\"st\"} 1",
            "anabranch_pool_available{pool=\"silent\"} 0",
            "anabranch_pool_capacity_bytes{pool=\"fa\\\"st\"} 100",
            "anabranch_pool_used_bytes{pool=\"fa\\\"st\"} 40",
            "anabranch_pool_promised_bytes{pool=\"fa\\\"st\"} 30",
            "anabranch_pool_promised_bytes{pool=\"unknown\"} 0",
            "anabranch_pool_shares{pool=\"fa\\\"st\",state=\"present\"} 2",
            "anabranch_pool_shares{pool=\"fa\\\"st\",state=\"deleted\"} 1",
            "anabranch_pool_removals{pool=\"fa\\\"st\",state=\"waiting\"} 2",
            "anabranch_pool_removals{pool=\"fa\\\"st\",state=\"failing\"} 1",
        ],
    );
    assert!(!text.contains("capacity_bytes{pool=\"silent\"}"));
    assert!(!text.contains("available{pool=\"unknown\"}"), "nobody has asked it yet");
}

fn gateway() -> GatewayFigures {
    let last = vec![("fence", Duration::from_millis(63)), ("session", Duration::from_secs(1))];
    GatewayFigures {
        has_place: true,
        cut_off: vec!["eth0".to_owned()],
        served: vec![("files".to_owned(), 4)],
        takeovers: vec![Takeovers { vserver: "files".to_owned(), count: 2, last }],
    }
}

#[test]
fn a_gateway_tells_its_place_and_its_vservers_and_another_server_nothing() {
    let server = OfServer { gateway: Some(gateway()), ..OfServer::default() };
    let text = render(&ShareTable::default().present().into(), &server, Audience::Everybody);
    check_lines(
        &text,
        &[
            "anabranch_cluster_place 1",
            "anabranch_cluster_interface_cut_off{interface=\"eth0\"} 1",
            "anabranch_vserver_epoch{vserver=\"files\"} 4",
            "anabranch_vserver_takeovers_total{vserver=\"files\"} 2",
            "anabranch_vserver_takeover_seconds{vserver=\"files\",phase=\"fence\"} 0.063",
            "anabranch_vserver_takeover_seconds{vserver=\"files\",phase=\"session\"} 1.000",
        ],
    );
    let text = render(&ShareTable::default().present().into(), &OfServer::default(), Audience::Everybody);
    assert!(!text.contains("\nanabranch_cluster_place ") && !text.contains("\nanabranch_vserver_"), "{text}");
}

#[test]
fn a_replica_has_an_age_and_one_state() {
    let text = render(
        &ShareTable::default().present().into(),
        &OfServer { replications: vec![replica()], ..OfServer::default() },
        Audience::Everybody,
    );
    check_lines(
        &text,
        &[
            "anabranch_replica_as_of_timestamp_seconds{share=\"co\\\"py\"} 9",
            "anabranch_replica_received_bytes_total{share=\"co\\\"py\"} 7",
            "anabranch_replica_failures_total{share=\"co\\\"py\"} 2",
            "anabranch_replica_state{share=\"co\\\"py\",state=\"mirrored\"} 0",
            "anabranch_replica_state{share=\"co\\\"py\",state=\"broken\"} 1",
        ],
    );
}

#[test]
fn what_was_counted_is_shown_and_what_was_not_is_left_out() {
    let store = Arc::new(storage::memory::MemoryStore::new());
    let share = Share::new(ShareId(1), Settings::new("da\"ta"), store);
    let account = share.accounting().open(Client::Unknown);
    let read = call("smb", "Read");
    read.needs_no_turn();
    account.end(&read.cost(), &ending(4096, Outcome::Done));
    account.end(&read.cost(), &ending(0, Outcome::Refused));
    let counters =
        Counters { refused_connections: 7, failed_logons: 5, unheard_logons: 3, ..Counters::default() };
    let counters = Counters { logons_by_mechanism: logons(), contexts: contexts(), ..counters };
    let (subject, source) = ("numbers", "directory");
    let mut lookups =
        LookupCounts { subject, source, found: 7, timed_out: 3, stale_used: 2, ..LookupCounts::default() };
    lookups.durations[1] = 4;
    let lookups = vec![lookups];
    let connected = Connected { smb_sessions: 2, ..Connected::default() };
    let up = Duration::from_millis(1500);
    let reload = Reload { failed: 2, read: 1_700_000_000, ..Reload::default() };
    let certificate_expires = Some(UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let occupied = vec![Occupied { protocol: "smb", connections: 3, max: 100 }];
    let server = OfServer { counters, connected, lookups, occupied, shards_stuck: 1, ..OfServer::default() };
    let server = OfServer { reload, certificate_expires, snapshots: snapshots(), up, ..server };
    let shares = ShareTable::new([share]).unwrap();
    shares.await_store(ShareId(2), "late");
    let text = render(&shares.present().into(), &server, Audience::Everybody);
    let labels = "share=\"da\\\"ta\",protocol=\"smb\",api=\"Read\"";
    let asked = "subject=\"numbers\",source=\"directory\"";
    for expected in [
        "anabranch_uptime_seconds 1.500\n".to_owned(),
        "# TYPE anabranch_refused_connections_total counter\nanabranch_refused_connections_total 7\n"
            .to_owned(),
        "\nanabranch_failed_logons_total 5\n".to_owned(),
        "\nanabranch_logons_by_mechanism_total{mechanism=\"kerberos\",result=\"success\"} 9\n".to_owned(),
        "\nanabranch_logons_by_mechanism_total{mechanism=\"ntlm\",result=\"failure\"} 4\n".to_owned(),
        "\nanabranch_smb_sessions 2\n".to_owned(),
        "\nanabranch_connections{protocol=\"smb\"} 3\n".to_owned(),
        "\nanabranch_connections_limit{protocol=\"smb\"} 100\n".to_owned(),
        "\nanabranch_shards_stuck 1\n".to_owned(),
        "\nanabranch_certificate_expiry_timestamp_seconds 1800000000\n".to_owned(),
        "\nanabranch_opens{share=\"da\\\"ta\"} 0\n".to_owned(),
        "\nanabranch_share_alarm{share=\"late\",kind=\"stuck\"} 1\n".to_owned(),
        "\nanabranch_unheard_logons_total 3\n".to_owned(),
        "\nanabranch_share_snapshots{share=\"da\\\"ta\"} 3\n".to_owned(),
        "\nanabranch_snapshot_policy_runs_total{share=\"da\\\"ta\",policy=\"office\",result=\"failure\"} 2\n"
            .to_owned(),
        "\nanabranch_snapshot_policy_failing{share=\"da\\\"ta\",policy=\"office\"} 1\n".to_owned(),
        format!("\nanabranch_lookups_total{{{asked},outcome=\"found\"}} 7\n"),
        format!("\nanabranch_lookups_unanswered_total{{{asked},reason=\"timeout\"}} 3\n"),
        format!("\nanabranch_lookups_stale_total{{{asked}}} 2\n"),
        format!("\nanabranch_lookup_duration_seconds_bucket{{{asked},le=\"0.000002\"}} 4\n"),
        "\nanabranch_nfs_contexts 6\n".to_owned(),
        "\nanabranch_nfs_contexts_limit 9\n".to_owned(),
        "\nanabranch_nfs_contexts_total{result=\"failure\"} 2\n".to_owned(),
        "\nanabranch_nfs_contexts_dropped_total{reason=\"limit\"} 1\n".to_owned(),
        "\nanabranch_nfs_context_calls_total{flavor=\"krb5p\"} 3\n".to_owned(),
        "\nanabranch_configuration_reloads_total{result=\"failure\"} 2\n".to_owned(),
        "\nanabranch_configuration_last_reload_successful 0\n".to_owned(),
        "\nanabranch_configuration_read_timestamp_seconds 1700000000\n".to_owned(),
        format!("anabranch_requests_total{{{labels}}} 2\n"),
        format!("anabranch_request_errors_total{{{labels}}} 1\n"),
        format!("anabranch_request_bytes_total{{{labels}}} 4096\n"),
        format!("anabranch_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2\n"),
        format!("anabranch_request_duration_seconds_count{{{labels}}} 2\n"),
        "le=\"0.000001\"".to_owned(),
        "anabranch_grants_revoked_total{share=\"da\\\"ta\"} 0\n".to_owned(),
    ] {
        assert!(text.contains(&expected), "{expected} is not in\n{text}");
    }
    assert!(!text.contains("share=\"plain\""));
    assert!(!text.contains("api=\"Write\"") && !text.contains("nfs3"));
}

const DOCUMENT: &str = include_str!("../../../../../docs/metrics.md");

/// A server with a value for everything that is measured.
fn served() -> OfServer {
    let occupied = vec![Occupied { protocol: "nfs", connections: 1, max: 2 }];
    let lookups = vec![LookupCounts::default()];
    let figures = SnapshotFigures {
        count: Some(1),
        newest: Some(1),
        policy: Some(String::new()),
        ..SnapshotFigures::default()
    };
    let snapshots = vec![figures];
    let replications = vec![replica()];
    OfServer {
        snapshots,
        replications,
        pools: vec![pool()],
        gateway: Some(gateway()),
        certificate_expires: Some(UNIX_EPOCH),
        lookups,
        occupied,
        ..OfServer::default()
    }
}

/// A share with a value for everything that is measured.
fn busy() -> Look {
    let counts = |limit: Limit| {
        let mut throttled = [0; Limit::ALL.len()];
        throttled[limit as usize] = 1;
        let waited = Waited { time: Duration::from_millis(3), histogram: [1; HISTOGRAM_BUCKETS] };
        Counts {
            calls: 24,
            errors: 1,
            faults: 1,
            bytes: 16,
            time: Duration::from_secs(1),
            latency: [1; HISTOGRAM_BUCKETS],
            network: waited,
            end_to_end: [1; HISTOGRAM_BUCKETS],
            storage: [1; HISTOGRAM_BUCKETS],
            sizes: [1; SIZE_BUCKETS],
            limit: waited,
            queue: waited,
            throttled,
        }
    };
    let client = Client::Address([192, 0, 2, 1].into());
    let record = |(api, limit)| {
        let api = &operation("nfs4", api).unwrap().api;
        Record { client, api, counts: counts(limit) }
    };
    let plan: limits::Plan = "azure-files-v1 capacity=1TiB".parse().unwrap();
    let waits = limits::Waits { operations: 1, time: Duration::from_millis(3) };
    Look {
        vserver: None,
        name: "data".to_owned(),
        records: [("Read", Limit::Iops), ("Write", Limit::Throughput)].map(record).to_vec(),
        status: LimitsStatus {
            limits: plan.limits(),
            plan,
            used: Some(1),
            files: Some(1),
            credits: Some(1),
            throttled: vec![Limit::Iops],
            waiting: 1,
            waits: vec![(Limit::Iops, waits)],
        },
        grants: [1; 3],
        cache: Some(CacheCounts::default()),
        alarms: vec!["full"],
        opens: (1, 10),
        store: StoreHealth { under_way: 1, waiting: 1, longest: None, is_stuck: false },
        quotas: Some(quotas()),
    }
}

/// The same, of a vserver.
fn busy_in_vserver() -> Look {
    Look { vserver: Some("fi\"les".to_owned()), ..busy() }
}

/// The quota of a user whose name has to be escaped.
fn quotas() -> QuotaStatus {
    let rule: QuotaRule = "AD\\anna soft=1KiB hard=2KiB".parse().unwrap();
    let (account, limits) = (QuotaAccount::User(7), Some(rule.limits));
    let standing = Standing { account, used: 1500, limits, is_default: false, over_since: None };
    QuotaStatus {
        counted: Some(UNIX_EPOCH + Duration::from_secs(9)),
        is_counting: false,
        rules: vec![(rule, Some(QuotaSubject::User(7)))],
        standings: vec![(QuotaSubject::User(7), standing)],
    }
}

#[test]
fn quotas_are_told_to_administrators_only() {
    let text = |audience| write_all(&[busy()], &[], &served(), audience);
    let labels = "share=\"data\",subject=\"AD\\\\anna\"";
    let told = text(Audience::Administrators);
    for expected in [
        format!("\nanabranch_quota_used_bytes{{{labels}}} 1500\n"),
        format!("\nanabranch_quota_limit_bytes{{{labels},limit=\"soft\"}} 1024\n"),
        format!("\nanabranch_quota_limit_bytes{{{labels},limit=\"hard\"}} 2048\n"),
        "\nanabranch_quota_counted_timestamp_seconds{share=\"data\"} 9\n".to_owned(),
    ] {
        assert!(told.contains(&expected), "{expected} is not in\n{told}");
    }
    assert!(!text(Audience::Everybody).contains("anabranch_quota"));
}

/// The type and the labels (except `le`) of each family; all its lines have the same labels.
fn families(text: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut families: BTreeMap<String, (String, Option<BTreeSet<String>>)> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').unwrap();
            current = name.to_owned();
            assert!(families.insert(current.clone(), (kind.to_owned(), None)).is_none(), "{name} twice");
        } else if !line.starts_with('#') {
            let series = line.rsplit_once(' ').unwrap().0;
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let (kind, known) = families.get_mut(&current).unwrap();
            let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(
                suffixes.iter().any(|suffix| *name == format!("{current}{suffix}")),
                "{name} in {current}"
            );
            // No value of the busy share has a comma.
            let labels = labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty());
            let labels = labels.map(|label| label.split_once('=').unwrap().0.to_owned());
            let labels: BTreeSet<String> = labels.filter(|label| label != "le").collect();
            assert_eq!(known.get_or_insert_with(|| labels.clone()), &labels, "{line}");
        }
    }
    let with_lines = |(name, (kind, labels)): (String, (String, Option<BTreeSet<String>>))| {
        let labels = labels.unwrap_or_else(|| panic!("the busy share has no line of {name}"));
        (name, (kind, labels))
    };
    families.into_iter().map(with_lines).collect()
}

#[test]
fn shares_of_vservers_have_the_same_lines_with_the_vserver() {
    let with = |look| write_all(&[look], &[], &served(), Audience::Administrators);
    let (own, of_vserver) = (families(&with(busy())), families(&with(busy_in_vserver())));
    assert_eq!(own.keys().collect::<Vec<_>>(), of_vserver.keys().collect::<Vec<_>>());
    let without = |name: &str| {
        ["anabranch_share_snapshot", "anabranch_snapshot_", "anabranch_replica_"]
            .iter()
            .any(|family| name.starts_with(family))
    };
    for (name, (_, labels)) in &own {
        let mut expected = labels.clone();
        if labels.contains("share") && !without(name) {
            expected.insert("vserver".to_owned());
        }
        assert_eq!(of_vserver[name].1, expected, "{name}");
    }
}

#[test]
fn shares_of_one_name_are_told_apart() {
    let table = |id| {
        let store = Arc::new(storage::memory::MemoryStore::new());
        ShareTable::new([Share::new(ShareId(id), Settings::new("data"), store)]).unwrap()
    };
    let (own, one, other) = (table(1), table(1), table(2));
    other.await_store(ShareId(9), "late");
    let vserver =
        |name: &str, table: &ShareTable| ServedVserver { name: name.to_owned(), shares: table.present() };
    let vservers = vec![vserver("files", &one), vserver("more", &other)];
    let shares = ServedShares { own: own.present(), vservers };
    let text = render(&shares, &OfServer::default(), Audience::Administrators);
    check_lines(
        &text,
        &[
            "anabranch_opens{share=\"data\"} 0",
            "anabranch_opens{share=\"data\",vserver=\"files\"} 0",
            "anabranch_opens{share=\"data\",vserver=\"more\"} 0",
            "anabranch_share_alarm{share=\"late\",vserver=\"more\",kind=\"stuck\"} 1",
        ],
    );
    let mut series = BTreeSet::new();
    for line in text.lines().filter(|line| line.contains("{share=")) {
        assert!(series.insert(line.rsplit_once(' ').unwrap().0), "{line} is there twice");
    }
}

/// The cells of the rows in the document's table that begins with `head`.
fn rows(head: &str) -> Vec<Vec<&'static str>> {
    let after = DOCUMENT.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = after.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

#[test]
fn every_family_is_described_and_no_other() {
    let described: BTreeMap<_, _> = rows("| metric | type |")
        .into_iter()
        .map(|row| {
            let labels = row[2].split(' ').filter(|label| *label != "-").map(str::to_owned).collect();
            (row[0].trim_matches('`').to_owned(), (row[1].to_owned(), labels))
        })
        .collect();
    assert_eq!(described, families(&write_all(&[busy()], &[], &served(), Audience::Administrators)));
}

#[test]
fn the_document_speaks_of_no_metric_that_is_not_served() {
    let served = families(&write_all(&[busy()], &[], &served(), Audience::Administrators));
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = DOCUMENT.split(|c| !is_part(c)).filter(|word| word.starts_with("anabranch_"));
    for word in words.filter(|word| !["anabranch_cache_", "anabranch_client_"].contains(word)) {
        let parts = ["_bucket", "_sum", "_count"].iter().filter_map(|suffix| word.strip_suffix(suffix));
        let of_histogram = parts.into_iter().any(|name| served.get(name).is_some_and(|f| f.0 == "histogram"));
        assert!(served.contains_key(word) || of_histogram, "{word}");
    }
}

#[test]
fn response_types_are_those_that_are_described() {
    let mut described = BTreeSet::new();
    for row in rows("| limit | response_type |") {
        let name = row[0].split('`').nth(1).unwrap();
        let limit = *Limit::ALL.iter().find(|limit| limit.name() == name).unwrap();
        let api = if row[0].ends_with("write") { "Write" } else { "Read" };
        assert_eq!(response_type(&operation("smb", api).unwrap().api, limit), row[1], "{}", row[0]);
        described.insert(limit);
    }
    assert_eq!(described.len(), Limit::ALL.len());
}

#[tokio::test]
async fn a_share_tells_what_has_waited_for_which_limit() {
    let settings = Settings::new("data");
    let share = Share::new(ShareId(1), settings, Arc::new(storage::memory::MemoryStore::new()));
    share.set_plan("custom metadata-iops=20".parse().unwrap(), SystemTime::now()).unwrap();
    let account = share.accounting().open(Client::Unknown);
    for _ in 0..8 {
        let call = call("nfs4", "GetAttr");
        share.take_turn(&call).await;
        account.end(&call.cost(), &ending(0, Outcome::Done));
    }
    let shares = ShareTable::new([Arc::clone(&share)]).unwrap();
    let text = render(&shares.present().into(), &OfServer::default(), Audience::Everybody);
    let labels = "share=\"data\",protocol=\"nfs4\",api=\"GetAttr\"";
    let value = |series: String| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
        line.unwrap_or_else(|| panic!("{series} is not in\n{text}")).parse().unwrap()
    };
    let kind = "limit=\"metadata-iops\",response_type=\"SuccessWithThrottling\"";
    // A quarter of a second's worth, five operations, passes at once; each of the others waits for the previous ones.
    assert!(value(format!("anabranch_throttled_requests_total{{{labels},{kind}}}")) >= 1.0);
    assert!(value(format!("anabranch_request_limit_seconds_sum{{{labels}}}")) > 0.0);
    assert!(value("anabranch_limit_waits_total{share=\"data\",limit=\"metadata-iops\"}".to_owned()) >= 1.0);
    assert_eq!(
        value("anabranch_limit_operations_per_second{share=\"data\",limit=\"metadata-iops\"}".to_owned()),
        20.0
    );
    assert!(!text.contains("limit=\"iops\"") && !text.contains("anabranch_cache_hits_total{"));
}

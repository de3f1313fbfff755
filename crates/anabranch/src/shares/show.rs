//! `anabranch share show`: one share, with its plan and what its calls cost.

use std::fmt::Write;

use control::activity::{ApiActivity, CacheActivity, ShareActivity};
use control::redundancy::Redundancy;
use control::shares::Share;
use control::snapshots::SnapshotSummary;
use schedule::Utc;
use serde::Serialize;
use share::Role;

use super::replicate::age;
use super::transactions::{self, Transactions};
use super::{state, terms};
use crate::print::{bytes, counted, counted_as, latency};
use crate::table;

/// API names that are shown; the others are summed up.
const APIS_SHOWN: usize = 10;

/// What is shown.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    pub(super) share: Share,
    /// None while it is not served.
    pub(super) activity: Option<ShareActivity>,
    /// None where the plan does not bill them, or while it is not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) transactions: Option<Transactions>,
}

pub(super) fn render(shown: &Shown) -> String {
    let share = &shown.share;
    let mut text = format!(
        "share      {}\nstate      {}\ndirectory  {}\nterms      {}\nplan       {}\n",
        share.name,
        share.problem.clone().unwrap_or_else(|| state(share)),
        share.directory,
        terms(share),
        share.plan
    );
    text.push_str(&kept(share));
    if let (Some(pool), Some(size)) = (&share.pool, share.size) {
        let _ = writeln!(text, "pool       {pool}\nsize       {}", bytes(size));
    }
    for role in Role::ALL {
        let who = share.rules.list(role);
        if !who.is_empty() {
            let _ = writeln!(text, "{:<11}{}", role.list(), who.join(", "));
        }
    }
    if !share.rules.default_role.is_empty() {
        let _ = writeln!(text, "others     {}", share.rules.default_role);
    }
    if !share.comment.is_empty() {
        let _ = writeln!(text, "comment    {}", share.comment);
    }
    for client in &share.rules.clients {
        let _ = writeln!(text, "client     {client}");
    }
    if let Some(how) = share.encryption_at_rest.as_deref().filter(|how| *how != "none-seen") {
        let _ = writeln!(text, "at rest    encrypted with {how}");
    }
    if !share.snapshot_policy.is_empty() {
        let _ = writeln!(text, "policy     {}", share.snapshot_policy);
    }
    if share.ransomware_alarm != share::RansomwareRule::default().to_string() {
        let _ = writeln!(text, "ransomware {}", share.ransomware_alarm);
    }
    if share.recycle_bin != "off" {
        let _ = writeln!(text, "recycling  {}", share.recycle_bin);
    }
    text.push_str(&share.snapshots.as_ref().map_or_else(String::new, snapshots));
    if let Some(place) = &share.declared_in {
        let _ = writeln!(text, "declared   in {place}");
    }
    if let Some(activity) = &shown.activity {
        text.push_str(&shown.transactions.as_ref().map_or_else(String::new, transactions::render));
        text.push_str(&limits(activity));
        text.push_str(&activity.cache.as_ref().map_or_else(String::new, cache));
        text.push_str(&calls(activity));
    }
    text
}

/// How its data is kept, on which medium, and how a service would bill it.
fn kept(share: &Share) -> String {
    let mut text = String::new();
    if let Some(billing) = &share.billing {
        let _ = writeln!(text, "billing    {billing}");
    }
    if let Some(tier) = &share.tier {
        let name = tier.name.as_deref().unwrap_or("several media");
        let how = if tier.checked {
            format!("devices of the class {}", tier.device_classes.join(", "))
        } else {
            "stated, not checked".to_owned()
        };
        let _ = writeln!(text, "tier       {name} ({how})");
    }
    let Some(redundancy) = &share.redundancy else { return text };
    let _ = writeln!(text, "redundancy {}", how_redundant(redundancy));
    if let Some(as_of) = redundancy.replica_as_of {
        let _ = writeln!(text, "replica    as of {} ({})", Utc::from_secs(as_of), age(as_of));
    }
    text
}

fn how_redundant(redundancy: &Redundancy) -> String {
    let Some(class) = &redundancy.class else {
        return format!(
            "not known: {}",
            redundancy.problem.as_deref().unwrap_or("the server does not say why")
        );
    };
    let (Some(copies), Some(to_write)) = (redundancy.copies, redundancy.copies_to_write) else {
        return format!("{class}: what the disks of its machine give");
    };
    let what = if redundancy.erasure_coded { "parts" } else { "copies" };
    let across = redundancy.across.as_ref().map_or_else(String::new, |across| format!(" across {across}s"));
    let pool = redundancy.data_pool.as_deref().unwrap_or("-");
    let class = if class == "none" { "no class" } else { class };
    format!("{class}: {copies} {what}{across}, {to_write} to write (data pool {pool})")
}

fn snapshots(of_share: &SnapshotSummary) -> String {
    let SnapshotSummary { count, newest, unsupported } = of_share;
    if let Some(why) = unsupported {
        return format!("snapshots  none: {why}\n");
    }
    let newest = newest.map_or_else(String::new, |secs| format!(", the newest of {}", Utc::from_secs(secs)));
    format!("snapshots  {count}{newest}\n")
}

fn limits(activity: &ShareActivity) -> String {
    let mut text = String::new();
    for (name, rate) in &activity.limits {
        let _ = writeln!(text, "limit      {name}: {}", per_second(name, *rate));
    }
    if let Some(capacity) = activity.capacity_bytes {
        let _ = writeln!(text, "capacity   {}", bytes(capacity));
    }
    if let Some(used) = activity.used_bytes {
        let count = |files| counted_as(files, "file or directory", "files and directories");
        let files = activity.files.map_or_else(String::new, |files| format!(", {}", count(files)));
        let _ = writeln!(text, "used       {}{files}", bytes(used));
    }
    if let Some(credits) = activity.burst_credits {
        let _ = writeln!(text, "credits    {credits} left for bursts");
    }
    if activity.waiting > 0 || !activity.throttled.is_empty() {
        let what = activity.throttled.join(", ");
        let _ = writeln!(text, "waiting    {}, for: {what}", counted(activity.waiting, "operation"));
    }
    for waits in &activity.waits {
        let mean = latency(mean(waits.seconds, waits.operations));
        let operations = counted(waits.operations, "operation");
        let _ = writeln!(text, "waited     {operations} for {}, {mean} each", waits.limit);
    }
    text
}

fn cache(cache: &CacheActivity) -> String {
    format!(
        "cache      {}, {}, {}; {}, {}\n",
        counted(cache.hits, "hit"),
        counted_as(cache.misses, "miss", "misses"),
        counted(cache.invalidations, "change"),
        counted_as(cache.directories, "directory", "directories"),
        bytes(cache.bytes)
    )
}

fn per_second(name: &str, rate: u64) -> String {
    if name.ends_with("iops") { format!("{rate} operations/s") } else { format!("{}/s", bytes(rate)) }
}

fn calls(activity: &ShareActivity) -> String {
    let mut apis: Vec<&ApiActivity> = activity.apis.iter().collect();
    apis.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    if apis.is_empty() {
        return "\nNobody has called anything since the server started.\n".to_owned();
    }
    let all: f64 = apis.iter().map(|api| api.seconds).sum();
    let row = |api: &&ApiActivity| {
        [
            api.api.clone(),
            api.protocol.clone(),
            api.calls.to_string(),
            api.errors.to_string(),
            bytes(api.bytes),
            latency(mean(api.seconds, api.calls)),
            latency(mean(api.limit_seconds, api.calls)),
            latency(mean(api.queue_seconds, api.calls)),
            latency(mean(api.storage_seconds, api.calls)),
            latency(mean(api.network_seconds, api.calls)),
            format!("{:.0} %", if all > 0.0 { api.seconds / all * 100.0 } else { 0.0 }),
        ]
    };
    let rows: Vec<_> = apis.iter().take(APIS_SHOWN).map(row).collect();
    let heads = [
        "API",
        "PROTOCOL",
        "CALLS",
        "ERRORS",
        "BYTES",
        "MEAN LATENCY",
        "LIMIT",
        "QUEUE",
        "STORAGE",
        "NETWORK",
        "OF ALL TIME",
    ];
    let mut text =
        format!("\nSince the server started, sorted by total time:\n{}", table::render(heads, &rows));
    if let Some(more) = apis.len().checked_sub(APIS_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(text, "and {more} more");
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "a mean for people")]
pub(crate) fn mean(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

#[cfg(test)]
mod tests {
    use control::activity::LimitWaits;

    use super::*;

    #[test]
    fn how_data_is_kept_is_told() {
        let told = |class: Option<&str>| Redundancy {
            class: class.map(str::to_owned),
            problem: class.is_none().then(|| "the Ceph cluster does not answer".to_owned()),
            ..Redundancy::default()
        };
        let pool = Redundancy {
            data_pool: Some("lab.zrs".to_owned()),
            copies: Some(3),
            across: Some("zone".to_owned()),
            copies_to_write: Some(2),
            ..told(Some("zrs"))
        };
        assert_eq!(how_redundant(&pool), "zrs: 3 copies across zones, 2 to write (data pool lab.zrs)");
        let parts = Redundancy { class: Some("none".to_owned()), erasure_coded: true, across: None, ..pool };
        assert_eq!(how_redundant(&parts), "no class: 3 parts, 2 to write (data pool lab.zrs)");
        assert_eq!(how_redundant(&told(Some("local"))), "local: what the disks of its machine give");
        assert_eq!(how_redundant(&told(None)), "not known: the Ceph cluster does not answer");
    }

    #[test]
    fn what_there_is_of_snapshots_is_shown() {
        let shown = |count, newest, why: Option<&str>| {
            snapshots(&SnapshotSummary { count, newest, unsupported: why.map(str::to_owned) })
        };
        assert_eq!(shown(0, None, None), "snapshots  0\n");
        assert_eq!(shown(2, Some(5), None), "snapshots  2, the newest of 1970-01-01T00:00:05Z\n");
        assert_eq!(shown(0, None, Some("they need Btrfs")), "snapshots  none: they need Btrfs\n");
    }

    #[test]
    fn what_waited_for_which_limit_is_shown_with_what_is_used() {
        let waits = LimitWaits { limit: "iops".to_owned(), operations: 4, seconds: 0.01 };
        let api = ApiActivity {
            protocol: "nfs4".to_owned(),
            api: "Read".to_owned(),
            calls: 2,
            errors: 0,
            bytes: 0,
            small: 0,
            throttled: 0,
            seconds: 0.012,
            limit_seconds: 0.01,
            queue_seconds: 0.0005,
            storage_seconds: 0.0015,
            network_seconds: 0.0004,
        };
        let activity = ShareActivity {
            capacity_bytes: Some(1 << 40),
            used_bytes: Some(3 << 29),
            files: Some(7),
            waits: vec![waits],
            apis: vec![api],
            ..ShareActivity::default()
        };
        let shown = limits(&activity);
        let expected = "capacity   1 TiB\nused       1.5 GiB, 7 files and directories\n\
                        waited     4 operations for iops, 2.50 ms each\n";
        assert_eq!(shown, expected);
        let known = CacheActivity { hits: 9, misses: 3, invalidations: 4, directories: 2, bytes: 5 << 10 };
        assert_eq!(cache(&known), "cache      9 hits, 3 misses, 4 changes; 2 directories, 5 KiB\n");
        let one = CacheActivity { hits: 1, misses: 1, invalidations: 1, directories: 1, bytes: 1 };
        assert_eq!(cache(&one), "cache      1 hit, 1 miss, 1 change; 1 directory, 1 B\n");
        let waits = LimitWaits { limit: "iops".to_owned(), operations: 1, seconds: 0.01 };
        let one =
            ShareActivity { used_bytes: Some(1), files: Some(1), waits: vec![waits], ..activity.clone() };
        let expected =
            "used       1 B, 1 file or directory\nwaited     1 operation for iops, 10.00 ms each\n";
        assert_eq!(limits(&one).split_once('\n').unwrap().1, expected);
        let calls = calls(&activity);
        let row = calls.lines().last().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(row, "Read nfs4 2 0 0 B 6.00 ms 5.00 ms 250 us 750 us 200 us 100 %");
    }
}

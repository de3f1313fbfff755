//! `anabranch status`: what is going on, on one screen.

use std::fmt::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use control::activity::ShareActivity;
use control::status::{ShareStatus, Status};

use crate::asking::Asking;
use crate::print::{bytes, counted, counted_as, duration, json, print};
use crate::problem::Result;
use crate::{control_access, table};

/// How long the rates are measured.
const INTERVAL: Duration = Duration::from_secs(1);

/// Asks the server twice, and prints what it says.
///
/// # Errors
/// The server cannot be asked.
pub(crate) fn run(asking: &Asking) -> Result<()> {
    let access = control_access::find(&asking.state(), asking.control)?;
    let before: Status = control_client::get(&access, "/v1/status")?;
    if asking.json {
        return print(&json(&before)?);
    }
    let begun = Instant::now();
    sleep(INTERVAL);
    let now: Status = control_client::get(&access, "/v1/status")?;
    print(&render(&before, &now, begun.elapsed()))
}

fn render(before: &Status, now: &Status, elapsed: Duration) -> String {
    let mut text =
        format!("Anabranch {}, up {}: {}\n", now.version, duration(now.uptime_seconds), now.health);
    for reason in &now.reasons {
        let _ = writeln!(text, "  {reason}");
    }
    let _ = writeln!(
        text,
        "\nClients: {} ({}), {} ({})",
        counted(now.smb_sessions, "SMB session"),
        counted(now.smb_channels, "channel"),
        counted(now.nfs_clients, "NFS client"),
        counted(now.nfs_connections, "connection"),
    );
    let troubles = [
        (now.refused_connections, "refused connection", "refused connections"),
        (now.failed_logons, "failed logon", "failed logons"),
        (now.lost_log_lines, "lost line of the log", "lost lines of the log"),
    ];
    let troubles = troubles.iter().filter(|(count, ..)| *count > 0);
    let troubles: Vec<String> = troubles.map(|(count, one, many)| counted_as(*count, one, many)).collect();
    if !troubles.is_empty() {
        let _ = writeln!(text, "Since the start: {}", troubles.join(", "));
    }
    if now.shares.is_empty() {
        text.push_str("\nThere is no share.\n");
        return text;
    }
    let _ = write!(text, "\n{}", shares(before, now, elapsed));
    for ShareStatus { name, problem, .. } in &now.shares {
        if let Some(problem) = problem {
            let _ = writeln!(text, "{name} is not served: {problem}");
        }
    }
    text
}

fn shares(before: &Status, now: &Status, elapsed: Duration) -> String {
    let cells = |share: &ShareStatus| {
        let is_same =
            |earlier: &&ShareStatus| (&earlier.vserver, &earlier.name) == (&share.vserver, &share.name);
        let earlier = before.shares.iter().find(is_same);
        let earlier = earlier.and_then(|earlier| earlier.activity.as_ref());
        let none = || "-".to_owned();
        let activity = share.activity.as_ref();
        let of =
            |show: &dyn Fn(&ShareActivity) -> Option<String>| activity.and_then(show).unwrap_or_else(none);
        let rate = |count: fn(&ShareActivity) -> u64| {
            let count = |now: &ShareActivity| count(now).saturating_sub(earlier.map_or(0, count));
            activity.map(|now| per_second(count(now), elapsed))
        };
        let limit = |name: &'static str| move |now: &ShareActivity| now.limits.get(name).copied();
        [
            share.name.clone(),
            state(share),
            of(&|now| Some(now.plan.clone())),
            of_limit(rate(operations), activity.and_then(limit("iops")), |rate| rate.to_string()),
            of_limit(rate(moved), activity.and_then(limit("throughput")), |rate| {
                format!("{}/s", bytes(rate))
            }),
            of(&|now| now.used_bytes.map(|used| used_of(used, now.capacity_bytes))),
            of(&|now| now.burst_credits.map(|credits| credits.to_string())),
            of(&|now| (now.waiting > 0).then(|| format!("{} for {}", now.waiting, now.throttled.join(", ")))),
        ]
    };
    let rows: Vec<_> = now.shares.iter().map(|share| (share.vserver.as_deref(), cells(share))).collect();
    let heads = ["SHARE", "STATE", "PLAN", "OPERATIONS/S", "DATA", "USED", "CREDITS", "WAITING"];
    table::with_vservers(heads, &rows)
}

fn state(share: &ShareStatus) -> String {
    match (share.served, share.alarms.is_empty()) {
        (false, _) => "not served".to_owned(),
        (true, true) => "ok".to_owned(),
        (true, false) => share.alarms.join(", "),
    }
}

fn operations(share: &ShareActivity) -> u64 {
    share.apis.iter().map(|api| api.calls).sum()
}

fn moved(share: &ShareActivity) -> u64 {
    share.apis.iter().map(|api| api.bytes).sum()
}

/// A rate, and the limit of the plan where there is one.
fn of_limit(rate: Option<u64>, limit: Option<u64>, show: impl Fn(u64) -> String) -> String {
    match (rate, limit) {
        (None, _) => "-".to_owned(),
        (Some(rate), None) => show(rate),
        (Some(rate), Some(limit)) => format!("{} of {}", show(rate), show(limit)),
    }
}

fn used_of(used: u64, capacity: Option<u64>) -> String {
    match capacity {
        None => bytes(used),
        Some(capacity) => format!("{} of {}", bytes(used), bytes(capacity)),
    }
}

fn per_second(count: u64, elapsed: Duration) -> u64 {
    let millis = elapsed.as_millis().max(1);
    u64::try_from(u128::from(count) * 1000 / millis).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use control::activity::ApiActivity;

    use super::*;

    fn share(calls: u64) -> ShareStatus {
        let api = ApiActivity {
            protocol: "smb".to_owned(),
            api: "Read".to_owned(),
            calls,
            errors: 0,
            bytes: calls * 4096,
            small: 0,
            throttled: 0,
            seconds: 0.0,
            limit_seconds: 0.0,
            queue_seconds: 0.0,
            storage_seconds: 0.0,
            network_seconds: 0.0,
        };
        let activity = ShareActivity {
            plan: "custom iops=500".to_owned(),
            limits: [("iops".to_owned(), 500)].into(),
            throttled: vec!["iops".to_owned()],
            waiting: 3,
            apis: vec![api],
            ..ShareActivity::default()
        };
        let alarms = Vec::new();
        ShareStatus {
            vserver: None,
            name: "data".to_owned(),
            served: true,
            problem: None,
            alarms,
            activity: Some(activity),
        }
    }

    fn status(calls: u64) -> Status {
        let lost = ShareStatus {
            name: "old".to_owned(),
            problem: Some("no such directory".to_owned()),
            ..ShareStatus::default()
        };
        Status {
            version: "1.2.3".to_owned(),
            uptime_seconds: 3661,
            health: "degraded".to_owned(),
            reasons: vec!["share data: its storage is full".to_owned()],
            smb_sessions: 1,
            smb_channels: 2,
            failed_logons: 1,
            shares: vec![share(calls), lost],
            ..Status::default()
        }
    }

    #[test]
    fn a_screen_says_what_goes_on() {
        let expected = "\
Anabranch 1.2.3, up 1 h 1 min: degraded
  share data: its storage is full

Clients: 1 SMB session (2 channels), 0 NFS clients (0 connections)
Since the start: 1 failed logon

SHARE  STATE       PLAN             OPERATIONS/S  DATA     USED  CREDITS  WAITING
data   ok          custom iops=500  50 of 500     200 KiB/s  -     -        3 for iops
old    not served  -                -             -        -     -        -
old is not served: no such directory
";
        let words = |text: &str| {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        let text = render(&status(100), &status(200), Duration::from_secs(2));
        assert_eq!(words(&text), words(expected));
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }

    #[test]
    fn a_share_of_a_vserver_has_its_own_rates() {
        let of_vserver = |calls| ShareStatus { vserver: Some("files".to_owned()), ..share(calls) };
        let status = |own, calls| Status { shares: vec![share(own), of_vserver(calls)], ..status(0) };
        let text = render(&status(100, 1000), &status(200, 1020), Duration::from_secs(2));
        let rows = text.lines().skip_while(|line| !line.starts_with("SHARE ")).take(3);
        let cells: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().take(7).collect()).collect();
        let of = |vserver, rate| vec!["data", vserver, "ok", "custom", "iops=500", rate, "of"];
        assert_eq!(cells.get(1..), Some(&[of("-", "50"), of("files", "10")][..]), "{text}");
        assert!(text.contains("SHARE  VSERVER  STATE"), "{text}");
    }

    #[test]
    fn a_server_without_shares_has_a_status() {
        let none = Status { health: "ok".to_owned(), version: "1".to_owned(), ..Status::default() };
        let text = render(&none, &none, Duration::from_secs(1));
        assert!(
            text.starts_with("Anabranch 1, up 0 s: ok\n") && text.ends_with("There is no share.\n"),
            "{text}"
        );
    }
}

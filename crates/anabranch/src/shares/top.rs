//! `anabranch share top`: what is going on, between two looks, the costliest first.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use control::activity::{Activity, ApiActivity};
use serde::Serialize;

use super::show::mean;
use crate::cli::ShareTop;
use crate::control_access::{self, Access};
use crate::print::{bytes, json, latency, print};
use crate::problem::{Cause, Problem, Result};
use crate::table;

/// Rows that are shown: what no terminal shows is not drawn.
const ROWS_MAX: usize = 200;
/// Rows where the terminal does not say how many it has.
const ROWS_DEFAULT: usize = 24;
/// Lines above the table and its head.
const HEAD_LINES: usize = 3;
/// Clears the terminal and goes to its top. ECMA-48 8.3.39, 8.3.21.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// The calls of one API name, between two looks.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Cost {
    share: String,
    protocol: String,
    api: String,
    calls_per_second: f64,
    errors_per_second: f64,
    bytes_per_second: f64,
    mean_seconds: f64,
    /// Of that, waiting for the limits of the share.
    mean_limit_seconds: f64,
    /// Of that, waiting for a thread that may block.
    mean_queue_seconds: f64,
    /// Of that, what is left: the storage, and the server around it.
    mean_storage_seconds: f64,
    /// Beside that, the way to the clients and back.
    mean_network_seconds: f64,
    /// Of the time that all calls took.
    part: f64,
    /// The limits that the share's operations are waiting for.
    throttled: Vec<String>,
    #[serde(skip)]
    seconds: f64,
}

/// Looks until it is interrupted, or has looked as often as it should.
///
/// # Errors
/// The server cannot be asked.
pub(super) fn run(top: &ShareTop) -> Result<()> {
    let access = control_access::find(&top.asking.state(), top.asking.control)?;
    let live = std::io::stdout().is_terminal() && !top.asking.json;
    let mut left = top.count.or_else(|| (!live).then_some(1));
    let mut before = look(&access)?;
    while left != Some(0) {
        std::thread::sleep(Duration::from_secs(top.interval));
        let now = look(&access)?;
        let costs = between(&before, &now);
        if top.asking.json {
            print(&json(&costs)?)?;
        } else {
            let rows = if live { rows() } else { ROWS_MAX };
            let text = render(&costs, now.0 - before.0, rows);
            if live {
                let cleared = write!(std::io::stdout(), "{CLEAR}");
                cleared.map_err(|e| Problem::new(Cause::Asking, format!("cannot print: {e}"), ""))?;
            }
            print(&text)?;
        }
        before = now;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

fn look(access: &Access) -> Result<(Instant, Activity)> {
    let activity = control_client::get(access, "/v1/activity")?;
    Ok((Instant::now(), activity))
}

/// The rows of the table that the terminal has room for.
fn rows() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_row));
    let rows = if size == 0 { ROWS_DEFAULT } else { size };
    rows.saturating_sub(HEAD_LINES + 2).clamp(1, ROWS_MAX)
}

/// What was called between two looks, the costliest first.
fn between((then, before): &(Instant, Activity), (now, after): &(Instant, Activity)) -> Vec<Cost> {
    let elapsed = now.duration_since(*then).as_secs_f64().max(1e-3);
    let mut costs = Vec::new();
    for share in &after.shares {
        let earlier = before.shares.iter().find(|earlier| earlier.name == share.name);
        for api in &share.apis {
            let same = |known: &&ApiActivity| known.api == api.api && known.protocol == api.protocol;
            let earlier = earlier.and_then(|share| share.apis.iter().find(same));
            let since = |count: fn(&ApiActivity) -> u64| count(api).saturating_sub(earlier.map_or(0, count));
            let calls = since(|api| api.calls);
            if calls == 0 {
                continue;
            }
            let spent = |time: fn(&ApiActivity) -> f64| (time(api) - earlier.map_or(0.0, time)).max(0.0);
            let seconds = spent(|api| api.seconds);
            costs.push(Cost {
                share: share.name.clone(),
                protocol: api.protocol.clone(),
                api: api.api.clone(),
                calls_per_second: rate(calls, elapsed),
                errors_per_second: rate(since(|api| api.errors), elapsed),
                bytes_per_second: rate(since(|api| api.bytes), elapsed),
                mean_seconds: mean(seconds, calls),
                mean_limit_seconds: mean(spent(|api| api.limit_seconds), calls),
                mean_queue_seconds: mean(spent(|api| api.queue_seconds), calls),
                mean_storage_seconds: mean(spent(|api| api.storage_seconds), calls),
                mean_network_seconds: mean(spent(|api| api.network_seconds), calls),
                part: 0.0,
                throttled: share.throttled.clone(),
                seconds,
            });
        }
    }
    let all: f64 = costs.iter().map(|cost| cost.seconds).sum();
    for cost in &mut costs {
        cost.part = if all > 0.0 { cost.seconds / all } else { 0.0 };
    }
    costs.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    costs
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is no less than 0")]
fn per_second(rate: f64) -> String {
    format!("{}/s", bytes(rate as u64))
}

fn render(costs: &[Cost], elapsed: Duration, rows_max: usize) -> String {
    if costs.is_empty() {
        return format!("In the last {:.1} s no client called anything.\n", elapsed.as_secs_f64());
    }
    let row = |cost: &Cost| {
        [
            cost.share.clone(),
            cost.api.clone(),
            cost.protocol.clone(),
            format!("{:.1}", cost.calls_per_second),
            format!("{:.1}", cost.errors_per_second),
            per_second(cost.bytes_per_second),
            latency(cost.mean_seconds),
            latency(cost.mean_limit_seconds),
            latency(cost.mean_queue_seconds),
            latency(cost.mean_storage_seconds),
            latency(cost.mean_network_seconds),
            format!("{:.0} %", cost.part * 100.0),
            if cost.throttled.is_empty() { "-".to_owned() } else { cost.throttled.join(", ") },
        ]
    };
    let rows: Vec<_> = costs.iter().take(rows_max).map(row).collect();
    let heads = [
        "SHARE",
        "API",
        "PROTOCOL",
        "CALLS/S",
        "ERRORS/S",
        "BYTES",
        "MEAN LATENCY",
        "LIMIT",
        "QUEUE",
        "STORAGE",
        "NETWORK",
        "OF ALL TIME",
        "WAITS FOR",
    ];
    let more = costs.len().saturating_sub(rows_max);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    format!(
        "In the last {:.1} s, sorted by total time:\n{}{more}",
        elapsed.as_secs_f64(),
        table::render(heads, &rows)
    )
}

#[cfg(test)]
mod tests {
    use control::activity::ShareActivity;

    use super::*;

    fn look(calls: &[(&str, u64, f64)]) -> Activity {
        let api = |(api, calls, seconds): &(&str, u64, f64)| ApiActivity {
            protocol: "smb".to_owned(),
            api: (*api).to_owned(),
            calls: *calls,
            errors: 0,
            bytes: calls * 1024,
            small: 0,
            throttled: 0,
            seconds: *seconds,
            limit_seconds: *seconds / 2.0,
            queue_seconds: *seconds / 4.0,
            storage_seconds: *seconds / 4.0,
            network_seconds: *seconds / 8.0,
        };
        let share = ShareActivity {
            name: "data".to_owned(),
            apis: calls.iter().map(api).collect(),
            ..ShareActivity::default()
        };
        Activity { shares: vec![share] }
    }

    #[test]
    fn the_costliest_calls_since_the_last_look_come_first() {
        let then = Instant::now();
        let before = (then, look(&[("Read", 100, 1.0), ("Close", 5, 9.0)]));
        let after = (
            then + Duration::from_secs(2),
            look(&[("Read", 300, 1.5), ("Close", 5, 9.0), ("Create", 2, 1.5)]),
        );
        let costs = between(&before, &after);
        let seen: Vec<_> = costs.iter().map(|cost| (cost.api.as_str(), cost.calls_per_second)).collect();
        assert_eq!(seen, [("Create", 1.0), ("Read", 100.0)]);
        assert!((costs[0].part - 0.75).abs() < 1e-9 && (costs[0].mean_seconds - 0.75).abs() < 1e-9);
        assert!((costs[0].mean_limit_seconds - 0.375).abs() < 1e-9, "{:?}", costs[0]);
        assert!((costs[0].mean_queue_seconds - costs[0].mean_storage_seconds).abs() < 1e-9);
        assert!((costs[0].mean_network_seconds - 0.093_75).abs() < 1e-9);
        assert!((costs[1].bytes_per_second - 102_400.0).abs() < 1e-9);
        let text = render(&costs, Duration::from_secs(2), 1);
        assert!(text.starts_with("In the last 2.0 s, sorted by total time:\nSHARE"), "{text}");
        assert!(
            text.contains("750.00 ms     375.00 ms  187.50 ms  187.50 ms  93.75 ms  75 %")
                && text.contains("75 %")
                && text.ends_with("and 1 more\n"),
            "{text}"
        );
    }

    #[test]
    fn a_share_that_came_anew_does_not_count_below_nothing() {
        let then = Instant::now();
        let before = (then, look(&[("Read", 100, 1.0)]));
        let after = (then + Duration::from_secs(1), look(&[("Read", 10, 0.5)]));
        assert!(between(&before, &after).is_empty());
        assert_eq!(render(&[], Duration::from_secs(1), 9), "In the last 1.0 s no client called anything.\n");
    }
}

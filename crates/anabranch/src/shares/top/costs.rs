//! The calls of a short interval by their API names.

use std::time::Duration;

use control::activity::{Activity, ApiActivity};
use serde::Serialize;

use super::per_second;
use crate::print::latency;
use crate::shares::show::mean;
use crate::table::{Column, within};

/// The calls of one API name, between two looks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Cost {
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

/// What was called between two looks, the costliest first.
pub(super) fn between(before: &Activity, after: &Activity, elapsed: Duration) -> Vec<Cost> {
    let elapsed = elapsed.as_secs_f64().max(1e-3);
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
pub(super) fn rate(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// The costliest calls as a table that is no wider than `width`, and the sum of all.
pub(super) fn render(costs: &[Cost], elapsed: Duration, (rows_max, width): (usize, usize)) -> String {
    if costs.is_empty() {
        return format!("In the last {:.1} s no client called anything.\n", elapsed.as_secs_f64());
    }
    let mut rows: Vec<Vec<String>> = costs.iter().take(rows_max).map(row).collect();
    rows.push(row(&sum(costs)));
    let columns = [
        Column::always("SHARE"),
        Column::always("API"),
        Column::always("PROTOCOL"),
        Column::always("CALLS/S"),
        Column::if_room("ERRORS/S", 2),
        Column::always("BYTES"),
        Column::always("MEAN LATENCY"),
        Column::if_room("LIMIT", 3),
        Column::if_room("QUEUE", 5),
        Column::if_room("STORAGE", 4),
        Column::if_room("NETWORK", 6),
        Column::if_room("OF ALL TIME", 1),
        Column::if_room("WAITS FOR", 7),
    ];
    let more = costs.len().saturating_sub(rows_max);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    format!(
        "In the last {:.1} s, sorted by total time:\n{}{more}",
        elapsed.as_secs_f64(),
        within(width, &columns, &rows)
    )
}

fn row(cost: &Cost) -> Vec<String> {
    vec![
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
}

/// All calls together: rates are added, means are weighted with the calls.
fn sum(costs: &[Cost]) -> Cost {
    let of = |value: fn(&Cost) -> f64| costs.iter().map(value).sum::<f64>();
    let calls = of(|cost| cost.calls_per_second);
    let mean = |value: fn(&Cost) -> f64| {
        let all: f64 = costs.iter().map(|cost| cost.calls_per_second * value(cost)).sum();
        if calls > 0.0 { all / calls } else { 0.0 }
    };
    Cost {
        share: "all".to_owned(),
        protocol: String::new(),
        api: String::new(),
        calls_per_second: calls,
        errors_per_second: of(|cost| cost.errors_per_second),
        bytes_per_second: of(|cost| cost.bytes_per_second),
        mean_seconds: mean(|cost| cost.mean_seconds),
        mean_limit_seconds: mean(|cost| cost.mean_limit_seconds),
        mean_queue_seconds: mean(|cost| cost.mean_queue_seconds),
        mean_storage_seconds: mean(|cost| cost.mean_storage_seconds),
        mean_network_seconds: mean(|cost| cost.mean_network_seconds),
        part: of(|cost| cost.part),
        throttled: Vec::new(),
        seconds: of(|cost| cost.seconds),
    }
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
        let before = look(&[("Read", 100, 1.0), ("Close", 5, 9.0)]);
        let after = look(&[("Read", 300, 1.5), ("Close", 5, 9.0), ("Create", 2, 1.5)]);
        let costs = between(&before, &after, Duration::from_secs(2));
        let seen: Vec<_> = costs.iter().map(|cost| (cost.api.as_str(), cost.calls_per_second)).collect();
        assert_eq!(seen, [("Create", 1.0), ("Read", 100.0)]);
        assert!((costs[0].part - 0.75).abs() < 1e-9 && (costs[0].mean_seconds - 0.75).abs() < 1e-9);
        assert!((costs[0].mean_limit_seconds - 0.375).abs() < 1e-9, "{:?}", costs[0]);
        assert!((costs[0].mean_queue_seconds - costs[0].mean_storage_seconds).abs() < 1e-9);
        assert!((costs[0].mean_network_seconds - 0.093_75).abs() < 1e-9);
        assert!((costs[1].bytes_per_second - 102_400.0).abs() < 1e-9);
        let text = render(&costs, Duration::from_secs(2), (1, 200));
        assert!(text.starts_with("In the last 2.0 s, sorted by total time:\nSHARE"), "{text}");
        assert!(
            text.contains("750.00 ms     375.00 ms  187.50 ms  187.50 ms  93.75 ms  75 %")
                && text.contains("\nall ")
                && text.ends_with("and 1 more\n"),
            "{text}"
        );
    }

    #[test]
    fn a_share_that_came_anew_does_not_count_below_nothing() {
        let before = look(&[("Read", 100, 1.0)]);
        assert!(between(&before, &look(&[("Read", 10, 0.5)]), Duration::from_secs(1)).is_empty());
        assert_eq!(
            render(&[], Duration::from_secs(1), (9, 80)),
            "In the last 1.0 s no client called anything.\n"
        );
    }

    #[test]
    fn a_table_fits_a_terminal_and_ends_with_the_sum() {
        let after = look(&[("QueryDirectory", 30, 0.3), ("Read", 10, 0.5)]);
        let costs = between(&look(&[]), &after, Duration::from_secs(1));
        for width in [80, 100, 200] {
            let text = render(&costs, Duration::from_secs(1), (9, width));
            assert!(text.lines().all(|line| line.len() <= width), "{text}");
        }
        let text = render(&costs, Duration::from_secs(1), (9, 80));
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last[..6], ["all", "40.0", "40", "KiB/s", "20.00", "ms"], "{text}");
    }
}

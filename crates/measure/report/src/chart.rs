//! Charts as data: the sweeps that a result has in it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::claim::Figure;
use super::evidence::figure;
use super::{units, words};
use load::result::{Key, Latency, Mix, Operation, Protocol, ResultFile, Row};

/// Lines of a chart; more cannot be told apart.
const SERIES_MAX: usize = 6;

/// Figures along one thing that was varied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What was the same for all of it.
    pub about: String,
    /// What was varied.
    pub x: &'static str,
    /// Its values, in their order.
    pub ticks: Vec<String>,
    /// What was measured.
    pub y: Figure,
    /// The values have no order: nothing runs from one to the next.
    pub unordered: bool,
    /// The lines.
    pub series: Vec<Series>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// Its points, one for each tick; none where nothing was measured.
    pub points: Vec<Option<Point>>,
}

/// One point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The figure: operations or bytes a second, or microseconds.
    pub value: f64,
    /// Its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// Something that rows vary.
struct Sweep {
    x: &'static str,
    /// The charts' titles, up to the kind of work, and their figures.
    shows: &'static [(&'static str, Figure)],
    /// The key without what is varied along the axis and from line to line; none: the row is in no such chart.
    chart: fn(&Key) -> Option<Key>,
    /// The place on the axis, and its name.
    tick: fn(&Key) -> (u64, String),
    /// The line.
    series: fn(Protocol, &Key) -> String,
    /// Places that there must be.
    ticks_min: usize,
    unordered: bool,
}

const SWEEPS: &[Sweep] = &[
    Sweep {
        x: "block size",
        shows: &[("IOPS by block size", Figure::Rate), ("Throughput by block size", Figure::Throughput)],
        chart: |key| {
            matches!(key.mix, Mix::ReadPercent(0 | 100)).then(|| Key {
                block_bytes: 0,
                connections: 0,
                ..key.clone()
            })
        },
        tick: |key| (key.block_bytes, units::block(key.block_bytes)),
        series: |protocol, key| words::connections(protocol, key.connections),
        ticks_min: 2,
        unordered: false,
    },
    Sweep {
        x: "operations under way",
        shows: &[("Latency by queue depth", Figure::Latency), ("IOPS by queue depth", Figure::Rate)],
        chart: |key| Some(Key { queue_depth: 0, connections: 0, ..key.clone() }),
        tick: |key| {
            let under_way = u64::from(key.queue_depth) * u64::from(key.threads);
            (under_way, under_way.to_string())
        },
        series: |protocol, key| words::connections(protocol, key.connections),
        ticks_min: 2,
        unordered: false,
    },
    Sweep {
        x: "reads of a hundred operations",
        shows: &[("IOPS by mix of reads and writes", Figure::Rate)],
        chart: |key| {
            let Mix::ReadPercent(_) = key.mix else { return None };
            Some(Key { mix: Mix::ReadPercent(0), block_bytes: 0, random: true, ..key.clone() })
        },
        tick: |key| match key.mix {
            Mix::ReadPercent(reads) => (100 - u64::from(reads.min(100)), reads.to_string()),
            Mix::Metadata => (0, String::new()),
        },
        series: |_, key| {
            format!("{} {}", units::block(key.block_bytes), if key.random { "random" } else { "sequential" })
        },
        ticks_min: 3,
        unordered: false,
    },
    Sweep {
        x: "clients",
        shows: &[("Scale-out: IOPS", Figure::Rate), ("Scale-out: throughput", Figure::Throughput)],
        chart: |key| {
            let mix = matches!(key.mix, Mix::ReadPercent(_)).then_some(Mix::ReadPercent(0))?;
            Some(Key { clients: 0, threads: 0, block_bytes: 0, mix, ..key.clone() })
        },
        tick: |key| (key.clients.into(), key.clients.to_string()),
        series: |_, key| words::work(key),
        ticks_min: 2,
        unordered: false,
    },
    Sweep {
        x: "threads",
        shows: &[
            ("Metadata: cycles a second", Figure::Rate),
            ("Metadata: latency of a cycle", Figure::Latency),
        ],
        chart: |key| (key.mix == Mix::Metadata).then(|| Key { threads: 0, connections: 0, ..key.clone() }),
        tick: |key| (key.threads.into(), key.threads.to_string()),
        series: |protocol, key| words::connections(protocol, key.connections),
        ticks_min: 2,
        unordered: false,
    },
    Sweep {
        x: "protection of messages",
        shows: &[("Signing and encryption: throughput", Figure::Throughput)],
        chart: |key| {
            let varied = key.settings.contains_key("security") && key.mix != Mix::Metadata;
            varied.then(|| Key { settings: BTreeMap::new(), mix: Mix::ReadPercent(0), ..key.clone() })
        },
        tick: |key| setting(key, "security", &["none", "HMAC-SHA256", "AES-128-CMAC", "AES-128-GMAC"]),
        series: |_, key| words::work(key),
        ticks_min: 2,
        unordered: true,
    },
    Sweep {
        x: "read-ahead",
        shows: &[("Read-ahead: throughput", Figure::Throughput)],
        chart: |key| {
            let varied = key.settings.contains_key("readahead");
            varied.then(|| Key { settings: BTreeMap::new(), block_bytes: 0, queue_depth: 0, ..key.clone() })
        },
        tick: |key| setting(key, "readahead", &["128KiB", "15xrsize", "15MiB"]),
        series: |_, _| "sequential reads".to_owned(),
        ticks_min: 2,
        unordered: true,
    },
];

/// The place of a setting's value: those that are listed first, the others after them by name.
fn setting(key: &Key, name: &str, order: &[&str]) -> (u64, String) {
    let value = key.settings.get(name).cloned().unwrap_or_default();
    let place = order.iter().position(|known| *known == value).unwrap_or(order.len());
    (place as u64, value)
}

/// All charts that a result has the rows for.
pub(super) fn charts(result: &ResultFile) -> Vec<Chart> {
    let protocol = result.environment.protocol;
    let mut charts: Vec<Chart> =
        SWEEPS.iter().flat_map(|sweep| of_sweep(sweep, protocol, &result.rows)).collect();
    charts.extend(percentiles(protocol, &result.rows));
    charts
}

fn of_sweep(sweep: &Sweep, protocol: Protocol, rows: &[Row]) -> Vec<Chart> {
    let mut groups: Vec<(Key, Vec<&Row>)> = Vec::new();
    for row in rows {
        let Some(with) = (sweep.chart)(&row.key) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == with) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((with, vec![row])),
        }
    }
    let charts = groups.iter().flat_map(|(with, rows)| {
        sweep.shows.iter().filter_map(|(title, figure)| chart(sweep, protocol, title, *figure, with, rows))
    });
    charts.collect()
}

/// None where nothing is varied along the axis, or nothing was measured.
fn chart(
    sweep: &Sweep,
    protocol: Protocol,
    title: &str,
    of: Figure,
    with: &Key,
    rows: &[&Row],
) -> Option<Chart> {
    let mut ticks: Vec<(u64, String)> = rows.iter().map(|row| (sweep.tick)(&row.key)).collect();
    ticks.sort();
    ticks.dedup();
    if ticks.len() < sweep.ticks_min {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for row in rows {
        let name = (sweep.series)(protocol, &row.key);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let point = |name: &String, tick: &(u64, String)| {
        let at = |row: &&&Row| (sweep.tick)(&row.key) == *tick && (sweep.series)(protocol, &row.key) == *name;
        let estimate = figure(of, rows.iter().find(at)?)?;
        Some(Point { value: estimate.median, interval: estimate.interval })
    };
    let series = names.iter().take(SERIES_MAX).map(|name| Series {
        name: name.clone(),
        points: ticks.iter().map(|tick| point(name, tick)).collect(),
    });
    // One point is no line: another sweep has the row.
    let series: Vec<_> = series.filter(|s| s.points.iter().flatten().count() > 1).collect();
    let about = constant(sweep, with, rows);
    let title = match sweep.x {
        "block size" | "operations under way" => format!("{title}: {}", operation(rows)),
        _ => title.to_owned(),
    };
    let ticks = ticks.into_iter().map(|(_, name)| name).collect();
    (!series.is_empty()).then_some(Chart {
        title,
        about,
        x: sweep.x,
        ticks,
        y: of,
        unordered: sweep.unordered,
        series,
    })
}

/// The work of rows that all do the same.
fn operation(rows: &[&Row]) -> String {
    let of_any_size = |key: &Key| {
        let work = words::work(key);
        work.split_once(units::block(key.block_bytes).as_str())
            .map_or_else(|| work.clone(), |(_, kind)| kind.trim().to_owned())
    };
    let (same, any) =
        rows.first().map_or_else(Default::default, |row| (words::work(&row.key), of_any_size(&row.key)));
    if rows.iter().all(|row| words::work(&row.key) == same) { same } else { any }
}

/// What all rows of a chart have in common, in words.
fn constant(sweep: &Sweep, with: &Key, rows: &[&Row]) -> String {
    let counted = |count: u32, thing: &str| (count > 0).then(|| words::counted(count, thing));
    let depth = |depth: u32| (depth > 0).then(|| format!("{depth} under way each"));
    let metadata = with.mix == Mix::Metadata;
    let parts = [
        counted(if metadata { 0 } else { with.files }, "file"),
        counted(with.threads, if sweep.x == "clients" { "thread a client" } else { "thread" }),
        depth(with.queue_depth),
    ];
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
    let repetitions = rows.iter().map(|row| row.repetitions.len()).min().unwrap_or(0);
    parts.push(words::counted(u32::try_from(repetitions).unwrap_or(u32::MAX), "repetition"));
    parts.join(", ")
}

/// The latencies of some rows: over the fewest and the most connections, by kind of work.
fn percentiles(protocol: Protocol, rows: &[Row]) -> Option<Chart> {
    let extreme = |row: &&Row| {
        let same = |other: &&Row| {
            Key { connections: 0, ..other.key.clone() } == Key { connections: 0, ..row.key.clone() }
        };
        let counts = || rows.iter().filter(same).map(|r| r.key.connections);
        Some(row.key.connections) == counts().min() || Some(row.key.connections) == counts().max()
    };
    let pure = |row: &&Row| matches!(row.key.mix, Mix::Metadata | Mix::ReadPercent(0 | 100));
    let mut chosen: Vec<&Row> = rows.iter().filter(pure).filter(extreme).collect();
    chosen.sort_by_key(|row| (row.key.mix == Mix::ReadPercent(0), row.key.block_bytes));
    let line = |row: &&Row| {
        let latency = overall(row)?;
        let values = [latency.p50_us, latency.p90_us, latency.p99_us, latency.p999_us, latency.max_us];
        let points = values.map(|value| Some(Point { value, interval: None })).to_vec();
        Some(Series { name: of_line(protocol, &row.key, &chosen), points })
    };
    let series: Vec<_> = chosen.iter().filter_map(line).take(SERIES_MAX).collect();
    let ticks = ["50 %", "90 %", "99 %", "99.9 %", "longest"].map(str::to_owned).to_vec();
    let about = "of all operations of all repetitions, from merged histograms".to_owned();
    let title = match chosen.first() {
        Some(first) if same_work(&chosen) => format!("Latency percentiles: {}", words::work(&first.key)),
        _ => "Latency percentiles".to_owned(),
    };
    let x = "operations that took no longer";
    (!series.is_empty()).then_some(Chart {
        title,
        about,
        x,
        ticks,
        y: Figure::Latency,
        unordered: false,
        series,
    })
}

/// A row among others: what tells them apart; its work where nothing does.
fn of_line(protocol: Protocol, key: &Key, among: &[&Row]) -> String {
    let varies = |of: fn(&Key) -> u32| among.iter().any(|row| of(&row.key) != of(key));
    let parts = [
        (!same_work(among), words::work(key)),
        (varies(|k| k.connections), words::connections(protocol, key.connections)),
        (varies(|k| k.clients), words::counted(key.clients, "client")),
        (varies(|k| k.threads), words::counted(key.threads, "thread")),
        (varies(|k| k.files), words::counted(key.files, "file")),
        (varies(|k| k.queue_depth), format!("depth {}", key.queue_depth)),
    ];
    let told = parts.into_iter().filter(|(varies, _)| *varies).map(|(_, part)| part);
    let settings = key
        .settings
        .iter()
        .filter(|(name, value)| among.iter().any(|row| row.key.settings.get(*name) != Some(*value)));
    let told: Vec<String> = told.chain(settings.map(|(_, value)| value.clone())).collect();
    if told.is_empty() { words::work(key) } else { told.join(", ") }
}

fn same_work(rows: &[&Row]) -> bool {
    rows.iter().all(|row| rows.first().is_some_and(|first| words::work(&first.key) == words::work(&row.key)))
}

/// The latencies of what the row's rate counts.
pub(super) fn overall(row: &Row) -> Option<Latency> {
    let latency = &row.measure.as_ref()?.latency;
    [Operation::Cycle, Operation::Read, Operation::Write].iter().find_map(|kind| latency.get(kind)).copied()
}

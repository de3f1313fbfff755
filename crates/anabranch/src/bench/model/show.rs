//! Models for people.

use std::fmt::Write as _;

use load::plan::Extent;
use model::{Calibration, Forwarded, Link, Model, Parameter, RoundTrip, StorageDelay};
use serde::Serialize;

use super::measure::Unusable;
use crate::table;

/// Models, a line each.
pub(super) fn list(models: &[Model]) -> String {
    let row = |model: &Model| [model.name.clone(), scale(model), model.about.clone()];
    table::render(["MODEL", "SCALE", "OF"], &models.iter().map(row).collect::<Vec<_>>())
}

pub(super) fn scale(model: &Model) -> String {
    format!("1:{}", model.scale.as_ref())
}

/// A model as `--json` shows it.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Shown {
    name: String,
    about: String,
    scale: u32,
    machines: Vec<String>,
    parameters: Vec<Parameter>,
    rows: Vec<ShownRows>,
    statements: Vec<ShownStatement>,
}

#[derive(Serialize)]
struct ShownRows {
    family: String,
    over: &'static str,
    rows: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownStatement {
    id: String,
    place: String,
    by_construction: Option<String>,
}

impl Shown {
    pub(super) fn of(model: &Model) -> Self {
        let rows = model.plans(&Extent::new(false)).into_iter().map(|(protocol, plan)| ShownRows {
            family: plan.family,
            over: protocol.name(),
            rows: plan.rows.iter().map(|row| row.key.to_string()).collect(),
        });
        let statements = model.statements.iter().map(|statement| ShownStatement {
            id: statement.id.clone(),
            place: statement.place(),
            by_construction: statement.by_construction.clone(),
        });
        Self {
            name: model.name.clone(),
            about: model.about.clone(),
            scale: *model.scale.as_ref(),
            machines: model.machines().map(|(name, _)| name).collect(),
            parameters: model.parameters(),
            rows: rows.collect(),
            statements: statements.collect(),
        }
    }
}

/// All of a model.
pub(super) fn one(model: &Model) -> String {
    let shown = Shown::of(model);
    let mut text = format!("{}, {}: {}\n\n", model.name, scale(model), model.about);
    text.push_str(&parameters(&shown.parameters));
    for parameter in &shown.parameters {
        let source = parameter.source.as_deref().unwrap_or("nowhere published: of this description only");
        let _ = write!(text, "\n{}, {}\n  {source}\n", parameter.of, parameter.name);
    }
    text.push_str("\nMeasured:\n");
    for rows in &shown.rows {
        let _ = writeln!(text, "  {} over {}: {} rows", rows.family, rows.over, rows.rows.len());
    }
    if !shown.statements.is_empty() {
        text.push_str("\nSpeaks to:\n");
    }
    for statement in &shown.statements {
        let _ = writeln!(text, "  {}", statement.place);
        if let Some(part) = &statement.by_construction {
            let _ = writeln!(text, "    by construction: {part}");
        }
    }
    text
}

/// Limits as published and as built.
pub(super) fn parameters(parameters: &[Parameter]) -> String {
    let row = |p: &Parameter| [p.of.clone(), p.name.to_owned(), p.published.clone(), p.built.clone()];
    table::render(["OF", "LIMIT", "PUBLISHED", "BUILT"], &parameters.iter().map(row).collect::<Vec<_>>())
}

/// What plain connections carried before anything was measured.
pub(super) fn calibrations(calibrations: &[Calibration]) -> String {
    let row = |of: &Calibration| {
        [
            of.shape.clients.to_string(),
            of.shape.connections.to_string(),
            of.direction.text().to_owned(),
            megabytes(of.limit as f64),
            megabytes(of.wire as f64),
            format!("{:.1} %", of.share() * 100.0),
            of.finding.text().to_owned(),
        ]
    };
    let heads = ["CLIENTS", "CONNECTIONS", "CALIBRATED", "LIMIT MB/S", "WIRE MB/S", "SHARE", "ROWS"];
    table::render(heads, &calibrations.iter().map(row).collect::<Vec<_>>())
}

/// Round trips of links with a delay, without it and with it.
pub(super) fn round_trips(trips: &[RoundTrip]) -> String {
    let row = |of: &RoundTrip| {
        let finding = if of.is_usable { "usable" } else { "unusable: later than the delay" };
        [
            of.machine.clone(),
            milliseconds(of.delay_micros),
            milliseconds(of.without_micros),
            milliseconds(of.micros),
            finding.to_owned(),
        ]
    };
    let heads = ["DELAYED", "ONE WAY MS", "ROUND TRIP WITHOUT MS", "WITH MS", "ROWS"];
    table::render(heads, &trips.iter().map(row).collect::<Vec<_>>())
}

/// Accesses to a storage with delays, without them and with them.
pub(super) fn storage_delays(delays: &[StorageDelay]) -> String {
    let row = |of: &StorageDelay| {
        let finding = if of.is_usable { "usable" } else { "unusable: later than the delay" };
        let [delay, without, with] = [of.delay_micros, of.without_micros, of.micros].map(milliseconds);
        [of.parameter.to_owned(), delay, without, with, finding.to_owned()]
    };
    let heads = ["STORAGE", "DELAY MS", "ACCESS WITHOUT MS", "WITH MS", "ROWS"];
    table::render(heads, &delays.iter().map(row).collect::<Vec<_>>())
}

/// Why no row is usable: the storage takes longer than it should.
pub(super) fn slow_storage(delay: &StorageDelay) -> String {
    let (found, declared) = (milliseconds(delay.micros), milliseconds(delay.delay_micros));
    format!("accesses to the storage take {found} ms, with a {} of {declared} ms", delay.parameter)
}

/// Why a row is unusable whose links carry less or more than their rates.
pub(super) fn too_slow(calibration: &Calibration) -> String {
    format!("{:.1} % of the limit {}", calibration.share() * 100.0, calibration.direction.text())
}

/// Why a row is unusable whose frames are late.
pub(super) fn late(trip: &RoundTrip) -> String {
    let (found, delay) = (milliseconds(trip.micros), milliseconds(trip.delay_micros));
    format!("round trips of {} take {found} ms, with a delay of {delay} ms in each direction", trip.machine)
}

/// What forwarders have done with frames.
pub(super) fn forwarded(forwarded: &[Forwarded]) -> String {
    let row = |of: &Forwarded| {
        let link = format!("{} {}", of.machine, of.direction);
        [link, of.frames.to_string(), of.lost.to_string(), of.dropped.to_string()]
    };
    table::render(["FORWARDED", "FRAMES", "LOST", "DROPPED"], &forwarded.iter().map(row).collect::<Vec<_>>())
}

/// Microseconds as milliseconds.
fn milliseconds(micros: u64) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

/// Rows that are not measured, and why.
pub(super) fn unusable(rows: &[Unusable]) -> String {
    let mut text = "Not measured, since they would measure this machine:\n".to_owned();
    for Unusable { family, over, row, why } in rows {
        let _ = writeln!(text, "  {family} over {over}, {row}: {why}");
    }
    text
}

fn megabytes(bytes: f64) -> String {
    format!("{:.2}", bytes / 1e6)
}

/// What passed the links.
pub(super) fn links(links: &[Link]) -> String {
    let row = |link: &Link| {
        [
            format!("{} {}", link.machine, link.direction),
            link.limit.map_or_else(|| "none".to_owned(), |limit| megabytes(limit as f64)),
            megabytes(link.busiest_rate()),
            megabytes(link.bytes as f64),
        ]
    };
    let heads = ["LINK", "LIMIT MB/S", "BUSIEST SECOND MB/S", "PASSED MB"];
    table::render(heads, &links.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use model::{Direction, Finding, Shape};

    use super::*;

    #[test]
    fn what_a_machine_does_not_carry_is_told() {
        let calibration = Calibration {
            shape: Shape { clients: 2, connections: 4 },
            direction: Direction::ToClients,
            limit: 20_000_000,
            wire: 18_000_000,
            finding: Finding::TooSlow,
        };
        let shown = calibrations(&[calibration]);
        let words: Vec<&str> =
            shown.lines().nth(1).unwrap().split("  ").filter(|cell| !cell.is_empty()).collect();
        assert_eq!(
            words.iter().map(|word| word.trim()).collect::<Vec<_>>(),
            ["2", "4", "to the clients", "20.00", "18.00", "90.0 %", "unusable: this machine carries less"]
        );
    }

    #[test]
    fn a_late_link_is_told() {
        let trip = RoundTrip {
            client: 1,
            machine: "vm-1".to_owned(),
            delay_micros: 5000,
            without_micros: 70,
            micros: 10_560,
            is_usable: false,
        };
        let shown = round_trips(std::slice::from_ref(&trip));
        let line = shown.lines().nth(1).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..5], ["vm-1", "5.000", "0.070", "10.560", "unusable:"]);
        assert_eq!(
            late(&trip),
            "round trips of vm-1 take 10.560 ms, with a delay of 5.000 ms in each direction"
        );
    }
}

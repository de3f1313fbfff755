//! Anabranch beside its peers: a table of ratios.

use std::fmt::Write as _;

use load::result::{Measure, Outcome, Repetition, ResultFile, Row};
use load::statistics::{Estimate, Ratio, compare};

use super::Measured;
use crate::bench::show;
use crate::table;

/// Each protocol: Anabranch beside the peer, or alone.
pub(super) fn render(measured: &[Measured]) -> String {
    let mut text = String::new();
    for own in measured.iter().filter(|measured| measured.server == "anabranch") {
        let protocol = own.result.environment.protocol;
        let peers =
            measured.iter().filter(|m| m.server != "anabranch" && m.result.environment.protocol == protocol);
        let mut alone = true;
        for peer in peers {
            alone = false;
            text.push_str(&beside(&peer.result, &own.result));
        }
        if alone {
            text.push_str(&show::render(&own.result));
        }
        text.push('\n');
    }
    text.pop();
    text
}

fn beside(peer: &ResultFile, own: &ResultFile) -> String {
    let (theirs, ours) = (name(peer), name(own));
    let mut text = format!(
        "{}: {ours} beside {theirs}, {}, in turns\n{} repetitions of {:.2} s after {:.2} s of load{}; the first pass is thrown away\n\n",
        own.family,
        own.environment.negotiated.dialect,
        own.method.repetitions,
        own.method.seconds,
        own.method.ramp_seconds,
        if own.method.quick { " (quick: a direction, no more)" } else { "" },
    );
    let short = theirs.split(' ').next().unwrap_or_default().to_uppercase();
    let (their_rate, their_cpu) = (format!("{short} OP/S"), format!("{short} CPU US"));
    let heads = ["ROW", "ANABRANCH OP/S", &their_rate, "RATIO", "ANABRANCH CPU US", &their_cpu, "RATIO"];
    let rows: Vec<[String; 7]> = own.rows.iter().map(|row| line(row, peer.row(&row.key))).collect();
    text.push_str(&table::render(heads, &rows));
    let plan = |result: &ResultFile| result.environment.settings.get("plan").cloned();
    if let (Some(plan), None) = (plan(own), plan(peer)) {
        let _ = writeln!(
            text,
            "the share of {ours} has the plan {plan}, that of {theirs} none: these are no ratios of servers"
        );
    }
    for result in [own, peer] {
        for said in &result.not_honoured {
            let _ = writeln!(text, "not honoured by {}: {said}", name(result));
        }
    }
    if [own, peer].iter().any(|result| result.outcome == Outcome::Stopped) {
        text.push_str("stopped: this is what was measured until then\n");
    }
    text
}

fn name(result: &ResultFile) -> &str {
    result.environment.server.as_deref().unwrap_or("?")
}

fn line(own: &Row, peer: Option<&Row>) -> [String; 7] {
    let rate = |row: Option<&Row>| {
        row.and_then(|row| row.measure.as_ref()).map_or_else(String::new, |m| format!("{:.0}", m.rate.median))
    };
    let cpu = |row: Option<&Row>| {
        let of =
            |measure: &Measure| measure.server_cpu_us.as_ref().map(|e: &Estimate| format!("{:.2}", e.median));
        row.and_then(|row| of(row.measure.as_ref()?)).unwrap_or_default()
    };
    let cpus =
        |row: &Row| row.repetitions.iter().map(|r| Repetition::server_cpu_us(r).unwrap_or(0.0)).collect();
    [
        own.key.to_string(),
        rate(Some(own)),
        rate(peer),
        ratio(own, peer, Row::rates),
        cpu(Some(own)),
        cpu(peer),
        ratio(own, peer, cpus),
    ]
}

/// Ours by theirs, repetition by repetition: that means something only while all stand beside each other.
fn ratio(own: &Row, peer: Option<&Row>, figures: impl Fn(&Row) -> Vec<f64>) -> String {
    let Some(peer) = peer else { return String::new() };
    if own.repetitions.len() != peer.repetitions.len() {
        return "a repetition is missing".to_owned();
    }
    compare(&figures(peer), &figures(own)).map_or_else(String::new, |ratio: Ratio| ratio.to_string())
}

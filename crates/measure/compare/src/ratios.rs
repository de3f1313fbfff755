//! Anabranch beside its peers: the cells of a table of ratios.

use load::result::{Measure, Repetition, ResultFile, Row};
use load::statistics::{Estimate, Ratio, compare};

use crate::contest::Measured;

/// Each result of Anabranch with that of the peer that has the protocol, if there is one.
#[must_use]
pub fn pairs(measured: &[Measured]) -> Vec<(&ResultFile, Option<&ResultFile>)> {
    let (own, peers): (Vec<_>, Vec<_>) = measured.iter().partition(|measured| measured.server == "anabranch");
    let peer_of = |own: &ResultFile| {
        let protocol = own.environment.protocol;
        peers.iter().map(|peer| &peer.result).find(|peer| peer.environment.protocol == protocol)
    };
    own.into_iter().map(|own| (&own.result, peer_of(&own.result))).collect()
}

/// The method of measurement, in words.
#[must_use]
pub fn method(result: &ResultFile) -> String {
    let method = &result.method;
    format!(
        "{} repetitions of {:.2} s after {:.2} s of load{}; the first pass is discarded",
        method.repetitions,
        method.seconds,
        method.ramp_seconds,
        if method.quick { " (quick: a rough idea only)" } else { "" },
    )
}

/// The heads of the columns, and a line for each row.
#[must_use]
pub fn table(own: &ResultFile, peer: &ResultFile) -> ([String; 7], Vec<[String; 7]>) {
    let short = short(peer).to_uppercase();
    let (their_rate, their_cpu) = (format!("{short} OP/S"), format!("{short} CPU US"));
    let heads = ["ROW", "ANABRANCH OP/S", &their_rate, "RATIO", "ANABRANCH CPU US", &their_cpu, "RATIO"];
    let rows = own.rows.iter().map(|row| line(row, peer.row(&row.key))).collect();
    (heads.map(str::to_owned), rows)
}

/// Reservations that a reader of the table must know.
#[must_use]
pub fn reservations(own: &ResultFile, peer: &ResultFile) -> Vec<String> {
    let mut all = Vec::new();
    let plan = |result: &ResultFile| result.environment.settings.get("plan").cloned();
    if let (Some(plan), None) = (plan(own), plan(peer)) {
        let (ours, theirs) = (name(own), name(peer));
        all.push(format!(
            "the share of {ours} has the plan {plan}, that of {theirs} has none: these ratios do not compare the servers"
        ));
    }
    for result in [own, peer] {
        let of = |said| format!("not honoured by {}: {said}", name(result));
        all.extend(result.not_honoured.iter().map(of));
    }
    all
}

/// A server's name and version.
#[must_use]
pub fn name(result: &ResultFile) -> &str {
    result.environment.server.as_deref().unwrap_or("?")
}

/// A server's name alone.
#[must_use]
pub fn short(result: &ResultFile) -> &str {
    name(result).split(' ').next().unwrap_or_default()
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

/// Anabranch's figure divided by the peer's. The ratio is meaningful only if both have all repetitions.
fn ratio(own: &Row, peer: Option<&Row>, figures: impl Fn(&Row) -> Vec<f64>) -> String {
    let Some(peer) = peer else { return String::new() };
    if own.repetitions.len() != peer.repetitions.len() {
        return "a repetition is missing".to_owned();
    }
    compare(&figures(peer), &figures(own)).map_or_else(String::new, |ratio: Ratio| ratio.to_string())
}

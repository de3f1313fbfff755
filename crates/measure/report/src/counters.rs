//! What the clients did, held against what the server counted.

use serde::Serialize;

use super::units::{self, significant};
use super::words;
use load::result::{Operation, Protocol, Repetition, Row, ServerCounters};

/// A difference up to here comes from the edges of the measurement: requests that are under way when it begins or ends.
const EDGES: f64 = 0.01;
/// Seconds by which the server's two counts may be beside the moments at which the client begins and ends to count.
const ASIDE: f64 = 0.01;

/// One kind of work of a row, as its clients and as its server counted it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counted {
    /// The row, in words.
    pub row: String,
    /// What was counted.
    pub what: &'static str,
    /// By the clients.
    pub client: u64,
    /// By the server.
    pub server: u64,
    /// What that means.
    pub meaning: String,
}

impl Counted {
    /// A count in words: bytes with their unit.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(super) fn in_words(&self, count: u64) -> String {
        if self.what.starts_with("bytes") { units::bytes(count as f64) } else { significant(count as f64) }
    }
}

/// The work of a row that its server has counted, too.
pub(super) fn counted(protocol: Protocol, row: &Row) -> Vec<Counted> {
    let told: Vec<_> = row.repetitions.iter().filter_map(|r| Some((r, r.server?))).collect();
    let client = |operation: Operation| told.iter().map(|(r, _)| bytes(r, operation)).sum::<u64>();
    let operations = || told.iter().map(|(r, _)| requests(r)).sum::<u64>();
    let edges = edges(&told);
    let (read, written) = (client(Operation::Read), client(Operation::Write));
    let pairs = [
        ("bytes read", read, told.iter().map(|(_, s)| s.read_bytes).sum()),
        ("bytes written", written, told.iter().map(|(_, s)| s.written_bytes).sum()),
        // Where data is moved its bytes say it better: reads may be split or put together.
        (
            "operations",
            if read + written == 0 { operations() } else { 0 },
            told.iter().map(|(_, s)| s.operations).sum(),
        ),
    ];
    let compared = pairs.into_iter().filter(|(_, client, _)| *client > 0);
    let mut counted: Vec<_> = compared
        .map(|(what, client, server)| Counted {
            row: words::row(protocol, &row.key),
            what,
            client,
            server,
            meaning: meaning(client, server, edges),
        })
        .collect();
    let (waited, all) = told.iter().fold((0, 0), |(w, a), (r, s)| (w + s.throttled, a + r.done()));
    if waited > 0 {
        counted.push(Counted {
            row: words::row(protocol, &row.key),
            what: "operations that waited",
            client: all,
            server: waited,
            meaning: "they waited for the share's plan".to_owned(),
        });
    }
    counted
}

/// The part of what was done that one side may have counted and the other not.
#[expect(clippy::cast_precision_loss, reason = "a handful of repetitions")]
fn edges(told: &[(&Repetition, ServerCounters)]) -> f64 {
    let seconds: f64 = told.iter().map(|(repetition, _)| repetition.seconds).sum();
    EDGES + if seconds > 0.0 { ASIDE * told.len() as f64 / seconds } else { 0.0 }
}

fn bytes(repetition: &Repetition, operation: Operation) -> u64 {
    repetition.operations.get(&operation).map_or(0, |tally| tally.bytes)
}

/// What was asked for: a cycle is no request of its own.
fn requests(repetition: &Repetition) -> u64 {
    let parts = repetition.operations.iter().filter(|(operation, _)| **operation != Operation::Cycle);
    parts.map(|(_, tally)| tally.count).sum()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn meaning(client: u64, server: u64, edges: f64) -> String {
    let share = server as f64 / client as f64;
    if share < 1.0 - edges {
        format!("{} % from a cache in between", significant((1.0 - share) * 100.0))
    } else if share > 1.0 + edges {
        format!("the server did {} % more than these clients asked for", significant((share - 1.0) * 100.0))
    } else {
        "all of it reached the server".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_in_between_is_called_by_its_name() {
        for (server, expected) in [
            (370, "63 % from a cache in between"),
            (991, "all of it reached the server"),
            (989, "1.1 % from a cache in between"),
            (1010, "all of it reached the server"),
            (2000, "the server did 100 % more than these clients asked for"),
        ] {
            assert_eq!(meaning(1000, server, EDGES), expected);
        }
    }

    /// The shorter a measurement is, the more of it lies between the two sides' moments.
    #[test]
    fn short_measurements_have_wider_edges() {
        let of = |seconds| Repetition { seconds, ..Repetition::default() };
        let (short, long) = (of(0.1), of(10.0));
        let edges = |one| edges(&[(one, ServerCounters::default()), (one, ServerCounters::default())]);
        assert!((edges(&short) - 0.11).abs() < 1e-9 && (edges(&long) - 0.011).abs() < 1e-9);
    }
}

//! What one thread of the engine has counted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Measured;
use crate::fault::Fault;
use crate::result::{Operation, Problem, ProblemKind, Repetition, Tally};

/// What one thread has counted.
#[derive(Debug, Default)]
pub(super) struct Meter {
    tallies: [Tally; KINDS.len()],
    pub(super) errors: u64,
    pub(super) wrong_blocks: u64,
    pub(super) connection_bytes: Vec<u64>,
    problems: BTreeMap<ProblemKind, Problem>,
    /// How long it was measured.
    pub(super) measured: Duration,
    pub(super) fault: Option<Fault>,
}

const KINDS: [Operation; 9] = [
    Operation::Read,
    Operation::Write,
    Operation::Create,
    Operation::Open,
    Operation::Close,
    Operation::Stat,
    Operation::List,
    Operation::Delete,
    Operation::Cycle,
];

impl Meter {
    /// An operation was done.
    pub(super) fn count(&mut self, operation: Operation, bytes: u64, latency: Duration) {
        let tally = &mut self.tallies[operation as usize];
        tally.count += 1;
        tally.bytes += bytes;
        tally.latency.add(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Whether anything was ever done.
    pub(super) fn is_empty(&self) -> bool {
        self.tallies.iter().all(|tally| tally.count == 0)
    }

    /// Something went wrong. The first of a kind is told, the others are counted.
    pub(super) fn problem(&mut self, fault: Fault) {
        let problem = || Problem { count: 0, ..fault.clone().into() };
        self.problems.entry(fault.kind).or_insert_with(problem).count += 1;
    }

    /// What all threads have counted.
    pub(super) fn merged(meters: Vec<Self>) -> Measured {
        let mut measured = Measured::default();
        let mut problems: BTreeMap<ProblemKind, Problem> = BTreeMap::new();
        for mut meter in meters {
            if let Some(fault) = meter.fault.take() {
                meter.problem(fault.clone());
                measured.fault.get_or_insert(fault);
            }
            meter.add_to(&mut measured.repetition);
            for (kind, problem) in meter.problems {
                problems.entry(kind).and_modify(|p| p.count += problem.count).or_insert(problem);
            }
        }
        measured.repetition.connections =
            u32::try_from(measured.repetition.connection_bytes.len()).unwrap_or(0);
        measured.problems = problems.into_values().collect();
        measured
    }

    fn add_to(&self, repetition: &mut Repetition) {
        for (kind, tally) in KINDS.into_iter().zip(&self.tallies).filter(|(_, tally)| tally.count > 0) {
            let sum = repetition.operations.entry(kind).or_default();
            sum.count += tally.count;
            sum.bytes += tally.bytes;
            sum.latency.merge(&tally.latency);
        }
        repetition.errors += self.errors;
        repetition.wrong_blocks += self.wrong_blocks;
        repetition.seconds = repetition.seconds.max(self.measured.as_secs_f64());
        repetition.connection_bytes.extend(&self.connection_bytes);
    }
}

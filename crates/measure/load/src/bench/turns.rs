//! Several runs at once: whose turn it is.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Bench, Progress};

/// Connecting and ending, for each measurement, in seconds.
const AROUND: f64 = 0.05;

/// Carries out runs in turns, until `stop` becomes true or none can go on.
pub(super) fn take(benches: &mut [Bench<'_>], stop: &AtomicBool, progress: &mut dyn FnMut(Progress<'_>)) {
    for bench in benches.iter_mut().filter(|_| !stop.load(Ordering::Relaxed)) {
        let now = format!("writing files to {}", bench.run.target);
        progress(Progress { now: &now, done: 0, all: 0, seconds_left: 0.0 });
        bench.begin();
    }
    measure(benches, stop, progress);
    progress(Progress { now: "removing what was made", done: 0, all: 0, seconds_left: 0.0 });
    benches.iter_mut().for_each(Bench::remove);
}

fn measure(benches: &mut [Bench<'_>], stop: &AtomicBool, progress: &mut dyn FnMut(Progress<'_>)) {
    let passes = benches.iter().map(|bench| bench.run.extent.repetitions).max().unwrap_or(0);
    let mut steps: Vec<(u32, usize, usize)> = Vec::new();
    for pass in 0..=passes {
        steps.extend(order(benches, pass).into_iter().map(|(bench, row)| (pass, bench, row)));
    }
    let name = |bench: &Bench<'_>, row: usize| bench.run.plan.rows[row].key.to_string();
    for (done, (pass, at, row)) in steps.iter().copied().enumerate() {
        if stop.load(Ordering::Relaxed) || benches.iter().all(|bench| bench.failed.is_some()) {
            return;
        }
        let seconds_left = steps.iter().skip(done).map(|(_, at, _)| seconds(&benches[*at])).sum();
        let bench = &mut benches[at];
        if bench.failed.is_none() {
            progress(Progress { now: &name(bench, row), done, all: steps.len(), seconds_left });
            bench.step(row, pass == 0);
        }
    }
}

/// Whose turn it is in a pass, and with which row of its plan: the same row of all plans stands together, and every other
/// pass goes backwards.
fn order(benches: &[Bench<'_>], pass: u32) -> Vec<(usize, usize)> {
    let rows = benches.iter().flat_map(|bench| bench.rows.iter().copied()).max().map_or(0, |row| row + 1);
    let turns = (0..rows).flat_map(|row| (0..benches.len()).map(move |at| (at, row)));
    let mut turns: Vec<_> = turns
        .filter(|(at, row)| benches[*at].rows.contains(row) && pass <= benches[*at].run.extent.repetitions)
        .collect();
    if pass % 2 == 1 {
        turns.reverse();
    }
    turns
}

fn seconds(bench: &Bench<'_>) -> f64 {
    bench.run.extent.ramp_seconds + bench.run.extent.seconds + AROUND
}

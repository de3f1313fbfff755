//! `anabranch bench job --trace`: what clients once asked a share for, asked again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use control::trace::Line;
use load::plan::{Plan, PlannedRow};
use load::result::{Key, Mix};
use load::trace::{Replay, Trace, Traced};

use super::arguments::BenchJob;
use crate::problem::{Cause, Problem, Result};
use crate::trace_file;

/// Operations that are under way at a time, where nobody says how many.
const QUEUE_DEPTH: u32 = 32;

/// The row of a trace, and what is done in its place; `None` where the job has none.
///
/// # Errors
/// The file cannot be read, or nothing in it can be replayed.
pub(super) fn of_job(job: &BenchJob) -> Result<Option<(Plan, Replay)>> {
    let Some(path) = &job.trace else { return Ok(None) };
    let lines = trace_file::read(path)?;
    let trace = trace(path, &lines)?;
    let speed = (!job.as_fast_as_possible).then_some(job.speed);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let pace = speed.map_or_else(|| "as-answers-come".to_owned(), |speed| speed.to_string());
    let row = PlannedRow {
        key: Key {
            connections: job.connections,
            queue_depth: job.queue_depth.unwrap_or(QUEUE_DEPTH),
            clients: job.clients.unwrap_or(1),
            settings: BTreeMap::from([("trace".to_owned(), name), ("speed".to_owned(), pace)]),
            ..key(&trace)
        },
        documents: Vec::new(),
        security: None,
    };
    let plan = Plan {
        family: "job".to_owned(),
        documents: Vec::new(),
        rows: vec![row],
        comparisons: Vec::new(),
        not_honoured: left_out(&lines, &trace),
    };
    Ok(Some((plan, Replay { trace: Arc::new(trace), speed })))
}

fn trace(path: &Path, lines: &[Line]) -> Result<Trace> {
    let wrong = |why: &str| Problem::new(Cause::Settings, format!("{}: {why}", path.display()), "");
    let traced = |line: &Line| {
        let data = line.data?;
        let bytes = u32::try_from(data.bytes).map_err(|_| wrong("an operation of more than 4 GiB"));
        let (at, writes) = (line.at, line.operation.api.is_write());
        Some(bytes.map(|bytes| Traced { at, writes, file: data.file, offset: data.offset, bytes }))
    };
    let operations = lines.iter().filter_map(traced).collect::<Result<Vec<_>>>()?;
    Trace::new(operations).map_err(|e| wrong(&e.to_string()))
}

/// What can be said of a trace in the words of a row: means and parts of its operations.
fn key(trace: &Trace) -> Key {
    let operations = trace.operations();
    let count = operations.len().max(1) as u64;
    let bytes: u64 = operations.iter().map(|o| u64::from(o.bytes)).sum();
    let reads = operations.iter().filter(|o| !o.writes).count() as u64 * 100 / count;
    let follows = |pair: &[Traced]| match pair {
        [a, b] => a.file == b.file && a.offset + u64::from(a.bytes) == b.offset,
        _ => false,
    };
    let in_order = operations.windows(2).filter(|pair| follows(pair)).count() as u64;
    Key {
        connections: 1,
        block_bytes: bytes / count,
        mix: Mix::ReadPercent(u8::try_from(reads).unwrap_or(100)),
        random: in_order * 2 < count,
        files: u32::try_from(trace.sizes().len()).unwrap_or(u32::MAX),
        threads: 1,
        queue_depth: 1,
        clients: 1,
        settings: BTreeMap::new(),
    }
}

/// What of a recording is not replayed, in words.
fn left_out(lines: &[Line], trace: &Trace) -> Vec<String> {
    let mut said = Vec::new();
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.data.is_none()) {
        *names.entry(line.operation.api.name).or_default() += 1;
    }
    if !names.is_empty() {
        let calls: Vec<_> = names.iter().map(|(name, count)| format!("{count} {name}")).collect();
        said.push(format!(
            "{}: a recording does not say of what files; only reads and writes are replayed",
            calls.join(", ")
        ));
    }
    let without = lines.iter().filter(|line| line.data.is_some_and(|data| data.bytes == 0)).count();
    if without > 0 {
        said.push(format!("{without} reads and writes: they moved no bytes"));
    }
    let clients: BTreeSet<_> = lines.iter().map(|line| &line.client).collect();
    if clients.len() > 1 {
        said.push(format!(
            "{} clients: their operations are dealt out to the connections in turn",
            clients.len()
        ));
    }
    if !trace.can_be_checked() {
        said.push(
            "what is read is not compared with what was written: operations begin at odd places".to_owned(),
        );
    }
    said
}

#[cfg(test)]
mod tests {
    use control::trace::parse;

    use super::*;

    #[test]
    fn a_recording_becomes_a_row_and_what_is_left_out_is_said() {
        let lines = [
            "0\tCreate\tsmb\ta\t-\t-\t-",
            "10\tRead\tsmb\ta\t7\t0\t4096",
            "20\tRead\tsmb\tb\t7\t4096\t4096",
            "30\tWrite\tsmb\ta\t9\t0\t8192",
            "40\tRead\tsmb\ta\t7\t8192\t0",
            "50\tClose\tsmb\ta\t-\t-\t-",
        ];
        let lines: Vec<Line> = lines.iter().map(|line| parse(line).unwrap()).collect();
        let trace = trace(Path::new("t"), &lines).unwrap();
        let key = key(&trace);
        assert_eq!((key.block_bytes, key.mix, key.files), (5461, Mix::ReadPercent(66), 2));
        let said = left_out(&lines, &trace);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].starts_with("1 Close, 1 Create: ") && said[1].starts_with("1 reads"), "{said:?}");
    }

    #[test]
    fn a_recording_without_data_is_refused() {
        let lines = [parse("0\tCreate\tsmb\ta\t-\t-\t-").unwrap()];
        let said = trace(Path::new("t"), &lines).unwrap_err().what;
        assert!(said.starts_with("t: there is no read and no write"), "{said}");
    }
}

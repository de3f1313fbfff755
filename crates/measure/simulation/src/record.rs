//! The record of a run over many seeds, with one line for each seed that went well, so that an interrupted run can
//! continue.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

/// The seeds that went well, each with its number of operations.
#[derive(Debug, Default)]
pub(crate) struct Record {
    operations: HashMap<u64, u64>,
    /// The file of the record; `None` if the record is not kept.
    file: Option<File>,
}

impl Record {
    /// Reads a record, and continues it; the file is made if it is missing. A line that was only half written is
    /// ignored.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn kept_in(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut operations = HashMap::new();
        let mut is_whole = true;
        for line in BufReader::new(&file).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            is_whole =
                line.is_empty() || parsed(&line).map(|(seed, of)| operations.insert(seed, of)).is_some();
        }
        if !is_whole {
            writeln!(file)?;
        }
        Ok(Self { operations, file: Some(file) })
    }

    /// Whether this seed has gone well with at least this many operations.
    pub(crate) fn has(&self, seed: u64, operations: u64) -> bool {
        self.operations.get(&seed).is_some_and(|recorded| *recorded >= operations)
    }

    /// Adds the output of a seed that went well.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn add(&mut self, line: &str) -> io::Result<()> {
        self.operations.extend(parsed(line));
        self.file.as_mut().map_or(Ok(()), |file| writeln!(file, "{line}"))
    }

    /// The operations of all seeds in the record.
    pub(crate) fn operations(&self) -> u64 {
        self.operations.values().sum()
    }
}

/// Parses the seed and its operations from a line as the simulation prints it: "seed 17: 10000 operations in ...,
/// events 0123...".
fn parsed(line: &str) -> Option<(u64, u64)> {
    let (seed, rest) = line.strip_prefix("seed ")?.split_once(": ")?;
    let (operations, rest) = rest.split_once(" operations ")?;
    let (_, hash) = rest.split_once("events ")?;
    (hash.len() == 16).then_some(())?;
    Some((seed.parse().ok()?, operations.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_after_what_is_recorded_and_a_half_line_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        let line =
            |seed| format!("seed {seed}: 100 operations in 1.0 s of virtual time, events 0123456789abcdef");
        let half = &line(8)[..40];
        std::fs::write(&path, format!("{}\n{half}", line(7))).unwrap();
        let mut record = Record::kept_in(&path).unwrap();
        assert!(record.has(7, 100) && !record.has(7, 101) && !record.has(8, 1));
        record.add(&line(9)).unwrap();
        let record = Record::kept_in(&path).unwrap();
        assert!(record.has(9, 100) && !record.has(8, 1));
        assert_eq!(record.operations(), 200);
    }
}

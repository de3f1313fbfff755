//! Files that `anabranch share record` has made.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use control::trace::{self, HEAD, Line};

use crate::problem::{Cause, Problem, Result};

/// Bytes of a line: none that is written has as many.
const LINE_BYTES_MAX: u64 = 4096;
/// Operations of a trace: so that it fits into memory.
const OPERATIONS_MAX: usize = 50_000_000;

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(Cause::Settings, format!("cannot read {}: {error}", path.display()), "")
}

/// The operations of a trace, in the order in which they came.
///
/// # Errors
/// The file cannot be read, or is no trace.
pub(crate) fn read(path: &Path) -> Result<Vec<Line>> {
    let file = File::open(path).map_err(|e| unreadable(path, &e))?;
    read_from(path, BufReader::new(file))
}

/// As [`read`], of a file that is open.
pub(crate) fn read_from(path: &Path, mut input: impl BufRead) -> Result<Vec<Line>> {
    let mut operations = Vec::new();
    let mut number = 0_u64;
    let mut line = Vec::new();
    loop {
        line.clear();
        number += 1;
        let wrong = |what: &str| {
            let what = format!("{}, line {number}: {what}", path.display());
            Problem::new(
                Cause::Settings,
                what,
                "`anabranch share record` makes traces; docs/plans.md has the format.",
            )
        };
        let limited = &mut std::io::Read::take(&mut input, LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut line).map_err(|e| unreadable(path, &e))? == 0 {
            break;
        }
        if line.len() as u64 == LINE_BYTES_MAX {
            return Err(wrong("it is too long"));
        }
        let text =
            std::str::from_utf8(&line).map_err(|_| wrong("it is not text"))?.trim_end_matches(['\r', '\n']);
        if number == 1 && text != HEAD {
            return Err(wrong(&format!("it is not {HEAD:?}: this is not a trace of this version")));
        }
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if operations.len() >= OPERATIONS_MAX {
            return Err(wrong(&format!("there are more than {OPERATIONS_MAX} operations")));
        }
        operations.push(trace::parse(text).map_err(|e| wrong(&e))?);
    }
    if operations.is_empty() {
        let what = format!("{}: there is no operation in it", path.display());
        return Err(Problem::new(
            Cause::Settings,
            what,
            "Record while clients work: anabranch share record NAME",
        ));
    }
    operations.sort_by_key(|line: &Line| line.at);
    Ok(operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(trace: &str) -> String {
        read_from(Path::new("t"), trace.as_bytes()).unwrap_err().what
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert!(said("").starts_with("t: there is no operation"), "{}", said(""));
        assert!(said("time,api\n").starts_with("t, line 1: it is not \"# anabranch trace 1\""));
        assert!(said("# anabranch trace 2\n").starts_with("t, line 1: "));
        let with = |line: &str| said(&format!("{HEAD}\n# a word\n\n0\tClose\tsmb\tc\t-\t-\t-\n{line}\n"));
        assert!(with("5\tRead\tsmb").starts_with("t, line 5: it has 3 fields"), "{}", with("5\tRead\tsmb"));
        assert!(with(&"x".repeat(5000)).starts_with("t, line 5: it is too long"));
        let binary = read_from(Path::new("t"), &b"# anabranch trace 1\n\xff\n"[..]).unwrap_err().what;
        assert!(binary.starts_with("t, line 2: it is not text"), "{binary}");
    }
}

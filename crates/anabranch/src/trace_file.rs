//! Files that `anabranch share record` has made.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use control::trace::Line;
use control::trace_file::{self, Unreadable};

use crate::problem::{Cause, Problem, Result};

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
pub(crate) fn read_from(path: &Path, input: impl BufRead) -> Result<Vec<Line>> {
    let at = path.display();
    trace_file::read(input).map_err(|error| match error {
        Unreadable::Io(error) => unreadable(path, &error),
        Unreadable::Line { .. } => Problem::new(
            Cause::Settings,
            format!("{at}, {error}"),
            "`anabranch share record` makes traces; docs/plans.md has the format.",
        ),
        Unreadable::Empty => Problem::new(
            Cause::Settings,
            format!("{at}: {error}"),
            "Record while clients work: anabranch share record NAME",
        ),
    })
}

#[cfg(test)]
mod tests {
    use control::trace::HEAD;

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

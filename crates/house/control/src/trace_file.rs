//! Files of recorded operations: the lines of [`trace`](crate::trace).

use std::io::{self, BufRead, Read};

use crate::trace::{HEAD, Line, parse};

/// The most bytes of a line. No written line has as many.
const LINE_BYTES_MAX: u64 = 4096;
/// The most operations of a file, so that they fit into memory.
const OPERATIONS_MAX: usize = 50_000_000;

/// Why operations cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A line does not belong to a recording.
    #[error("line {number}: {what}")]
    Line {
        /// The number of the line; the first has number 1.
        number: u64,
        /// What is wrong with it, in words.
        what: String,
    },
    /// The file has no operation.
    #[error("there is no operation in it")]
    Empty,
}

/// The operations of a file, in the order in which they came.
///
/// # Errors
/// The file cannot be read, is no recording, or has more operations than fit into memory.
pub fn read(mut input: impl BufRead) -> Result<Vec<Line>, Unreadable> {
    let mut operations = Vec::new();
    let mut number = 0_u64;
    let mut line = Vec::new();
    loop {
        line.clear();
        number += 1;
        let wrong = |what: &str| Unreadable::Line { number, what: what.to_owned() };
        if Read::take(&mut input, LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
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
        operations.push(parse(text).map_err(|e| wrong(&e))?);
    }
    if operations.is_empty() {
        return Err(Unreadable::Empty);
    }
    operations.sort_by_key(|line: &Line| line.at);
    Ok(operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_in_the_order_in_which_they_came() {
        let lines = "# a word\n\n9\tClose\tsmb\tlate\t-\t-\t-\r\n5\tClose\tsmb\tearly\t-\t-\t-\n";
        let read = read(format!("{HEAD}\n{lines}").as_bytes()).unwrap();
        let clients: Vec<_> = read.iter().map(|line| line.client.as_str()).collect();
        assert_eq!(clients, ["early", "late"]);
    }

    #[test]
    fn the_line_that_is_none_is_named() {
        let said = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(said(""), "there is no operation in it");
        let short = said(&format!("{HEAD}\n#\n5\tRead\n"));
        assert_eq!(short, "line 3: it has 2 fields with tabs between them and not 7");
    }
}

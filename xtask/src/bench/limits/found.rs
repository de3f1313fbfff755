//! The results, kept in a file if one is given.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::{LIGHT_ROUNDS, PAIRS};
use crate::bench::machine;
use crate::bench::program::number;
use crate::markdown::{reached, table};

/// A row of the table.
pub(super) struct Row {
    pub(super) ok: bool,
    pub(super) name: String,
    pub(super) goal: String,
    pub(super) found: String,
    pub(super) secs: f64,
}

/// The rows in the form in which they are kept: whether the limit holds, name, goal, finding, seconds, commit.
pub(super) struct Found {
    path: Option<PathBuf>,
    rows: Mutex<Vec<Value>>,
}

impl Found {
    /// Reads the rows that an earlier run has left in the file, if there is one.
    pub(super) fn read(path: Option<PathBuf>) -> Result<Self, String> {
        let kept = path.as_ref().filter(|path| path.exists()).map(|path| {
            let problem = |e: String| format!("{}: {e}", path.display());
            let text = fs::read_to_string(path).map_err(|e| problem(e.to_string()))?;
            serde_json::from_str(&text).map_err(|e| problem(e.to_string()))
        });
        Ok(Self { path, rows: Mutex::new(kept.transpose()?.unwrap_or_default()) })
    }

    fn rows(&self) -> impl std::ops::DerefMut<Target = Vec<Value>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a row, in place of an earlier one with its name, and prints it.
    pub(super) fn add(&self, row: Row) -> Result<(), String> {
        let Row { ok, name, goal, found, secs } = row;
        println!("{} {name}: {found} (goal: {goal})", if ok { "ok  " } else { "FAIL" });
        let mut rows = self.rows();
        rows.retain(|row| row[1] != name.as_str());
        rows.push(json!([ok, name, goal, found, secs, machine::commit()?]));
        let Some(path) = &self.path else { return Ok(()) };
        fs::write(path, Value::from(rows.clone()).to_string()).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// How many rows hold, and how many do not.
    pub(super) fn counts(&self) -> (usize, usize) {
        let rows = self.rows();
        let passed = rows.iter().filter(|row| row[0] == true).count();
        (passed, rows.len() - passed)
    }

    /// The section of a page.
    pub(super) fn section(&self) -> Result<String, String> {
        let cells = |row: &Value| {
            let text = |at: usize| row[at].as_str().unwrap_or_default().to_owned();
            let run = format!("{} s, {}", number(&row[4]), text(5));
            [text(1), text(2), text(3), reached(row[0] == true).to_owned(), run]
        };
        let rows: Vec<_> = self.rows().iter().map(cells).collect();
        Ok(format!(
            "# Limits of plans\n\n\
             Made by `cargo xtask bench limits`: SMB and NFSv3 clients (`tests/peers/fsload`) together on one share, over the loopback.\n\
             The measurement begins after 1 s of load; {}, {} x {}, Linux {}.\n\
             A light client reads 4 KiB and rests for 5 ms, alone and beside greedy clients in turns, {LIGHT_ROUNDS} times; each greedy client has 32 reads under way.\n\
             CPU is the server's, on one processor with the client on another: the median of {PAIRS} pairs of new servers, measured one after the other, with\n\
             the range in which the median lies with 97 % probability.\n\n{}\n",
            machine::day()?,
            machine::processors(),
            machine::processor(),
            machine::kernel(),
            table(&["what", "goal", "found", "", "each run, commit"], &rows),
        ))
    }
}

//! Loads as other tools write them down: fio's job files and diskspd's command lines. What cannot be honoured is said.

pub mod diskspd;
pub mod fio_job;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::{Extent, Plan, PlannedRow};
use crate::result::{Key, Mix};

/// What was written down, as far as it can be done here.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The loads, one a row.
    pub plan: Plan,
    /// How long, and on how much data.
    pub extent: Extent,
    /// Operations a second.
    pub rate: Option<f64>,
    /// How long each place rests between two operations.
    pub think: Duration,
}

/// Why it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// One load, while it is read.
#[derive(Debug, Clone, PartialEq)]
struct Draft {
    name: String,
    block_bytes: u64,
    reads: u8,
    random: bool,
    files: u32,
    threads: u32,
    queue_depth: u32,
    file_bytes: Option<u64>,
    seconds: Option<f64>,
    ramp_seconds: Option<f64>,
    rate: Option<f64>,
    think: Duration,
}

impl Draft {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            block_bytes: 4096,
            reads: 100,
            random: false,
            files: 1,
            threads: 1,
            queue_depth: 1,
            file_bytes: None,
            seconds: None,
            ramp_seconds: None,
            rate: None,
            think: Duration::ZERO,
        }
    }

    fn row(&self, connections: u32) -> PlannedRow {
        let key = Key {
            connections,
            block_bytes: self.block_bytes,
            mix: Mix::ReadPercent(self.reads),
            random: self.random,
            files: self.files,
            threads: self.threads,
            queue_depth: self.queue_depth,
            clients: 1,
            settings: BTreeMap::from([("job".to_owned(), self.name.clone())]),
        };
        PlannedRow { key, documents: Vec::new(), security: None }
    }
}

/// The drafts as a plan. What one run cannot have in two ways is taken from the first of them, and that is said.
fn imported(
    drafts: &[Draft],
    mut not_honoured: Vec<String>,
    connections: u32,
    mut extent: Extent,
) -> Result<Imported, Unreadable> {
    let first = drafts.first().ok_or_else(|| Unreadable("there is no load in it".to_owned()))?;
    for other in drafts.iter().skip(1) {
        let same = (other.seconds, other.ramp_seconds, other.rate, other.think)
            == (first.seconds, first.ramp_seconds, first.rate, first.think);
        if !same {
            not_honoured
                .push(format!("{}: it is measured as long, and at the rate, as {}", other.name, first.name));
        }
    }
    if drafts.len() > 1 {
        not_honoured.push("the jobs run one after the other, not at the same time".to_owned());
    }
    extent.seconds = first.seconds.unwrap_or(extent.seconds);
    extent.ramp_seconds = first.ramp_seconds.unwrap_or(extent.ramp_seconds);
    extent.file_bytes = drafts.iter().filter_map(|draft| draft.file_bytes).max().unwrap_or(extent.file_bytes);
    let plan = Plan {
        family: "job".to_owned(),
        documents: Vec::new(),
        rows: drafts.iter().map(|draft| draft.row(connections)).collect(),
        comparisons: Vec::new(),
        not_honoured,
    };
    Ok(Imported { plan, extent, rate: first.rate, think: first.think })
}

/// A size with a unit of 1024: `4k`, `64K`, `1m`, `2G`.
fn size(text: &str) -> Result<u64, Unreadable> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(Unreadable(format!("{text} is not a size"))),
    };
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    bytes.ok_or_else(|| Unreadable(format!("{text} is not a size")))
}

/// A block of so many bytes can be told apart from others.
fn block(text: &str) -> Result<u64, Unreadable> {
    let bytes = size(text)?;
    if bytes > 0 && bytes % 512 == 0 {
        Ok(bytes)
    } else {
        Err(Unreadable(format!("a block of {text}: it must be a multiple of 512 bytes")))
    }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, Unreadable> {
    text.parse().map_err(|_| Unreadable(format!("{name}={text} is not a number")))
}

//! `anabranch share record`: what clients ask a share for, into a file that `anabranch share simulate` reads.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use control::trace::{HEAD, NewTrace, TracePart};
use serde::Serialize;

use crate::cli::ShareRecord;
use crate::control_access;
use crate::print::{counted, counted_as, json, print};
use crate::problem::{Cause, Problem, Result};

/// Between two questions for what was recorded.
const INTERVAL: Duration = Duration::from_millis(250);
/// How much longer than the recording's own time it is waited for its end.
const RECORDING_PATIENCE: Duration = Duration::from_secs(30);

/// What was recorded.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Summary {
    share: String,
    seconds: u64,
    operations: u64,
    lost: u64,
    /// Whether it was ended before its time, as there were as many operations as were asked for.
    full: bool,
}

/// Records until the time is over, or there is enough.
///
/// # Errors
/// The file is there already or cannot be written, or the server cannot be asked.
pub(super) fn run(record: &ShareRecord) -> Result<()> {
    let access = control_access::find(&record.asking.state(), record.asking.control)?;
    let path = format!("{}/trace", super::path(&record.name));
    let cannot = |e: &dyn std::fmt::Display| {
        Problem::new(Cause::Refused, format!("cannot write {}: {e}", record.out.display()), "")
    };
    // Before the server is asked for anything: a recording that nobody can keep is not begun.
    let mut file = BufWriter::new(create(&record.out)?);
    let new = NewTrace { seconds: record.seconds };
    if let Err(refused) = control_client::call::<TracePart>(&access, "POST", &path, Some(&new)) {
        let _ = std::fs::remove_file(&record.out); // nothing is in it
        return Err(refused.into());
    }
    writeln!(file, "{HEAD}\n# share {} for {} s", record.name, record.seconds).map_err(|e| cannot(&e))?;
    writeln!(file, "# microseconds\tapi\tprotocol\tclient\tfile\toffset\tbytes").map_err(|e| cannot(&e))?;
    let mut summary = Summary { share: record.name.clone(), seconds: record.seconds, ..Summary::default() };
    let deadline = Instant::now() + Duration::from_secs(record.seconds) + RECORDING_PATIENCE;
    loop {
        std::thread::sleep(INTERVAL);
        let part: TracePart = control_client::get(&access, &path)?;
        let room = record.operations_max - summary.operations;
        for line in part.lines.lines().take(usize::try_from(room).unwrap_or(usize::MAX)) {
            writeln!(file, "{line}").map_err(|e| cannot(&e))?;
        }
        summary.operations += part.operations.min(room);
        summary.lost = part.lost;
        summary.full = summary.operations >= record.operations_max;
        if part.over || summary.full || Instant::now() > deadline {
            break;
        }
    }
    file.flush().map_err(|e| cannot(&e))?;
    print(&if record.asking.json { json(&summary)? } else { render(&summary, &record.out) })
}

/// Makes the file, and takes none that is there.
fn create(path: &Path) -> Result<std::fs::File> {
    OpenOptions::new().write(true).create_new(true).open(path).map_err(|e| {
        Problem::new(
            Cause::Refused,
            format!("cannot make {}: {e}", path.display()),
            "Name a file that does not exist yet: --out FILE",
        )
    })
}

fn render(summary: &Summary, path: &Path) -> String {
    let Summary { share, operations, lost, full, .. } = summary;
    let (are, path) = (if *operations == 1 { "is" } else { "are" }, path.display());
    let mut text = format!("{} of the share {share} {are} in {path}\n", counted(*operations, "operation"));
    if *lost > 0 {
        let missing = counted_as(*lost, "operation is", "operations are");
        text.push_str(&format!("{missing} missing: there were more than could be fetched\n"));
    }
    if *full {
        text.push_str("The recording ended early: it has as many operations as --operations-max allows\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told() {
        let summary = Summary { share: "data".to_owned(), seconds: 9, operations: 5, lost: 2, full: true };
        let text = render(&summary, Path::new("/t"));
        assert!(
            text.starts_with("5 operations of the share data are in /t\n2 operations are missing"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn a_file_that_is_there_is_not_overwritten() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(create(file.path()).unwrap_err().cause, Cause::Refused);
    }
}

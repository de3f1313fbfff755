//! The last good copy of a state database, beside it; and putting a copy in its place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::state::FILE;

/// The last good copy: made when a server has started, once a day, and when it ends.
const COPY: &str = "anabranch.redb.good";
/// How often it is made while a server runs.
pub const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// Files that were damaged and are kept.
const DAMAGED_MAX: usize = 1000;

/// The last good copy of this state directory.
pub fn path(directory: &Path) -> PathBuf {
    directory.join(COPY)
}

/// Writes a file that only its owner can read, and has it on the disk. Whoever looks sees all of it, or what was there before.
///
/// # Errors
/// The directory cannot be written.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = file.parent().unwrap_or_else(|| Path::new("."));
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    match fs::remove_file(&new) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    open.write_all(bytes)?;
    open.sync_all()?;
    fs::rename(&new, file)?;
    File::open(directory)?.sync_all()
}

/// Puts a database in the place of the one of the directory, which is kept beside it; where, if there was one.
///
/// # Errors
/// The directory cannot be written.
pub fn put_in_place(directory: &Path, bytes: &[u8]) -> io::Result<Option<PathBuf>> {
    let file = directory.join(FILE);
    let kept = if file.try_exists()? { Some(keep_aside(&file)?) } else { None };
    write(&file, bytes)?;
    Ok(kept)
}

/// A second name for the file: it is never away.
fn keep_aside(file: &Path) -> io::Result<PathBuf> {
    for number in 1..=DAMAGED_MAX {
        let aside = file.with_file_name(format!("{FILE}.replaced-{number}"));
        match fs::hard_link(file, &aside) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            linked => return linked.map(|()| aside),
        }
    }
    let what = format!("there are {DAMAGED_MAX} files that were replaced: remove some");
    Err(io::Error::new(ErrorKind::AlreadyExists, what))
}

/// What to do about a damaged database.
pub fn advice(directory: &Path) -> String {
    let (copy, directory) = (path(directory), directory.display());
    let kept = "the damaged file is kept beside it";
    match age(&copy) {
        Some(age) => format!(
            "The last good copy is {}, made {} ago. To use it: anabranch state restore --state {directory} ({kept})",
            copy.display(),
            told(age)
        ),
        None => format!(
            "There is no copy of it there. To use one of yours: anabranch state restore FILE --state {directory} ({kept}). \
             Or start anew, with another directory: --state DIR"
        ),
    }
}

/// How long ago a file was written; None: there is none.
pub fn age(file: &Path) -> Option<Duration> {
    let written = fs::metadata(file).and_then(|found| found.modified()).ok()?;
    Some(written.elapsed().unwrap_or_default())
}

/// A time for people: its one or two largest units.
pub fn told(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_replaced_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert_eq!(put_in_place(directory.path(), b"one").unwrap(), None);
        for (number, before, now) in [(1, "one", "two"), (2, "two", "three")] {
            let kept = put_in_place(directory.path(), now.as_bytes()).unwrap().unwrap();
            assert_eq!(kept, at(&format!("anabranch.redb.replaced-{number}")));
            assert_eq!(fs::read_to_string(kept).unwrap(), before);
            assert_eq!(fs::read_to_string(at(FILE)).unwrap(), now);
        }
        assert_eq!(fs::metadata(at(FILE)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
    }

    #[test]
    fn the_advice_names_the_copy() {
        let directory = tempfile::tempdir().unwrap();
        assert!(advice(directory.path()).contains("restore FILE"));
        write(&path(directory.path()), b"copy").unwrap();
        let advice = advice(directory.path());
        assert!(
            advice.contains("anabranch.redb.good, made 0 s ago") && advice.contains("state restore --state")
        );
    }
}

//! Files that are there whole, or as they were.

use std::path::Path;
use std::{fs, io};

/// Writes a file beside its place and puts it there.
///
/// # Errors
/// That cannot be done: what was there is there still.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    fs::write(&beside, text).and_then(|()| fs::rename(&beside, path))
}

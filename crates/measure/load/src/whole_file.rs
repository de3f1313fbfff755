//! Files that are there whole, or as they were.

use std::path::Path;
use std::{fs, io};

/// Writes a file beside its place and puts it there.
///
/// # Errors
/// That cannot be done: what was there is there still.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    fs::write(&beside, content).and_then(|()| fs::rename(&beside, path))
}

//! A walk over everything below a root, in search of the objects that carry numbers of streams.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode, OFlags, RawDir, fstat, lgetxattr, openat2};
use rustix::io::Errno;
use rustix::path::DecInt;
use storage::depot::{StreamsNumber, is_depot_name};
use storage::{Error, Result};

use crate::errno::from_errno;
use crate::resolve::BELOW;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// How much of a listing is read at a time, in bytes.
const BUFFER_BYTES: usize = 32 << 10;

/// What is found.
pub(crate) trait Carriers {
    /// An object below the root carries a number. The path of the root itself is empty.
    fn found(&mut self, path: &[u8], number: StreamsNumber);

    /// Whether the walk goes on.
    fn goes_on(&self) -> bool;
}

/// Finds the objects below a root that carry a number in one of these attributes. Returns whether everything was looked
/// at: not what lies deeper than a path can say, what may not be read, and what lies on another file system.
pub(crate) fn find_carriers(root: &OwnedFd, xattrs: &[&str], carriers: &mut dyn Carriers) -> Result<bool> {
    let device = fstat(root).map_err(from_errno)?.st_dev;
    tell(root, b".", b"", xattrs, carriers);
    let (mut left, mut is_whole) = (vec![Vec::new()], true);
    while let Some(path) = left.pop() {
        let at: &[u8] = if path.is_empty() { b"." } else { &path };
        let dir = match openat2(root, at, DIRECTORY, Mode::empty(), BELOW) {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NOTDIR) => continue, // gone meanwhile
            Err(Errno::XDEV) => continue,
            Err(errno) => {
                tracing::debug!("a directory could not be looked at: {errno}");
                is_whole = false;
                continue;
            }
        };
        if fstat(&dir).map_err(from_errno)?.st_dev == device {
            match look_into(&dir, &path, xattrs, carriers) {
                Ok(below) => left.extend(below),
                Err(Error::Busy) => return Ok(false),
                Err(_) => is_whole = false,
            }
        }
    }
    Ok(is_whole)
}

/// Tells the numbers of the entries of a directory. Returns the paths of those that are directories.
///
/// # Errors
/// [`Error::Busy`] when the walk does not go on.
fn look_into(
    dir: &OwnedFd,
    path: &[u8],
    xattrs: &[&str],
    carriers: &mut dyn Carriers,
) -> Result<Vec<Vec<u8>>> {
    let mut buffer: Vec<u8> = Vec::with_capacity(BUFFER_BYTES);
    let mut listing = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut below = Vec::new();
    while let Some(entry) = listing.next() {
        if !carriers.goes_on() {
            return Err(Error::Busy);
        }
        let entry = entry.map_err(from_errno)?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") || is_depot_name(name) {
            continue;
        }
        let at = if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() };
        match entry.file_type() {
            FileType::Directory => {
                tell(dir, name, &at, xattrs, carriers);
                below.push(at);
            }
            FileType::RegularFile => tell(dir, name, &at, xattrs, carriers),
            FileType::Unknown => {
                tell(dir, name, &at, xattrs, carriers);
                below.push(at); // opening it tells whether it is a directory
            }
            _ => {}
        }
    }
    Ok(below)
}

fn tell(dir: &OwnedFd, name: &[u8], path: &[u8], xattrs: &[&str], carriers: &mut dyn Carriers) {
    let object = [b"/proc/self/fd/", DecInt::from_fd(dir).as_bytes(), b"/", name].concat();
    let mut value = [0; StreamsNumber::XATTR_BYTES + 1];
    for xattr in xattrs {
        if let Ok(count) = lgetxattr(object.as_slice(), *xattr, &mut value)
            && let Some(number) = value.get(..count).and_then(StreamsNumber::decode)
        {
            carriers.found(path, number);
        }
    }
}

//! The mark on what the server makes in a pool: an attribute that only the administrator of the machine can set.
//!
//! It has a number, which the state database has, too, and the identity of the directory that carries it. So neither a directory
//! that somebody copied with its attributes nor another one in its place is taken for the one that the server made.

use std::fmt;
use std::os::fd::OwnedFd;
use std::str::FromStr;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;
use storage::{Error, Result};

use crate::attributes::{btime_of, stat};
use crate::btrfs;
use crate::errno::from_errno;
use crate::probe;

/// The attribute of the directory of a share: the number, then the identity.
const DIRECTORY: &str = "trusted.anabranch.pool-directory";
/// The attribute of the directory of a pool: the number.
const POOL: &str = "trusted.anabranch.pool";
const NUMBER_BYTES: usize = 16;
const IDENTITY_BYTES: usize = 16;

/// The number of a pool, or of a directory that was made in one. No other has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolMark([u8; NUMBER_BYTES]);

/// The text is no number of a pool or of a directory in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 32 hexadecimal digits")]
pub struct NotAMark;

impl PoolMark {
    /// A number that nobody has.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> Result<Self> {
        let mut number = [0; NUMBER_BYTES];
        getrandom::fill(&mut number).map_err(|_| Error::OutOfResources)?;
        Ok(Self(number))
    }
}

impl fmt::Display for PoolMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for PoolMark {
    type Err = NotAMark;

    fn from_str(text: &str) -> std::result::Result<Self, NotAMark> {
        let is_hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal && text.len() == 32);
        number.map(|number| Self(number.to_be_bytes())).ok_or(NotAMark)
    }
}

/// What tells a directory from its copies: of a subvolume its UUID, of another one its number and when it was made.
fn identity(directory: &OwnedFd) -> Result<[u8; IDENTITY_BYTES]> {
    let known = stat(directory)?;
    if is_subvolume(directory)? {
        return Ok(btrfs::subvolume_of(directory).map_err(from_errno)?.uuid);
    }
    let born = btime_of(&known).unwrap_or_default();
    let born = born.secs.wrapping_mul(1_000_000_000).wrapping_add(born.nanos.into());
    let mut identity = [0; IDENTITY_BYTES];
    let (number, time) = identity.split_at_mut(8);
    number.copy_from_slice(&known.stx_ino.to_le_bytes());
    time.copy_from_slice(&born.to_le_bytes());
    Ok(identity)
}

/// Whether this is the top directory of a subvolume of Btrfs.
pub(crate) fn is_subvolume(directory: &OwnedFd) -> Result<bool> {
    Ok(probe::is_btrfs(directory) && stat(directory)?.stx_ino == btrfs::TOP)
}

fn read<const N: usize>(directory: &OwnedFd, attribute: &str) -> Result<Option<[u8; N]>> {
    let mut value = [0; N];
    match fgetxattr(directory, attribute, &mut value) {
        Ok(count) if count == N => Ok(Some(value)),
        // Of another length: it is none of these.
        Ok(_) | Err(Errno::NODATA | Errno::RANGE | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(from_errno(errno)),
    }
}

/// The number of the pool with this directory.
pub(crate) fn of_pool(directory: &OwnedFd) -> Result<Option<PoolMark>> {
    Ok(read(directory, POOL)?.map(PoolMark))
}

pub(crate) fn mark_pool(directory: &OwnedFd, PoolMark(number): PoolMark) -> Result<()> {
    fsetxattr(directory, POOL, &number, XattrFlags::CREATE).map_err(from_errno)
}

/// The number that was given to a directory, if it is that directory.
pub(crate) fn of_directory(directory: &OwnedFd) -> Result<Option<PoolMark>> {
    let Some(value) = read::<{ NUMBER_BYTES + IDENTITY_BYTES }>(directory, DIRECTORY)? else {
        return Ok(None);
    };
    let Some((number, marked)) = value.split_first_chunk() else { return Ok(None) };
    Ok((marked == identity(directory)?).then_some(PoolMark(*number)))
}

pub(crate) fn mark_directory(directory: &OwnedFd, PoolMark(number): PoolMark) -> Result<()> {
    let value = [&number[..], &identity(directory)?].concat();
    fsetxattr(directory, DIRECTORY, &value, XattrFlags::empty()).map_err(from_errno)
}

/// Gives the mark of a subvolume to the one that has taken its place.
pub(crate) fn pass_on(former: &OwnedFd, now: &OwnedFd) -> Result<()> {
    match of_directory(former)? {
        Some(mark) => mark_directory(now, mark),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, OFlags, open};

    use super::*;

    #[test]
    fn a_number_is_written_and_read() {
        let mark = PoolMark::random().unwrap();
        assert_eq!(mark.to_string().parse(), Ok(mark));
        assert_ne!(PoolMark::random().unwrap(), mark);
        assert_eq!(PoolMark([0; 16]).to_string(), "0".repeat(32));
        for bad in ["", "0", &"0".repeat(33), &format!("+{}", "0".repeat(31)), &"g".repeat(32)] {
            assert_eq!(bad.parse::<PoolMark>(), Err(NotAMark), "{bad}");
        }
    }

    #[test]
    fn a_copy_of_the_mark_is_no_mark() {
        if !rustix::process::geteuid().is_root() {
            println!("not tested: a_copy_of_the_mark_is_no_mark: only root sets such attributes");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            open(dir.path().join(name), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
        };
        let (made, copy) = (open("made"), open("copy"));
        let mark = PoolMark::random().unwrap();
        mark_directory(&made, mark).unwrap();
        assert_eq!(of_directory(&made), Ok(Some(mark)));
        let mut value = [0; 64];
        let count = fgetxattr(&made, DIRECTORY, &mut value).unwrap();
        fsetxattr(&copy, DIRECTORY, &value[..count], XattrFlags::empty()).unwrap();
        assert_eq!(of_directory(&copy), Ok(None));
        fsetxattr(&copy, DIRECTORY, &value[..count + 1], XattrFlags::empty()).unwrap();
        assert_eq!((of_directory(&copy), of_pool(&made)), (Ok(None), Ok(None)));
    }
}

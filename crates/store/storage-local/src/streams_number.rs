//! The attributes that tie an object to its directory in the depot: the object's number, and the directory's owner.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr, getxattr};
use rustix::io::{self, Errno};
use rustix::path::DecInt;
use storage::depot::{StreamsNumber, StreamsOwner};
use storage::{Error, Result};

use crate::depot::Depot;
use crate::errno::from_errno;
use crate::kernel_handle::{self, KernelHandle};
use crate::node::LocalNode;

/// Room for the number, and for a byte that tells a longer value.
const ROOM: usize = StreamsNumber::XATTR_BYTES + 1;

/// A number that no object has yet.
pub(crate) fn new_number() -> Result<StreamsNumber> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| Error::OutOfResources)?;
    Ok(StreamsNumber::new(random))
}

/// The number that was read; None where there is none, or none that this version knows.
fn number_in(value: &[u8], read: io::Result<usize>) -> Result<Option<StreamsNumber>> {
    match read {
        Ok(count) => Ok(value.get(..count).and_then(StreamsNumber::decode)),
        // ACCESS: a server without privileges, and a file that it may not read. RANGE: longer than a number.
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::ACCESS | Errno::RANGE) => Ok(None),
        Err(errno) => Err(from_errno(errno)),
    }
}

/// The number of an object that is pinned, even if it has no name any more. Files and directories only: the kernel
/// resolves their names in /proc to the object itself.
pub(crate) fn number_of(fd: &OwnedFd, xattr: &str) -> Result<Option<StreamsNumber>> {
    let path = [b"/proc/self/fd/", DecInt::from_fd(fd).as_bytes()].concat();
    let mut value = [0; ROOM];
    let read = getxattr(path, xattr, &mut value);
    number_in(&value, read)
}

/// The object of this handle as the owner of a directory.
fn owner_of_handle(root: u64, handle: &KernelHandle) -> StreamsOwner {
    StreamsOwner { root, object: [&handle.kind.to_le_bytes()[..], &handle.bytes].concat() }
}

/// The handle of the object that owns a directory.
pub(crate) fn handle_of_owner(owner: &StreamsOwner) -> Option<KernelHandle> {
    let (kind, bytes) = owner.object.split_first_chunk()?;
    Some(KernelHandle { kind: i32::from_le_bytes(*kind), bytes: bytes.to_vec() })
}

/// A pinned object as the owner of a directory.
pub(crate) fn identity_of(fd: impl AsFd, depot: &Depot) -> Result<StreamsOwner> {
    let handle = kernel_handle::name_to_handle(fd.as_fd()).map_err(from_errno)?;
    Ok(owner_of_handle(depot.root, &handle))
}

/// The owner of a directory of the depot; None where none is recorded, or in a form that this version does not know.
pub(crate) fn owner_of(folder: &OwnedFd) -> Result<Option<StreamsOwner>> {
    let mut value = [0; StreamsOwner::XATTR_BYTES_MAX];
    match fgetxattr(folder, StreamsOwner::XATTR, &mut value) {
        Ok(count) => Ok(value.get(..count).and_then(StreamsOwner::decode)),
        Err(Errno::NODATA | Errno::RANGE) => Ok(None),
        Err(errno) => Err(from_errno(errno)),
    }
}

/// Records the owner of a directory.
pub(crate) fn set_owner_of(folder: &OwnedFd, owner: &StreamsOwner) -> Result<()> {
    fsetxattr(folder, StreamsOwner::XATTR, &owner.encode(), XattrFlags::empty()).map_err(from_errno)
}

impl LocalNode {
    /// The number that this object carries.
    pub(crate) fn streams_number(&self, depot: &Depot) -> Result<Option<StreamsNumber>> {
        let mut value = [0; ROOM];
        let read = self.fetch_xattr(depot.xattr, &mut value);
        number_in(&value, read)
    }

    /// Gives this object a number.
    pub(crate) fn set_streams_number(&self, depot: &Depot, number: StreamsNumber) -> Result<()> {
        self.put_xattr(depot.xattr, &number.encode(), XattrFlags::empty()).map_err(from_errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_handle() {
        let handle = KernelHandle { kind: 0x81, bytes: vec![1, 2, 3] };
        let owner = owner_of_handle(7, &handle);
        assert_eq!(owner.object, [0x81, 0, 0, 0, 1, 2, 3]);
        assert_eq!(handle_of_owner(&owner), Some(handle));
        assert_eq!(handle_of_owner(&StreamsOwner { root: 7, object: vec![1, 2, 3] }), None);
    }

    #[test]
    fn what_is_read_of_an_object() {
        let number = new_number().unwrap();
        assert_ne!(number, new_number().unwrap());
        let value = number.encode();
        assert_eq!(number_in(&value, Ok(value.len())), Ok(Some(number)));
        assert_eq!(number_in(&value, Ok(value.len() - 1)), Ok(None), "damaged");
        assert_eq!(number_in(&value, Err(Errno::NODATA)), Ok(None));
        assert_eq!(number_in(&value, Err(Errno::IO)), Err(Error::Io(libc::EIO)));
    }
}

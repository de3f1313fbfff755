//! The directory of an object's streams: found by the number that the object carries, and made with the first stream.
//!
//! **Whose it is.** Several objects may carry a number: a local program has copied an object with its attributes. The
//! directory belongs to the object that it records as its owner. When another object that carries its number is asked
//! for streams, there are two cases:
//!
//! * The owner exists and still carries the number. Then this object is a copy. It gets a copy of the directory, and a
//!   new number.
//! * The owner does not exist: the object is what a restore, a revert or a replacement by rename has put in its place.
//!   Then this object becomes the owner. So it does when the owner was recorded below another root: the whole tree with
//!   its depot is a copy.
//!
//! A server that may not use handles (`CAP_DAC_READ_SEARCH`) cannot find out whether the owner exists, and copies:
//! nothing is lost then, but the directory of an owner that does not exist stays. A store that cannot be written, such
//! as a snapshot, trusts the number.
//!
//! **Killed in between.** A number is given to an object after its directory was made, or, if there is something in the
//! directory already, while the directory still has its former name; then it is renamed. So either the object leads to
//! a complete directory, or the next call (or start) finds the directory under the former name.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, fstat, openat2, renameat_with, unlinkat};
use rustix::io::Errno;
use storage::depot::{StreamsNumber, StreamsOwner};
use storage::{Capabilities, Error, FileKind, Result};

use crate::attributes::stat;
use crate::copied_streams::{Owners, copy_streams};
use crate::depot::{Depot, make_directory, remove_folder};
use crate::errno::from_errno;
use crate::handle::Handles;
use crate::kernel_handle;
use crate::node::LocalNode;
use crate::old_depot;
use crate::resolve::BELOW;
use crate::store::Shared;
use crate::streams_number::{handle_of_owner, identity_of, new_number, number_of, owner_of, set_owner_of};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The name of a directory that is being filled with copies of streams.
pub(crate) fn copying_name(number: StreamsNumber) -> String {
    number.folder_name() + ".new"
}

/// The number for which a directory is being filled.
pub(crate) fn number_of_copying(name: &[u8]) -> Option<StreamsNumber> {
    StreamsNumber::of_folder(name.strip_suffix(b".new")?)
}

impl Shared {
    /// Whether a directory's recorded owner exists and carries the directory's number. A server that may not use
    /// handles cannot tell, and believes it.
    fn is_owned(&self, depot: &Depot, number: StreamsNumber, owner: &StreamsOwner) -> Result<bool> {
        if owner.root != depot.root {
            return Ok(false);
        }
        let (Some(handle), Handles::Native(_)) = (handle_of_owner(owner), &self.handles) else {
            return Ok(true);
        };
        match self.open_handle(&handle) {
            Ok(fd) => Ok(stat(&fd)?.stx_nlink > 0 && number_of(&fd, depot.xattr)? == Some(number)),
            Err(Errno::STALE) => Ok(false),
            Err(errno) => Err(from_errno(errno)),
        }
    }
}

impl LocalNode {
    /// The directory of this object's streams; None when there is none and `make` is not set.
    pub(crate) fn stream_folder(&self, make: bool) -> Result<Option<OwnedFd>> {
        if !matches!(self.kind, FileKind::Regular | FileKind::Directory) {
            return Err(Error::WrongKind);
        }
        let depot = self.store.depot.as_ref().ok_or(Error::NotSupported)?;
        let Some(dir) = depot.reach(&self.store.root, make)? else { return Ok(None) };
        let folders = Folders { node: self, depot, dir };
        // Asked before the number: the last directory of the old naming may be renewed meanwhile.
        let has_old = depot.has_old();
        match self.streams_number(depot)? {
            Some(number) => {
                if let Some(folder) = folders.open(&number.folder_name())?
                    && owner_of(&folder)? == Some(identity_of(&self.fd, depot)?)
                {
                    return Ok(Some(folder));
                }
            }
            None if !make && !has_old => return Ok(None),
            None => {}
        }
        // Only one call settles what is this object's: a second one would give it another number.
        let _settling = self.numbering.lock();
        folders.settle(make)
    }

    /// Removes the directory of this object's streams if it is empty, and then the number.
    pub(crate) fn tidy_folder(&self) {
        let Some(depot) = self.store.depot.as_ref() else { return };
        let Some(dir) = depot.present() else { return };
        let _settling = self.numbering.lock();
        let Ok(Some(number)) = self.streams_number(depot) else { return };
        // Both failures are fine: the directory is not empty, or has been removed already.
        if unlinkat(dir, number.folder_name(), AtFlags::REMOVEDIR).is_ok()
            && let Err(errno) = self.drop_xattr(depot.xattr)
        {
            tracing::debug!("an object without streams keeps its number: {errno}");
        }
    }
}

/// An object and the depot, while it is settled what is the object's. The object's `numbering` is locked.
struct Folders<'a> {
    node: &'a LocalNode,
    depot: &'a Depot,
    dir: BorrowedFd<'a>,
}

impl Folders<'_> {
    fn open(&self, name: &str) -> Result<Option<OwnedFd>> {
        self.node.store.with_descriptor(|| match openat2(self.dir, name, DIRECTORY, Mode::empty(), BELOW) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(Some),
        })
    }

    fn settle(&self, make: bool) -> Result<Option<OwnedFd>> {
        let Some(number) = self.node.streams_number(self.depot)? else {
            return self.without_number(make);
        };
        let _lock = self.depot.lock(number);
        match self.open(&number.folder_name())? {
            Some(folder) => self.claim(number, folder).map(Some),
            None => self.without_folder(number, make),
        }
    }

    /// The object carries no number: its streams may have a directory of the old naming, or it has none.
    fn without_number(&self, make: bool) -> Result<Option<OwnedFd>> {
        let number = new_number()?;
        if let Some(name) = self.old_name()?
            && let Some(folder) = self.open(&name)?
        {
            match self.node.set_streams_number(self.depot, number) {
                Err(Error::ReadOnly) => return Ok(Some(folder)),
                set => set?,
            }
            return self.enter(&name, number, folder).map(Some);
        }
        if !make {
            return Ok(None);
        }
        if fstat(&self.node.fd).map_err(from_errno)?.st_nlink == 0 {
            return Err(Error::Stale);
        }
        let folder = self.make(&number.folder_name())?;
        if let Err(e) = self.node.set_streams_number(self.depot, number) {
            // The first error counts. If this fails, too, the next start removes the directory.
            let _ = unlinkat(self.dir, number.folder_name(), AtFlags::REMOVEDIR);
            return Err(e);
        }
        Ok(Some(folder))
    }

    /// The number leads to nothing: a server that was killed has not renamed the directory, or there is none.
    fn without_folder(&self, number: StreamsNumber, make: bool) -> Result<Option<OwnedFd>> {
        for name in [Some(copying_name(number)), self.old_name()?].into_iter().flatten() {
            if let Some(folder) = self.open(&name)? {
                return self.enter(&name, number, folder).map(Some);
            }
        }
        if make { self.make(&number.folder_name()).map(Some) } else { Ok(None) }
    }

    /// Where the streams are by the old naming, if there may be any.
    fn old_name(&self) -> Result<Option<String>> {
        if !self.depot.has_old() {
            return Ok(None);
        }
        let handle =
            kernel_handle::name_to_handle(std::os::fd::AsFd::as_fd(&self.node.fd)).map_err(from_errno)?;
        Ok(Some(old_depot::folder_path(self.depot.root, &handle)))
    }

    /// Gives the directory with this name to the object, whose number is set.
    fn enter(&self, name: &str, number: StreamsNumber, folder: OwnedFd) -> Result<OwnedFd> {
        let entered = self.own(&folder).and_then(|()| {
            let renamed =
                renameat_with(self.dir, name, self.dir, number.folder_name(), RenameFlags::NOREPLACE);
            renamed.map_err(from_errno)
        });
        match entered {
            Ok(()) | Err(Error::ReadOnly) => {}
            Err(e) => return Err(e),
        }
        if self.depot.has_old()
            && unlinkat(self.dir, old_depot::root_name(self.depot.root), AtFlags::REMOVEDIR).is_ok()
        {
            self.depot.note_no_old();
        }
        Ok(folder)
    }

    fn own(&self, folder: &OwnedFd) -> Result<()> {
        set_owner_of(folder, &identity_of(&self.node.fd, self.depot)?)
    }

    /// Makes a directory that belongs to the object.
    fn make(&self, name: &str) -> Result<OwnedFd> {
        let _making = self.depot.making.lock();
        make_directory(self.dir, name.as_bytes())?;
        let folder = self.open(name)?.ok_or(Error::NotFound)?;
        self.own(&folder)?;
        Ok(folder)
    }

    /// The directory of the object's number exists. The number is locked.
    fn claim(&self, number: StreamsNumber, folder: OwnedFd) -> Result<OwnedFd> {
        let owner = owner_of(&folder)?;
        let own = identity_of(&self.node.fd, self.depot)?;
        let is_free = match &owner {
            Some(owner) if *owner == own => return Ok(folder),
            Some(owner) => !self.node.store.is_owned(self.depot, number, owner)?,
            None => true,
        };
        if !self.node.store.capabilities.contains(Capabilities::WRITE) {
            return Ok(folder);
        }
        let claimed = if is_free { self.own(&folder).map(|()| None) } else { self.copy(&folder).map(Some) };
        match claimed {
            Ok(copied) => Ok(copied.unwrap_or(folder)),
            // A snapshot that is not mounted read-only, but cannot be written.
            Err(Error::ReadOnly) => Ok(folder),
            Err(e) => Err(e),
        }
    }

    /// Gives the object a number of its own, and a copy of these streams.
    fn copy(&self, from: &OwnedFd) -> Result<OwnedFd> {
        let number = new_number()?;
        let name = copying_name(number);
        let object = fstat(&self.node.fd).map_err(from_errno)?;
        let owners = self.node.store.capabilities.contains(Capabilities::OWNERS);
        let owners = owners.then_some(Owners { uid: object.st_uid, gid: object.st_gid });
        let copied = self.make(&name).and_then(|folder| {
            copy_streams(from, &folder, owners)?;
            self.node.set_streams_number(self.depot, number)?;
            Ok(folder)
        });
        match copied {
            Ok(folder) => self.enter(&name, number, folder),
            Err(e) => {
                // The first error counts. If this fails, too, the next start removes the directory.
                let _ = remove_folder(self.dir, name.as_bytes());
                Err(e)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_are_being_filled_have_names_of_their_own() {
        let number = StreamsNumber::new([0xab; 16]);
        let name = copying_name(number);
        assert_eq!(number_of_copying(name.as_bytes()), Some(number));
        assert_eq!(StreamsNumber::of_folder(name.as_bytes()), None);
        assert_eq!(number_of_copying(number.folder_name().as_bytes()), None);
    }
}

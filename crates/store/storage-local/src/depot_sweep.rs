//! What a start does in the depot: it finishes what a killed server has begun, and removes what belongs to nothing.
//!
//! Only a server that may use handles (`CAP_DAC_READ_SEARCH`) can ask the file system whether an object exists; other
//! servers leave everything as it is.
//!
//! An object that local programs have removed leaves its directory behind. Another object may carry the number by then:
//! a program has replaced a file by a new one with the same attributes, or a file was restored. So before directories
//! are removed, everything below the root is looked at, if there are any. Whoever carries such a number becomes the
//! owner. Directories whose owner was recorded below another root are not touched: nobody knows what became of it.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, ResolveFlags, unlinkat};
use rustix::io::Errno;
use storage::Result;
use storage::depot::{StreamsNumber, StreamsOwner};

use crate::attributes::stat;
use crate::carriers::{Carriers, find_carriers};
use crate::depot::{Depot, entries, open_directory, remove_folder};
use crate::errno::from_errno;
use crate::handle::Handles;
use crate::kernel_handle::KernelHandle;
use crate::node::LocalNode;
use crate::old_depot;
use crate::store::Shared;
use crate::stream_folder::number_of_copying;
use crate::streams_number::{handle_of_owner, owner_of};

/// Directories whose owners do not exist, with these owners.
type Left = HashMap<StreamsNumber, StreamsOwner>;

impl Shared {
    /// Goes through the depot.
    pub(crate) fn sweep_depot(self: &Arc<Self>) {
        let Some(depot) = self.depot.as_ref() else { return };
        let (Some(dir), Handles::Native(_)) = (depot.present(), &self.handles) else { return };
        if let Err(e) = (Sweep { store: self, depot, dir }).run() {
            tracing::warn!("what is left over in the depot of streams stays until the next start: {e}");
        }
    }
}

struct Sweep<'a> {
    store: &'a Arc<Shared>,
    depot: &'a Depot,
    dir: BorrowedFd<'a>,
}

impl Sweep<'_> {
    fn run(&self) -> Result<()> {
        let mut left = Left::new();
        for name in entries(self.dir)? {
            if self.store.cache.is_closed() {
                return Ok(());
            }
            let swept = if let Some(number) = StreamsNumber::of_folder(&name) {
                self.look_at(&name, number, &mut left)
            } else if let Some(number) = number_of_copying(&name) {
                self.finish_copy(&name, number)
            } else if name == old_depot::root_name(self.depot.root).as_bytes() {
                self.renew(&name)
            } else {
                Ok(())
            };
            if let Err(e) = swept {
                tracing::warn!("{} of the depot of streams stays as it is: {e}", name.escape_ascii());
            }
        }
        if left.is_empty() { Ok(()) } else { self.remove_unless_carried(left) }
    }

    /// The object of a handle; None when it does not exist.
    fn object(&self, handle: &KernelHandle) -> Result<Option<Arc<LocalNode>>> {
        match self.store.open_handle(handle) {
            Ok(fd) if stat(&fd)?.stx_nlink == 0 => Ok(None),
            Ok(fd) => self.store.adopt(fd, false).map(Some),
            Err(Errno::STALE) => Ok(None),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    /// A directory that has a number. If its owner exists without any number, the owner gets the number back.
    fn look_at(&self, name: &[u8], number: StreamsNumber, left: &mut Left) -> Result<()> {
        let Some(folder) = open_directory(self.dir, name)? else { return Ok(()) };
        let Some(owner) = owner_of(&folder)?.filter(|owner| owner.root == self.depot.root) else {
            return Ok(());
        };
        let Some(handle) = handle_of_owner(&owner) else { return Ok(()) };
        let Some(object) = self.object(&handle)? else {
            left.insert(number, owner);
            return Ok(());
        };
        let _settling = object.numbering.lock();
        if object.streams_number(self.depot)?.is_some() {
            return Ok(());
        }
        if entries(&folder)?.is_empty() {
            // A failure is fine: a stream has just been made.
            let _ = unlinkat(self.dir, name, AtFlags::REMOVEDIR);
            return Ok(());
        }
        tracing::info!("{:?} had lost the number of its streams, and has it again", object.path_below_root());
        object.set_streams_number(self.depot, number)
    }

    /// A directory that was being filled when the server was killed, or is being filled now.
    fn finish_copy(&self, name: &[u8], number: StreamsNumber) -> Result<()> {
        let Some(folder) = open_directory(self.dir, name)? else { return Ok(()) };
        let owner = {
            let _making = self.depot.making.lock();
            owner_of(&folder)?.filter(|owner| owner.root == self.depot.root)
        };
        let object = match owner.as_ref().and_then(handle_of_owner) {
            Some(handle) => self.object(&handle)?,
            None => None,
        };
        let Some(object) = object else { return remove_folder(self.dir, name) };
        {
            // While the lock is held, nobody fills the directory.
            let _settling = object.numbering.lock();
            if object.streams_number(self.depot)? != Some(number) {
                return remove_folder(self.dir, name);
            }
        }
        object.stream_folder(false).map(drop)
    }

    /// The directory of the old naming: objects that exist get numbers, and what belongs to others goes.
    fn renew(&self, root_name: &[u8]) -> Result<()> {
        let Some(old) = open_directory(self.dir, root_name)? else { return Ok(()) };
        for name in entries(&old)? {
            if self.store.cache.is_closed() {
                return Ok(());
            }
            let Some(handle) = old_depot::handle_of_folder(&name) else { continue };
            let renewed = self.object(&handle).and_then(|object| match object {
                Some(object) => object.stream_folder(false).map(drop),
                None => remove_folder(&old, &name),
            });
            // Its object may just have been removed, with its streams. The others have their turn.
            if let Err(e) = renewed {
                tracing::debug!("{} of the old naming of streams: {e}", name.escape_ascii());
            }
        }
        if unlinkat(self.dir, root_name, AtFlags::REMOVEDIR).is_ok() {
            self.depot.note_no_old();
        }
        Ok(())
    }

    fn remove_unless_carried(&self, left: Left) -> Result<()> {
        let mut search = Search { store: self.store, left, carriers: Vec::new() };
        let is_whole = find_carriers(&self.store.root, &[self.depot.xattr], &mut search)?;
        for path in &search.carriers {
            // The object becomes the owner. If it has gone meanwhile, the next start looks again.
            let pinned = self.store.pin(&self.store.root, path, ResolveFlags::empty());
            let _ = pinned.and_then(|fd| self.store.adopt(fd, false)?.stream_folder(false).map(drop));
        }
        if !is_whole {
            return Ok(());
        }
        for (number, owner) in search.left {
            let name = number.folder_name();
            let _lock = self.depot.lock(number);
            let Some(folder) = open_directory(self.dir, name.as_bytes())? else { continue };
            if owner_of(&folder)? == Some(owner) {
                remove_folder(self.dir, name.as_bytes())?;
            }
        }
        Ok(())
    }
}

struct Search<'a> {
    store: &'a Shared,
    left: Left,
    /// The paths of the objects that carry numbers of directories without owners.
    carriers: Vec<Vec<u8>>,
}

impl Carriers for Search<'_> {
    fn found(&mut self, path: &[u8], number: StreamsNumber) {
        if self.left.remove(&number).is_some() {
            self.carriers.push(if path.is_empty() { b".".to_vec() } else { path.to_vec() });
        }
    }

    fn goes_on(&self) -> bool {
        !self.store.cache.is_closed()
    }
}

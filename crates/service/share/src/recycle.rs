//! The recycle bin: files that clients delete stay in the folder `.recycle` for a while.
//!
//! The folder mirrors the tree of the share. A file goes to a directory that has the owners, the permission bits and the
//! descriptor of its original, so what is in the bin is open to those who could reach it before. For a share of homes each home has
//! a bin.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use file_state::Holder;
use parking_lot::RwLockReadGuard;
use storage::{
    Attributes, Capabilities, FileFlags, FileKind, MayWait, Name, NewKind, NewNode, NodeRef, Protection,
    Replace, SetAttributes, Wait, Want,
};

use crate::charges::Charge;
use crate::namespace::{Changing, DirChange};
use crate::operation::DirectoryReport;
use crate::recycling::{FOLDER, RECYCLE_FOLDER};
use crate::watch::ChangeAction;
use crate::{Error, Location, RecycleBin, Result, Share, Terms};

/// How many copies of a name are numbered. Later ones have the time in their names.
const COPIES_MAX: u32 = 99;
/// How often a file is moved to the bin again, if its directory in the bin was just removed.
const ATTEMPTS_MAX: u32 = 3;
/// The bits of a directory's mode that decide about access: permissions, and the sticky bit.
const ACCESS_BITS: u32 = 0o1777;
/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// An entry of a directory that is about to go.
#[derive(Clone, Copy)]
pub(crate) struct Going<'a> {
    pub(crate) name: Name<'a>,
    pub(crate) node: &'a NodeRef,
    pub(crate) attributes: &'a Attributes,
}

impl Share {
    /// The settings of the recycle bin, if the share has one.
    #[must_use]
    pub fn recycle_bin(&self) -> Option<Arc<RecycleBin>> {
        self.recycling.bin()
    }

    /// Gives the share a recycle bin, changes its settings, or ends it. What is in the folder stays there.
    pub fn set_recycle_bin(&self, bin: Option<RecycleBin>) {
        self.recycling.set_bin(bin);
    }

    /// Takes an entry away: into the recycle bin, if there is one that takes it, or for good. `by` is the caching grant of the
    /// caller on the directory.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn take_away(
        self: &Arc<Self>,
        from: &Changing<'_>,
        going: Going<'_>,
        by: Option<Holder>,
    ) -> Result<DirChange> {
        match self.recycle_bin().map(|bin| self.recycle(&bin, from, going, by)).transpose() {
            Ok(Some(Some(change))) => Ok(change),
            Ok(None | Some(None)) => self.remove_entry(from, going, by),
            // A full disk can be emptied.
            Err(
                Error::OverQuota | Error::Storage(storage::Error::NoSpace | storage::Error::QuotaExceeded),
            ) => self.remove_entry(from, going, by),
            Err(error) => {
                let is_gone =
                    matches!(error, Error::Storage(storage::Error::NotFound | storage::Error::Stale));
                if !is_gone && self.recycling.tells(Instant::now()) {
                    tracing::warn!(
                        share = self.name(),
                        "a file cannot be moved to {RECYCLE_FOLDER}, so it is not deleted: {error}"
                    );
                }
                Err(error)
            }
        }
    }

    /// Refuses a new entry that would be taken for the bin.
    ///
    /// # Errors
    /// [`Error::AccessDenied`], the store's.
    pub(crate) fn check_not_bin(&self, dir: &NodeRef, name: &[u8]) -> Result<()> {
        let is_bin = name == FOLDER && self.recycle_bin().is_some() && self.level_of(dir)? == Level::Top;
        if is_bin { Err(Error::AccessDenied) } else { Ok(()) }
    }

    /// Refuses a rename of the bin, to its name, and of a directory into it: what is in there was deleted, and is removed some
    /// day. Holds on to the bin's entries until the rename has ended.
    ///
    /// # Errors
    /// [`Error::AccessDenied`], the store's.
    pub(crate) fn begin_rename_beside_bin(
        &self,
        is_dir: bool,
        from: &Location,
        to: &Location,
    ) -> Result<Option<RwLockReadGuard<'_, ()>>> {
        if self.recycle_bin().is_none() {
            return Ok(None);
        }
        self.check_not_bin(&from.parent, &from.name)?;
        self.check_not_bin(&to.parent, &to.name)?;
        let is_in_bin = |dir| self.level_of(dir).map(|level| level == Level::InBin);
        if is_dir && is_in_bin(&to.parent)? && !is_in_bin(&from.parent)? {
            return Err(Error::AccessDenied);
        }
        Ok(Some(self.recycling.moving()))
    }

    /// Where a directory is.
    ///
    /// # Errors
    /// [`storage::Error::Stale`] if it has no name any more.
    pub(crate) fn level_of(&self, dir: &NodeRef) -> Result<Level> {
        let path = dir.path()?;
        let names: Vec<_> = names_of(&path);
        Ok(match names.split_at_checked(self.depth_of_bins()) {
            Some((_, [])) => Level::Top,
            Some((_, [FOLDER, ..])) => Level::InBin,
            Some(_) | None => Level::Elsewhere,
        })
    }

    /// Removes an entry for good.
    pub(crate) fn remove_entry(
        self: &Arc<Self>,
        from: &Changing<'_>,
        going: Going<'_>,
        by: Option<Holder>,
    ) -> Result<DirChange> {
        let Going { name, node, attributes } = going;
        let (dir, may, is_dir) = (from.dir, from.may, attributes.kind == FileKind::Directory);
        let charge = self.charge_removal(node, attributes, may)?;
        dir.remove_found(name, attributes, may)?;
        charge.iter().for_each(Charge::removed);
        if is_dir {
            self.changes.publish_gone(node.id());
        } else {
            self.budget.capacity().removed(attributes);
        }
        let change = self.namespace.changed(from, Some(name), None, 0)?;
        self.tell_name(dir, name.as_bytes(), ChangeAction::Removed, is_dir, by, may);
        Ok(change)
    }

    /// Moves an entry to the recycle bin. None if it does not go there.
    fn recycle(
        self: &Arc<Self>,
        bin: &RecycleBin,
        from: &Changing<'_>,
        going: Going<'_>,
        by: Option<Holder>,
    ) -> Result<Option<DirChange>> {
        let Going { name, node, attributes } = going;
        if attributes.kind != FileKind::Regular || attributes.links > 1 {
            return Ok(None);
        }
        let path = from.dir.path()?;
        let names = names_of(&path);
        let Some((home, below)) = names.split_at_checked(self.depth_of_bins()) else { return Ok(None) };
        let is_in_bin = below.first() == Some(&FOLDER);
        if is_in_bin || !bin.takes(below.iter().copied(), name.as_bytes(), attributes.size) {
            return Ok(None);
        }
        // Set by clients for files that go when they are closed, for example.
        let flags = node.attributes(Want::FLAGS, Wait::May(from.may))?.flags;
        if flags.is_some_and(|flags| flags.contains(FileFlags::TEMPORARY)) {
            return Ok(None);
        }
        for _ in 1..ATTEMPTS_MAX {
            match self.move_to_bin(from, going, (home, below), by) {
                Err(Error::Storage(storage::Error::NotFound | storage::Error::Stale)) => {}
                moved => return moved.map(Some),
            }
        }
        self.move_to_bin(from, going, (home, below), by).map(Some)
    }

    /// How many names lead from the root of the share to a directory that has a bin.
    pub(crate) fn depth_of_bins(&self) -> usize {
        usize::from(self.terms().contains(Terms::HOMES))
    }

    fn move_to_bin(
        self: &Arc<Self>,
        from: &Changing<'_>,
        going: Going<'_>,
        (home, below): (&[&[u8]], &[&[u8]]),
        by: Option<Holder>,
    ) -> Result<DirChange> {
        let may = from.may;
        let _moving = self.recycling.moving();
        let to = self.mirror(from.dir, (home, below), may)?;
        let adding = Changing::begin(DirectoryReport::Nothing, &to, may)?;
        let name = going.name.as_bytes();
        let place = |dir: &NodeRef, name: &[u8]| Location { parent: Arc::clone(dir), name: name.to_vec() };
        let source = place(from.dir, name);
        let mut charge = self.charge_move(going.node, going.attributes, (&source, &place(&to, name)), may)?;
        let mut free = None;
        for copy in 0..=COPIES_MAX + 1 {
            let new_name = name_of_copy(name, copy, SystemTime::now());
            match from.dir.rename(going.name, &*to, Name::new(&new_name)?, Replace::Never, may) {
                Err(storage::Error::Exists) => {}
                renamed => {
                    free = Some(renamed.map(|()| new_name)?);
                    break;
                }
            }
        }
        let new_name = free.ok_or(storage::Error::Exists)?;
        charge.iter_mut().for_each(|charge| charge.moved(going.node));
        let change = self.namespace.changed(from, Some(going.name), None, 0)?;
        self.namespace.changed(&adding, None, Some(Name::new(&new_name)?), 0)?;
        let target = place(&to, &new_name);
        self.agreement.moved(going.node.id(), &source, &target);
        self.tell_renamed(&source, &target, false, by, may);
        Ok(change)
    }

    /// The directory of the bin for files of a directory that is reached by these names.
    ///
    /// # Errors
    /// [`storage::Error::Stale`] if they lead elsewhere now.
    fn mirror(
        &self,
        dir: &NodeRef,
        (home, below): (&[&[u8]], &[&[u8]]),
        may: MayWait<'_>,
    ) -> Result<NodeRef> {
        let mut original = Arc::clone(self.root());
        for name in home {
            original = original.lookup(Name::new(name)?, Wait::May(may))?;
        }
        let mut mirrored = self.bin_in(&original, may)?;
        for name in below {
            original = original.lookup(Name::new(name)?, Wait::May(may))?;
            mirrored = self.mirror_one(&original, &mirrored, name, may)?;
        }
        if original.id() == dir.id() { Ok(mirrored) } else { Err(storage::Error::Stale.into()) }
    }

    /// The bin in the root of the share or in a home. If it is not there, it is made, and protected as that is now. One that is
    /// there stays as it is.
    ///
    /// # Errors
    /// [`Error::AccessDenied`] if the name is taken by something that does not belong to the owner of the root.
    pub(crate) fn bin_in(&self, top: &NodeRef, may: MayWait<'_>) -> Result<NodeRef> {
        let wanted = top.protection(Wait::May(may))?;
        let look = || top.lookup(Name::new(FOLDER)?, Wait::May(may));
        let bin = match look() {
            Err(storage::Error::NotFound) => {
                let _making = self.recycling.making();
                match look() {
                    Err(storage::Error::NotFound) => self.make_mirrored(&wanted, top, FOLDER, may)?,
                    found => found?,
                }
            }
            found => found?,
        };
        let present = bin.protection(Wait::May(may))?;
        if present.kind != FileKind::Directory || self.keeps_owners() && present.uid != wanted.uid {
            if self.recycling.tells(Instant::now()) {
                tracing::warn!(
                    share = self.name(),
                    "files cannot be deleted: {RECYCLE_FOLDER} is not a directory of the owner of the share's root. Remove it, \
                     or change its owner"
                );
            }
            return Err(Error::AccessDenied);
        }
        Ok(bin)
    }

    /// The directory of this name in `dir` that is protected as the original is now. It is made if it is not there. Whatever else
    /// has the name stays as it is, since it may be what somebody has put there: then the directory is `Copy #1 of NAME`, and so on.
    fn mirror_one(
        &self,
        original: &NodeRef,
        dir: &NodeRef,
        name: &[u8],
        may: MayWait<'_>,
    ) -> Result<NodeRef> {
        let wanted = original.protection(Wait::May(may))?;
        if let Ok(node) = dir.lookup(Name::new(name)?, Wait::May(may))
            && self.is_protected_as(&node.protection(Wait::May(may))?, &wanted)
        {
            return Ok(node);
        }
        // Somebody may be making it.
        let _making = self.recycling.making();
        for copy in 0..=COPIES_MAX + 1 {
            let name = name_of_copy(name, copy, SystemTime::now());
            let node = match dir.lookup(Name::new(&name)?, Wait::May(may)) {
                Err(storage::Error::NotFound) => return self.make_mirrored(&wanted, dir, &name, may),
                found => found?,
            };
            if self.is_protected_as(&node.protection(Wait::May(may))?, &wanted) {
                return Ok(node);
            }
        }
        Err(storage::Error::Exists.into())
    }

    fn keeps_owners(&self) -> bool {
        self.store.storage().capabilities().contains(Capabilities::OWNERS)
    }

    /// Whether it is a directory that is open to the same users as another one.
    fn is_protected_as(&self, present: &Protection, wanted: &Protection) -> bool {
        let owners = |of: &Protection| self.keeps_owners().then_some((of.uid, of.gid));
        let all = |of: &Protection| (of.kind, of.mode & ACCESS_BITS, owners(of));
        all(present) == all(wanted) && present.security == wanted.security
    }

    /// Protects a directory that was just made.
    fn protect_as(&self, dir: &NodeRef, wanted: &Protection, may: MayWait<'_>) -> Result<()> {
        let owners = self.keeps_owners();
        let set = SetAttributes {
            mode: Some(wanted.mode),
            uid: owners.then_some(wanted.uid),
            gid: owners.then_some(wanted.gid),
            ..SetAttributes::default()
        };
        dir.set_attributes(&set, may)?;
        if dir.protection(Wait::May(may))?.security != wanted.security {
            dir.set_security(wanted.security.as_deref().cloned(), may)?;
        }
        let is_like_it = self.is_protected_as(&dir.protection(Wait::May(may))?, wanted);
        if is_like_it { Ok(()) } else { Err(storage::Error::NotSupported.into()) }
    }

    /// Makes a directory of the bin. The caller holds what is held meanwhile.
    ///
    /// # Errors
    /// [`storage::Error::Exists`] if a client or a local program has just made it; [`storage::Error::NotSupported`] if the store
    /// cannot protect it: then it goes again.
    fn make_mirrored(
        &self,
        wanted: &Protection,
        dir: &NodeRef,
        name: &[u8],
        may: MayWait<'_>,
    ) -> Result<NodeRef> {
        let adding = Changing::begin(DirectoryReport::Nothing, dir, may)?;
        let new = NewNode { kind: NewKind::Directory, mode: 0o700, uid: wanted.uid, gid: wanted.gid };
        let name = Name::new(name)?;
        let made = dir.create(name, &new, may)?;
        if let Err(error) = self.protect_as(&made, wanted, may) {
            dir.remove_dir(name, may)?;
            return Err(error);
        }
        self.namespace.changed(&adding, None, Some(name), 0)?;
        self.tell_name(dir, name.as_bytes(), ChangeAction::Added, true, None, may);
        Ok(made)
    }
}

/// Where a directory is, as seen from the recycle bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// It holds a bin: the root of the share, or a home.
    Top,
    /// It is the bin, or lies in it.
    InBin,
    /// Neither.
    Elsewhere,
}

fn names_of(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect()
}

/// The name that a deleted file has in the bin: its own (copy 0), or `Copy #1 of NAME` as Samba names it. After the last number
/// follows the time. A name that becomes too long loses its beginning, so that it keeps its extension.
fn name_of_copy(name: &[u8], copy: u32, now: SystemTime) -> Vec<u8> {
    let prefix = match copy {
        0 => return name.to_vec(),
        copy if copy <= COPIES_MAX => format!("Copy #{copy} of "),
        copy => {
            let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            format!("Copy #{copy}.{} of ", since_1970.as_nanos())
        }
    };
    let kept = name.len().min(NAME_BYTES_MAX.saturating_sub(prefix.len()));
    let mut rest = name.get(name.len() - kept..).unwrap_or_default();
    // Not in the middle of a character.
    while kept < name.len() && rest.first().is_some_and(|byte| byte & 0xc0 == 0x80) {
        rest = rest.get(1..).unwrap_or_default();
    }
    [prefix.as_bytes(), rest].concat()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn copies_have_names_of_their_own() {
        let now = SystemTime::UNIX_EPOCH + Duration::new(2, 7);
        let name = |name: &str, copy| String::from_utf8(name_of_copy(name.as_bytes(), copy, now)).unwrap();
        assert_eq!(name("a.txt", 0), "a.txt");
        assert_eq!(name("a.txt", 1), "Copy #1 of a.txt");
        assert_eq!(name("a.txt", 100), "Copy #100.2000000007 of a.txt");
        let long = "\u{e4}".repeat(125) + ".txt";
        let copy = name(&long, 1);
        assert!(long.len() == 254 && copy.len() <= 255, "{}", copy.len());
        assert!(copy.starts_with("Copy #1 of \u{e4}") && copy.ends_with("\u{e4}.txt"), "{copy}");
    }
}

//! Nodes that answer from the cache.

use std::any::Any;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::Arc;

use acl::SecurityDescriptor;
use storage::{
    Attributes, DirEntry, Error, FileKind, Handle, MayWait, Name, NewNode, Node, NodeRef, ObjectId,
    Protection, Replace, Result, SeekTo, SetAttributes, Stability, StreamEntry, StreamName, View, Wait, Want,
    XattrMode,
};

use super::directory::{KnownName, LISTING_MAX, Listed};
use super::{Cache, NameMeaning, Purpose, Still};

pub(super) fn inner(node: &dyn Node) -> Result<&NodeRef> {
    let node: Option<&CachedNode> = node.as_any().downcast_ref();
    Ok(&node.ok_or(Error::CrossDevice)?.inner)
}

/// Whether a directory is followed, so that the index of its names hears of each change. All changes so far have been
/// reported when this returns.
pub(crate) fn is_followed(dir: &dyn Node, view: View<'_>) -> bool {
    let node: Option<&CachedNode> = dir.as_any().downcast_ref();
    let Some(node) = node.filter(|node| node.inner.kind() == FileKind::Directory) else { return false };
    let is_followed = node.cache.follow(&node.inner, Purpose::Index);
    if is_followed {
        node.cache.settle(view);
    }
    is_followed && node.cache.with(node.id(), super::Directory::index).is_some()
}

/// The cache that a directory is behind, and the directory's node.
pub(super) fn behind(dir: &dyn Node) -> Option<(&Arc<Cache>, &NodeRef)> {
    let node: Option<&CachedNode> = dir.as_any().downcast_ref();
    let node = node.filter(|node| node.inner.kind() == FileKind::Directory)?;
    Some((&node.cache, &node.inner))
}

/// Makes room for so many bytes without dropping this directory. Returns whether there is enough room then.
pub(crate) fn make_room(dir: &dyn Node, bytes: usize) -> bool {
    let node: Option<&CachedNode> = dir.as_any().downcast_ref();
    node.is_some_and(|node| node.cache.make_room(bytes, node.id()))
}

/// A node behind a cache: directories answer from memory, other objects from the store.
#[derive(Debug)]
pub(super) struct CachedNode {
    cache: Arc<Cache>,
    inner: NodeRef,
}

impl CachedNode {
    pub(super) fn wrap(cache: &Arc<Cache>, inner: NodeRef) -> NodeRef {
        Arc::new(Self { cache: Arc::clone(cache), inner })
    }

    fn sibling(&self, inner: NodeRef) -> NodeRef {
        Self::wrap(&self.cache, inner)
    }

    fn peer<'a>(&self, node: &'a dyn Node) -> Result<&'a NodeRef> {
        let node: Option<&Self> = node.as_any().downcast_ref();
        let node = node.filter(|node| Arc::ptr_eq(&node.cache, &self.cache)).ok_or(Error::CrossDevice)?;
        Ok(&node.inner)
    }

    /// Whether the node may be cached: it is a directory, and the cache is on.
    fn is_kept(&self) -> bool {
        self.inner.kind() == FileKind::Directory && self.cache.is_on()
    }

    /// What the cache knows of a name in this directory.
    fn known(&self, name: Name<'_>, view: View<'_>) -> Option<Result<NodeRef>> {
        if !self.is_kept() {
            return None;
        }
        self.cache.settle_kept(self.id(), view);
        if let Err(gone) = self.inner.check_place() {
            return Some(Err(gone));
        }
        let known = self.cache.kept(self.id(), |directory| {
            directory.name(name.as_bytes(), |known| match known {
                KnownName::Absent => Err(Error::NotFound),
                KnownName::Directory(node) => Ok(Arc::clone(node)),
            })
        });
        match known.flatten() {
            Some(Err(e)) => {
                self.cache.counts.absent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Some(Err(e))
            }
            Some(Ok(node)) => {
                self.inner.vouch_for(&*node);
                self.cache.counts.names.hit();
                Some(Ok(self.sibling(node)))
            }
            None => {
                self.cache.counts.names.miss();
                None
            }
        }
    }

    /// Looks a name up in the store, and caches the result if possible.
    fn ask<T>(
        &self,
        name: Name<'_>,
        wait: Wait<'_>,
        ask: impl FnOnce() -> Result<T>,
        node: impl FnOnce(&T) -> &NodeRef,
    ) -> Result<T> {
        if !wait.is_never() && self.is_kept() {
            self.cache.follow(&self.inner, Purpose::Keep);
        }
        let ticket = self.cache.begin(self.id(), name.as_bytes());
        let answer = self.cache.pace.of(wait, ask);
        let outcome = match &answer {
            Ok(found) => {
                let node = node(found);
                (node.kind() == FileKind::Directory).then(|| NameMeaning::Directory(Arc::clone(node)))
            }
            Err(Error::NotFound) => Some(NameMeaning::Absent),
            Err(_) => None,
        };
        self.cache.end(ticket, 0, outcome, wait.view());
        answer
    }

    /// Removes a name.
    fn remove(&self, name: Name<'_>, remove: impl FnOnce() -> Result<()>, may: MayWait<'_>) -> Result<()> {
        let ticket = self.cache.begin(self.id(), name.as_bytes());
        let removed = remove();
        self.cache.end(ticket, 1, removed.is_ok().then_some(NameMeaning::Absent), may.view());
        removed
    }

    /// Creates an object with a name.
    fn make<T>(
        &self,
        name: Name<'_>,
        make: impl FnOnce() -> Result<T>,
        node: impl FnOnce(&mut T) -> &mut NodeRef,
        may: MayWait<'_>,
    ) -> Result<T> {
        let ticket = self.cache.begin(self.id(), name.as_bytes());
        let mut made = make();
        let node = made.as_mut().ok().map(node);
        let outcome = node.as_ref().map(|node| match node.kind() {
            FileKind::Directory => NameMeaning::Directory(Arc::clone(node)),
            _ => NameMeaning::Other,
        });
        self.cache.end(ticket, 1, outcome, may.view());
        if let Some(node) = node {
            *node = self.sibling(Arc::clone(node));
        }
        made
    }

    /// Changes the object itself, which makes the cached answers invalid.
    fn changing<T>(&self, change: impl FnOnce() -> T, may: MayWait<'_>) -> T {
        let changed = change();
        if self.inner.kind() == FileKind::Directory {
            may.view().end();
        }
        changed
    }

    /// Lists the directory from its start into the cache, up to the longest listing that is kept. None if the listing cannot
    /// be cached.
    fn list(&self, reader: Reader, may: MayWait<'_>) -> Result<Option<Arc<Vec<Listed>>>> {
        self.cache.follow(&self.inner, Purpose::Keep);
        let Some(as_of) = self.cache.as_of(&self.inner) else { return Ok(None) };
        let mut listing: Vec<Listed> = Vec::new();
        let mut is_ordered = true;
        let whole = reader.read(&self.inner, 0, may, &mut |entry| {
            is_ordered &= listing.last().is_none_or(|last| last.cookie < entry.cookie);
            if listing.len() >= LISTING_MAX || !is_ordered {
                return ControlFlow::Break(());
            }
            listing.push(Listed {
                name: entry.name.to_vec(),
                id: entry.id,
                kind: entry.kind,
                cookie: entry.cookie,
            });
            ControlFlow::Continue(())
        })?;
        if !whole {
            self.cache.kept(self.id(), |directory| directory.is_long = true);
            return Ok(None);
        }
        let listing = Arc::new(listing);
        self.cache.keep(self.id(), as_of, |directory, still| {
            if still == Still::All {
                directory.keep_listing(Arc::clone(&listing));
            }
        });
        Ok(Some(listing))
    }

    fn listing(&self, cookie: u64, reader: Reader, may: MayWait<'_>) -> Result<Option<Arc<Vec<Listed>>>> {
        if !self.is_kept() {
            return Ok(None);
        }
        self.cache.settle_kept(self.id(), may.view());
        self.inner.check_place()?;
        let look = |directory: &mut super::Directory| (directory.listing(), directory.is_long);
        let (known, is_long) = self.cache.kept(self.id(), look).unwrap_or_default();
        if known.is_some() {
            self.cache.counts.listings.hit();
            return Ok(known);
        }
        self.cache.counts.listings.miss();
        // A continued listing was begun without the cache.
        if is_long || cookie != 0 { Ok(None) } else { self.list(reader, may) }
    }

    fn entries(
        &self,
        cookie: u64,
        reader: Reader,
        may: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        if let Some(listing) = self.listing(cookie, reader, may)?
            && let Some(end) = give(&listing, cookie, each)
        {
            return Ok(end);
        }
        reader.read(&self.inner, cookie, may, each)
    }
}

/// The reader of a directory.
#[derive(Debug, Clone, Copy)]
enum Reader {
    Client,
    /// The server itself, from the start of the directory.
    Server,
}

impl Reader {
    fn read(
        self,
        dir: &NodeRef,
        cookie: u64,
        may: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        match self {
            Self::Client => dir.read_dir(cookie, may, each),
            Self::Server => dir.survey(may, each),
        }
    }
}

/// Returns the entries after a cookie; None when no entry has this cookie.
fn give(
    listing: &[Listed],
    cookie: u64,
    each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
) -> Option<bool> {
    let from = match cookie {
        0 => 0,
        _ => listing.binary_search_by_key(&cookie, |listed| listed.cookie).ok()? + 1,
    };
    for listed in listing.get(from..)? {
        let entry = DirEntry { name: &listed.name, id: listed.id, kind: listed.kind, cookie: listed.cookie };
        if each(entry).is_break() {
            return Some(false);
        }
    }
    Some(true)
}

impl Node for CachedNode {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn beneath(&self) -> Option<&dyn Node> {
        Some(self.inner.beneath().unwrap_or(&*self.inner))
    }

    fn id(&self) -> ObjectId {
        self.inner.id()
    }

    fn kind(&self) -> FileKind {
        self.inner.kind()
    }

    fn handle(&self) -> Result<Handle> {
        let known = self.cache.kept(self.id(), |directory| directory.handle);
        if let Some(Some(handle)) = known {
            return Ok(handle);
        }
        let handle = self.inner.handle()?;
        if known.is_some() {
            self.cache.keep_handle(self.id(), handle);
        }
        Ok(handle)
    }

    fn path(&self) -> Result<Vec<u8>> {
        self.inner.path()
    }

    fn check_place(&self) -> Result<()> {
        self.inner.check_place()
    }

    fn vouch_for(&self, child: &dyn Node) {
        if let Ok(child) = self.peer(child) {
            self.inner.vouch_for(&**child);
        }
    }

    fn attributes(&self, want: Want, wait: Wait<'_>) -> Result<Attributes> {
        if self.inner.kind() != FileKind::Directory {
            return self.inner.attributes(want, wait);
        }
        self.cache.settle_counted(self.id(), wait.view());
        let known = self.cache.kept(self.id(), |directory| directory.attributes(want)).flatten();
        let mut attributes = match known {
            Some(attributes) => {
                self.cache.counts.attributes.hit();
                attributes
            }
            None => {
                self.cache.counts.attributes.miss();
                self.cache.read_attributes(&self.inner, want, wait)?
            }
        };
        if !want.contains(Want::FLAGS) {
            (attributes.flags, attributes.ctime_set) = (None, None);
        }
        Ok(attributes)
    }

    fn security(&self, attributes: &Attributes, wait: Wait<'_>) -> Result<Option<Arc<SecurityDescriptor>>> {
        if !self.cache.is_on() {
            return self.inner.security(attributes, wait);
        }
        if self.inner.kind() != FileKind::Directory {
            let unsecured = &self.cache.unsecured;
            if unsecured.has(attributes) {
                return Ok(None);
            }
            let as_of = unsecured.as_of();
            let security = self.inner.security(attributes, wait)?;
            if security.is_none() {
                unsecured.read(attributes, as_of);
            }
            return Ok(security);
        }
        // As of the attributes that were just read: the cache has already forgotten what was valid before an earlier
        // change.
        let known = self.cache.kept(self.id(), |directory| directory.security(attributes)).flatten();
        if let Some(security) = known {
            self.cache.counts.attributes.hit();
            return Ok(security);
        }
        self.cache.counts.attributes.miss();
        let as_of = self.cache.as_of(&self.inner);
        let security = self.inner.security(attributes, wait)?;
        if let Some(as_of) = as_of {
            self.cache.keep(self.id(), as_of, |directory, _| directory.keep_security(security.clone()));
        }
        Ok(security)
    }

    fn protection(&self, wait: Wait<'_>) -> Result<Protection> {
        if self.inner.kind() != FileKind::Directory {
            let attributes = self.inner.attributes(Want::empty(), wait)?;
            let security = self.security(&attributes, wait)?;
            return Ok(Protection { security, ..Protection::of(&attributes) });
        }
        self.cache.settle_counted(self.id(), wait.view());
        match self.cache.kept(self.id(), super::Directory::protection).flatten() {
            Some(protection) => {
                self.cache.counts.attributes.hit();
                Ok(protection)
            }
            None => {
                self.cache.counts.attributes.miss();
                self.cache.read_protection(&self.inner, wait)
            }
        }
    }

    fn lookup(&self, name: Name<'_>, wait: Wait<'_>) -> Result<NodeRef> {
        match self.known(name, wait.view()) {
            Some(known) => known,
            None => {
                let found = self.ask(name, wait, || self.inner.lookup(name, wait), |node| node)?;
                Ok(self.sibling(found))
            }
        }
    }

    fn lookup_attributes(&self, name: Name<'_>, want: Want, wait: Wait<'_>) -> Result<(NodeRef, Attributes)> {
        match self.known(name, wait.view()) {
            Some(known) => {
                let node = known?;
                let attributes = node.attributes(want, wait)?;
                Ok((node, attributes))
            }
            None => {
                let ask = || self.inner.lookup_attributes(name, want, wait);
                let (node, attributes) = self.ask(name, wait, ask, |(node, _)| node)?;
                Ok((self.sibling(node), attributes))
            }
        }
    }

    fn parent_number(&self, may: MayWait<'_>) -> Result<ObjectId> {
        self.inner.parent_number(may)
    }

    fn parent(&self, may: MayWait<'_>) -> Result<NodeRef> {
        Ok(self.sibling(self.inner.parent(may)?))
    }

    fn read_dir(
        &self,
        cookie: u64,
        may: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.entries(cookie, Reader::Client, may, each)
    }

    fn survey(
        &self,
        may: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.entries(0, Reader::Server, may, each)
    }

    fn read_link(&self, may: MayWait<'_>) -> Result<Vec<u8>> {
        self.inner.read_link(may)
    }

    fn read(&self, offset: u64, into: &mut [u8], wait: Wait<'_>) -> Result<usize> {
        self.inner.read(offset, into, wait)
    }

    fn set_attributes(&self, set: &SetAttributes, may: MayWait<'_>) -> Result<Attributes> {
        let changed = self.changing(|| self.inner.set_attributes(set, may), may);
        if set.atime.is_some() && set.mtime.is_none() {
            // The only kernel event for this change would be the one for every read (FAN_ACCESS).
            self.cache.with(self.id(), |directory| directory.itself_changed(false));
        }
        changed
    }

    fn set_security(&self, descriptor: Option<SecurityDescriptor>, may: MayWait<'_>) -> Result<Attributes> {
        let set = self.changing(|| self.inner.set_security(descriptor, may), may);
        self.cache.unsecured.stored(self.id());
        set
    }

    fn prepare_security(
        &self,
        descriptor: SecurityDescriptor,
        terms: (u32, (u32, u32)),
        may: MayWait<'_>,
    ) -> Result<Attributes> {
        let set = self.changing(|| self.inner.prepare_security(descriptor, terms, may), may);
        self.cache.unsecured.stored(self.id());
        set
    }

    fn create(&self, name: Name<'_>, new: &NewNode<'_>, may: MayWait<'_>) -> Result<NodeRef> {
        self.make(name, || self.inner.create(name, new, may), |node| node, may)
    }

    fn create_attributes(
        &self,
        name: Name<'_>,
        new: &NewNode<'_>,
        want: Want,
        may: MayWait<'_>,
    ) -> Result<(NodeRef, Attributes)> {
        let as_of = self.cache.unsecured.as_of();
        let make = || self.inner.create_attributes(name, new, want, may);
        let (node, attributes) = self.make(name, make, |made| &mut made.0, may)?;
        if node.kind() != FileKind::Directory && self.cache.is_on() {
            self.cache.unsecured.made(&attributes, as_of);
        }
        Ok((node, attributes))
    }

    fn link(&self, name: Name<'_>, target: &dyn Node, may: MayWait<'_>) -> Result<()> {
        let target = self.peer(target)?;
        let ticket = self.cache.begin(self.id(), name.as_bytes());
        let linked = self.inner.link(name, &**target, may);
        self.cache.end(ticket, 1, linked.is_ok().then_some(NameMeaning::Other), may.view());
        linked
    }

    fn remove_file(&self, name: Name<'_>, may: MayWait<'_>) -> Result<()> {
        self.remove(name, || self.inner.remove_file(name, may), may)
    }

    fn remove_dir(&self, name: Name<'_>, may: MayWait<'_>) -> Result<()> {
        self.remove(name, || self.inner.remove_dir(name, may), may)
    }

    fn remove_found(&self, name: Name<'_>, found: &Attributes, may: MayWait<'_>) -> Result<()> {
        self.remove(name, || self.inner.remove_found(name, found, may), may)
    }

    fn rename(
        &self,
        name: Name<'_>,
        to_dir: &dyn Node,
        to_name: Name<'_>,
        replace: Replace,
        may: MayWait<'_>,
    ) -> Result<()> {
        let to = self.peer(to_dir)?;
        let from = self.cache.begin(self.id(), name.as_bytes());
        let target = self.cache.begin(to.id(), to_name.as_bytes());
        let moved = self.inner.rename(name, &**to, to_name, replace, may);
        // A rename that changes nothing is reported twice or not at all; then nothing is cached.
        self.cache.end(from, 1, moved.is_ok().then_some(NameMeaning::Absent), may.view());
        self.cache.end(target, 1, moved.is_ok().then_some(NameMeaning::Other), may.view());
        moved
    }

    fn write(
        &self,
        offset: u64,
        data: &[IoSlice<'_>],
        stability: Stability,
        wait: Wait<'_>,
    ) -> Result<usize> {
        self.inner.write(offset, data, stability, wait)
    }

    fn commit(&self, may: MayWait<'_>) -> Result<()> {
        self.inner.commit(may)
    }

    fn allocate(&self, offset: u64, length: u64, grow: bool, may: MayWait<'_>) -> Result<()> {
        self.inner.allocate(offset, length, grow, may)
    }

    fn punch_hole(&self, offset: u64, length: u64, may: MayWait<'_>) -> Result<()> {
        self.inner.punch_hole(offset, length, may)
    }

    fn seek(&self, offset: u64, to: SeekTo, may: MayWait<'_>) -> Result<Option<u64>> {
        self.inner.seek(offset, to, may)
    }

    fn copy_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        may: MayWait<'_>,
    ) -> Result<u64> {
        self.inner.copy_range(offset, &**self.peer(to)?, to_offset, length, may)
    }

    fn clone_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        may: MayWait<'_>,
    ) -> Result<()> {
        self.inner.clone_range(offset, &**self.peer(to)?, to_offset, length, may)
    }

    fn xattr(&self, name: &[u8], may: MayWait<'_>) -> Result<Vec<u8>> {
        self.inner.xattr(name, may)
    }

    fn xattrs(&self, may: MayWait<'_>) -> Result<Vec<Vec<u8>>> {
        self.inner.xattrs(may)
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], mode: XattrMode, may: MayWait<'_>) -> Result<()> {
        self.changing(|| self.inner.set_xattr(name, value, mode, may), may)
    }

    fn remove_xattr(&self, name: &[u8], may: MayWait<'_>) -> Result<()> {
        self.changing(|| self.inner.remove_xattr(name, may), may)
    }

    fn note(&self, may: MayWait<'_>) -> Result<Option<Vec<u8>>> {
        self.inner.note(may)
    }

    fn set_note(&self, note: Option<&[u8]>, may: MayWait<'_>) -> Result<()> {
        self.changing(|| self.inner.set_note(note, may), may)
    }

    fn streams(&self, may: MayWait<'_>) -> Result<Vec<StreamEntry>> {
        self.inner.streams(may)
    }

    fn stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> Result<NodeRef> {
        Ok(self.sibling(self.inner.stream(name, may)?))
    }

    fn create_stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> Result<NodeRef> {
        Ok(self.sibling(self.changing(|| self.inner.create_stream(name, may), may)?))
    }

    fn remove_stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> Result<()> {
        self.changing(|| self.inner.remove_stream(name, may), may)
    }

    fn rename_stream(
        &self,
        name: StreamName<'_>,
        to: StreamName<'_>,
        replace: Replace,
        may: MayWait<'_>,
    ) -> Result<()> {
        self.changing(|| self.inner.rename_stream(name, to, replace, may), may)
    }
}

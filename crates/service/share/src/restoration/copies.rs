//! Copies of objects of a snapshot, with all that belongs to them.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::sync::Arc;

use storage::{
    Attributes, Capabilities, FileKind, MayWait, Name, NewKind, NewNode, Node, NodeRef, SeekTo,
    SetAttributes, SetTime, Stability, StreamEntry, StreamName, Wait, Want, XattrMode,
};

use super::RestoreProgress;
use super::known::Known;
use crate::security::{Exchange, of_mode};
use crate::{Result, Share};

/// Bytes that are copied at a time.
const PIECE: usize = 1 << 20;
/// Bytes that are made to share blocks at a time: each call ends soon.
const CLONED_PIECE: u64 = 1 << 30;

/// An object of the snapshot.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) node: NodeRef,
    pub(super) attributes: Attributes,
}

/// Makes copies in the store of a share.
pub(super) struct Copies<'a> {
    pub(super) share: &'a Arc<Share>,
    pub(super) progress: &'a RestoreProgress,
    pub(super) may: MayWait<'a>,
}

/// Whether a copy was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    Whole,
    /// The restoration is to stop.
    Stopped,
}

impl Copies<'_> {
    fn may_set_owners(&self) -> bool {
        self.share.store.storage().capabilities().contains(Capabilities::OWNERS)
    }

    /// Makes a directory that is like that of the snapshot, apart from its entries and times.
    pub(super) fn make_directory(&self, dir: &NodeRef, name: Name<'_>, then: &Source) -> Result<NodeRef> {
        let new = new_node(NewKind::Directory, &then.attributes);
        let made = dir.create(name, &new, self.may)?;
        self.make_alike(then, &made)?;
        Ok(made)
    }

    /// Makes a copy of an object that is no directory. What is copied is on stable storage then.
    pub(super) fn make(&self, dir: &NodeRef, name: Name<'_>, then: &Source) -> Result<(NodeRef, Made)> {
        let link;
        let kind = match then.attributes.kind {
            FileKind::Regular | FileKind::Directory => NewKind::Regular,
            FileKind::Symlink => {
                link = then.node.read_link(self.may)?;
                NewKind::Symlink(&link)
            }
            FileKind::Fifo => NewKind::Fifo,
            FileKind::Socket => NewKind::Socket,
            FileKind::BlockDevice => NewKind::BlockDevice(then.attributes.device),
            FileKind::CharDevice => NewKind::CharDevice(then.attributes.device),
        };
        let made = dir.create(name, &new_node(kind, &then.attributes), self.may)?;
        if then.attributes.kind == FileKind::Regular {
            match self.copy_data(&then.node, &made, then.attributes.size, self.progress)? {
                Some(true) => made.commit(self.may)?,
                Some(false) => {}
                None => return Ok((made, Made::Stopped)),
            }
        }
        self.make_alike(then, &made)?;
        self.set_times(then, &made)?;
        // A stream may not be whole then.
        let is_whole = !self.progress.is_stopped();
        Ok((made, if is_whole { Made::Whole } else { Made::Stopped }))
    }

    /// Gives an object all that the other has, apart from data, entries and times.
    pub(super) fn make_alike(&self, then: &Source, now: &NodeRef) -> Result<()> {
        let is_plain = matches!(then.attributes.kind, FileKind::Regular | FileKind::Directory);
        if is_plain {
            self.copy_xattrs(&*then.node, &**now)?;
            self.copy_streams(&*then.node, &**now)?;
        }
        let may_set_owners = self.may_set_owners();
        let Attributes { kind, mode, uid, gid, .. } = then.attributes;
        if !is_plain {
            let set = SetAttributes {
                mode: (kind != FileKind::Symlink).then_some(mode),
                uid: may_set_owners.then_some(uid),
                gid: may_set_owners.then_some(gid),
                ..SetAttributes::default()
            };
            now.set_attributes(&set, self.may)?;
            return Ok(());
        }
        let kept = then.node.security(&then.attributes, Wait::May(self.may))?;
        let before = now.attributes(Want::empty(), Wait::May(self.may))?;
        let exchange = Exchange {
            node: now,
            before: &before,
            had: now.security(&before, Wait::May(self.may))?,
            mode,
            owners: if may_set_owners { (uid, gid) } else { (before.uid, before.gid) },
            is_of_mode: kept.is_none(),
            wanted: kept.map_or_else(|| of_mode(&then.attributes), Arc::unwrap_or_clone),
        };
        exchange.carry_out(self.may)
    }

    /// Whether an object has all that [`Copies::make_alike`] gives it, apart from what its attributes say.
    pub(super) fn is_alike(&self, then: &Source, now: &NodeRef, present: &Attributes) -> Result<bool> {
        if !matches!(then.attributes.kind, FileKind::Regular | FileKind::Directory) {
            return Ok(true);
        }
        let wait = Wait::May(self.may);
        Ok(then.node.security(&then.attributes, wait)? == now.security(present, wait)?
            && self.xattrs(&*then.node)? == self.xattrs(&**now)?
            && Known::are_restored(&self.streams(&then.node)?, &self.streams(now)?))
    }

    /// Sets the times, and the attributes of SMB clients that go with them.
    pub(super) fn set_times(&self, then: &Source, now: &NodeRef) -> Result<()> {
        let Attributes { atime, mtime, btime, flags, ctime_set, kind, .. } = then.attributes;
        let keeps_more = matches!(kind, FileKind::Regular | FileKind::Directory)
            && self.share.store.storage().capabilities().contains(Capabilities::XATTRS);
        let set = SetAttributes {
            atime: Some(SetTime::To(atime)),
            mtime: Some(SetTime::To(mtime)),
            btime: btime.filter(|_| keeps_more),
            flags: flags.filter(|_| keeps_more),
            ctime: ctime_set.filter(|_| keeps_more),
            ..SetAttributes::default()
        };
        now.set_attributes(&set, self.may)?;
        Ok(())
    }

    /// Copies the data of a file into an empty one: by sharing blocks, if the store can. Returns whether bytes were copied; None
    /// if it is to stop.
    fn copy_data(
        &self,
        then: &NodeRef,
        now: &NodeRef,
        size: u64,
        counted: &RestoreProgress,
    ) -> Result<Option<bool>> {
        if size == 0 {
            return Ok(Some(false));
        }
        let _growth = self.share.grow(now, size, self.may)?;
        if let Some(cloned) = self.clone_data(&**then, &**now, size, counted)? {
            return Ok(cloned.then_some(false));
        }
        Ok(self.copy_bytes(&**then, &**now, size, counted)?.then_some(true))
    }

    /// None if the store cannot do it, otherwise whether it has come to the end.
    fn clone_data(
        &self,
        then: &dyn Node,
        now: &dyn Node,
        size: u64,
        counted: &RestoreProgress,
    ) -> Result<Option<bool>> {
        let target = now.beneath().unwrap_or(now);
        let mut done = 0;
        while done < size {
            if self.progress.is_stopped() {
                return Ok(Some(false));
            }
            let piece = CLONED_PIECE.min(size - done);
            match then.clone_range(done, target, done, piece, self.may) {
                Ok(()) => {}
                Err(
                    storage::Error::NotSupported
                    | storage::Error::CrossDevice
                    | storage::Error::InvalidArgument,
                ) if done == 0 => return Ok(None),
                Err(e) => return Err(e.into()),
            }
            counted.copied(piece);
            done += piece;
        }
        Ok(Some(true))
    }

    /// Copies what is not a hole. Returns whether it has come to the end.
    fn copy_bytes(
        &self,
        then: &dyn Node,
        now: &dyn Node,
        size: u64,
        counted: &RestoreProgress,
    ) -> Result<bool> {
        let (mut at, mut buffer) = (0, vec![0; PIECE]);
        while at < size {
            let start = match then.seek(at, SeekTo::Data, self.may) {
                Ok(Some(start)) => start.min(size),
                Ok(None) => size,
                Err(storage::Error::NotSupported) => at,
                Err(e) => return Err(e.into()),
            };
            let end = match then.seek(start, SeekTo::Hole, self.may) {
                Ok(Some(end)) => end.min(size),
                Ok(None) | Err(storage::Error::NotSupported) => size,
                Err(e) => return Err(e.into()),
            };
            counted.copied(start - at);
            at = start;
            while at < end {
                if self.progress.is_stopped() {
                    return Ok(false);
                }
                let room = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
                let count = then.read(at, buffer.get_mut(..room).unwrap_or_default(), Wait::May(self.may))?;
                if count == 0 {
                    break;
                }
                let data = buffer.get(..count).unwrap_or_default();
                write_all(now, at, data, self.may)?;
                counted.copied(count as u64);
                at += count as u64;
            }
            if at < end {
                // It is shorter than it was said to be, which a snapshot cannot be.
                return Err(storage::Error::Stale.into());
            }
        }
        if now.attributes(Want::empty(), Wait::May(self.may))?.size != size {
            now.set_attributes(&SetAttributes { size: Some(size), ..SetAttributes::default() }, self.may)?;
        }
        Ok(true)
    }

    /// The extended attributes of an object by their names; none of one that can have none.
    fn xattrs(&self, of: &dyn Node) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        let names = match of.xattrs(self.may) {
            Err(storage::Error::NotSupported | storage::Error::WrongKind) => return Ok(BTreeMap::new()),
            names => names?,
        };
        let value = |name: Vec<u8>| Ok((of.xattr(&name, self.may)?, name));
        names.into_iter().map(value).map(|known| known.map(|(value, name)| (name, value))).collect()
    }

    fn copy_xattrs(&self, then: &dyn Node, now: &dyn Node) -> Result<()> {
        let names = match then.xattrs(self.may) {
            Err(storage::Error::NotSupported | storage::Error::WrongKind) => return Ok(()),
            names => names?,
        };
        for name in now.xattrs(self.may)?.iter().filter(|name| !names.contains(name)) {
            now.remove_xattr(name, self.may)?;
        }
        for name in names {
            let value = then.xattr(&name, self.may)?;
            now.set_xattr(&name, &value, XattrMode::Set, self.may)?;
        }
        Ok(())
    }

    /// The streams of an object by their names; none of one that can have none.
    pub(super) fn streams(&self, of: &NodeRef) -> Result<BTreeMap<Vec<u8>, Attributes>> {
        let streams = match of.streams(self.may) {
            Err(storage::Error::NotSupported | storage::Error::WrongKind) => return Ok(BTreeMap::new()),
            streams => streams?,
        };
        let attributes = |stream: StreamEntry| {
            let data = of.stream(StreamName::new(&stream.name)?, self.may)?;
            Ok((stream.name, data.attributes(Want::empty(), Wait::May(self.may))?))
        };
        streams.into_iter().map(attributes).collect()
    }

    fn copy_streams(&self, then: &dyn Node, now: &dyn Node) -> Result<()> {
        let streams = match then.streams(self.may) {
            Err(storage::Error::NotSupported | storage::Error::WrongKind) => return Ok(()),
            streams => streams?,
        };
        for old in now.streams(self.may)? {
            now.remove_stream(StreamName::new(&old.name)?, self.may)?;
        }
        // What is counted is the data of files.
        let uncounted = RestoreProgress::default();
        for stream in streams {
            let name = StreamName::new(&stream.name)?;
            let (data, copy) = (then.stream(name, self.may)?, now.create_stream(name, self.may)?);
            if self.copy_data(&data, &copy, stream.size, &uncounted)? == Some(true) {
                copy.commit(self.may)?;
            }
            // No client sees it: the next attempt does.
            let mtime = data.attributes(Want::empty(), Wait::May(self.may))?.mtime;
            let set = SetAttributes { mtime: Some(SetTime::To(mtime)), ..SetAttributes::default() };
            copy.set_attributes(&set, self.may)?;
        }
        Ok(())
    }
}

/// Nobody but its owner has access to it until it is like the other.
fn new_node<'a>(kind: NewKind<'a>, then: &Attributes) -> NewNode<'a> {
    let mode = if kind == NewKind::Directory { 0o700 } else { 0o600 };
    NewNode { kind, mode, uid: then.uid, gid: then.gid }
}

fn write_all(to: &dyn Node, offset: u64, data: &[u8], may: MayWait<'_>) -> storage::Result<()> {
    let mut done = 0;
    while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
        let at = offset + done as u64;
        match to.write(at, &[IoSlice::new(rest)], Stability::Unstable, Wait::May(may))? {
            0 => return Err(storage::Error::NoSpace),
            count => done += count,
        }
    }
    Ok(())
}

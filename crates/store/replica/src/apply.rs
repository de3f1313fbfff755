//! An object of the destination takes over what one of the source consists of.

use std::collections::BTreeSet;
use std::io::IoSlice;

use acl::{Control, SecurityDescriptor};
use replica_wire::{DATA_BYTES_MAX, Kind, Object, Record};
use storage::{
    Capabilities, Error, FileFlags, MayWait, Node, NodeRef, SeekTo, SetAttributes, Stability, StreamName,
    Wait, Want, XattrMode,
};

use crate::Records;
use crate::attributes::owners_and_mode;
use crate::converge::{Progress, Takes};
use crate::failure::{Failure, Result};

/// Takes objects over.
pub(crate) struct Taking<'a> {
    pub(crate) store: Capabilities,
    pub(crate) takes: Takes,
    pub(crate) progress: &'a Progress,
    pub(crate) may: MayWait<'a>,
}

/// Data that is being written: that of a file, or of one of its streams.
struct Writing {
    node: NodeRef,
    size: u64,
    /// Up to where it is as it should be.
    at: u64,
    /// How long it was.
    before: u64,
    /// Only what is different is said: what is between is as it should be.
    is_partial: bool,
}

impl Writing {
    /// The end of what is said next.
    fn end_of(&self, offset: u64, length: u64) -> Result<u64> {
        let end = offset.checked_add(length).filter(|end| *end <= self.size && offset >= self.at);
        end.ok_or_else(|| Failure::Nonsense("data that is not in its place".to_owned()))
    }
}

impl Taking<'_> {
    /// Takes over the rest of an object that is a file or a directory, all but its times.
    /// `has_data`: it has the data of an earlier version, and the source knows of which.
    pub(crate) fn plain(
        &self,
        node: &NodeRef,
        has_data: bool,
        object: &Object,
        records: &mut dyn Records,
    ) -> Result<()> {
        let (mut xattrs, mut streams) = (BTreeSet::new(), BTreeSet::new());
        let mut writing = match object.kind {
            Kind::Regular => Some(self.begin(NodeRef::clone(node), object.size)?),
            _ => None,
        };
        loop {
            if self.progress.is_stopped() {
                return Err(Failure::Stopped);
            }
            match (records.next()?, &mut writing) {
                (Record::Xattr { name, value }, _) => {
                    self.set_xattr(&**node, &name, &value)?;
                    xattrs.insert(name);
                }
                (Record::Stream { name, size }, _) => {
                    self.end(writing.take())?;
                    writing = Some(self.begin(self.stream(&**node, &name)?, size)?);
                    streams.insert(name);
                }
                (Record::Differences, Some(writing)) if has_data && streams.is_empty() && writing.at == 0 => {
                    writing.is_partial = true;
                }
                (Record::Hole { offset, length }, Some(writing)) if writing.is_partial => {
                    self.make_hole(writing, offset, length)?;
                }
                (Record::Data { offset, bytes }, Some(writing)) => self.write(writing, offset, &bytes)?,
                (Record::ObjectEnd, _) => break,
                (other, _) => return Err(unexpected(&other)),
            }
        }
        self.end(writing)?;
        self.remove_others(&**node, &xattrs, &streams)?;
        self.secure(node, object)
    }

    fn set_xattr(&self, node: &dyn Node, name: &[u8], value: &[u8]) -> Result<()> {
        if node.xattr(name, self.may).is_ok_and(|present| present == value) {
            return Ok(());
        }
        Ok(node.set_xattr(name, value, XattrMode::Set, self.may)?)
    }

    fn stream(&self, node: &dyn Node, name: &[u8]) -> Result<NodeRef> {
        let name = StreamName::new(name)?;
        match node.stream(name, self.may) {
            Err(Error::NotFound) => Ok(node.create_stream(name, self.may)?),
            found => Ok(found?),
        }
    }

    /// Removes extended attributes and streams that the other object does not have.
    fn remove_others(
        &self,
        node: &dyn Node,
        xattrs: &BTreeSet<Vec<u8>>,
        streams: &BTreeSet<Vec<u8>>,
    ) -> Result<()> {
        if self.store.contains(Capabilities::XATTRS) {
            for name in node.xattrs(self.may)?.iter().filter(|name| !xattrs.contains(*name)) {
                node.remove_xattr(name, self.may)?;
            }
        }
        if self.store.contains(Capabilities::STREAMS) {
            for stream in node.streams(self.may)?.iter().filter(|stream| !streams.contains(&stream.name)) {
                node.remove_stream(StreamName::new(&stream.name)?, self.may)?;
            }
        }
        Ok(())
    }

    /// Mode, owners, the security descriptor, and flags of SMB clients that the other object has not.
    fn secure(&self, node: &NodeRef, object: &Object) -> Result<()> {
        let wanted = object.descriptor.as_deref().map(descriptor).transpose()?;
        node.set_attributes(&owners_and_mode(object, self.store, self.takes), self.may)?;
        let present = node.attributes(Want::FLAGS, Wait::May(self.may))?;
        if present.flags.is_some() && object.flags.is_none() {
            let flags = Some(unset_flags(object.kind));
            node.set_attributes(&SetAttributes { flags, ..SetAttributes::default() }, self.may)?;
        }
        let known = node.security(&present, Wait::May(self.may))?;
        if known.as_deref() != wanted.as_ref() {
            node.set_security(wanted, self.may)?;
        }
        Ok(())
    }

    fn begin(&self, node: NodeRef, size: u64) -> Result<Writing> {
        let before = node.attributes(Want::empty(), Wait::May(self.may))?.size;
        if before > size {
            self.set_size(&*node, size)?;
        }
        Ok(Writing { node, size, at: 0, before: before.min(size), is_partial: false })
    }

    fn set_size(&self, node: &dyn Node, size: u64) -> Result<()> {
        node.set_attributes(&SetAttributes { size: Some(size), ..SetAttributes::default() }, self.may)?;
        Ok(())
    }

    /// Writes what is not there already: so what has not changed is still shared with earlier snapshots.
    fn write(&self, writing: &mut Writing, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = writing.end_of(offset, bytes.len() as u64)?;
        if !writing.is_partial {
            self.clear(writing, offset)?;
        }
        if !self.has(writing, offset, bytes)? {
            let mut done = 0;
            while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
                let slices = [IoSlice::new(rest)];
                let at = offset + done as u64;
                match writing.node.write(at, &slices, Stability::Unstable, Wait::May(self.may))? {
                    0 => return Err(Error::NoSpace.into()),
                    count => done += count,
                }
            }
        }
        writing.at = end;
        self.progress.received(bytes.len() as u64);
        Ok(())
    }

    fn make_hole(&self, writing: &mut Writing, offset: u64, length: u64) -> Result<()> {
        let end = writing.end_of(offset, length)?;
        writing.at = offset;
        self.clear(writing, end)
    }

    fn has(&self, writing: &Writing, offset: u64, bytes: &[u8]) -> Result<bool> {
        let end = offset + bytes.len() as u64;
        if end > writing.before {
            return Ok(false);
        }
        // Zeroes may be a hole here, and are none there.
        match writing.node.seek(offset, SeekTo::Hole, self.may) {
            Ok(Some(hole)) if hole < end => return Ok(false),
            Ok(_) | Err(Error::NotSupported) => {}
            Err(e) => return Err(e.into()),
        }
        let mut present = vec![0; bytes.len()];
        let count = writing.node.read(offset, &mut present, Wait::May(self.may))?;
        Ok(present.get(..count) == Some(bytes))
    }

    /// Makes a hole from where the data ends to here.
    fn clear(&self, writing: &mut Writing, to: u64) -> Result<()> {
        let from = writing.at;
        if from < writing.before && writing.before <= to {
            // So that the last block becomes a hole, too.
            self.set_size(&*writing.node, from)?;
            writing.before = from;
        } else if from < to && from < writing.before {
            match writing.node.punch_hole(from, to - from, self.may) {
                Err(Error::NotSupported) => self.write_zeroes(&*writing.node, from, to)?,
                done => done?,
            }
        }
        writing.at = writing.at.max(to);
        Ok(())
    }

    fn write_zeroes(&self, node: &dyn Node, mut from: u64, to: u64) -> Result<()> {
        let zeroes = vec![0; DATA_BYTES_MAX];
        while from < to {
            let length = usize::try_from(to - from).unwrap_or(DATA_BYTES_MAX).min(DATA_BYTES_MAX);
            let slices = [IoSlice::new(zeroes.get(..length).unwrap_or_default())];
            from += node.write(from, &slices, Stability::Unstable, Wait::May(self.may))?.max(1) as u64;
        }
        Ok(())
    }

    fn end(&self, writing: Option<Writing>) -> Result<()> {
        let Some(mut writing) = writing else { return Ok(()) };
        let size = writing.size;
        if !writing.is_partial {
            self.clear(&mut writing, size)?;
        }
        let node = &writing.node;
        if node.attributes(Want::empty(), Wait::May(self.may))?.size != size {
            self.set_size(&**node, size)?;
        }
        Ok(())
    }
}

/// What SMB clients see of an object whose flags nobody has set. [MS-FSCC] 2.6: a file is to be archived when it was changed.
fn unset_flags(kind: Kind) -> FileFlags {
    if kind == Kind::Directory { FileFlags::empty() } else { FileFlags::ARCHIVE }
}

fn descriptor(bytes: &[u8]) -> Result<SecurityDescriptor> {
    let decoded = SecurityDescriptor::decode(bytes);
    let mut decoded = decoded.map_err(|e| Failure::Nonsense(format!("a security descriptor: {e}")))?;
    // True of the bytes, not of the value.
    decoded.control.remove(Control::SELF_RELATIVE);
    Ok(decoded)
}

/// What is said of a record that does not belong here.
pub(crate) fn unexpected(record: &Record) -> Failure {
    match record {
        Record::Failed(why) => Failure::Source(why.clone()),
        Record::Gone => Failure::Source("an object of the snapshot is gone at the source".to_owned()),
        _ => Failure::Nonsense("a record that does not belong here".to_owned()),
    }
}

//! One entry of a directory of the destination.

use replica_wire::{DEPTH_MAX, Entry, Kind, Number, Object, Version};
use storage::{Attributes, Error, FileKind, Name, NewKind, NodeRef, SetAttributes, Wait};

use crate::Records;
use crate::attributes::{device, is_device, is_plain, kind, owners_and_mode, times};
use crate::converge::{Run, Want};
use crate::failure::{Failure, Result};
use crate::note::Note;

/// What is at a place.
type There = Option<(NodeRef, Attributes)>;

fn version(entry: &Entry) -> Version {
    Version { ctime: entry.ctime, state: entry.state }
}

impl Run<'_> {
    fn number_of(&self, node: &NodeRef) -> Result<Option<Number>> {
        Ok(Note::of(&**node, self.replication, self.may)?.map(|note| note.number))
    }

    /// Moves what has a name out of the way, if something has it.
    pub(crate) fn leave(&mut self, dir: &NodeRef, name: Name<'_>) -> Result<()> {
        match dir.lookup(name, Wait::May(self.may)) {
            Ok(node) => {
                let number = self.number_of(&node)?;
                self.folder.take_in(dir, name, number)
            }
            // A file system of its own stays: clients cannot enter it.
            Err(Error::NotFound | Error::PermissionDenied) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Makes a directory have this entry, or asks for what is missing.
    pub(crate) fn enter(&mut self, dir: &NodeRef, entry: Entry) -> Result<()> {
        let there = self.there(dir, Name::new(&entry.name)?)?;
        match entry.kind {
            Kind::Directory => self.enter_directory(dir, &entry, there),
            Kind::Regular => self.enter_file(dir, entry, there),
            _ => {
                self.wanted.push(Want::Special { entry, dir: NodeRef::clone(dir) });
                Ok(())
            }
        }
    }

    fn there(&self, dir: &NodeRef, name: Name<'_>) -> Result<There> {
        match dir.lookup_attributes(name, storage::Want::empty(), Wait::May(self.may)) {
            Ok(found) => Ok(Some(found)),
            Err(Error::NotFound) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// What is there, if it is this object. Otherwise it is moved out of the way, and the object to its place, if there is one.
    fn found(&mut self, dir: &NodeRef, entry: &Entry, there: There, wanted: FileKind) -> Result<There> {
        let name = Name::new(&entry.name)?;
        if let Some((node, attributes)) = there {
            if attributes.kind == wanted && self.is_or_becomes(&node, entry.number)? {
                return Ok(Some((node, attributes)));
            }
            self.leave(dir, name)?;
        }
        match self.folder.take_out(entry.number, wanted, dir, name)? {
            Some(_) => self.there(dir, name),
            None => Ok(None),
        }
    }

    /// Whether something is this object: it was so before, or it is of no replication yet and is taken for it, since it has its place.
    fn is_or_becomes(&self, node: &NodeRef, number: Number) -> Result<bool> {
        let known = self.number_of(node)?;
        if known.is_none() && self.adopts {
            Note { replication: self.replication, number, complete: None }.set(node, self.may)?;
            return Ok(true);
        }
        Ok(known == Some(number))
    }

    fn enter_directory(&mut self, dir: &NodeRef, entry: &Entry, there: There) -> Result<()> {
        if self.path.len() + 1 >= DEPTH_MAX {
            // The source says nothing of what is in it.
            self.taking.progress.too_deep();
            return self.leave(dir, Name::new(&entry.name)?);
        }
        if self.found(dir, entry, there, FileKind::Directory)?.is_none() {
            let made = self.folder.make(entry.number, NewKind::Directory)?;
            Note { replication: self.replication, number: entry.number, complete: None }
                .set(&made, self.may)?;
            self.folder.place(entry.number, dir, Name::new(&entry.name)?)?;
            self.made.insert(entry.number);
        }
        Ok(())
    }

    fn enter_file(&mut self, dir: &NodeRef, entry: Entry, there: There) -> Result<()> {
        if self.enter_link(dir, &entry, &there)? {
            return Ok(());
        }
        let (node, has, place) = match self.found(dir, &entry, there, FileKind::Regular)? {
            Some((node, _)) => {
                let has = Note::of(&*node, self.replication, self.may)?.and_then(|note| note.complete);
                self.met(&entry, &node)?;
                if has == Some(version(&entry)) {
                    return Ok(());
                }
                (node, has, None)
            }
            None => {
                let made = self.folder.make(entry.number, NewKind::Regular)?;
                self.met(&entry, &made)?;
                (made, None, Some(NodeRef::clone(dir)))
            }
        };
        self.wanted.push(Want::File { entry, node, has, place });
        Ok(())
    }

    /// Whether the entry is a further name of a file that has one already.
    fn enter_link(&mut self, dir: &NodeRef, entry: &Entry, there: &There) -> Result<bool> {
        let Some(handle) = self.linked.get(&entry.number) else { return Ok(false) };
        let file = self.store.by_handle(handle, Wait::May(self.may))?;
        if there.as_ref().is_some_and(|(node, _)| node.id() == file.id()) {
            return Ok(true);
        }
        let name = Name::new(&entry.name)?;
        if there.is_some() {
            self.leave(dir, name)?;
        }
        dir.link(name, &*file, self.may)?;
        Ok(true)
    }

    /// Notes that an object with several names has one.
    fn met(&mut self, entry: &Entry, node: &NodeRef) -> Result<()> {
        if entry.links > 1 {
            self.linked.insert(entry.number, node.handle()?);
        }
        Ok(())
    }

    /// Takes a file over. That it is complete is noted when it is on stable storage.
    pub(crate) fn file(
        &mut self,
        entry: &Entry,
        (node, has): (&NodeRef, Option<Version>),
        place: Option<&NodeRef>,
        object: &Object,
        records: &mut dyn Records,
    ) -> Result<()> {
        let note = Note { replication: self.replication, number: entry.number, complete: None };
        note.set(node, self.may)?;
        if place.is_none() {
            // A server that is not privileged may have to give itself the right to write.
            let own = SetAttributes { mode: Some(0o600), ..SetAttributes::default() };
            node.set_attributes(&own, self.may)?;
        }
        self.taking.plain(node, has.is_some(), object, records)?;
        if let Some(dir) = place {
            self.folder.place(entry.number, dir, Name::new(&entry.name)?)?;
        }
        let times = times(object, self.taking.store);
        node.set_attributes(&times, self.may)?;
        let note = Note { complete: Some(version(entry)), ..note };
        self.unsettled.enter(node.handle()?, note, times.ctime, object.size);
        Ok(())
    }

    /// Makes a directory have an object without data.
    pub(crate) fn special(&mut self, entry: &Entry, dir: &NodeRef, object: &Object) -> Result<()> {
        let name = Name::new(&entry.name)?;
        let there = self.there(dir, name)?;
        if self.enter_link(dir, entry, &there)? {
            return Ok(());
        }
        if is_device(object.kind) && !self.taking.takes.devices {
            return self.leave_out(dir, name, &there);
        }
        let times = times(object, self.taking.store);
        if let Some((node, present)) = &there {
            // It has no note. Which of several names belong together shows when all of them have been met.
            let is_free = *self.claimed.entry(present.id).or_insert(entry.number) == entry.number;
            if is_free && entry.links == present.links && self.is_alike(node, present, object)? {
                node.set_attributes(&times, self.may)?;
                return self.met(entry, node);
            }
            if is_plain(kind(present.kind)) {
                self.leave(dir, name)?;
            }
        }
        let new = match object.kind {
            Kind::Fifo => NewKind::Fifo,
            Kind::Socket => NewKind::Socket,
            Kind::BlockDevice => NewKind::BlockDevice(device(object)),
            Kind::CharDevice => NewKind::CharDevice(device(object)),
            Kind::Symlink | Kind::Regular | Kind::Directory => NewKind::Symlink(&object.link),
        };
        let made = match self.folder.make(entry.number, new) {
            // The server may not make devices.
            Err(Failure::Store { error: Error::NotPermitted | Error::PermissionDenied, .. })
                if is_device(object.kind) =>
            {
                return self.leave_out(dir, name, &self.there(dir, name)?);
            }
            made => made?,
        };
        made.set_attributes(&owners_and_mode(object, self.taking.store, self.taking.takes), self.may)?;
        self.folder.place(entry.number, dir, name)?;
        made.set_attributes(&times, self.may)?;
        self.met(entry, &made)
    }

    /// Has nothing in the place of an object that the destination does not take.
    fn leave_out(&mut self, dir: &NodeRef, name: Name<'_>, there: &There) -> Result<()> {
        self.taking.progress.left_out();
        match there {
            None => Ok(()),
            Some((_, present)) if is_plain(kind(present.kind)) => self.leave(dir, name),
            Some(_) => Ok(dir.remove_file(name, self.may)?),
        }
    }

    /// Whether an object without data is like that of the source, apart from its times.
    fn is_alike(&self, node: &NodeRef, present: &Attributes, object: &Object) -> Result<bool> {
        let wanted = owners_and_mode(object, self.taking.store, self.taking.takes);
        let is_alike = kind(present.kind) == object.kind
            && (present.device.major, present.device.minor) == object.device
            && wanted.mode.is_none_or(|mode| mode == present.mode)
            && wanted.uid.is_none_or(|uid| uid == present.uid)
            && wanted.gid.is_none_or(|gid| gid == present.gid);
        Ok(is_alike && (object.kind != Kind::Symlink || node.read_link(self.may)? == object.link))
    }
}

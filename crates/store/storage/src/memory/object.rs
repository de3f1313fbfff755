//! One object: its attributes and contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use acl::SecurityDescriptor;

use super::data::{Data, PAGE_BYTES, SIZE_MAX};
use super::directory::Directory;
use crate::{
    Attributes, Device, Error, FileFlags, FileKind, ObjectId, Result, SetAttributes, SetTime,
    StoredDescriptor, Timestamp, Want,
};

#[derive(Debug, Clone)]
pub(super) enum Content {
    Data(Data),
    Directory(Directory),
    Symlink(Vec<u8>),
    Fifo,
    Socket,
    Block(Device),
    Char(Device),
}

#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) id: ObjectId,
    pub(super) content: Content,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) atime: Timestamp,
    pub(super) mtime: Timestamp,
    pub(super) ctime: Timestamp,
    btime: Timestamp,
    btime_set: Option<Timestamp>,
    /// The first time is valid as long as `ctime` equals the second.
    ctime_set: Option<(Timestamp, Timestamp)>,
    flags: Option<FileFlags>,
    /// In force as long as permission bits, owner and group are these.
    security: Option<StoredDescriptor>,
    pub(super) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The server's own.
    pub(super) note: Option<Vec<u8>>,
    /// Named streams: separate objects that this one names.
    pub(super) streams: BTreeMap<Vec<u8>, ObjectId>,
    /// Each name: the directory and the name in it.
    pub(super) names: Vec<(ObjectId, Vec<u8>)>,
    /// How many nodes pin the object.
    pub(super) held: usize,
}

impl Object {
    pub(super) fn new(id: ObjectId, content: Content, now: Timestamp) -> Self {
        Self {
            id,
            content,
            mode: 0,
            uid: 0,
            gid: 0,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            btime_set: None,
            ctime_set: None,
            flags: None,
            security: None,
            xattrs: BTreeMap::new(),
            note: None,
            streams: BTreeMap::new(),
            names: Vec::new(),
            held: 0,
        }
    }

    pub(super) fn kind(&self) -> FileKind {
        match self.content {
            Content::Data(_) => FileKind::Regular,
            Content::Directory(_) => FileKind::Directory,
            Content::Symlink(_) => FileKind::Symlink,
            Content::Fifo => FileKind::Fifo,
            Content::Socket => FileKind::Socket,
            Content::Block(_) => FileKind::BlockDevice,
            Content::Char(_) => FileKind::CharDevice,
        }
    }

    pub(super) fn data(&self) -> Result<&Data> {
        match &self.content {
            Content::Data(data) => Ok(data),
            Content::Directory(_) => Err(Error::IsDirectory),
            _ => Err(Error::WrongKind),
        }
    }

    pub(super) fn data_mut(&mut self) -> Result<&mut Data> {
        match &mut self.content {
            Content::Data(data) => Ok(data),
            Content::Directory(_) => Err(Error::IsDirectory),
            _ => Err(Error::WrongKind),
        }
    }

    pub(super) fn directory(&self) -> Result<&Directory> {
        match &self.content {
            Content::Directory(directory) => Ok(directory),
            _ => Err(Error::NotDirectory),
        }
    }

    pub(super) fn directory_mut(&mut self) -> Result<&mut Directory> {
        match &mut self.content {
            Content::Directory(directory) => Ok(directory),
            _ => Err(Error::NotDirectory),
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.content, Content::Directory(_))
    }

    /// Only files and directories have extended attributes, as on Linux.
    pub(super) fn check_carries_xattrs(&self) -> Result<()> {
        match self.content {
            Content::Data(_) | Content::Directory(_) => Ok(()),
            _ => Err(Error::WrongKind),
        }
    }

    pub(super) fn pages(&self) -> u64 {
        if let Content::Data(data) = &self.content { data.pages() } else { 0 }
    }

    fn links(&self, is_root: bool) -> u32 {
        match &self.content {
            Content::Directory(d) if is_root || !self.names.is_empty() => d.directories.saturating_add(2),
            Content::Directory(_) => 0,
            _ => u32::try_from(self.names.len()).unwrap_or(u32::MAX),
        }
    }

    pub(super) fn attributes(&self, want: Want) -> Attributes {
        let with_flags = want.contains(Want::FLAGS);
        let (size, device) = match &self.content {
            Content::Data(data) => (data.size(), Device::default()),
            Content::Directory(_) => (PAGE_BYTES, Device::default()),
            Content::Symlink(text) => (text.len() as u64, Device::default()),
            Content::Fifo | Content::Socket => (0, Device::default()),
            Content::Block(device) | Content::Char(device) => (0, *device),
        };
        Attributes {
            id: self.id,
            kind: self.kind(),
            mode: self.mode,
            links: self.links(self.id.number == super::ROOT.number),
            uid: self.uid,
            gid: self.gid,
            device,
            size,
            allocated: self.pages() * PAGE_BYTES,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            btime: Some(self.btime_set.filter(|_| with_flags).unwrap_or(self.btime)),
            flags: self.flags.filter(|_| with_flags),
            ctime_set: self.ctime_set.filter(|set| with_flags && set.1 == self.ctime).map(|set| set.0),
            changes_within_ctime: 0,
        }
    }

    /// The descriptor that is in force with these attributes.
    pub(super) fn security(&self, attributes: &Attributes) -> Option<Arc<SecurityDescriptor>> {
        self.security.as_ref().and_then(|stored| stored.in_force(attributes))
    }

    /// Stores a descriptor for the object in its present state, or removes it.
    pub(super) fn set_security(&mut self, descriptor: Option<SecurityDescriptor>, now: Timestamp) {
        let attributes = self.attributes(Want::empty());
        self.security = descriptor.map(|descriptor| StoredDescriptor::of(&attributes, descriptor));
        self.ctime = now;
    }

    /// Stores a descriptor that is in force for the object with this mode and these owners.
    pub(super) fn prepare_security(
        &mut self,
        descriptor: SecurityDescriptor,
        terms: (u32, (u32, u32)),
        now: Timestamp,
    ) {
        let attributes = self.attributes(Want::empty());
        self.security =
            Some(StoredDescriptor::prepared(terms, descriptor, self.security.as_ref(), &attributes));
        self.ctime = now;
    }

    /// Checks that everything in `set` can be done.
    pub(super) fn check(&self, set: &SetAttributes) -> Result<()> {
        if let Some(size) = set.size {
            self.data()?;
            if size > SIZE_MAX {
                return Err(Error::TooLarge);
            }
        }
        if set.mode.is_some() && matches!(self.content, Content::Symlink(_)) {
            return Err(Error::NotSupported);
        }
        if set.btime.is_some() || set.flags.is_some() || set.ctime.is_some() {
            self.check_carries_xattrs()?;
        }
        let is_time =
            |time: Option<SetTime>| !matches!(time, Some(SetTime::To(t)) if t.nanos >= 1_000_000_000);
        if is_time(set.atime) && is_time(set.mtime) { Ok(()) } else { Err(Error::InvalidArgument) }
    }

    /// Sets everything except the size.
    pub(super) fn set(&mut self, set: &SetAttributes, now: Timestamp) {
        if set.uid.is_some() || set.gid.is_some() {
            self.uid = set.uid.unwrap_or(self.uid);
            self.gid = set.gid.unwrap_or(self.gid);
            self.drop_privileges();
        }
        self.mode = set.mode.map_or(self.mode, |mode| mode & 0o7777);
        let time = |set: Option<SetTime>, old: Timestamp| match set {
            Some(SetTime::Now) => now,
            Some(SetTime::To(time)) => time,
            None => old,
        };
        self.atime = time(set.atime, self.atime);
        self.mtime = time(set.mtime, self.mtime);
        self.btime_set = set.btime.or(self.btime_set);
        self.flags = set.flags.or(self.flags);
        self.ctime = now;
        self.ctime_set = set.ctime.map(|ctime| (ctime, now));
    }

    /// A change of owner clears the set-user-id and set-group-id bits of programs, as on Linux.
    fn drop_privileges(&mut self) {
        if !self.is_directory() && self.kind() != FileKind::Symlink {
            let group = if self.mode & 0o010 != 0 { 0o2000 } else { 0 };
            self.mode &= !(0o4000 | group);
        }
    }
}

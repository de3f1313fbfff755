//! What is known of objects, as stores say it and as it is sent.

use replica_wire::{Kind, Number, Object, Time};
use storage::{
    Attributes, Capabilities, Device, FileFlags, FileKind, ObjectId, SetAttributes, SetTime, Timestamp,
};

pub(crate) fn number(id: ObjectId) -> Number {
    Number { fs: id.fs, number: id.number }
}

pub(crate) fn time(time: Timestamp) -> Time {
    Time { secs: time.secs, nanos: time.nanos.min(999_999_999) }
}

fn timestamp(time: Time) -> Timestamp {
    Timestamp { secs: time.secs, nanos: time.nanos }
}

pub(crate) fn kind(kind: FileKind) -> Kind {
    match kind {
        FileKind::Regular => Kind::Regular,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::Fifo => Kind::Fifo,
        FileKind::Socket => Kind::Socket,
        FileKind::BlockDevice => Kind::BlockDevice,
        FileKind::CharDevice => Kind::CharDevice,
    }
}

/// Whether the kind has data or entries, and all that goes with them: extended attributes, streams, a descriptor, a note.
pub(crate) fn is_plain(kind: Kind) -> bool {
    matches!(kind, Kind::Regular | Kind::Directory)
}

/// An object without the text of its link and its descriptor.
pub(crate) fn object(of: &Attributes) -> Object {
    Object {
        kind: kind(of.kind),
        mode: of.mode,
        uid: of.uid,
        gid: of.gid,
        device: (of.device.major, of.device.minor),
        size: of.size,
        atime: time(of.atime),
        mtime: time(of.mtime),
        btime: of.btime.map(time),
        flags: of.flags.map(|flags| flags.bits()),
        ctime: of.ctime_set.map(time),
        link: Vec::new(),
        descriptor: None,
    }
}

pub(crate) fn device(of: &Object) -> Device {
    Device { major: of.device.0, minor: of.device.1 }
}

/// Mode and owners, as far as a store can set them.
pub(crate) fn owners_and_mode(of: &Object, store: Capabilities) -> SetAttributes {
    let owners = store.contains(Capabilities::OWNERS);
    SetAttributes {
        mode: (of.kind != Kind::Symlink).then_some(of.mode & 0o7777),
        uid: owners.then_some(of.uid),
        gid: owners.then_some(of.gid),
        ..SetAttributes::default()
    }
}

/// The times, and the attributes of SMB clients that go with them.
pub(crate) fn times(of: &Object, store: Capabilities) -> SetAttributes {
    let keeps_more = is_plain(of.kind) && store.contains(Capabilities::XATTRS);
    SetAttributes {
        atime: Some(SetTime::To(timestamp(of.atime))),
        mtime: Some(SetTime::To(timestamp(of.mtime))),
        btime: of.btime.filter(|_| keeps_more).map(timestamp),
        flags: of.flags.filter(|_| keeps_more).map(FileFlags::from_bits_truncate),
        ctime: of.ctime.filter(|_| keeps_more).map(timestamp),
        ..SetAttributes::default()
    }
}

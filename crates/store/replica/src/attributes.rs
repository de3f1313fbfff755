//! What is known of objects, as stores say it and as it is sent.

use replica_wire::{Kind, Number, Object, Time};
use storage::{
    Attributes, Capabilities, Device, FileFlags, FileKind, ObjectId, SetAttributes, SetTime, Timestamp,
};

use crate::converge::Takes;

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

/// The bits of a mode with which a program runs as its owner or group.
const SET_ID: u32 = 0o6000;

/// Mode and owners, as far as a store can set them, and as far as files may have set-id bits.
pub(crate) fn owners_and_mode(of: &Object, store: Capabilities, takes: Takes) -> SetAttributes {
    let owners = store.contains(Capabilities::OWNERS);
    let is_whole = takes.set_id || of.kind == Kind::Directory;
    let mode = of.mode & if is_whole { 0o7777 } else { 0o7777 & !SET_ID };
    SetAttributes {
        mode: (of.kind != Kind::Symlink).then_some(mode),
        uid: owners.then_some(of.uid),
        gid: owners.then_some(of.gid),
        ..SetAttributes::default()
    }
}

/// Whether it is a device.
pub(crate) fn is_device(kind: Kind) -> bool {
    matches!(kind, Kind::BlockDevice | Kind::CharDevice)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_set_id_bits_only_where_they_may() {
        let mode = |kind, set_id| {
            let object = Object { kind, mode: 0o106_755, ..Object::default() };
            owners_and_mode(&object, Capabilities::empty(), Takes { set_id, devices: false }).mode
        };
        assert_eq!(mode(Kind::Regular, false), Some(0o755));
        assert_eq!(mode(Kind::Regular, true), Some(0o6755));
        assert_eq!(mode(Kind::Directory, false), Some(0o6755));
        assert_eq!(mode(Kind::Symlink, true), None);
    }
}

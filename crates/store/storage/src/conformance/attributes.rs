//! Checks of attributes.

use super::{OWNER, Subject, attributes_of, directory, file, find, has, name, new, write};
use crate::conformance::MAY;
use crate::{
    Attributes, Capabilities, Error, FileFlags, NewKind, NewNode, SetAttributes, SetTime, Timestamp, Wait,
    Want,
};

const NONE: SetAttributes = SetAttributes {
    mode: None,
    uid: None,
    gid: None,
    size: None,
    atime: None,
    mtime: None,
    btime: None,
    flags: None,
    ctime: None,
};

/// New objects have the mode and owner that were asked for, whatever the server's own defaults are.
pub fn new_objects_have_what_was_asked(subject: &mut dyn Subject) {
    let root = subject.store().root();
    for (number, mode) in [0o000, 0o777, 0o666, 0o4755, 0o2755, 0o1777, 0o7777, 0o222].into_iter().enumerate()
    {
        for (kind, prefix) in [(NewKind::Regular, "f"), (NewKind::Directory, "d"), (NewKind::Fifo, "p")] {
            let (at, asked) = (format!("{prefix}{number}"), NewNode { mode, ..new(kind) });
            let attributes = attributes_of(&*root.create(name(&at), &asked, MAY).unwrap());
            if has(subject, Capabilities::OWNERS) {
                assert_eq!((attributes.uid, attributes.gid), OWNER, "{at}");
                assert_eq!(attributes.mode, mode, "{at}: {:o}", attributes.mode);
            } else {
                assert_eq!(attributes.mode & 0o777, mode & 0o777, "{at}: {:o}", attributes.mode);
            }
            assert!(attributes.flags.is_none());
        }
    }
    let link = root.create(name("l"), &new(NewKind::Symlink(b"x")), MAY).unwrap();
    if has(subject, Capabilities::OWNERS) {
        assert_eq!((attributes_of(&*link).uid, attributes_of(&*link).gid), OWNER);
    }
}

/// Changes of mode and owner are visible at once, also through other nodes.
pub fn changes_mode_and_owner(subject: &mut dyn Subject) {
    let root = subject.store().root();
    for node in
        [file(&root, "f"), directory(&root, "d"), root.create(name("p"), &new(NewKind::Fifo), MAY).unwrap()]
    {
        for mode in [0o600, 0o755, 0o000, 0o700] {
            let after = node.set_attributes(&SetAttributes { mode: Some(mode), ..NONE }, MAY).unwrap();
            assert_eq!((after.mode, attributes_of(&*node).mode), (mode, mode));
        }
    }
    let node = find(&root, "f").unwrap();
    let changed =
        node.set_attributes(&SetAttributes { uid: Some(77), gid: Some(88), mode: Some(0o4711), ..NONE }, MAY);
    if !has(subject, Capabilities::OWNERS) {
        assert_eq!(changed, Err(Error::NotPermitted));
        assert_eq!(attributes_of(&*node).mode, 0o700, "all or none");
        return;
    }
    let changed = changed.unwrap();
    assert_eq!((changed.uid, changed.gid, changed.mode), (77, 88, 0o4711));
    let changed = node.set_attributes(&SetAttributes { gid: Some(99), ..NONE }, MAY).unwrap();
    assert_eq!((changed.uid, changed.gid), (77, 99));
    assert_eq!(changed.mode & 0o4000, 0, "a new owner takes the set-user-id bit from a program");
    let link = root.create(name("l"), &new(NewKind::Symlink(b"f")), MAY).unwrap();
    let changed = link.set_attributes(&SetAttributes { uid: Some(5), gid: Some(6), ..NONE }, MAY).unwrap();
    assert_eq!((changed.uid, changed.gid), (5, 6));
    assert_eq!(attributes_of(&*node).uid, 77, "not what the link leads to");
}

/// Times can be set to the nanosecond.
pub fn sets_times(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (early, late) =
        (Timestamp { secs: 1, nanos: 123_456_789 }, Timestamp { secs: 2_000_000_000, nanos: 999_999_999 });
    let link = root.create(name("l"), &new(NewKind::Symlink(b"x")), MAY).unwrap();
    for node in [file(&root, "f"), directory(&root, "d"), link] {
        let set = SetAttributes { atime: Some(SetTime::To(early)), mtime: Some(SetTime::To(late)), ..NONE };
        let after = node.set_attributes(&set, MAY).unwrap();
        assert_eq!((after.atime, after.mtime), (early, late), "{node:?}");
        let after =
            node.set_attributes(&SetAttributes { mtime: Some(SetTime::To(early)), ..NONE }, MAY).unwrap();
        assert_eq!((after.atime, after.mtime), (early, early));
        let after = node.set_attributes(&SetAttributes { mtime: Some(SetTime::Now), ..NONE }, MAY).unwrap();
        assert_eq!(after.atime, early);
        assert!(after.mtime > early && after.mtime != late);
    }
    let negative = Timestamp { secs: -5, nanos: 5 };
    let node = find(&root, "f").unwrap();
    let after =
        node.set_attributes(&SetAttributes { mtime: Some(SetTime::To(negative)), ..NONE }, MAY).unwrap();
    let nearest = Timestamp::default();
    assert!(
        [negative, nearest].contains(&after.mtime),
        "or the nearest that the store can keep: {:?}",
        after.mtime
    );
    let wrong = Timestamp { secs: 0, nanos: 1_000_000_000 };
    let set = SetAttributes { mtime: Some(SetTime::To(wrong)), mode: Some(0o777), ..NONE };
    assert_eq!(node.set_attributes(&set, MAY), Err(Error::InvalidArgument));
    assert_eq!(attributes_of(&*node).mode, 0o644, "all or none");
    let set = SetAttributes { size: Some(10), mtime: Some(SetTime::To(early)), ..NONE };
    assert_eq!(node.set_attributes(&set, MAY).unwrap().mtime, early, "the size does not set the time again");
}

fn later(before: &Attributes, after: &Attributes) -> (bool, bool) {
    (after.mtime > before.mtime, after.change() > before.change())
}

/// Changes to a file or directory show in its times. Clocks of file systems tick slowly, so times are first set back.
pub fn changes_move_the_times(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (dir, node) = (directory(&root, "d"), file(&root, "f"));
    let back = SetAttributes { mtime: Some(SetTime::To(Timestamp { secs: 1000, nanos: 0 })), ..NONE };
    let renames = |from: &str, to: &str| dir.rename(name(from), &*dir, name(to), crate::Replace::Never, MAY);
    let changes: [(&str, &dyn Fn()); 6] = [
        ("create", &|| drop(file(&dir, "a"))),
        ("link", &|| dir.link(name("b"), &*node, MAY).unwrap()),
        ("rename", &|| renames("b", "c").unwrap()),
        ("remove", &|| dir.remove_file(name("c"), MAY).unwrap()),
        ("make a directory", &|| drop(directory(&dir, "e"))),
        ("remove a directory", &|| dir.remove_dir(name("e"), MAY).unwrap()),
    ];
    for (what, change) in changes {
        let before = dir.set_attributes(&back, MAY).unwrap();
        change();
        assert!(later(&before, &attributes_of(&*dir)).0, "{what}");
    }
    let before = node.set_attributes(&back, MAY).unwrap();
    write(&*node, 0, b"x");
    assert!(later(&before, &attributes_of(&*node)).0, "write");
    let before = node.set_attributes(&back, MAY).unwrap();
    let after = node.set_attributes(&SetAttributes { size: Some(0), ..NONE }, MAY).unwrap();
    assert!(later(&before, &after).0, "a new size");
    let before = node.set_attributes(&back, MAY).unwrap();
    let after = node.set_attributes(&SetAttributes { mode: Some(0o600), ..NONE }, MAY).unwrap();
    assert!(!later(&before, &after).0, "the mode is not data");
    assert!(after.ctime >= before.ctime);
}

/// Attributes that SMB clients store are kept, and are read only when asked for.
pub fn keeps_flags_and_birth_times(subject: &mut dyn Subject) {
    let root = subject.store().root();
    for (at, node) in [("f", file(&root, "f")), ("d", directory(&root, "d"))] {
        let made = attributes_of(&*node);
        assert_eq!(made.btime.is_some(), has(subject, Capabilities::BIRTH_TIME));
        let flags = FileFlags::HIDDEN | FileFlags::ARCHIVE | FileFlags::READONLY;
        let set = node.set_attributes(&SetAttributes { flags: Some(flags), ..NONE }, MAY);
        if !has(subject, Capabilities::XATTRS) {
            assert_eq!(set, Err(Error::NotSupported));
            return;
        }
        assert_eq!((set.unwrap().flags, attributes_of(&*node).flags), (Some(flags), Some(flags)));
        let btime = Timestamp { secs: 86_400, nanos: 700 };
        let set = node.set_attributes(&SetAttributes { btime: Some(btime), ..NONE }, MAY).unwrap();
        assert_eq!((set.flags, set.btime), (Some(flags), Some(btime)), "both are kept");
        let cheap = node.attributes(Want::empty(), Wait::May(MAY)).unwrap();
        assert_eq!((cheap.flags, cheap.btime), (None, made.btime));
        drop(node);
        let node = find(&root, at).unwrap();
        assert_eq!((attributes_of(&*node).flags, attributes_of(&*node).btime), (Some(flags), Some(btime)));
        let none = FileFlags::empty();
        let set = node.set_attributes(&SetAttributes { flags: Some(none), ..NONE }, MAY).unwrap();
        assert_eq!((set.flags, set.btime), (Some(none), Some(btime)), "set to none is not never set");
        let ctime = Timestamp { secs: 5, nanos: 600 };
        let set = node.set_attributes(&SetAttributes { ctime: Some(ctime), ..NONE }, MAY).unwrap();
        assert_eq!((set.ctime_set, set.btime), (Some(ctime), Some(btime)));
        assert!(set.ctime > ctime, "that is the store's own");
        assert_eq!(node.attributes(Want::empty(), Wait::May(MAY)).unwrap().ctime_set, None);
        let set = node.set_attributes(&SetAttributes { flags: Some(none), ..NONE }, MAY).unwrap();
        assert_eq!(set.ctime_set, None, "something else has changed");
    }
    drop(root);
    subject.restart();
    let node = find(&subject.store().root(), "f").unwrap();
    assert_eq!(attributes_of(&*node).flags, Some(FileFlags::empty()));
}

/// A call that asks for no change changes nothing.
pub fn sets_nothing(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    let before = attributes_of(&*node);
    assert_eq!(node.set_attributes(&NONE, MAY), Ok(before));
    assert_eq!(attributes_of(&*node), before);
}

/// An attribute that does not apply to a kind of object is refused, and then nothing else is changed.
pub fn refuses_what_does_not_apply(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    let link = root.create(name("l"), &new(NewKind::Symlink(b"d")), MAY).unwrap();
    let fifo = root.create(name("p"), &new(NewKind::Fifo), MAY).unwrap();
    let size = SetAttributes { size: Some(0), mtime: Some(SetTime::To(Timestamp::default())), ..NONE };
    assert_eq!(dir.set_attributes(&size, MAY), Err(Error::IsDirectory));
    assert_eq!(link.set_attributes(&size, MAY), Err(Error::WrongKind));
    assert_eq!(fifo.set_attributes(&size, MAY), Err(Error::WrongKind));
    assert_eq!(
        link.set_attributes(&SetAttributes { mode: Some(0o600), ..NONE }, MAY),
        Err(Error::NotSupported)
    );
    for node in [&link, &fifo] {
        let flags = SetAttributes { flags: Some(FileFlags::HIDDEN), ..NONE };
        assert_eq!(node.set_attributes(&flags, MAY), Err(Error::WrongKind));
        let btime = SetAttributes { btime: Some(Timestamp::default()), ..NONE };
        assert_eq!(node.set_attributes(&btime, MAY), Err(Error::WrongKind));
        assert_eq!(attributes_of(&**node).flags, None);
    }
    for node in [&dir, &link, &fifo] {
        assert_ne!(attributes_of(&**node).mtime, Timestamp::default());
    }
}

/// The reported space is plausible.
pub fn tells_space(subject: &mut dyn Subject) {
    let space = subject.store().space(MAY).unwrap();
    assert!(space.total >= space.free && space.free >= space.available && space.available > 0, "{space:?}");
    assert!(space.files >= space.files_free && space.block.is_power_of_two(), "{space:?}");
}

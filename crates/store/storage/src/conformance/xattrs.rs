//! Checks of extended attributes.

use super::{Subject, directory, file, find, has, name, new};
use crate::conformance::MAY;
use crate::{Capabilities, Error, NewKind, SetAttributes, XATTR_NAME_BYTES_MAX, XattrMode};

/// Whether the store has extended attributes; if not, its calls must say so.
fn has_xattrs(subject: &dyn Subject) -> bool {
    let has = has(subject, Capabilities::XATTRS);
    if !has {
        let root = subject.store().root();
        assert_eq!(root.xattrs(MAY), Err(Error::NotSupported));
        assert_eq!(root.xattr(b"a", MAY), Err(Error::NotSupported));
        assert_eq!(root.set_xattr(b"a", b"", XattrMode::Set, MAY), Err(Error::NotSupported));
        assert_eq!(root.remove_xattr(b"a", MAY), Err(Error::NotSupported));
    }
    has
}

/// Values are bytes; an empty value is a value.
pub fn set_and_removed(subject: &mut dyn Subject) {
    if !has_xattrs(subject) {
        return;
    }
    let root = subject.store().root();
    for node in [file(&root, "f"), directory(&root, "d")] {
        assert_eq!(node.xattr(b"a", MAY), Err(Error::NoAttribute));
        assert_eq!(node.remove_xattr(b"a", MAY), Err(Error::NoAttribute));
        for value in [&b"\0\xff\n"[..], b"", &[7; 2000]] {
            node.set_xattr(b"a", value, XattrMode::Set, MAY).unwrap();
            assert_eq!(node.xattr(b"a", MAY).unwrap(), value);
        }
        node.remove_xattr(b"a", MAY).unwrap();
        assert_eq!(node.xattr(b"a", MAY), Err(Error::NoAttribute));
    }
    find(&root, "f").unwrap().set_xattr(b"kept", b"1", XattrMode::Set, MAY).unwrap();
    drop(root);
    subject.restart();
    assert_eq!(find(&subject.store().root(), "f").unwrap().xattr(b"kept", MAY).unwrap(), b"1");
}

/// Setting can require that the attribute exists, or that it does not.
pub fn modes(subject: &mut dyn Subject) {
    if !has_xattrs(subject) {
        return;
    }
    let node = file(&subject.store().root(), "f");
    assert_eq!(node.set_xattr(b"a", b"1", XattrMode::Replace, MAY), Err(Error::NoAttribute));
    node.set_xattr(b"a", b"2", XattrMode::Create, MAY).unwrap();
    assert_eq!(node.set_xattr(b"a", b"3", XattrMode::Create, MAY), Err(Error::Exists));
    assert_eq!(node.xattr(b"a", MAY).unwrap(), b"2");
    node.set_xattr(b"a", b"4", XattrMode::Replace, MAY).unwrap();
    assert_eq!(node.xattr(b"a", MAY).unwrap(), b"4");
}

/// A list has all names, each once.
pub fn lists(subject: &mut dyn Subject) {
    if !has_xattrs(subject) {
        return;
    }
    let node = file(&subject.store().root(), "f");
    assert_eq!(node.xattrs(MAY).unwrap(), Vec::<Vec<u8>>::new());
    let mut expected: Vec<Vec<u8>> = (0..30_u8).map(|n| vec![b'a' + n % 26, n + 1, b'.', 0xff]).collect();
    for at in &expected {
        node.set_xattr(at, b"v", XattrMode::Create, MAY).unwrap();
    }
    let mut listed = node.xattrs(MAY).unwrap();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
}

/// Names and values at their length limits.
pub fn limits(subject: &mut dyn Subject) {
    if !has_xattrs(subject) {
        return;
    }
    let node = file(&subject.store().root(), "f");
    let longest = [b'n'; XATTR_NAME_BYTES_MAX];
    node.set_xattr(&longest, b"v", XattrMode::Set, MAY).unwrap();
    assert_eq!(node.xattr(&longest, MAY).unwrap(), b"v");
    let too_long = [b'n'; XATTR_NAME_BYTES_MAX + 1];
    assert_eq!(node.set_xattr(&too_long, b"v", XattrMode::Set, MAY), Err(Error::NameTooLong));
    assert_eq!(node.set_xattr(b"", b"v", XattrMode::Set, MAY), Err(Error::InvalidName));
    assert_eq!(node.set_xattr(b"a\0b", b"v", XattrMode::Set, MAY), Err(Error::InvalidName));
    let huge = vec![0; 65_537];
    assert_eq!(node.set_xattr(b"huge", &huge, XattrMode::Set, MAY), Err(Error::AttributeTooLarge));
    for bad in [&b""[..], b"a\0b", &too_long] {
        assert_eq!(node.xattr(bad, MAY), Err(Error::NoAttribute));
        assert_eq!(node.remove_xattr(bad, MAY), Err(Error::NoAttribute));
    }
}

/// Attributes that the server stores for itself are hidden from clients.
pub fn own_names_are_hidden(subject: &mut dyn Subject) {
    if !has_xattrs(subject) {
        return;
    }
    let node = file(&subject.store().root(), "f");
    let set = SetAttributes { flags: Some(crate::FileFlags::HIDDEN), ..SetAttributes::default() };
    node.set_attributes(&set, MAY).unwrap();
    assert_eq!(node.xattrs(MAY).unwrap(), Vec::<Vec<u8>>::new());
    assert_eq!(node.xattr(b"anabranch.dos", MAY), Err(Error::NoAttribute));
    assert_eq!(node.remove_xattr(b"anabranch.dos", MAY), Err(Error::NoAttribute));
    assert_eq!(node.set_xattr(b"anabranch.dos", b"x", XattrMode::Set, MAY), Err(Error::NotPermitted));
    assert_eq!(super::attributes_of(&*node).flags, set.flags);
}

/// Only files and directories have extended attributes.
pub fn wrong_kinds(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let link = root.create(name("l"), &new(NewKind::Symlink(b"f")), MAY).unwrap();
    let fifo = root.create(name("p"), &new(NewKind::Fifo), MAY).unwrap();
    for node in [link, fifo] {
        assert_eq!(node.xattrs(MAY), Err(Error::WrongKind));
        assert_eq!(node.xattr(b"a", MAY), Err(Error::WrongKind));
        assert_eq!(node.set_xattr(b"a", b"", XattrMode::Set, MAY), Err(Error::WrongKind));
        assert_eq!(node.remove_xattr(b"a", MAY), Err(Error::WrongKind));
    }
}

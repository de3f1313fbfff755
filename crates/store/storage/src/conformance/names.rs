//! Checks of names.

use super::{Subject, directory, file, find, list, name, names, new};
use crate::conformance::MAY;
use crate::{Error, NAME_BYTES_MAX, NewKind, Replace, View, Wait};

/// Names are bytes: they need not be UTF-8, and only `/` and NUL are special.
pub fn any_bytes(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let odd: [&[u8]; 9] =
        [b"\xff\xfe", b" ", b"a\nb", b"...", b"..a", b"-rf *", b"\\", b"\x01", "\u{e4}\u{20ac}".as_bytes()];
    for bytes in odd {
        let node = root.create(name(bytes), &new(NewKind::Regular), MAY).unwrap();
        assert_eq!(root.lookup(name(bytes), Wait::May(MAY)).unwrap().id(), node.id(), "{bytes:?}");
        assert_eq!(node.path().unwrap(), bytes);
    }
    let mut listed: Vec<_> = list(&root, 0).into_iter().map(|e| e.0).collect();
    listed.sort();
    let mut expected = odd.map(<[u8]>::to_vec);
    expected.sort();
    assert_eq!(listed, expected);
    for bytes in odd {
        root.remove_file(name(bytes), MAY).unwrap();
    }
    assert!(list(&root, 0).is_empty());
}

/// A name may have 255 bytes, also when they are not ASCII.
pub fn longest(subject: &mut dyn Subject) {
    let root = subject.store().root();
    for byte in [b'x', 0xff] {
        let bytes = [byte; NAME_BYTES_MAX];
        let node = root.create(name(&bytes), &new(NewKind::Regular), MAY).unwrap();
        assert_eq!(root.lookup(name(&bytes), Wait::May(MAY)).unwrap().id(), node.id());
        root.rename(name(&bytes), &*root, name(&[b'y'; NAME_BYTES_MAX]), Replace::Never, MAY).unwrap();
        root.remove_file(name(&[b'y'; NAME_BYTES_MAX]), MAY).unwrap();
    }
}

/// `a` and `A` are different names.
pub fn case_matters(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (lower, upper) = (file(&root, "a"), file(&root, "A"));
    assert_ne!(lower.id(), upper.id());
    assert_eq!(find(&root, "a").unwrap().id(), lower.id());
    assert_eq!(names(&root), ["A", "a"]);
}

/// Creating an existing name fails and changes nothing.
pub fn taken(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (node, dir) = (file(&root, "f"), directory(&root, "d"));
    root.create(name("l"), &new(NewKind::Symlink(b"nowhere")), MAY).unwrap();
    for at in ["f", "d", "l"] {
        for kind in [NewKind::Regular, NewKind::Directory, NewKind::Symlink(b"x"), NewKind::Fifo] {
            assert_eq!(root.create(name(at), &new(kind), MAY).err(), Some(Error::Exists), "{at} {kind:?}");
        }
        assert_eq!(root.link(name(at), &*node, MAY), Err(Error::Exists));
    }
    assert_eq!(find(&root, "f").unwrap().id(), node.id());
    assert_eq!(find(&root, "d").unwrap().id(), dir.id());
    assert_eq!(names(&root), ["d", "f", "l"]);
}

/// Calls for a name that does not exist fail.
pub fn missing(subject: &mut dyn Subject) {
    let root = subject.store().root();
    assert_eq!(find(&root, "x").err(), Some(Error::NotFound));
    assert_eq!(root.remove_file(name("x"), MAY), Err(Error::NotFound));
    assert_eq!(root.remove_dir(name("x"), MAY), Err(Error::NotFound));
    for replace in [Replace::Never, Replace::Yes] {
        assert_eq!(root.rename(name("x"), &*root, name("y"), replace, MAY), Err(Error::NotFound));
    }
    file(&root, "x");
    root.remove_file(name("x"), MAY).unwrap();
    assert_eq!(find(&root, "x").err(), Some(Error::NotFound));
}

/// Only directories hold names.
pub fn in_what_is_no_directory(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    let dir = directory(&root, "d");
    let expected = Error::NotDirectory;
    assert_eq!(find(&node, "x").err(), Some(expected));
    assert_eq!(node.lookup(name("x"), Wait::Never(View::FRESH)).err(), Some(expected));
    assert_eq!(node.create(name("x"), &new(NewKind::Regular), MAY).err(), Some(expected));
    assert_eq!(node.link(name("x"), &*node, MAY), Err(expected));
    assert_eq!(node.remove_file(name("x"), MAY), Err(expected));
    assert_eq!(node.remove_dir(name("x"), MAY), Err(expected));
    assert_eq!(node.rename(name("x"), &*dir, name("x"), Replace::Yes, MAY), Err(expected));
    assert_eq!(root.rename(name("f"), &*node, name("x"), Replace::Yes, MAY), Err(expected));
    assert_eq!(node.parent(MAY).err(), Some(expected));
    assert_eq!(node.read_dir(0, MAY, &mut |_| std::ops::ControlFlow::Continue(())), Err(expected));
}

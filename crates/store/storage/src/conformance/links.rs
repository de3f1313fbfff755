//! Checks of objects with several names, and with none.

use super::{Subject, attributes_of, directory, file, find, list, name, names, new, read, write};
use crate::conformance::MAY;
use crate::{Error, NewKind, SetAttributes};

/// Two names of one object show the same object.
pub fn share_the_object(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    let node = file(&root, "f");
    dir.link(name("g"), &*node, MAY).unwrap();
    let other = find(&dir, "g").unwrap();
    assert_eq!(other.id(), node.id());
    assert_eq!(attributes_of(&*node).links, 2);
    write(&*other, 0, b"shared");
    assert_eq!(read(&*node, 0, 9), b"shared");
    assert_eq!(list(&dir, 0).first().unwrap().1, node.id());
    root.remove_file(name("f"), MAY).unwrap();
    assert_eq!(attributes_of(&*other).links, 1);
    drop((node, other));
    assert_eq!(read(&*find(&dir, "g").unwrap(), 0, 9), b"shared");
    let link = root.create(name("l"), &new(NewKind::Symlink(b"to")), MAY).unwrap();
    match root.link(name("m"), &*link, MAY) {
        Ok(()) => assert_eq!(find(&root, "m").unwrap().id(), link.id()),
        Err(e) => assert_eq!(e, Error::NotSupported),
    }
}

/// An object without a name lives as long as it is held.
pub fn removed_while_held(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    write(&*node, 0, b"before");
    let id = node.id();
    root.remove_file(name("f"), MAY).unwrap();
    assert_eq!(find(&root, "f").err(), Some(Error::NotFound));
    assert_eq!((node.id(), attributes_of(&*node).links), (id, 0));
    write(&*node, 6, b" and after");
    assert_eq!(read(&*node, 0, 99), b"before and after");
    let set = SetAttributes { size: Some(3), mode: Some(0o600), ..SetAttributes::default() };
    assert_eq!(node.set_attributes(&set, MAY).unwrap().size, 3);
    assert_eq!(node.commit(MAY), Ok(()));
    assert_eq!(node.path(), Err(Error::Stale));
    assert_eq!(root.link(name("again"), &*node, MAY), Err(Error::Stale));
    let other = file(&root, "f");
    assert_ne!(other.id(), id);
    assert_eq!(attributes_of(&*other).size, 0);
    assert_eq!(read(&*node, 0, 99), b"bef");
}

/// A directory cannot have a second name.
pub fn not_to_directories(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    assert_eq!(root.link(name("e"), &*dir, MAY), Err(Error::IsDirectory));
    assert_eq!(names(&root), ["d"]);
}

/// A link does not replace an existing name.
pub fn names_taken(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (node, other) = (file(&root, "f"), file(&root, "g"));
    assert_eq!(root.link(name("g"), &*node, MAY), Err(Error::Exists));
    assert_eq!(root.link(name("f"), &*node, MAY), Err(Error::Exists));
    assert_eq!(find(&root, "g").unwrap().id(), other.id());
    assert_eq!(attributes_of(&*node).links, 1);
}

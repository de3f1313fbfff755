//! Checks of renaming: every kind over every kind.

use super::{Subject, attributes_of, directory, file, find, name, names, new, read, write};
use crate::conformance::MAY;
use crate::{Error, NewKind, Replace};

const BOTH: [Replace; 2] = [Replace::Never, Replace::Yes];

/// Objects can be moved within a directory and to another one, with everything below them.
pub fn moves(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (a, b) = (directory(&root, "a"), directory(&root, "b"));
    let node = file(&a, "f");
    for replace in BOTH {
        a.rename(name("f"), &*a, name("g"), replace, MAY).unwrap();
        assert_eq!(names(&a), ["g"]);
        a.rename(name("g"), &*b, name("f"), replace, MAY).unwrap();
        assert_eq!((names(&a), names(&b)), (vec![], vec!["f".into()]));
        assert_eq!(find(&b, "f").unwrap().id(), node.id());
        b.rename(name("f"), &*a, name("f"), replace, MAY).unwrap();
    }
    root.rename(name("a"), &*b, name("c"), Replace::Never, MAY).unwrap();
    assert_eq!(names(&root), ["b"]);
    let c = find(&b, "c").unwrap();
    assert_eq!(c.id(), a.id());
    assert_eq!(find(&c, "f").unwrap().id(), node.id());
    assert_eq!(names(&a), ["f"], "the held directory is still itself");
    assert_eq!(c.parent(MAY).unwrap().id(), b.id());
}

/// A replaced file has no name any more, and its holders can still use it.
pub fn replaces_files(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (new_one, old) = (file(&root, "new"), file(&root, "old"));
    write(&*old, 0, b"old");
    write(&*new_one, 0, b"new");
    root.rename(name("new"), &*root, name("old"), Replace::Yes, MAY).unwrap();
    assert_eq!(names(&root), ["old"]);
    assert_eq!(find(&root, "old").unwrap().id(), new_one.id());
    assert_eq!(attributes_of(&*old).links, 0);
    assert_eq!((read(&*old, 0, 9), read(&*new_one, 0, 9)), (b"old".to_vec(), b"new".to_vec()));
    let link = root.create(name("l"), &new(NewKind::Symlink(b"old")), MAY).unwrap();
    root.rename(name("l"), &*root, name("old"), Replace::Yes, MAY).unwrap();
    assert_eq!(find(&root, "old").unwrap().id(), link.id());
}

/// A directory can replace an empty directory.
pub fn replaces_directories(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (from, to) = (directory(&root, "from"), directory(&root, "to"));
    file(&from, "f");
    file(&to, "g");
    assert_eq!(root.rename(name("from"), &*root, name("to"), Replace::Yes, MAY), Err(Error::NotEmpty));
    to.remove_file(name("g"), MAY).unwrap();
    root.rename(name("from"), &*root, name("to"), Replace::Yes, MAY).unwrap();
    assert_eq!(names(&root), ["to"]);
    assert_eq!(names(&find(&root, "to").unwrap()), ["f"]);
    assert_eq!(attributes_of(&*to).links, 0);
    assert_eq!(to.create(name("x"), &new(NewKind::Regular), MAY).err(), Some(Error::Stale));
}

/// Nothing is replaced unless that was asked for.
pub fn never_replaces(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    file(&root, "g");
    directory(&root, "d");
    directory(&root, "e");
    for (from, to) in [("f", "g"), ("f", "d"), ("d", "f"), ("d", "e"), ("f", "f"), ("d", "d")] {
        assert_eq!(
            root.rename(name(from), &*root, name(to), Replace::Never, MAY),
            Err(Error::Exists),
            "{from} {to}"
        );
    }
    assert_eq!(names(&root), ["d", "e", "f", "g"]);
    assert_eq!(find(&root, "f").unwrap().id(), node.id());
}

/// Directories replace only directories; other objects replace only objects that are not directories.
pub fn kinds_must_match(subject: &mut dyn Subject) {
    let root = subject.store().root();
    file(&root, "f");
    directory(&root, "d");
    root.create(name("l"), &new(NewKind::Symlink(b"d")), MAY).unwrap();
    let renames = [
        ("f", "d", Error::IsDirectory),
        ("l", "d", Error::IsDirectory),
        ("d", "f", Error::NotDirectory),
        ("d", "l", Error::NotDirectory),
    ];
    for (from, to, error) in renames {
        assert_eq!(root.rename(name(from), &*root, name(to), Replace::Yes, MAY), Err(error), "{from} {to}");
    }
    assert_eq!(names(&root), ["d", "f", "l"]);
}

/// A directory cannot be moved below itself, nor replace a directory that contains it.
pub fn not_into_itself(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let a = directory(&root, "a");
    let b = directory(&a, "b");
    let c = directory(&b, "c");
    for replace in BOTH {
        for below in [&a, &b, &c] {
            assert_eq!(
                root.rename(name("a"), &**below, name("x"), replace, MAY),
                Err(Error::InvalidArgument)
            );
        }
    }
    assert_eq!(b.rename(name("c"), &*root, name("a"), Replace::Yes, MAY), Err(Error::NotEmpty));
    assert_eq!(root.rename(name("a"), &*root, name("a"), Replace::Yes, MAY), Ok(()));
    assert_eq!(c.path().unwrap(), b"a/b/c");
}

/// As in POSIX, a rename between two names of one object does nothing.
pub fn onto_its_other_name(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    root.link(name("g"), &*node, MAY).unwrap();
    assert_eq!(root.rename(name("f"), &*root, name("g"), Replace::Never, MAY), Err(Error::Exists));
    root.rename(name("f"), &*root, name("g"), Replace::Yes, MAY).unwrap();
    root.rename(name("f"), &*root, name("f"), Replace::Yes, MAY).unwrap();
    assert_eq!(names(&root), ["f", "g"]);
    assert_eq!(attributes_of(&*node).links, 2);
    assert_eq!(find(&root, "g").unwrap().id(), node.id());
}

/// Renaming a name that does not exist fails and creates nothing.
pub fn missing_names(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    file(&dir, "f");
    for replace in BOTH {
        assert_eq!(root.rename(name("x"), &*dir, name("f"), replace, MAY), Err(Error::NotFound));
    }
    assert_eq!(names(&dir), ["f"]);
}

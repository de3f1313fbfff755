//! Checks of handles.

use super::{Subject, attributes_of, directory, file, find, name, new, read, write};
use crate::conformance::MAY;
use crate::{Error, FileKind, HANDLE_BYTES_MAX, Handle, NewKind, NodeRef, Replace, Wait};

fn by_handle(subject: &dyn Subject, handle: &Handle) -> crate::Result<NodeRef> {
    subject.store().by_handle(handle, Wait::May(MAY))
}

/// A handle finds its object, also when nobody holds the object any more.
pub fn find_the_object(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&directory(&root, "a"), "b");
    let node = file(&dir, "f");
    write(&*node, 0, b"data");
    let (id, handle) = (node.id(), node.handle().unwrap());
    assert_eq!(node.handle().unwrap(), handle, "one object, one handle");
    assert_eq!(find(&dir, "f").unwrap().handle().unwrap(), handle);
    assert_ne!(dir.handle().unwrap(), handle);
    drop((node, dir));
    let found = by_handle(subject, &handle).unwrap();
    assert_eq!(found.id(), id);
    assert_eq!(read(&*found, 0, 9), b"data");
    let top = root.handle().unwrap();
    assert_eq!(by_handle(subject, &top).unwrap().id(), root.id());
}

/// A handle finds its object wherever it is moved.
pub fn survive_renames(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (a, b) = (directory(&root, "a"), directory(&root, "b"));
    let node = file(&a, "f");
    let (handle, dir_handle) = (node.handle().unwrap(), a.handle().unwrap());
    let id = node.id();
    drop(node);
    a.rename(name("f"), &*b, name("g"), Replace::Never, MAY).unwrap();
    root.rename(name("a"), &*b, name("a"), Replace::Never, MAY).unwrap();
    root.rename(name("b"), &*root, name("c"), Replace::Never, MAY).unwrap();
    drop((a, b, root));
    subject.restart();
    assert_eq!(by_handle(subject, &handle).unwrap().id(), id);
    assert_eq!(by_handle(subject, &dir_handle).unwrap().path().unwrap(), b"c/a");
}

/// A handle finds its object after a restart of the server.
pub fn survive_restarts(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    let node = file(&dir, "f");
    write(&*node, 0, b"data");
    let handles = [root.handle().unwrap(), dir.handle().unwrap(), node.handle().unwrap()];
    let ids = [root.id(), dir.id(), node.id()];
    drop((root, dir, node));
    subject.restart();
    for (handle, id) in handles.iter().zip(ids) {
        let found = by_handle(subject, handle).unwrap();
        assert_eq!(found.id(), id);
        assert_eq!(found.handle().unwrap(), *handle, "and the same is given again");
    }
    assert_eq!(read(&*by_handle(subject, &handles[2]).unwrap(), 0, 9), b"data");
}

/// When the object is gone, its handle is stale.
pub fn go_with_the_object(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (node, dir, replaced) = (file(&root, "f"), directory(&root, "d"), file(&root, "r"));
    let handles = [node.handle().unwrap(), dir.handle().unwrap(), replaced.handle().unwrap()];
    drop((node, dir, replaced));
    root.remove_file(name("f"), MAY).unwrap();
    root.remove_dir(name("d"), MAY).unwrap();
    file(&root, "x");
    root.rename(name("x"), &*root, name("r"), Replace::Yes, MAY).unwrap();
    for handle in &handles {
        assert_eq!(by_handle(subject, handle).err(), Some(Error::Stale), "{handle:?}");
    }
    drop(root);
    subject.restart();
    for handle in &handles {
        assert_eq!(by_handle(subject, handle).err(), Some(Error::Stale), "{handle:?} after a restart");
    }
}

/// A directory that was removed is no longer found, even while somebody holds it. A removed file is found while
/// somebody has it open.
pub fn go_with_a_directory_that_is_held(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (removed, replaced, open) = (directory(&root, "d"), directory(&root, "r"), file(&root, "f"));
    let handles = [removed.handle().unwrap(), replaced.handle().unwrap(), open.handle().unwrap()];
    directory(&root, "x");
    root.remove_dir(name("d"), MAY).unwrap();
    root.rename(name("x"), &*root, name("r"), Replace::Yes, MAY).unwrap();
    root.remove_file(name("f"), MAY).unwrap();
    for (held, handle) in [&removed, &replaced].into_iter().zip(&handles) {
        assert_eq!(by_handle(subject, handle).err(), Some(Error::Stale));
        assert_eq!(attributes_of(&**held).kind, FileKind::Directory, "who holds it goes on");
    }
    assert_eq!(by_handle(subject, &handles[2]).unwrap().id(), open.id());
}

/// Some stores reuse numbers; handles are never reused.
pub fn never_name_a_later_object(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let mut old = Vec::new();
    for round in 0..50 {
        let node = file(&root, "f");
        let handle = node.handle().unwrap();
        assert!(!old.contains(&handle), "round {round}");
        old.push(handle);
        drop(node);
        root.remove_file(name("f"), MAY).unwrap();
        for handle in &old {
            assert_eq!(by_handle(subject, handle).err(), Some(Error::Stale), "round {round}");
        }
    }
    let node = file(&root, "f");
    for handle in &old {
        assert_eq!(by_handle(subject, handle).err(), Some(Error::Stale));
    }
    assert_eq!(by_handle(subject, &node.handle().unwrap()).unwrap().id(), node.id());
}

/// Bytes that were never a handle find nothing, or something below the root.
pub fn malformed(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    let good = node.handle().unwrap();
    let good = good.as_bytes();
    let refused = |bytes: &[u8]| {
        let found = by_handle(subject, &Handle::new(bytes).unwrap());
        match found {
            Err(Error::BadHandle | Error::Stale) => {}
            other => {
                // A store may use short handles: then the bytes may name another object of the store.
                let found = other.unwrap();
                assert!(found.id() == root.id() || found.id() == node.id(), "{bytes:?} names {found:?}");
            }
        }
    };
    for bit in 0..good.len() * 8 {
        let mut bytes = good.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        refused(&bytes);
    }
    for length in 1..good.len() {
        let cut = by_handle(subject, &Handle::new(&good[..length]).unwrap());
        assert!(matches!(cut.err(), Some(Error::BadHandle | Error::Stale)), "{length} bytes");
    }
    for byte in [0, 1, b'.', b'/', 0xff] {
        refused(&[byte]);
        refused(&[byte; HANDLE_BYTES_MAX]);
    }
    refused(b"../../../etc/passwd");
    if good.len() < HANDLE_BYTES_MAX {
        refused(&[good, &[0]].concat());
    }
}

/// Objects that are never opened have handles, too.
pub fn of_every_kind(subject: &mut dyn Subject) {
    let root = subject.store().root();
    for kind in [NewKind::Symlink(b"nowhere"), NewKind::Fifo, NewKind::Socket, NewKind::Directory] {
        let node = root.create(name("n"), &new(kind), MAY).unwrap();
        let (handle, id, kind) = (node.handle().unwrap(), node.id(), node.kind());
        drop(node);
        let found = by_handle(subject, &handle).unwrap();
        assert_eq!((found.id(), found.kind(), attributes_of(&*found).kind), (id, kind, kind));
        root.rename(name("n"), &*root, name(&format!("n{}", id.number)), Replace::Never, MAY).unwrap();
    }
}

/// Hard links are one object. Its handle is valid while any name is left that the store knows.
pub fn one_for_all_names(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    root.link(name("g"), &*node, MAY).unwrap();
    let handle = node.handle().unwrap();
    assert_eq!(find(&root, "g").unwrap().handle().unwrap(), handle);
    root.remove_file(name("g"), MAY).unwrap();
    let id = node.id();
    drop(node);
    assert_eq!(by_handle(subject, &handle).unwrap().id(), id);
}

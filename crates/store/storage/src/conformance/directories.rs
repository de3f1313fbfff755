//! Checks of directories and their listings.

use crate::conformance::MAY;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::{Subject, attributes_of, directory, file, find, list, name, names, new};
use crate::{Error, NewKind, NodeRef, Wait, Want};

/// How many entries the large directory has.
const MANY: usize = 10_000;

fn fill(dir: &NodeRef, count: usize) {
    for number in 0..count {
        file(dir, &format!("file-{number:05}"));
    }
}

/// Up to `count` names after a cookie, the last cookie, and whether the end was reached.
fn some(dir: &NodeRef, cookie: u64, count: usize) -> (Vec<String>, u64, bool) {
    let (mut names, mut last) = (Vec::new(), cookie);
    let end = dir.read_dir(cookie, MAY, &mut |entry| {
        if names.len() == count {
            return ControlFlow::Break(());
        }
        names.push(String::from_utf8(entry.name.to_vec()).unwrap());
        last = entry.cookie;
        ControlFlow::Continue(())
    });
    (names, last, end.unwrap())
}

/// A listing shows each entry once, with its number.
pub fn lists_each_entry_once(subject: &mut dyn Subject) {
    let root = subject.store().root();
    assert!(list(&root, 0).is_empty());
    fill(&root, 300);
    directory(&root, "d");
    let entries = list(&root, 0);
    assert_eq!(entries.len(), 301);
    assert_eq!(names(&root).len(), 301);
    let cookies: BTreeSet<_> = entries.iter().map(|e| e.2).collect();
    assert_eq!(cookies.len(), 301, "each entry has a cookie of its own");
    for (bytes, id, _) in &entries {
        let node = find(&root, std::str::from_utf8(bytes).unwrap()).unwrap();
        assert_eq!(node.id(), *id);
    }
}

/// A listing can continue after any entry.
pub fn goes_on_behind_each_cookie(subject: &mut dyn Subject) {
    let root = subject.store().root();
    fill(&root, 50);
    let all = list(&root, 0);
    for (position, (_, _, cookie)) in all.iter().enumerate() {
        let rest = list(&root, *cookie);
        assert_eq!(rest, all[position + 1..], "behind entry {position}");
    }
}

/// Entries that stay are listed exactly once, whatever is added and removed meanwhile.
pub fn cookies_survive_changes(subject: &mut dyn Subject) {
    let root = subject.store().root();
    fill(&root, 1000);
    let (mut seen, mut cookie, mut end) = (Vec::new(), 0, false);
    let mut gone = BTreeSet::new();
    for round in 0.. {
        if end {
            break;
        }
        let (mut names, last, at_end) = some(&root, cookie, 90);
        seen.append(&mut names);
        (cookie, end) = (last, at_end);
        // Removes the last entry seen, one that was seen earlier, and one elsewhere.
        for at in [seen.last(), seen.get(round * 3), Some(&format!("file-{:05}", 999 - round))] {
            if at.is_some_and(|at| gone.insert(at.clone())) {
                root.remove_file(name(at.unwrap()), MAY).unwrap();
            }
        }
        file(&root, &format!("new-{round}"));
    }
    for number in 0..1000 {
        let at = format!("file-{number:05}");
        let times = seen.iter().filter(|s| **s == at).count();
        assert!(times == 1 || (times == 0 && gone.contains(&at)), "{at} was given {times} times");
    }
    let unique: BTreeSet<_> = seen.iter().collect();
    assert_eq!(unique.len(), seen.len(), "none was given twice");
}

/// A directory of many entries, listed in small steps.
pub fn big(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "big");
    fill(&dir, MANY);
    let (mut seen, mut cookie) = (BTreeSet::new(), 0);
    loop {
        let (names, last, end) = some(&dir, cookie, 777);
        cookie = last;
        for at in names {
            assert!(seen.insert(at.clone()), "{at} was given twice");
        }
        if end {
            break;
        }
    }
    assert_eq!(seen.len(), MANY);
    assert!(find(&dir, &format!("file-{:05}", MANY / 2)).is_ok());
    for at in &seen {
        dir.remove_file(name(at), MAY).unwrap();
    }
    assert!(list(&dir, 0).is_empty());
    root.remove_dir(name("big"), MAY).unwrap();
}

/// A directory knows its parent.
pub fn parents(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let a = directory(&root, "a");
    let b = directory(&a, "b");
    assert_eq!(b.parent(MAY).unwrap().id(), a.id());
    assert_eq!(a.parent(MAY).unwrap().id(), root.id());
    assert_eq!(root.parent(MAY).unwrap().id(), root.id());
    assert_eq!([&b, &a, &root].map(|dir| dir.parent_number(MAY).unwrap()), [a.id(), root.id(), root.id()]);
    a.rename(name("b"), &*root, name("b"), crate::Replace::Never, MAY).unwrap();
    assert_eq!((b.parent(MAY).unwrap().id(), b.parent_number(MAY)), (root.id(), Ok(root.id())));
}

/// Objects know their paths.
pub fn paths(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let a = directory(&root, "a");
    let b = directory(&a, "b (deleted)");
    let node = file(&b, "f (deleted)");
    assert_eq!(root.path().unwrap(), b"");
    assert_eq!(a.path().unwrap(), b"a");
    assert_eq!(node.path().unwrap(), b"a/b (deleted)/f (deleted)");
    root.rename(name("a"), &*root, name("z"), crate::Replace::Never, MAY).unwrap();
    assert_eq!(node.path().unwrap(), b"z/b (deleted)/f (deleted)");
    b.remove_file(name("f (deleted)"), MAY).unwrap();
    assert_eq!(node.path(), Err(Error::Stale));
}

/// The link count of a directory shows whether the directory still exists.
pub fn counts_links(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    assert!(attributes_of(&*dir).links > 0);
    assert!(attributes_of(&*root).links > 0);
    root.remove_dir(name("d"), MAY).unwrap();
    assert_eq!(attributes_of(&*dir).links, 0);
}

/// Nothing can be created in a directory that has been removed.
pub fn removed_while_held(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    let node = file(&root, "f");
    let id = dir.id();
    root.remove_dir(name("d"), MAY).unwrap();
    assert_eq!((dir.id(), attributes_of(&*dir).id), (id, id));
    assert_eq!(dir.create(name("x"), &new(NewKind::Regular), MAY).err(), Some(Error::Stale));
    assert_eq!(dir.create(name("x"), &new(NewKind::Directory), MAY).err(), Some(Error::Stale));
    assert_eq!(dir.link(name("x"), &*node, MAY), Err(Error::Stale));
    assert_eq!(root.rename(name("f"), &*dir, name("x"), crate::Replace::Never, MAY), Err(Error::NotFound));
    assert_eq!(find(&dir, "x").err(), Some(Error::NotFound));
    assert_eq!(dir.parent(MAY).err(), Some(Error::Stale));
    assert_eq!(dir.path(), Err(Error::Stale));
    assert_eq!(dir.read_dir(0, MAY, &mut |_| ControlFlow::Continue(())), Err(Error::Stale));
    // The name is free again for another object.
    let other = directory(&root, "d");
    assert_ne!(other.id(), id);
    assert_eq!(dir.create(name("x"), &new(NewKind::Regular), MAY).err(), Some(Error::Stale));
}

/// Only empty directories can be removed, and only by the call for directories.
pub fn removes_only_empty(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    file(&dir, "f");
    assert_eq!(root.remove_dir(name("d"), MAY), Err(Error::NotEmpty));
    assert_eq!(root.remove_file(name("d"), MAY), Err(Error::IsDirectory));
    assert_eq!(dir.remove_dir(name("f"), MAY), Err(Error::NotDirectory));
    dir.remove_file(name("f"), MAY).unwrap();
    root.remove_dir(name("d"), MAY).unwrap();
    assert_eq!(root.remove_dir(name("d"), MAY), Err(Error::NotFound));
}

/// `remove_found` removes the object that was found, and nothing of another kind that has its name by now.
pub fn removes_what_was_found(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let look = |at| root.lookup_attributes(name(at), Want::empty(), Wait::May(MAY)).unwrap();
    let (was, dir) = (directory(&root, "d"), directory(&root, "e"));
    file(&dir, "f");
    file(&root, "f");
    root.link(name("g"), &*look("f").0, MAY).unwrap();
    let (_, found) = look("d");
    let (_, full) = look("e");
    let (node, of_file) = look("f");
    assert_eq!(root.remove_found(name("e"), &full, MAY), Err(Error::NotEmpty));
    root.remove_found(name("d"), &found, MAY).unwrap();
    assert_eq!(root.remove_found(name("d"), &found, MAY), Err(Error::NotFound));
    assert_eq!(root.remove_found(name("f"), &found, MAY), Err(Error::NotDirectory));
    assert_eq!(root.remove_found(name("e"), &of_file, MAY), Err(Error::IsDirectory));
    root.remove_found(name("f"), &of_file, MAY).unwrap();
    assert_eq!(node.attributes(Want::empty(), Wait::May(MAY)).unwrap().links, 1);
    root.remove_found(name("g"), &look("g").1, MAY).unwrap();
    assert_eq!(root.lookup(name("g"), Wait::May(MAY)).err(), Some(Error::NotFound));
    assert_eq!(was.create(name("x"), &new(NewKind::Regular), MAY).err(), Some(Error::Stale));
}

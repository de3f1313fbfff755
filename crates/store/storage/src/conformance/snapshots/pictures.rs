//! Checks of what is in a snapshot.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acl::{AccessMask, Ace, AceFlags, Acl, Control, SecurityDescriptor, Sid};

use super::{open, snapshots, take};
use crate::conformance::{
    Ended, MAY, Subject, attributes_of, directory, file, find, has, name, names, new, read, stream_name,
    write,
};
use crate::{
    Attributes, Capabilities, Error, FileFlags, FileKind, NewKind, Node, NodeRef, Replace, SeekTo,
    SetAttributes, Stability, Timestamp, Wait, XattrMode,
};

const MIB: u64 = 1 << 20;

/// Data and names stay while the store changes.
pub fn keep_content_and_names(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    for at in ["changed", "removed", "renamed"] {
        write(&*file(&dir, at), 0, at.as_bytes());
    }
    dir.create(name("link"), &new(NewKind::Symlink(b"where")), MAY).unwrap();
    dir.create(name("fifo"), &new(NewKind::Fifo), MAY).unwrap();
    directory(&dir, "empty");
    let view = open(subject, &take(subject));

    write(&*find(&dir, "changed").unwrap(), 0, b"CHANGED");
    dir.remove_file(name("removed"), MAY).unwrap();
    dir.rename(name("renamed"), &*root, name("elsewhere"), Replace::Never, MAY).unwrap();
    dir.remove_file(name("link"), MAY).unwrap();
    dir.remove_dir(name("empty"), MAY).unwrap();
    file(&dir, "later");
    root.rename(name("d"), &*root, name("e"), Replace::Never, MAY).unwrap();

    let top = view.root();
    assert_eq!(names(&top), ["d"]);
    let then = find(&top, "d").unwrap();
    assert_eq!(names(&then), ["changed", "empty", "fifo", "link", "removed", "renamed"]);
    for at in ["changed", "removed", "renamed"] {
        assert_eq!(read(&*find(&then, at).unwrap(), 0, 99), at.as_bytes());
    }
    assert_eq!(find(&then, "link").unwrap().read_link(MAY).unwrap(), b"where");
    assert_eq!(find(&then, "fifo").unwrap().kind(), FileKind::Fifo);
    assert!(names(&find(&then, "empty").unwrap()).is_empty());
    assert_eq!(then.path().unwrap(), b"d");
    assert_eq!((then.parent(MAY).unwrap().id(), top.parent(MAY).unwrap().id()), (top.id(), top.id()));
    assert_eq!(find(&top, "e").unwrap_err(), Error::NotFound);
    let now = find(&root, "e").unwrap();
    assert_eq!(read(&*find(&now, "changed").unwrap(), 0, 99), b"CHANGED");
    assert_eq!(names(&now), ["changed", "fifo", "later"]);
}

/// What must be the same in a snapshot.
fn kept(known: &Attributes) -> Attributes {
    let Attributes { id, mode, .. } = *known;
    Attributes {
        id: crate::ObjectId::live(id.number),
        mode,
        allocated: 0,
        atime: Timestamp::default(),
        ..*known
    }
}

/// Attributes stay, those of SMB clients too.
pub fn keep_attributes(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let nodes = [("f", file(&root, "f")), ("d", directory(&root, "d"))];
    let mut before = Vec::new();
    for (_, node) in &nodes {
        let hidden = has(subject, Capabilities::XATTRS).then_some(FileFlags::HIDDEN);
        let set = SetAttributes { mode: Some(0o751), flags: hidden, ..SetAttributes::default() };
        node.set_attributes(&set, MAY).unwrap();
        before.push(kept(&attributes_of(&**node)));
    }
    let view = open(subject, &take(subject));
    for (_, node) in &nodes {
        let set = SetAttributes { mode: Some(0o700), ..SetAttributes::default() };
        node.set_attributes(&set, MAY).unwrap();
    }
    for ((at, node), before) in nodes.iter().zip(before) {
        let then = attributes_of(&*find(&view.root(), at).unwrap());
        assert_eq!(kept(&then), before, "{at}");
        assert_eq!(attributes_of(&**node).mode, 0o700);
    }
}

/// Named streams stay, those of directories and of the root too.
pub fn keep_streams(subject: &mut dyn Subject) {
    if !has(subject, Capabilities::STREAMS) {
        return;
    }
    let root = subject.store().root();
    let long = "n".repeat(300);
    for node in [&file(&root, "f"), &directory(&root, "d"), &root] {
        for at in ["s", &long] {
            write(&*node.create_stream(stream_name(at), MAY).unwrap(), 0, b"then");
        }
    }
    let view = open(subject, &take(subject));
    for node in [&find(&root, "f").unwrap(), &find(&root, "d").unwrap(), &root] {
        write(&*node.stream(stream_name("s"), MAY).unwrap(), 0, b"NOW!");
        node.remove_stream(stream_name(&long), MAY).unwrap();
        node.create_stream(stream_name("later"), MAY).unwrap();
    }
    root.remove_file(name("f"), MAY).unwrap();
    let top = view.root();
    for node in [&find(&top, "f").unwrap(), &find(&top, "d").unwrap(), &top] {
        let mut listed: Vec<_> = node.streams(MAY).unwrap().into_iter().map(|s| (s.name, s.size)).collect();
        listed.sort();
        assert_eq!(listed, [(long.clone().into_bytes(), 4), (b"s".to_vec(), 4)]);
        for at in ["s", &long] {
            assert_eq!(read(&*node.stream(stream_name(at), MAY).unwrap(), 0, 9), b"then");
        }
        assert_eq!(node.stream(stream_name("later"), MAY).unwrap_err(), Error::NotFound);
    }
    assert_eq!(read(&*root.stream(stream_name("s"), MAY).unwrap(), 0, 9), b"NOW!");
}

fn descriptor(user: u32) -> SecurityDescriptor {
    let ace = Ace::deny(Sid::of_user(user), AccessMask::WRITE_DATA, AceFlags::empty());
    SecurityDescriptor {
        control: Control::DACL_PRESENT,
        dacl: Some(Acl { revision: 2, aces: vec![ace] }),
        ..SecurityDescriptor::default()
    }
}

fn security(node: &dyn Node) -> Option<Arc<SecurityDescriptor>> {
    node.security(&attributes_of(node), Wait::May(MAY)).unwrap()
}

/// Access control lists stay.
pub fn keep_descriptors(subject: &mut dyn Subject) {
    if !has(subject, Capabilities::XATTRS) {
        return;
    }
    let root = subject.store().root();
    let nodes = [("f", file(&root, "f")), ("d", directory(&root, "d")), ("none", file(&root, "none"))];
    for (_, node) in &nodes[..2] {
        node.set_security(Some(descriptor(7)), MAY).unwrap();
    }
    let view = open(subject, &take(subject));
    for (_, node) in &nodes {
        node.set_security(Some(descriptor(8)), MAY).unwrap();
    }
    let then = |at| security(&*find(&view.root(), at).unwrap());
    assert_eq!(then("f").as_deref(), Some(&descriptor(7)));
    assert_eq!(then("d").as_deref(), Some(&descriptor(7)));
    assert_eq!(then("none"), None);
    assert_eq!(security(&*nodes[0].1).as_deref(), Some(&descriptor(8)));
}

/// Extended attributes stay.
pub fn keep_xattrs(subject: &mut dyn Subject) {
    if !has(subject, Capabilities::XATTRS) {
        return;
    }
    let root = subject.store().root();
    let node = file(&root, "f");
    for at in [&b"a"[..], b"b"] {
        node.set_xattr(at, b"then", XattrMode::Set, MAY).unwrap();
    }
    let view = open(subject, &take(subject));
    node.set_xattr(b"a", b"now", XattrMode::Set, MAY).unwrap();
    node.remove_xattr(b"b", MAY).unwrap();
    node.set_xattr(b"c", b"now", XattrMode::Set, MAY).unwrap();
    let then = find(&view.root(), "f").unwrap();
    let mut listed = then.xattrs(MAY).unwrap();
    listed.sort();
    assert_eq!(listed, [b"a", b"b"]);
    assert_eq!(
        (then.xattr(b"a", MAY).unwrap(), then.xattr(b"b", MAY).unwrap()),
        (b"then".to_vec(), b"then".to_vec())
    );
    assert_eq!(then.xattr(b"c", MAY), Err(Error::NoAttribute));
}

/// The names of one file stay names of one file.
pub fn keep_hard_links(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "one");
    let dir = directory(&root, "d");
    dir.link(name("two"), &*node, MAY).unwrap();
    let view = open(subject, &take(subject));
    root.remove_file(name("one"), MAY).unwrap();
    dir.link(name("three"), &*node, MAY).unwrap();
    write(&*node, 0, b"later");
    let top = view.root();
    let dir_then = find(&top, "d").unwrap();
    let (one, two) = (find(&top, "one").unwrap(), find(&dir_then, "two").unwrap());
    assert_eq!((one.id(), one.handle().unwrap()), (two.id(), two.handle().unwrap()));
    assert_eq!(attributes_of(&*one).links, 2);
    assert!(read(&*one, 0, 9).is_empty());
    assert_eq!(names(&dir_then), ["two"]);
}

/// Holes stay holes, and data stays data.
pub fn keep_holes(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    write(&*node, 2 * MIB, &[1; 1 << 20]);
    write(&*node, 6 * MIB, &[1; 100]);
    let view = open(subject, &take(subject));
    write(&*node, 4 * MIB, b"later");
    node.set_attributes(&SetAttributes { size: Some(3 * MIB), ..SetAttributes::default() }, MAY).unwrap();
    let then = find(&view.root(), "f").unwrap();
    assert_eq!(attributes_of(&*then).size, 6 * MIB + 100);
    assert_eq!(read(&*then, 4 * MIB, 5), [0; 5]);
    assert_eq!(read(&*then, 6 * MIB, 200), [1; 100]);
    if has(subject, Capabilities::SPARSE) {
        let seeks = |from, to| then.seek(from, to, MAY).unwrap();
        assert_eq!((seeks(0, SeekTo::Data), seeks(0, SeekTo::Hole)), (Some(2 * MIB), Some(0)));
        assert_eq!(seeks(2 * MIB, SeekTo::Hole), Some(3 * MIB));
        assert_eq!(seeks(3 * MIB, SeekTo::Data), Some(6 * MIB));
        assert!(attributes_of(&*then).allocated < 2 * MIB);
    }
}

/// A directory of many entries is listed whole.
pub fn keep_large_directories(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let made: Vec<String> = (0..1500).map(|number| format!("f{number:04}")).collect();
    for at in &made {
        file(&root, at);
    }
    let view = open(subject, &take(subject));
    for at in &made[..1000] {
        root.remove_file(name(at), MAY).unwrap();
    }
    assert_eq!(names(&view.root()), made);
    assert_eq!(names(&root), made[1000..]);
}

/// An empty store has an empty snapshot.
pub fn of_nothing(subject: &mut dyn Subject) {
    let view = open(subject, &take(subject));
    file(&subject.store().root(), "f");
    assert!(names(&view.root()).is_empty());
    assert!(view.space(MAY).unwrap().total > 0);
}

/// What was written is in the snapshot, though nobody has asked for it to be safe.
pub fn of_what_was_answered(subject: &mut dyn Subject) {
    let root = subject.store().root();
    for round in 0..5_u8 {
        let node = file(&root, &format!("f{round}"));
        write(&*node, 0, &[round; 300_000]);
        let view = open(subject, &take(subject));
        for before in 0..=round {
            let then = find(&view.root(), &format!("f{before}")).unwrap();
            assert_eq!(read(&*then, 0, 400_000), [before; 300_000]);
        }
    }
}

/// Of two changes, a snapshot has the second only if it has the first: of data that is safe when it is written, and of names.
pub fn of_one_moment(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let [first, second] = ["first", "second"].map(|at| file(&root, at));
    let (from, to) = (directory(&root, "from"), directory(&root, "to"));
    file(&from, "moved");
    let done = AtomicBool::new(false);
    let set = |node: &NodeRef, number: u64| {
        let bytes = number.to_le_bytes();
        node.write(0, &[IoSlice::new(&bytes)], Stability::Data, Wait::May(MAY)).unwrap();
    };
    set(&first, 0);
    set(&second, 0);
    let change = || {
        let mut number = 0_u64;
        while !done.load(Ordering::Relaxed) {
            number += 1;
            set(&first, number);
            set(&second, number);
            let (here, there) = if number.is_multiple_of(2) { (&to, &from) } else { (&from, &to) };
            here.rename(name("moved"), &**there, name("moved"), Replace::Never, MAY).unwrap();
        }
    };
    let shared = snapshots(subject);
    let look = || {
        let _ended = Ended(&done);
        for _ in 0..10 {
            let view = shared.open(shared.take(super::LABEL, MAY).unwrap().id, MAY).unwrap();
            let top = view.root();
            let number = |at: &str| {
                let bytes = read(&*find(&top, at).unwrap(), 0, 8);
                u64::from_le_bytes(bytes.try_into().unwrap())
            };
            let (first, second) = (number("first"), number("second"));
            assert!(first == second || first == second + 1, "{first} and {second}");
            let count = |at: &str| names(&find(&top, at).unwrap()).len();
            assert_eq!(count("from") + count("to"), 1);
        }
    };
    subject.at_once(&[&change, &look]);
}

/// Notes stay, where a store has them.
pub fn keep_notes(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let noted = file(&root, "f");
    match noted.set_note(Some(b"one"), MAY) {
        Err(Error::NotSupported) => return,
        set => set.unwrap(),
    }
    let view = open(subject, &take(subject));
    noted.set_note(Some(b"two"), MAY).unwrap();
    let picture = find(&view.root(), "f").unwrap();
    assert_eq!(picture.note(MAY), Ok(Some(b"one".to_vec())));
    assert_eq!(picture.xattrs(MAY), Ok(Vec::new()));
    assert_eq!(picture.set_note(None, MAY), Err(Error::ReadOnly));
    assert_eq!(noted.note(MAY), Ok(Some(b"two".to_vec())));
    noted.set_note(None, MAY).unwrap();
    noted.set_note(None, MAY).unwrap();
    assert_eq!(noted.note(MAY), Ok(None));
    let fifo = root.create(name("fifo"), &new(NewKind::Fifo), MAY).unwrap();
    assert_eq!(fifo.set_note(Some(b"x"), MAY), Err(Error::WrongKind));
}

//! Checks of named streams: their owners, names and lifetime.

use super::{Subject, attributes_of, directory, file, find, has, names, new, read, stream_name, write};
use crate::conformance::MAY;
use crate::{
    Capabilities, Error, FileKind, NewKind, NodeRef, Replace, SeekTo, SetAttributes, StreamEntry, Wait,
};

/// Whether the store has streams; if not, its calls must say so.
fn supported(subject: &dyn Subject) -> bool {
    let supported = has(subject, Capabilities::STREAMS);
    if !supported {
        let node = file(&subject.store().root(), "f");
        let name = stream_name("s");
        assert_eq!(node.streams(MAY), Err(Error::NotSupported));
        assert_eq!(node.stream(name, MAY).unwrap_err(), Error::NotSupported);
        assert_eq!(node.create_stream(name, MAY).unwrap_err(), Error::NotSupported);
        assert_eq!(node.remove_stream(name, MAY), Err(Error::NotSupported));
        assert_eq!(node.rename_stream(name, name, Replace::Yes, MAY), Err(Error::NotSupported));
    }
    supported
}

fn make(node: &NodeRef, name: &str, data: &[u8]) -> NodeRef {
    let stream = node.create_stream(stream_name(name), MAY).unwrap();
    write(&*stream, 0, data);
    stream
}

fn sizes(node: &NodeRef) -> Vec<(String, u64)> {
    let entry = |entry: StreamEntry| (String::from_utf8(entry.name).unwrap(), entry.size);
    let mut streams: Vec<_> = node.streams(MAY).unwrap().into_iter().map(entry).collect();
    streams.sort();
    streams
}

fn listed(streams: &[(&str, u64)]) -> Vec<(String, u64)> {
    streams.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
}

fn data_of(node: &NodeRef, name: &str) -> crate::Result<Vec<u8>> {
    Ok(read(&*node.stream(stream_name(name), MAY)?, 0, 100))
}

/// A stream has data of its own; the file and the other streams do not change with it.
pub fn hold_data_of_their_own(subject: &mut dyn Subject) {
    if !supported(subject) {
        return;
    }
    let node = file(&subject.store().root(), "f");
    assert_eq!(sizes(&node), []);
    assert_eq!(data_of(&node, "s"), Err(Error::NotFound));
    write(&*node, 0, b"the file");
    let one = make(&node, "one", b"first");
    let two = make(&node, "two", b"");
    assert_eq!(one.kind(), FileKind::Regular);
    assert_ne!(one.id(), node.id());
    assert_ne!(one.id(), two.id());
    assert_eq!(attributes_of(&*one).size, 5);
    write(&*two, 3, b"x");
    two.set_attributes(&SetAttributes { size: Some(2), ..SetAttributes::default() }, MAY).unwrap();
    assert_eq!(sizes(&node), listed(&[("one", 5), ("two", 2)]));
    assert_eq!(data_of(&node, "one").unwrap(), b"first");
    assert_eq!(read(&*node, 0, 100), b"the file");
    assert_eq!(attributes_of(&*node).size, 8);
    assert_eq!(node.create_stream(stream_name("one"), MAY).unwrap_err(), Error::Exists);
    assert_eq!(node.stream(stream_name("one"), MAY).unwrap().id(), one.id());
    node.remove_stream(stream_name("one"), MAY).unwrap();
    assert_eq!(node.remove_stream(stream_name("one"), MAY), Err(Error::NotFound));
    assert_eq!(sizes(&node), listed(&[("two", 2)]));
}

/// Stream names of any valid content and length work, and case matters.
pub fn any_name(subject: &mut dyn Subject) {
    if !supported(subject) {
        return;
    }
    let node = file(&subject.store().root(), "f");
    let wide = "\u{20ac}".repeat(255);
    let nearly: Vec<String> = [253, 254, 255, 256, 508, 509, 510].map(|count| "n".repeat(count)).into();
    let mut all = vec![".", "..", "...", "?*<>|\"", "\u{5}a\n", " ", "Zone.Identifier", "a", "A", &wide];
    all.extend(nearly.iter().map(String::as_str));
    for name in &all {
        make(&node, name, name.as_bytes());
    }
    let mut expected: Vec<_> = all.iter().map(|name| ((*name).to_owned(), name.len() as u64)).collect();
    expected.sort();
    assert_eq!(sizes(&node), expected);
    for name in &all {
        let data = read(&*node.stream(stream_name(name), MAY).unwrap(), 0, 1000);
        assert_eq!(data, name.as_bytes());
    }
    for name in &all {
        node.remove_stream(stream_name(name), MAY).unwrap();
    }
    assert_eq!(sizes(&node), []);
    make(&node, &wide, b"again");
    assert_eq!(data_of(&node, &wide).unwrap(), b"again");
}

/// A renamed stream keeps its data and number.
pub fn renamed(subject: &mut dyn Subject) {
    if !supported(subject) {
        return;
    }
    let node = file(&subject.store().root(), "f");
    let long = "l".repeat(700);
    let held = make(&node, "a", b"data");
    make(&node, "b", b"other");
    let rename =
        |from: &str, to: &str, replace| node.rename_stream(stream_name(from), stream_name(to), replace, MAY);
    assert_eq!(rename("none", "c", Replace::Never), Err(Error::NotFound));
    assert_eq!(rename("a", "b", Replace::Never), Err(Error::Exists));
    rename("a", &long, Replace::Never).unwrap();
    assert_eq!(node.stream(stream_name(&long), MAY).unwrap().id(), held.id());
    assert_eq!(data_of(&node, "a"), Err(Error::NotFound));
    rename(&long, "b", Replace::Yes).unwrap();
    assert_eq!(sizes(&node), listed(&[("b", 4)]));
    rename("b", "b", Replace::Yes).unwrap();
    rename("b", "B", Replace::Never).unwrap();
    assert_eq!(data_of(&node, "B").unwrap(), b"data");
    write(&*held, 0, b"DATA");
    assert_eq!(data_of(&node, "B").unwrap(), b"DATA");
}

/// Directories have streams; other objects that are not files have none.
pub fn of_directories(subject: &mut dyn Subject) {
    if !supported(subject) {
        return;
    }
    let root = subject.store().root();
    make(&root, "s", b"the root's");
    assert_eq!(data_of(&root, "s").unwrap(), b"the root's");
    let dir = directory(&root, "d");
    make(&dir, "s", b"a directory's");
    assert_eq!(data_of(&dir, "s").unwrap(), b"a directory's");
    assert_eq!(names(&dir), [""; 0]);
    root.remove_dir(super::name("d"), MAY).unwrap();
    let link = root.create(super::name("l"), &new(NewKind::Symlink(b"x")), MAY).unwrap();
    assert_eq!(link.create_stream(stream_name("s"), MAY).unwrap_err(), Error::WrongKind);
    assert_eq!(link.streams(MAY), Err(Error::WrongKind));
}

/// An object's streams are the same under all of its names.
pub fn belong_to_the_object(subject: &mut dyn Subject) {
    if !supported(subject) {
        return;
    }
    let root = subject.store().root();
    let dir = directory(&root, "d");
    let node = file(&root, "f");
    make(&node, "s", b"data");
    root.rename(super::name("f"), &*dir, super::name("g"), Replace::Never, MAY).unwrap();
    assert_eq!(data_of(&find(&dir, "g").unwrap(), "s").unwrap(), b"data");
    root.link(super::name("h"), &*node, MAY).unwrap();
    make(&find(&root, "h").unwrap(), "t", b"more");
    dir.remove_file(super::name("g"), MAY).unwrap();
    assert_eq!(sizes(&find(&root, "h").unwrap()), listed(&[("s", 4), ("t", 4)]));
}

/// Streams are removed with the object's last name, whatever removes it.
pub fn go_with_the_last_name(subject: &mut dyn Subject) {
    if !supported(subject) {
        return;
    }
    let root = subject.store().root();
    let removed = file(&root, "removed");
    let replaced = file(&root, "replaced");
    let dir = directory(&root, "dir");
    for node in [&removed, &replaced, &dir] {
        make(node, "s", b"data");
    }
    root.remove_file(super::name("removed"), MAY).unwrap();
    let new = file(&root, "new");
    make(&new, "s", b"new");
    root.rename(super::name("new"), &*root, super::name("replaced"), Replace::Yes, MAY).unwrap();
    root.remove_dir(super::name("dir"), MAY).unwrap();
    for node in [&removed, &replaced, &dir] {
        assert_eq!(node.create_stream(stream_name("t"), MAY).unwrap_err(), Error::Stale);
    }
    assert_eq!(data_of(&find(&root, "replaced").unwrap(), "s").unwrap(), b"new");
}

/// A new object has no streams, even if it reuses a number.
pub fn never_a_later_object(subject: &mut dyn Subject) {
    if !supported(subject) {
        return;
    }
    let root = subject.store().root();
    for _ in 0..20 {
        let node = file(&root, "f");
        assert_eq!(sizes(&node), []);
        make(&node, "s", b"data");
        drop(node);
        root.remove_file(super::name("f"), MAY).unwrap();
    }
}

/// A stream that is held can still be used after the stream or its object is removed.
pub fn removed_while_held(subject: &mut dyn Subject) {
    if !supported(subject) {
        return;
    }
    let root = subject.store().root();
    let node = file(&root, "f");
    let one = make(&node, "one", b"1");
    let two = make(&node, "two", b"2");
    node.remove_stream(stream_name("one"), MAY).unwrap();
    drop(node);
    root.remove_file(super::name("f"), MAY).unwrap();
    write(&*one, 1, b"+");
    write(&*two, 1, b"+");
    assert_eq!(read(&*one, 0, 10), b"1+");
    assert_eq!(read(&*two, 0, 10), b"2+");
    assert_ne!(one.id(), two.id());
}

/// Streams survive a restart of the server.
pub fn survive_restarts(subject: &mut dyn Subject) {
    if !supported(subject) {
        return;
    }
    make(&file(&subject.store().root(), "f"), "s", b"data");
    subject.restart();
    let node = find(&subject.store().root(), "f").unwrap();
    assert_eq!(sizes(&node), listed(&[("s", 4)]));
    assert_eq!(data_of(&node, "s").unwrap(), b"data");
}

/// No listing shows where a store keeps streams, and streams do not keep a directory from being empty.
pub fn are_no_entries(subject: &mut dyn Subject) {
    if !supported(subject) {
        return;
    }
    let root = subject.store().root();
    let dir = directory(&root, "d");
    make(&file(&root, "f"), "s", b"data");
    make(&root, "s", b"data");
    make(&dir, "s", b"data");
    assert_eq!(names(&root), ["d", "f"]);
    assert_eq!(names(&dir), [""; 0]);
    root.remove_dir(super::name("d"), MAY).unwrap();
}

/// A stream may be large, and mostly a hole.
pub fn sparse_and_large(subject: &mut dyn Subject) {
    const SIZE: u64 = 100 << 20;
    if !supported(subject) {
        return;
    }
    let node = file(&subject.store().root(), "f");
    let stream = make(&node, "s", b"begin");
    write(&*stream, SIZE - 3, b"end");
    assert_eq!(attributes_of(&*stream).size, SIZE);
    assert_eq!(read(&*stream, SIZE - 4, 10), b"\0end");
    if has(subject, Capabilities::SPARSE) {
        assert!(attributes_of(&*stream).allocated < 1 << 20);
        assert_eq!(
            stream.seek(1 << 20, SeekTo::Data, MAY).map(|at| at.is_some_and(|at| at > 1 << 20)),
            Ok(true)
        );
    }
    let copy = node.create_stream(stream_name("copy"), MAY).unwrap();
    assert_eq!(stream.copy_range(SIZE - 3, &*copy, 0, 3, MAY), Ok(3));
    assert_eq!(read(&*copy, 0, 10), b"end");
    assert!(stream.attributes(crate::Want::empty(), Wait::May(MAY)).is_ok());
}

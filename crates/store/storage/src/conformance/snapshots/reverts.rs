//! Checks of going back to a snapshot.

use super::{by_handle, open, snapshots, take};
use crate::conformance::{
    MAY, Subject, attributes_of, directory, file, find, has, name, names, read, stream_name, write,
};
use crate::{BEFORE_REVERT, Capabilities, Error, Snapshot, SnapshotName, XattrMode};

/// Whether the store can go back; if not, it says so.
fn can_revert(subject: &dyn Subject) -> bool {
    let can = snapshots(subject).can_revert(MAY).is_ok();
    if !can {
        let snapshot = take(subject);
        assert_eq!(snapshots(subject).revert(snapshot.id, MAY), Err(Error::NotSupported));
    }
    can
}

fn revert(subject: &mut dyn Subject, to: &Snapshot) -> Snapshot {
    let before = snapshots(subject).revert(to.id, MAY).unwrap();
    subject.restart();
    before
}

/// Everything is as it was: content, names, streams, extended attributes, links. It can be changed again, and the snapshot
/// stays as it is.
pub fn bring_everything_back(subject: &mut dyn Subject) {
    if !can_revert(subject) {
        return;
    }
    let (xattrs, streams) = (has(subject, Capabilities::XATTRS), has(subject, Capabilities::STREAMS));
    let root = subject.store().root();
    let node = file(&root, "f");
    write(&*node, 0, b"then");
    root.link(name("g"), &*node, MAY).unwrap();
    file(&directory(&root, "d"), "inside");
    if streams {
        write(&*node.create_stream(stream_name("s"), MAY).unwrap(), 0, b"beside");
    }
    if xattrs {
        node.set_xattr(b"a", b"1", XattrMode::Set, MAY).unwrap();
    }
    let snapshot = take(subject);
    write(&*node, 0, b"NOW!");
    root.remove_file(name("g"), MAY).unwrap();
    file(&root, "later");
    if streams {
        node.remove_stream(stream_name("s"), MAY).unwrap();
    }
    if xattrs {
        node.remove_xattr(b"a", MAY).unwrap();
    }
    drop((node, root));
    revert(subject, &snapshot);
    let root = subject.store().root();
    assert_eq!(names(&root), ["d", "f", "g"]);
    let node = find(&root, "f").unwrap();
    assert_eq!(read(&*node, 0, 9), b"then");
    assert_eq!((node.id(), attributes_of(&*node).links), (find(&root, "g").unwrap().id(), 2));
    assert_eq!(names(&find(&root, "d").unwrap()), ["inside"]);
    if streams {
        let stream = node.stream(stream_name("s"), MAY).unwrap();
        assert_eq!(read(&*stream, 0, 9), b"beside");
        write(&*stream, 0, b"BESIDE");
    }
    if xattrs {
        assert_eq!(node.xattrs(MAY).unwrap(), [b"a"]);
        assert_eq!(node.xattr(b"a", MAY).unwrap(), b"1");
    }
    write(&*node, 0, b"more");
    file(&root, "new");
    let view = open(subject, &snapshot);
    let then = find(&view.root(), "f").unwrap();
    assert_eq!((names(&view.root()).len(), read(&*then, 0, 9)), (3, b"then".to_vec()));
    if streams {
        assert_eq!(read(&*then.stream(stream_name("s"), MAY).unwrap(), 0, 9), b"beside");
    }
}

/// What was there before is a snapshot, and all others stay.
pub fn keep_the_state_of_before(subject: &mut dyn Subject) {
    if !can_revert(subject) {
        return;
    }
    let root = subject.store().root();
    let mut taken = Vec::new();
    for at in ["one", "two", "three"] {
        write(&*file(&root, at), 0, at.as_bytes());
        taken.push(take(subject));
    }
    write(&*file(&root, "four"), 0, b"four");
    drop(root);
    let before = revert(subject, &taken[0]);
    let parsed = SnapshotName::parse(&before.name).unwrap();
    assert_eq!((parsed.label(), parsed.secs()), (BEFORE_REVERT, before.taken.secs));
    assert_eq!(names(&subject.store().root()), ["one"]);
    taken.push(before);
    let listed = snapshots(subject).list(MAY).unwrap();
    assert_eq!(listed, taken);
    for (place, snapshot) in listed.iter().enumerate() {
        assert_eq!(names(&open(subject, snapshot).root()).len(), place + 1);
    }
    let then = find(&open(subject, &taken[3]).root(), "four").unwrap();
    assert_eq!(read(&*then, 0, 9), b"four");
    let refused = then.set_attributes(&crate::SetAttributes { size: Some(0), ..Default::default() }, MAY);
    assert_eq!(refused, Err(Error::ReadOnly));
}

/// Handles of before open nothing.
pub fn make_handles_stale(subject: &mut dyn Subject) {
    if !can_revert(subject) {
        return;
    }
    let root = subject.store().root();
    let node = file(&directory(&root, "d"), "f");
    let snapshot = take(subject);
    let later = file(&root, "later");
    let handles = [node.handle().unwrap(), later.handle().unwrap()];
    let in_snapshot = {
        let view = open(subject, &snapshot);
        find(&find(&view.root(), "d").unwrap(), "f").unwrap().handle().unwrap()
    };
    drop((root, node, later));
    let before = revert(subject, &snapshot);
    for handle in handles.iter().chain([&in_snapshot]) {
        let found = by_handle(subject.store(), handle);
        assert!(matches!(found, Err(Error::Stale | Error::BadHandle)), "{found:?}");
    }
    let found = by_handle(&*open(subject, &before), &handles[0]);
    assert!(matches!(found, Err(Error::Stale | Error::BadHandle)), "{found:?}");
    if has(subject, Capabilities::NATIVE_HANDLES) {
        assert!(by_handle(&*open(subject, &snapshot), &in_snapshot).is_ok());
    }
}

/// There, back again and to another one.
pub fn one_after_the_other(subject: &mut dyn Subject) {
    if !can_revert(subject) {
        return;
    }
    let first = take(subject);
    file(&subject.store().root(), "a");
    let second = take(subject);
    file(&subject.store().root(), "b");
    let before = revert(subject, &first);
    assert!(names(&subject.store().root()).is_empty());
    file(&subject.store().root(), "c");
    let again = revert(subject, &before);
    assert_eq!(names(&subject.store().root()), ["a", "b"]);
    revert(subject, &second);
    assert_eq!(names(&subject.store().root()), ["a"]);
    revert(subject, &again);
    assert_eq!(names(&subject.store().root()), ["c"]);
    for snapshot in snapshots(subject).list(MAY).unwrap() {
        snapshots(subject).remove(snapshot.id, MAY).unwrap();
    }
    assert_eq!(names(&subject.store().root()), ["c"]);
}

//! Checks that a snapshot and the store do not mix.

use std::io::IoSlice;

use super::{LABEL, by_handle, open, snapshots, take};
use crate::conformance::{
    MAY, Subject, attributes_of, directory, file, find, has, name, names, new, read, stream_name, write,
};
use crate::{
    Capabilities, Error, NewKind, NodeRef, Replace, SetAttributes, Stability, Storage, Wait, XattrMode,
};

/// An object of a snapshot has the number of the object that it is a picture of.
pub fn numbers_are_those_of_the_originals(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    let node = file(&dir, "f");
    let view = open(subject, &take(subject));
    let top = view.root();
    let dir_then = find(&top, "d").unwrap();
    let then = find(&dir_then, "f").unwrap();
    let numbers = |nodes: [&NodeRef; 3]| nodes.map(|node| node.id().number);
    assert_eq!(numbers([&top, &dir_then, &then]), numbers([&root, &dir, &node]));
    assert_eq!(attributes_of(&*then).id, then.id());
}

/// Whether what was found by a handle of another store is nothing.
fn is_nothing(found: crate::Result<NodeRef>) -> bool {
    matches!(found, Err(Error::BadHandle | Error::Stale))
}

/// A handle of the store opens nothing of a snapshot, nor the other way round, nor one of another snapshot.
pub fn handles_open_nothing_of_the_other(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    let node = file(&dir, "f");
    // Elsewhere streams have no handles.
    let streams = has(subject, Capabilities::STREAMS) && has(subject, Capabilities::NATIVE_HANDLES);
    if streams {
        node.create_stream(stream_name("s"), MAY).unwrap();
    }
    let views = [open(subject, &take(subject)), open(subject, &take(subject))];
    let nodes = |root: NodeRef| {
        let dir = find(&root, "d").unwrap();
        let node = find(&dir, "f").unwrap();
        let stream = streams.then(|| node.stream(stream_name("s"), MAY).unwrap());
        [Some(root), Some(dir), Some(node), stream].into_iter().flatten().collect::<Vec<_>>()
    };
    let stores: [&dyn Storage; 3] = [subject.store(), &*views[0], &*views[1]];
    for (place, store) in stores.iter().enumerate() {
        for node in nodes(store.root()) {
            let handle = node.handle().unwrap();
            assert_eq!(by_handle(*store, &handle).unwrap().id(), node.id());
            for (other_place, other) in stores.iter().enumerate() {
                assert!(
                    place == other_place || is_nothing(by_handle(*other, &handle)),
                    "{place} {other_place} {node:?}"
                );
            }
        }
    }
}

/// Handles of a snapshot find its objects when it is opened again, also after a restart.
pub fn handles_survive_restarts(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&directory(&root, "d"), "f");
    write(&*node, 0, b"then");
    let snapshot = take(subject);
    let handle = {
        let view = open(subject, &snapshot);
        find(&find(&view.root(), "d").unwrap(), "f").unwrap().handle().unwrap()
    };
    write(&*node, 0, b"NOW!");
    let live = node.handle().unwrap();
    drop((root, node));
    subject.restart();
    let view = open(subject, &snapshot);
    assert!(is_nothing(by_handle(&*view, &live)) && is_nothing(by_handle(subject.store(), &handle)));
    if has(subject, Capabilities::NATIVE_HANDLES) {
        assert_eq!(read(&*by_handle(&*view, &handle).unwrap(), 0, 9), b"then");
    }
}

/// Every change of a snapshot is refused because it is read-only.
pub fn refuse_every_change(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    write(&*node, 0, b"then");
    directory(&root, "d");
    let (xattrs, streams) = (has(subject, Capabilities::XATTRS), has(subject, Capabilities::STREAMS));
    if streams {
        node.create_stream(stream_name("s"), MAY).unwrap();
    }
    if xattrs {
        node.set_xattr(b"a", b"1", XattrMode::Set, MAY).unwrap();
    }
    let view = open(subject, &take(subject));
    assert!(!view.capabilities().contains(Capabilities::WRITE));
    assert_eq!(view.is_read_only(MAY), Ok(true));
    assert_eq!(subject.store().is_read_only(MAY), Ok(false));
    let top = view.root();
    let then = find(&top, "f").unwrap();
    let refused = Err(Error::ReadOnly);
    let set = |set: SetAttributes| then.set_attributes(&set, MAY).map(drop);
    let none = SetAttributes::default;
    assert_eq!(then.write(0, &[IoSlice::new(b"x")], Stability::Unstable, Wait::May(MAY)).map(drop), refused);
    assert_eq!(set(SetAttributes { size: Some(0), ..none() }), refused);
    assert_eq!(set(SetAttributes { mode: Some(0o600), ..none() }), refused);
    assert_eq!(set(SetAttributes { mtime: Some(crate::SetTime::Now), ..none() }), refused);
    for kind in [NewKind::Regular, NewKind::Directory, NewKind::Symlink(b"x"), NewKind::Fifo] {
        assert_eq!(top.create(name("new"), &new(kind), MAY).map(drop), refused, "{kind:?}");
    }
    assert_eq!(top.link(name("new"), &*then, MAY), refused);
    assert_eq!(top.remove_file(name("f"), MAY), refused);
    assert_eq!(top.remove_dir(name("d"), MAY), refused);
    assert_eq!(top.rename(name("f"), &*top, name("g"), Replace::Never, MAY), refused);
    assert_eq!(then.allocate(0, 1 << 20, true, MAY), refused);
    if xattrs {
        assert_eq!(then.set_security(Some(acl::SecurityDescriptor::default()), MAY).map(drop), refused);
        assert_eq!(then.set_xattr(b"b", b"1", XattrMode::Set, MAY), refused);
        assert_eq!(then.remove_xattr(b"a", MAY), refused);
    }
    if streams {
        assert_eq!(then.create_stream(stream_name("t"), MAY).map(drop), refused);
        assert_eq!(then.remove_stream(stream_name("s"), MAY), refused);
        assert_eq!(then.rename_stream(stream_name("s"), stream_name("t"), Replace::Never, MAY), refused);
        let stream = then.stream(stream_name("s"), MAY).unwrap();
        assert_eq!(
            stream.write(0, &[IoSlice::new(b"x")], Stability::Unstable, Wait::May(MAY)).map(drop),
            refused
        );
    }
    assert_eq!((names(&top), read(&*then, 0, 9)), (vec!["d".to_owned(), "f".to_owned()], b"then".to_vec()));
}

/// A call with nodes of the store and of a snapshot changes neither.
pub fn nodes_of_the_other_are_refused(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    let view = open(subject, &take(subject));
    let top = view.root();
    let then = find(&top, "f").unwrap();
    let refused = |result| matches!(result, Err(Error::CrossDevice | Error::ReadOnly));
    assert!(refused(root.link(name("new"), &*then, MAY)));
    assert!(refused(top.link(name("new"), &*node, MAY)));
    assert!(refused(root.rename(name("f"), &*top, name("new"), Replace::Never, MAY)));
    assert!(refused(top.rename(name("f"), &*root, name("new"), Replace::Never, MAY)));
    assert_eq!((names(&root), names(&top)), (vec!["f".to_owned()], vec!["f".to_owned()]));
}

/// Where the snapshots are is nothing that a client sees, neither in the store nor in a snapshot.
pub fn show_nothing_to_clients(subject: &mut dyn Subject) {
    let root = subject.store().root();
    file(&root, "f");
    let views = [open(subject, &take(subject)), open(subject, &take(subject))];
    for dir in [root, views[0].root(), views[1].root()] {
        assert_eq!(names(&dir), ["f"]);
    }
}

/// What was read of the one is not taken for the other's.
pub fn do_not_share_what_is_cached(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    let mut views = Vec::new();
    for round in 0..4_u8 {
        write(&*node, 0, &[round; 10]);
        let set = SetAttributes { mode: Some(0o600 + u32::from(round)), ..SetAttributes::default() };
        node.set_attributes(&set, MAY).unwrap();
        views.push(snapshots(subject).take(LABEL, MAY).map(|taken| open(subject, &taken)).unwrap());
        for (before, view) in (0_u8..).zip(&views) {
            let then = find(&view.root(), "f").unwrap();
            assert_eq!(read(&*then, 0, 99), [before; 10]);
            assert_eq!(attributes_of(&*then).mode & 0o777, 0o600 + u32::from(before));
        }
        assert_eq!(read(&*node, 0, 99), [round; 10]);
    }
}

/// Handles of the store lead to pictures of their objects, and those of a snapshot to the objects, where a store knows that.
pub fn handles_lead_to_pictures(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let kept = file(&directory(&root, "d"), "f");
    write(&*kept, 0, b"then");
    let snapshot = take(subject);
    let later = file(&root, "later");
    write(&*kept, 0, b"late");
    let (snapshots, view) = (snapshots(subject), open(subject, &snapshot));
    let live = kept.handle().unwrap();
    let there = match snapshots.handle_in(&live, snapshot.id) {
        Err(Error::NotSupported) => return,
        there => there.unwrap(),
    };
    let picture = by_handle(&*view, &there).unwrap();
    assert_eq!(read(&*picture, 0, 9), b"then");
    assert_eq!(picture.handle(), Ok(there));
    assert_eq!(snapshots.live_handle(&there, snapshot.id), Ok(live));
    let top = snapshots.handle_in(&root.handle().unwrap(), snapshot.id).unwrap();
    assert_eq!(by_handle(&*view, &top).unwrap().id(), view.root().id());
    let nowhere = snapshots.handle_in(&later.handle().unwrap(), snapshot.id).unwrap();
    assert_eq!(by_handle(&*view, &nowhere).unwrap_err(), Error::Stale);
    assert_eq!(snapshots.handle_in(&there, snapshot.id), Err(Error::BadHandle));
    assert_eq!(snapshots.live_handle(&live, snapshot.id), Err(Error::BadHandle));
}

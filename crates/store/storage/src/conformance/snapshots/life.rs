//! Checks of how snapshots come and go.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use super::{LABEL, by_handle, open, snapshots, take};
use crate::conformance::{MAY, Subject, directory, file, find, list, name, names, read, write};
use crate::{Error, Snapshot, SnapshotId, SnapshotName, Stability, Wait};

fn listed(subject: &dyn Subject) -> Vec<Snapshot> {
    snapshots(subject).list(MAY).unwrap()
}

/// Snapshots are listed by their time, also after a restart.
pub fn listed_by_time(subject: &mut dyn Subject) {
    assert_eq!(listed(subject), []);
    let taken = [take(subject), take(subject), take(subject)];
    assert_eq!(listed(subject), taken);
    subject.restart();
    assert_eq!(listed(subject), taken);
    assert!(taken.iter().all(|snapshot| snapshot.is_own));
}

/// Several in one second have a second each, so that clients can tell them apart.
pub fn taken_in_one_second(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let mut taken = Vec::new();
    for round in 0..5 {
        file(&root, &format!("f{round}"));
        taken.push(take(subject));
    }
    let seconds: BTreeSet<_> = taken.iter().map(|snapshot| snapshot.taken).collect();
    let ids: BTreeSet<_> = taken.iter().map(|snapshot| snapshot.id).collect();
    assert_eq!((seconds.len(), ids.len()), (5, 5));
    assert!(taken.is_sorted_by_key(|snapshot| snapshot.id), "later ones have higher numbers");
    assert!(seconds.iter().all(|second| second.nanos == 0));
    for (round, snapshot) in taken.iter().enumerate() {
        assert_eq!(names(&open(subject, snapshot).root()).len(), round + 1);
    }
}

/// A name has the label and the time. Labels that no name can have are refused.
pub fn named(subject: &mut dyn Subject) {
    let snapshot = snapshots(subject).take("hourly-9_A", MAY).unwrap();
    let parsed = SnapshotName::parse(&snapshot.name).unwrap();
    assert_eq!((parsed.label(), parsed.secs()), ("hourly-9_A", snapshot.taken.secs));
    for label in ["", ".", "..", "a.b", "a/b", "a b", "\0", "\u{fc}", &"x".repeat(65)] {
        assert_eq!(snapshots(subject).take(label, MAY), Err(Error::InvalidName), "{label:?}");
    }
    assert_eq!(listed(subject), [snapshot]);
}

/// A snapshot that is not there cannot be used.
pub fn unknown(subject: &mut dyn Subject) {
    let known = take(subject);
    for id in [SnapshotId(0), SnapshotId(known.id.0 + 1), SnapshotId(u32::MAX)] {
        assert_eq!(snapshots(subject).open(id, MAY).err(), Some(Error::NotFound));
        assert_eq!(snapshots(subject).remove(id, MAY), Err(Error::NotFound));
        if snapshots(subject).can_revert(MAY).is_ok() {
            assert_eq!(snapshots(subject).revert(id, MAY), Err(Error::NotFound));
        }
    }
    assert_eq!(listed(subject), [known]);
}

/// Whoever has a removed snapshot open reads what was there, or learns that it is gone.
pub fn removed_while_open(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&directory(&root, "d"), "f");
    write(&*node, 0, b"then");
    let (snapshot, other) = (take(subject), take(subject));
    let view = open(subject, &snapshot);
    let top = view.root();
    let dir = find(&top, "d").unwrap();
    let then = find(&dir, "f").unwrap();
    let handle = then.handle().unwrap();
    assert_eq!(read(&*then, 0, 2), b"th");
    snapshots(subject).remove(snapshot.id, MAY).unwrap();
    write(&*node, 0, b"NOW!");
    assert_eq!(listed(subject), std::slice::from_ref(&other));
    assert_eq!(snapshots(subject).open(snapshot.id, MAY).err(), Some(Error::NotFound));
    assert_eq!(snapshots(subject).remove(snapshot.id, MAY), Err(Error::NotFound));
    let mut into = [0; 4];
    match then.read(0, &mut into, Wait::May(MAY)) {
        Ok(count) => assert_eq!(into[..count], *b"then"),
        Err(e) => assert_eq!(e, Error::Stale),
    }
    for (at, place) in [("d", &top), ("f", &dir)] {
        match find(place, at) {
            Ok(found) => assert!(found.id() == dir.id() || found.id() == then.id()),
            Err(e) => assert!(matches!(e, Error::Stale | Error::NotFound), "{e}"),
        }
    }
    if let Ok(found) = by_handle(&*view, &handle) {
        assert_eq!(found.id(), then.id());
    }
    let other = open(subject, &other);
    let dir_then = find(&other.root(), "d").unwrap();
    assert_eq!(read(&*find(&dir_then, "f").unwrap(), 0, 9), b"then");
    drop((then, dir, top, view));
    assert_eq!(read(&*node, 0, 9), b"NOW!");
}

/// A number is not given again, and what is taken later is not what was removed.
pub fn removed_and_taken_again(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let mut ids = BTreeSet::new();
    for round in 0..4 {
        file(&root, &format!("f{round}"));
        let snapshot = take(subject);
        assert!(ids.last().is_none_or(|last| *last < snapshot.id));
        assert!(ids.insert(snapshot.id));
        assert_eq!(names(&open(subject, &snapshot).root()).len(), round + 1);
        snapshots(subject).remove(snapshot.id, MAY).unwrap();
        assert_eq!(listed(subject), []);
    }
}

/// Of a full store a snapshot can be taken, or there is no room for it; in both cases all others stay, and they can be
/// removed.
pub fn taken_of_a_full_store(subject: &mut dyn Subject) {
    if !subject.may_be_filled() {
        return;
    }
    let root = subject.store().root();
    write(&*file(&root, "f"), 0, b"then");
    let before = take(subject);
    let filler = file(&root, "filler");
    let block = vec![0xa5; 1 << 20];
    let mut end = 0;
    let full = loop {
        let slices = [std::io::IoSlice::new(&block)];
        match filler.write(end, &slices, Stability::Data, Wait::May(MAY)) {
            Ok(count) => end += count as u64,
            Err(e) => break e,
        }
        assert!(end < 4 << 30, "the store is not small");
    };
    assert_eq!(full, Error::NoSpace);
    let mut expected = vec![before.clone()];
    for _ in 0..3 {
        match snapshots(subject).take(LABEL, MAY) {
            Ok(snapshot) => expected.push(snapshot),
            Err(e) => assert_eq!(e, Error::NoSpace),
        }
        assert_eq!(listed(subject), expected);
    }
    for snapshot in &expected {
        let view = open(subject, snapshot);
        assert_eq!(read(&*find(&view.root(), "f").unwrap(), 0, 9), b"then");
    }
    root.remove_file(name("filler"), MAY).unwrap();
    for snapshot in &expected {
        snapshots(subject).remove(snapshot.id, MAY).unwrap();
    }
    assert_eq!(listed(subject), []);
    assert_eq!(list(&root, 0).len(), 1);
}

/// Calls at the same time give each snapshot a number, a name and a second of its own.
pub fn taken_side_by_side(subject: &mut dyn Subject) {
    let taken = Mutex::new(Vec::new());
    let shared = snapshots(subject);
    let mine = |label: &str| {
        for round in 0..4 {
            let snapshot = shared.take(label, MAY).unwrap();
            if round % 2 == 0 {
                shared.remove(snapshot.id, MAY).unwrap();
            } else {
                taken.lock().push(snapshot);
            }
        }
    };
    subject.at_once(&[&|| mine("a"), &|| mine("b"), &|| mine("a")]);
    let mut taken = taken.into_inner();
    taken.sort_by_key(|snapshot| snapshot.taken);
    assert_eq!(listed(subject), taken);
    let seconds: BTreeSet<_> = taken.iter().map(|snapshot| snapshot.taken).collect();
    assert_eq!(seconds.len(), 6);
}

/// Those in which a path leads to something are told apart from the others, whatever is at the path now.
pub fn asked_for_a_path(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let before = take(subject).id;
    let dir = directory(&root, "d");
    file(&dir, "f");
    file(&root, "g");
    let with = take(subject).id;
    dir.remove_file(name("f"), MAY).unwrap();
    root.remove_file(name("g"), MAY).unwrap();
    file(&directory(&root, "g"), "now");
    let after = take(subject).id;
    let removed = take(subject).id;
    snapshots(subject).remove(removed, MAY).unwrap();
    let all = [before, with, after, removed, SnapshotId(0)];
    let having = |path: &str| snapshots(subject).with_path(path.as_bytes(), &all, MAY).unwrap();
    assert_eq!(having(""), [before, with, after]);
    assert_eq!(having("d"), [with, after]);
    assert_eq!(having("d/f"), [with]);
    assert_eq!(having("g"), [with, after]);
    assert_eq!(having("g/now"), [after], "a file has nothing below it");
    assert_eq!(having("nothing/there"), []);
    assert_eq!(snapshots(subject).with_path(b"d", &[after], MAY).unwrap(), [after]);
}

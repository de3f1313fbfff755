//! Checks of concurrent calls.

use crate::conformance::MAY;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{Ended, Subject, attributes_of, directory, file, find, list, name, names, new, read, write};
use crate::{Error, NewKind, Replace};

const ROUNDS: usize = 100;

/// Of several threads that create the same name, exactly one succeeds.
pub fn one_creator_wins(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let won = AtomicUsize::new(0);
    let create = || {
        for round in 0..ROUNDS {
            match root.create(name(&format!("f{round}")), &new(NewKind::Regular), MAY) {
                Ok(_) => _ = won.fetch_add(1, Ordering::Relaxed),
                Err(e) => assert_eq!(e, Error::Exists),
            }
        }
    };
    subject.at_once(&[&create, &create, &create, &create]);
    assert_eq!(won.into_inner(), ROUNDS);
    assert_eq!(names(&root).len(), ROUNDS);
}

/// A file that is moved back and forth is always at one of the two places, and a replaced name always exists.
pub fn renames_are_atomic(subject: &mut dyn Subject) {
    let root = subject.store().root();
    file(&root, "stable");
    let done = AtomicBool::new(false);
    let rename = || {
        let _ended = Ended(&done);
        for round in 0..ROUNDS {
            let at = format!("new{round}");
            file(&root, &at);
            root.rename(name(&at), &*root, name("stable"), Replace::Yes, MAY).unwrap();
        }
    };
    let look = || {
        while !done.load(Ordering::Relaxed) {
            let node = find(&root, "stable").unwrap();
            assert!(attributes_of(&*node).links <= 1);
        }
    };
    subject.at_once(&[&rename, &look, &look]);
    assert_eq!(names(&root), ["stable"]);
}

/// A name that is replaced always exists, also when its object has another name; the other name stays.
pub fn renames_over_links_are_atomic(subject: &mut dyn Subject) {
    let root = subject.store().root();
    file(&root, "stable");
    let done = AtomicBool::new(false);
    let rename = || {
        let _ended = Ended(&done);
        for round in 0..ROUNDS {
            let stable = find(&root, "stable").unwrap();
            root.link(name(&format!("kept{round}")), &*stable, MAY).unwrap();
            let at = format!("new{round}");
            file(&root, &at);
            root.rename(name(&at), &*root, name("stable"), Replace::Yes, MAY).unwrap();
        }
    };
    let look = || {
        while !done.load(Ordering::Relaxed) {
            find(&root, "stable").unwrap();
        }
    };
    subject.at_once(&[&rename, &look, &look]);
    for round in 0..ROUNDS {
        let kept = find(&root, &format!("kept{round}")).unwrap();
        assert_eq!(attributes_of(&*kept).links, 1);
    }
    assert_eq!(names(&root).len(), ROUNDS + 1);
}

/// Writes to different ranges do not disturb each other.
pub fn writes_side_by_side(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    let write_stripe = |stripe: u8| {
        for row in 0..50 {
            write(&*node, (row * 4 + u64::from(stripe)) * 1000, &[stripe + 1; 1000]);
        }
    };
    let jobs = [0, 1, 2, 3].map(|stripe| move || write_stripe(stripe));
    subject.at_once(&[&jobs[0], &jobs[1], &jobs[2], &jobs[3]]);
    let whole = read(&*node, 0, 300_000);
    assert_eq!(whole.len(), 200_000);
    for (number, block) in whole.chunks(1000).enumerate() {
        let expected = u8::try_from(number % 4).unwrap() + 1;
        assert!(block.iter().all(|b| *b == expected), "block {number}");
    }
}

/// A listing shows each entry that stays exactly once.
pub fn lists_while_changing(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let dir = directory(&root, "d");
    for number in 0..200 {
        file(&dir, &format!("stays{number}"));
    }
    let done = AtomicBool::new(false);
    let change = || {
        let _ended = Ended(&done);
        for round in 0..ROUNDS * 4 {
            let at = format!("comes{}", round % 7);
            file(&dir, &at);
            dir.remove_file(name(&at), MAY).unwrap();
        }
    };
    let look = || {
        while !done.load(Ordering::Relaxed) {
            let entries = list(&dir, 0);
            let stay: Vec<_> = entries.iter().map(|e| &e.0).filter(|n| n.starts_with(b"stays")).collect();
            assert_eq!(stay.len(), 200);
            assert_eq!(stay.into_iter().collect::<BTreeSet<_>>().len(), 200);
        }
    };
    subject.at_once(&[&change, &look]);
}

/// Threads that look up an object at the same time find the same one.
pub fn one_object_one_number(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let ids: BTreeSet<_> = (0..ROUNDS).map(|n| file(&root, &format!("f{n}")).id()).collect();
    assert_eq!(ids.len(), ROUNDS);
    let look = || {
        for number in 0..ROUNDS {
            let node = find(&root, &format!("f{number}")).unwrap();
            assert_eq!(attributes_of(&*node).id, node.id());
            // A node's handle is the same for all callers.
            assert_eq!(node.handle().unwrap(), find(&root, &format!("f{number}")).unwrap().handle().unwrap());
        }
    };
    subject.at_once(&[&look, &look, &look]);
}

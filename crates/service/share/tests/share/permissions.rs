//! Security descriptors, and the permission bits that change with them, over a store that fails.

use std::sync::Arc;

use acl::{AccessMask, Ace, AceFlags, Acl, Control, SecurityDescriptor, Sid};
use anabranch_share::{Error, File, SecurityChange, Settings, Share, ShareId};
use storage::conformance::MAY;
use storage::fault::{self, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;
use storage::{Error as StorageError, FileKind, Name, SetAttributes, Storage, Wait, Want};

use super::{make, root};

/// A list that has no room leaves the one before it in force.
#[tokio::test]
async fn a_list_that_cannot_be_stored_opens_nothing() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let share = Share::new(ShareId(1), Settings::new("data"), Arc::clone(&store) as Arc<dyn Storage>);
    let found = make(&share, &root(), "file", FileKind::Regular, 0o600).await;
    let change = |aces| SecurityChange {
        dacl: Some((Control::DACL_PRESENT, Some(Acl { revision: 2, aces }))),
        ..SecurityChange::default()
    };
    let deny = |uid| Ace::deny(Sid::of_user(uid), AccessMask::READ_DATA, AceFlags::empty());
    let everybody = Ace::allow(Sid::EVERYONE, AccessMask::READ_DATA, AceFlags::empty());
    let file = File::Stateless(found.node.clone());
    share.set_security(&root(), &file, change(vec![deny(10)])).await.unwrap();
    let before = share.security(&root(), &found.node).await.unwrap();
    store.inject(Rule::always(fault::Call::SetSecurity, Fault::Fail(StorageError::NoSpace)));
    let refused = share.set_security(&root(), &file, change(vec![deny(10), everybody])).await;
    assert_eq!(refused, Err(Error::Storage(StorageError::NoSpace)));
    assert_eq!(share.security(&root(), &found.node).await.unwrap(), before);
}

/// A list is set while the store fails from some change on, or once: the file has the old permissions or the new ones.
#[tokio::test]
async fn a_list_and_its_mode_change_together() {
    let change = |owner: u32, aces| SecurityChange {
        owner: Some(Sid::of_user(owner)),
        dacl: Some((Control::DACL_PRESENT, Some(Acl { revision: 2, aces }))),
        ..SecurityChange::default()
    };
    let deny = |uid| Ace::deny(Sid::of_user(uid), AccessMask::READ_DATA, AceFlags::empty());
    let allow = |sid, access| Ace::allow(sid, access, AceFlags::empty());
    let old = || change(7, vec![deny(10), allow(Sid::EVERYONE, AccessMask::READ_DATA)]);
    let news = [
        change(7, vec![deny(11), allow(Sid::EVERYONE, AccessMask::FILE_ALL)]),
        change(8, vec![deny(12), allow(Sid::of_user(8), AccessMask::FILE_ALL)]),
        change(8, vec![allow(Sid::of_user(8), AccessMask::FILE_ALL)]),
        change(7, vec![deny(13), allow(Sid::EVERYONE, AccessMask::READ_DATA)]),
    ];
    let [always, once] = [u64::MAX, 1];
    let faults = (0..6).flat_map(|skip| {
        [
            (fault::Call::SetAttributes, always),
            (fault::Call::SetSecurity, always),
            (fault::Call::SetSecurity, once),
        ]
        .map(|(call, times)| Rule { call, skip, times, fault: Fault::Fail(StorageError::NoSpace) })
    });
    let faults: Vec<_> = faults.collect();
    let pairs = faults.iter().flat_map(|one| faults.iter().map(move |other| [one, other]));
    let (mut refused, mut done) = (0, 0);
    for (new, [one, other]) in news.iter().flat_map(|new| pairs.clone().map(move |pair| (new, pair))) {
        let memory = Arc::new(MemoryStore::new());
        let store = Arc::new(FaultyStore::new(Arc::clone(&memory) as Arc<dyn Storage>));
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::clone(&store) as Arc<dyn Storage>);
        let found = make(&share, &root(), "file", FileKind::Regular, 0o600).await;
        let file = File::Stateless(found.node.clone());
        share.set_security(&root(), &file, old()).await.unwrap();
        let before = in_force(&memory);
        store.inject(one.clone());
        store.inject(other.clone());
        let outcome = share.set_security(&root(), &file, new.clone()).await;
        let after = in_force(&memory);
        store.clear();
        share.set_security(&root(), &file, new.clone()).await.unwrap();
        let wanted = in_force(&memory);
        let is_closed = after == (before.0 & 0o700, before.1, None);
        assert!(after == before || after == wanted || is_closed, "{new:?}, {one:?}, {other:?}: {after:?}");
        match outcome {
            Ok(()) => assert_eq!(after, wanted),
            Err(e) => assert_eq!(e, Error::Storage(StorageError::NoSpace)),
        }
        *if outcome.is_ok() { &mut done } else { &mut refused } += 1;
    }
    assert!(refused > 100 && done > 100, "{refused} and {done}");
}

/// A list that could not be set completely does not come into force later, when only the permission bits are set.
#[tokio::test]
async fn an_interrupted_list_stays_away() {
    let memory = Arc::new(MemoryStore::new());
    let share = Share::new(ShareId(1), Settings::new("data"), Arc::clone(&memory) as Arc<dyn Storage>);
    let found = make(&share, &root(), "file", FileKind::Regular, 0o600).await;
    let node = memory.root().lookup(Name::new(b"file").unwrap(), Wait::May(MAY)).unwrap();
    node.prepare_security(SecurityDescriptor::of_mode(0o777, false, 7, 7), (0o640, (0, 0)), MAY).unwrap();
    let set = SetAttributes { mode: Some(0o640), ..SetAttributes::default() };
    share.set_attributes(&root(), &File::Stateless(found.node), &set, None).await.unwrap();
    assert_eq!(in_force(&memory), (0o640, (0, 0), None));
}

/// The permission bits, the owners and the descriptor in force of the file.
fn in_force(store: &MemoryStore) -> (u32, (u32, u32), Option<Arc<SecurityDescriptor>>) {
    let node = store.root().lookup(Name::new(b"file").unwrap(), Wait::May(MAY)).unwrap();
    let now = node.attributes(Want::empty(), Wait::May(MAY)).unwrap();
    (now.mode & 0o777, (now.uid, now.gid), node.security(&now, Wait::May(MAY)).unwrap())
}

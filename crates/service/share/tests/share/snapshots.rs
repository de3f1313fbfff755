//! A share at a snapshot.

use anabranch_share::{Entrance, IDLE_VIEWS_MAX, Peer, Protocols, ReadOnly, Rules, ShareTable};
use storage::{Snapshot, SnapshotId};

use super::*;

/// A share whose file `d/f` says `old` in a snapshot and `new` now.
async fn with_snapshot(settings: Settings) -> (Arc<MemoryStore>, Arc<Share>, Snapshot) {
    let store = Arc::new(MemoryStore::new());
    let share = Share::new(ShareId(1), settings, Arc::clone(&store) as Arc<dyn Storage>);
    make(&share, &root(), "d", FileKind::Directory, 0o755).await;
    let file = File::Stateless(make(&share, &root(), "d/f", FileKind::Regular, 0o640).await.node);
    share.write(&root(), &file, 0, b"old".to_vec(), Stability::Unstable).await.unwrap();
    let snapshot = take(&store);
    share.write(&root(), &file, 0, b"new".to_vec(), Stability::Unstable).await.unwrap();
    (store, share, snapshot)
}

fn take(store: &Arc<MemoryStore>) -> Snapshot {
    store.snapshots().unwrap().take("test", MAY).unwrap()
}

fn remove(store: &Arc<MemoryStore>, id: SnapshotId) {
    store.snapshots().unwrap().remove(id, MAY).unwrap();
}

/// Until the list is read again.
async fn a_second_passes() {
    tokio::time::sleep(Duration::from_millis(1100)).await;
}

async fn text(share: &Arc<Share>, path: &str) -> Vec<u8> {
    let file = File::Stateless(find(share, &root(), path).await.unwrap().node);
    share.read(&root(), &file, 0, vec![0; 3]).await.unwrap().0
}

#[tokio::test]
async fn it_shows_what_was_there_and_takes_no_changes() {
    let (_store, share, snapshot) = with_snapshot(Settings::new("data")).await;
    assert_eq!(share.snapshots(&root()).await.unwrap()[..], *std::slice::from_ref(&snapshot));
    let then = share.at(&root(), snapshot.id).await.unwrap();
    assert_eq!((then.snapshot(), share.snapshot()), (Some(&snapshot), None));
    assert_eq!((text(&then, "d/f").await, text(&share, "d/f").await), (b"old".to_vec(), b"new".to_vec()));
    assert_eq!((then.id(), then.name()), (share.id(), share.name()));
    assert!(then.is_read_only() && !share.is_read_only() && !then.has_snapshots() && share.has_snapshots());
    let found = find(&then, &root(), "d/f").await.unwrap();
    assert!(!then.maximal_access(&root().caller, &found).contains(Access::WRITE_DATA));
    assert_eq!(then.why_refused(&found, Access::WRITE_DATA), Error::ReadOnly(ReadOnly::Snapshot));
    let removed = then.remove(&root(), found.dir.as_ref().unwrap(), b"f", false).await;
    assert_eq!(removed.unwrap_err(), Error::ReadOnly(ReadOnly::Snapshot));
    // The list of then counts.
    let refused = open_as(&then, &user(7), &found).await.unwrap_err();
    assert_eq!(refused, Error::AccessDenied);
    // Nobody meets the clients of the share here.
    let live = find(&share, &root(), "d/f").await.unwrap();
    let alone = open(&share, &live, Access::READ_DATA | Access::WRITE_DATA, Sharing::empty()).unwrap();
    let beside = open(&then, &found, Access::READ_DATA, Sharing::empty()).unwrap();
    assert_ne!(alone.key(), beside.key());
    assert_eq!(share.open_count().0, 2, "they count together");
    then.close(&root(), &beside).await.unwrap();
    assert_eq!((share.open_count().0, then.open_count().0), (1, 1));
}

async fn open_as(share: &Arc<Share>, who: &Call, found: &Found) -> Result<Arc<Open>, Error> {
    share.open(who, found, &OpenRequest::new(Access::READ_DATA, Sharing::all())).await
}

#[tokio::test]
async fn its_terms_and_rules_are_those_of_the_share() {
    let (_store, share, snapshot) = with_snapshot(Settings::new("data")).await;
    let table = ShareTable::new([Arc::clone(&share)]).unwrap();
    let then = share.at(&root(), snapshot.id).await.unwrap();
    let client = std::net::SocketAddr::from(([192, 0, 2, 7], 700));
    let entered = || then.entrance(Protocols::NFS, Peer::from(client)).map(|_: Entrance| ());
    let generation = then.rules_generation();
    assert!(entered().is_some());
    share.set_rules(Rules { clients: vec!["192.0.2.8".parse().unwrap()], ..Rules::default() });
    assert!(entered().is_none() && then.rules_generation() != generation);
    share.set_terms(Terms::ACCESS_BASED_ENUMERATION);
    assert_eq!(then.terms(), Terms::ACCESS_BASED_ENUMERATION);
    share.set_opens_max(3);
    assert_eq!(then.open_count(), (0, 3));
    table.withdraw(share.id()).unwrap();
    assert!(then.is_withdrawn());
}

#[tokio::test]
async fn there_is_one_view_at_a_snapshot_and_few_stay_open() {
    let (store, share, snapshot) = with_snapshot(Settings::new("data")).await;
    let others: Vec<_> = (0..=IDLE_VIEWS_MAX).map(|_| take(&store)).collect();
    let first = share.at(&root(), snapshot.id).await.unwrap();
    assert!(Arc::ptr_eq(&first, &share.at(&root(), snapshot.id).await.unwrap()));
    let mut seen = Vec::new();
    for other in &others {
        seen.push(Arc::downgrade(&share.at(&root(), other.id).await.unwrap()));
    }
    assert!(seen[0].upgrade().is_none(), "nobody used it, and others came");
    assert!(seen[1..].iter().all(|view| view.upgrade().is_some()));
    share.close_idle_views();
    assert!(seen[1..].iter().all(|view| view.upgrade().is_some()), "no minute has passed");
    assert!(Arc::ptr_eq(&first, &share.at(&root(), snapshot.id).await.unwrap()), "it was in use");
}

#[tokio::test]
async fn what_others_take_and_remove_is_seen_within_a_second() {
    let (store, share, snapshot) = with_snapshot(Settings::new("data")).await;
    let then = share.at(&root(), snapshot.id).await.unwrap();
    let second = take(&store);
    remove(&store, snapshot.id);
    a_second_passes().await;
    assert_eq!(share.snapshots(&root()).await.unwrap()[..], [second]);
    let gone = share.at(&root(), snapshot.id).await;
    assert_eq!(gone.unwrap_err(), Error::Storage(StorageError::NotFound));
    let missing = find(&then, &root(), "d/f").await.unwrap_err();
    assert!(matches!(missing, Error::Storage(StorageError::Stale | StorageError::NotFound)), "{missing}");
    assert_eq!(share.at(&root(), SnapshotId(77)).await.unwrap_err(), StorageError::NotFound.into());
    assert_eq!(share.alarms(), []);
}

#[tokio::test]
async fn what_a_transfer_takes_and_removes_is_seen_at_once() {
    let (store, share, snapshot) = with_snapshot(Settings::new("data")).await;
    for _ in 0..20 {
        let listed = share.snapshots(&root()).await.unwrap();
        assert!(!listed.is_empty());
        let second = take(&store);
        share.forget_listed_snapshots();
        assert!(share.snapshots(&root()).await.unwrap().contains(&second));
        remove(&store, second.id);
        share.forget_listed_snapshots();
        assert_eq!(share.snapshots(&root()).await.unwrap()[..], *std::slice::from_ref(&snapshot));
    }
}

#[tokio::test]
async fn what_the_server_takes_and_removes_is_seen_at_once() {
    let (_store, share, snapshot) = with_snapshot(Settings::new("data")).await;
    let listed =
        async || share.snapshots(&root()).await.unwrap().iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(listed().await, [snapshot.id]);
    let second = share.with_snapshots(|snapshots, may| snapshots.take("test", may)).await.unwrap().unwrap();
    assert_eq!(listed().await, [snapshot.id, second.id]);
    drop(share.at(&root(), snapshot.id).await.unwrap());
    let gone = snapshot.id;
    share.with_snapshots(move |snapshots, may| snapshots.remove(gone, may)).await.unwrap().unwrap();
    assert_eq!(share.at(&root(), gone).await.unwrap_err(), StorageError::NotFound.into());
    assert_eq!(listed().await, [second.id]);
}

#[tokio::test]
async fn versions_are_the_snapshots_in_which_the_path_is_there() {
    let (store, share, first) = with_snapshot(Settings::new("data")).await;
    make(&share, &root(), "d/g", FileKind::Regular, 0o640).await;
    let second = take(&store);
    let dir = find(&share, &root(), "d").await.unwrap();
    share.remove(&root(), &dir.node, b"f", false).await.unwrap();
    let third = take(&store);
    let versions = async |path: &str| share.versions(&root(), path.as_bytes()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(versions("").await, [first.clone(), second.clone(), third.clone()]);
        assert_eq!(versions("d/f").await, [first.clone(), second.clone()]);
        assert_eq!(versions("d/g").await, [second.clone(), third.clone()]);
        assert_eq!(versions("d/h").await, []);
    }
    // What is remembered of a path does not hide what comes and goes.
    remove(&store, second.id);
    let fourth = take(&store);
    a_second_passes().await;
    let later: Vec<_> = versions("d/g").await.iter().map(|version| version.id).collect();
    assert!(later.len() == 2 && later.contains(&third.id) && later.contains(&fourth.id));
    assert_eq!(versions("d/f").await, [first]);
}

#[tokio::test]
async fn a_store_without_snapshots_says_so() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = storage_local::LocalStore::open(place.path(), storage_local::LocalOptions::default());
    let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(store.unwrap()));
    let refused: Error = StorageError::NotSupported.into();
    assert!(!share.has_snapshots());
    assert_eq!(share.snapshots(&root()).await.unwrap_err(), refused);
    assert_eq!(share.versions(&root(), b"").await.unwrap_err(), refused);
    assert_eq!(share.at(&root(), SnapshotId(1)).await.unwrap_err(), refused);
}

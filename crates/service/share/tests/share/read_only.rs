//! What nobody may change: all of a read-only share, and an object of a snapshot in any share.

use anabranch_share::{CloneRule, Guard, ReadOnly, Result};
use storage::{Name, ObjectId, XattrMode};

use super::*;

#[tokio::test]
async fn a_read_only_share_changes_nothing() {
    let settings = Settings { terms: Terms::READ_ONLY, ..Settings::new("archive") };
    let share = Share::new(ShareId(1), settings, Arc::new(MemoryStore::new()));
    let top = share.root().clone();
    let made =
        share.create(&root(), &top, b"new", Case::Sensitive, object(FileKind::Regular, 0o644, "")).await;
    assert_eq!(made.unwrap_err(), Error::ReadOnly(ReadOnly::Share));
    let found = find(&share, &root(), "").await.unwrap();
    assert!(!share.maximal_access(&root().caller, &found).intersects(Access::WRITE_DATA | Access::DELETE));
    assert_eq!(share.read_only(top.id()), Some(ReadOnly::Share));
    assert_eq!(share.why_refused(&found, Access::WRITE_DATA), Error::AccessDenied);
}

/// A share with the file `d/f`, which has the stream `s` and the attribute `x`, and `then`, a snapshot of that.
async fn with_snapshot() -> Arc<Share> {
    let store = Arc::new(MemoryStore::new());
    let share = Share::new(ShareId(1), Settings::new("data"), Arc::clone(&store) as Arc<dyn Storage>);
    make(&share, &root(), "d", FileKind::Directory, 0o755).await;
    let found = make(&share, &root(), "d/f", FileKind::Regular, 0o644).await;
    let file = File::Stateless(Arc::clone(&found.node));
    share.write(&root(), &file, 0, b"old".to_vec(), Stability::Unstable).await.unwrap();
    share.set_xattr(&root(), &file, b"x", Some(b"1"), XattrMode::Set).await.unwrap();
    share.create_stream(&root(), &found, b"s").await.unwrap();
    store.add_snapshot(Name::new(b"then").unwrap()).unwrap();
    share.write(&root(), &file, 0, b"new".to_vec(), Stability::Unstable).await.unwrap();
    share
}

fn refused<T: std::fmt::Debug>(outcome: Result<T>) {
    assert_eq!(outcome.unwrap_err(), Error::ReadOnly(ReadOnly::Snapshot));
}

fn everything() -> OpenRequest {
    OpenRequest::new(Access::all(), Sharing::all())
}

/// An open that allows everything: its maker has not asked what may be done.
fn granted(share: &Arc<Share>, found: &Found) -> Arc<Open> {
    match share.open_granted(found, &everything()).unwrap() {
        Admission::Done(open) => open,
        Admission::Wait(_) => panic!("it waits"),
    }
}

#[tokio::test]
async fn an_object_of_a_snapshot_is_read_as_it_was() {
    let share = with_snapshot().await;
    let (old, live) = (find(&share, &root(), "then/d/f").await, find(&share, &root(), "d/f").await);
    let (old, live) = (old.unwrap(), live.unwrap());
    assert_eq!(old.node.id(), ObjectId { snapshot: 1, ..live.node.id() });
    assert_eq!(share.read_only(live.node.id()), None);
    // Both are open at once, and stay apart.
    let opened = open(&share, &old, Access::READ_DATA, Sharing::READ).unwrap();
    let beside = open(&share, &live, Access::WRITE_DATA, Sharing::empty()).unwrap();
    for (file, data) in
        [(File::Open(Arc::clone(&opened)), b"old"), (File::Stateless(Arc::clone(&old.node)), b"old")]
    {
        let read = share.read(&root(), &file, 0, vec![0; 3]).await.unwrap();
        assert_eq!(read.0, data);
    }
    share.close(&root(), &opened).await.unwrap();
    share.close(&root(), &beside).await.unwrap();
    let file = File::Stateless(Arc::clone(&old.node));
    assert_eq!(share.xattr(&root(), &old.node, b"x").await.unwrap(), b"1");
    let stream = share.find_stream(&root(), &old, b"s").await.unwrap().unwrap();
    assert_eq!(share.read_only(stream.node.id()), Some(ReadOnly::Snapshot));
    let dir = find(&share, &root(), "then/d").await.unwrap();
    let listed = share.list(&root(), &dir.node, 0, 10, Some(Want::empty())).await.unwrap();
    assert_eq!(listed.entries.iter().map(|entry| &entry.name).collect::<Vec<_>>(), [b"f"]);
    // A file is restored from its picture.
    let restored = File::Stateless(Arc::clone(&live.node));
    share.copy_range(&root(), (&file, 0), (&restored, 0), 3).await.unwrap();
    assert_eq!(share.read(&root(), &restored, 0, vec![0; 3]).await.unwrap().0, b"old");
}

#[tokio::test]
async fn an_object_of_a_snapshot_gives_no_right_to_change_it() {
    let share = with_snapshot().await;
    for path in ["then", "then/d", "then/d/f"] {
        let found = find(&share, &root(), path).await.unwrap();
        let maximal = share.maximal_access(&root().caller, &found);
        assert!(maximal.contains(Access::READ_DATA | Access::READ_EA | Access::READ_CONTROL), "{path}");
        let changes = Access::WRITE_DATA | Access::APPEND_DATA | Access::WRITE_EA | Access::DELETE_CHILD;
        let of_attributes = Access::WRITE_ATTRIBUTES | Access::WRITE_DAC | Access::WRITE_OWNER;
        assert!(!maximal.intersects(changes | of_attributes | Access::DELETE), "{path}");
        refused(open(&share, &found, Access::READ_DATA | Access::WRITE_DATA, Sharing::all()));
        assert_eq!(share.why_refused(&found, Access::READ_DATA), Error::AccessDenied);
        let request = OpenRequest { delete_on_close: true, ..everything() };
        refused(share.open_granted(&found, &request));
    }
}

/// Whoever asks, with an open that allows it or without one: the store is not asked.
#[tokio::test]
async fn an_object_of_a_snapshot_takes_no_data() {
    let share = with_snapshot().await;
    let found = find(&share, &root(), "then/d/f").await.unwrap();
    let live = File::Stateless(find(&share, &root(), "d/f").await.unwrap().node);
    let open = granted(&share, &found);
    refused(share.open_overwriting(&root(), &found, &everything(), None).await);
    refused(share.allocate(&root(), &open, 9).await);
    refused(share.reserve_space(&root(), &open, 9).await);
    refused(share.set_sparse(&root(), &open, true).await);
    for file in [File::Open(open), File::Stateless(Arc::clone(&found.node))] {
        refused(share.write(&root(), &file, 0, b"new".to_vec(), Stability::Unstable).await);
        refused(share.zero_range(&root(), &file, 0, 1).await);
        refused(share.reserve_range(&root(), &file, 0, 9).await);
        refused(share.copy_range(&root(), (&live, 0), (&file, 0), 1).await);
        refused(share.clone_range(&root(), (&live, 0), (&file, 0), 3, CloneRule::Grows).await);
    }
    assert_eq!(share.alarms(), []);
}

#[tokio::test]
async fn an_object_of_a_snapshot_keeps_its_attributes() {
    let share = with_snapshot().await;
    let found = find(&share, &root(), "then/d/f").await.unwrap();
    let stream = share.find_stream(&root(), &found, b"s").await.unwrap().unwrap();
    let size = SetAttributes { size: Some(0), ..SetAttributes::default() };
    let mode = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
    for found in [&found, &stream] {
        let open = granted(&share, found);
        for file in [File::Open(Arc::clone(&open)), File::Stateless(Arc::clone(&found.node))] {
            for set in [size, mode] {
                refused(share.set_attributes(&root(), &file, &set, Guard::default()).await);
            }
            refused(share.set_xattr(&root(), &file, b"x", None, XattrMode::Set).await);
            let change = ExtendedAttribute { name: b"x".to_vec(), value: b"2".to_vec() };
            refused(share.set_extended_attributes(&root(), &file, vec![change]).await);
            let change = SecurityChange { owner: None, group: None, dacl: None };
            refused(share.set_security(&root(), &file, change).await);
        }
        refused(share.set_delete_pending(&root(), &open, true).await);
    }
    refused(share.create_stream(&root(), &found, b"t").await);
    refused(share.rename_stream(&root(), &granted(&share, &stream), b"t", Replace::Never).await);
    assert_eq!(share.alarms(), []);
}

#[tokio::test]
async fn a_directory_of_a_snapshot_keeps_its_names() {
    let share = with_snapshot().await;
    make(&share, &root(), "e", FileKind::Directory, 0o755).await;
    let node = async |path| find(&share, &root(), path).await.unwrap().node;
    let (old, live, top) = (node("then/d").await, node("d").await, share.root().clone());
    let empty = object(FileKind::Regular, 0o644, "");
    refused(share.create(&root(), &old, b"g", Case::Sensitive, empty).await);
    refused(share.remove(&root(), &old, b"f", false).await);
    // An object of a snapshot gets no name elsewhere, and nothing gets one in a snapshot.
    let (old_file, file) = (node("then/d/f").await, node("d/f").await);
    refused(share.link(&root(), &file, &old, b"g", Case::Sensitive, None).await);
    refused(share.link(&root(), &old_file, &live, b"g", Case::Sensitive, None).await);
    refused(share.rename(&root(), at(&old, b"f"), at(&live, b"g"), MOVE).await);
    refused(share.rename(&root(), at(&live, b"f"), at(&old, b"g"), MOVE).await);
    refused(share.rename(&root(), at(&old, b"f"), at(&old, b"g"), MOVE).await);
    // The snapshot itself has its name in a directory that does take changes.
    refused(share.remove(&root(), &top, b"then", true).await);
    refused(share.rename(&root(), at(&top, b"then"), at(&live, b"g"), MOVE).await);
    let replacing = RenameHow { replace: Replace::Yes, ..MOVE };
    refused(share.rename(&root(), at(&top, b"e"), at(&top, b"then"), replacing).await);
    assert_eq!(share.alarms(), []);
}

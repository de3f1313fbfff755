//! What is open stands in the way of a directory's rename by an SMB client.

use super::*;

/// A share with the directories `d/sub` and `other`.
async fn share_of(store: Arc<dyn Storage>) -> Arc<Share> {
    let share = Share::new(ShareId(1), Settings::new("data"), store);
    for name in ["d", "d/sub", "other"] {
        make(&share, &root(), name, FileKind::Directory, 0o755).await;
    }
    share
}

async fn opened(share: &Arc<Share>, path: &str) -> Arc<Open> {
    open(share, &find(share, &root(), path).await.unwrap(), Access::READ_DATA, Sharing::all()).unwrap()
}

async fn node(share: &Arc<Share>, path: &str) -> NodeRef {
    find(share, &root(), path).await.unwrap().node
}

async fn is_held(share: &Arc<Share>, path: &str) -> bool {
    let node = node(share, path).await;
    let held = share.stays_open(&node).await;
    assert_eq!(share.is_open(&node), held);
    held
}

async fn move_name(share: &Arc<Share>, (from, name): (&str, &str), (to, new): (&str, &str)) {
    let (from, to) = (node(share, from).await, node(share, to).await);
    share.rename(&root(), at(&from, name.as_bytes()), at(&to, new.as_bytes()), MOVE).await.unwrap();
}

#[tokio::test]
async fn what_is_open_is_in_the_way_of_all_directories_above_it() {
    let share = share_of(Arc::new(MemoryStore::new())).await;
    make(&share, &root(), "d/sub/file", FileKind::Regular, 0o644).await;
    make(&share, &root(), "d/subway", FileKind::Regular, 0o644).await;
    let file = opened(&share, "d/sub/file").await;
    assert!(is_held(&share, "d").await && is_held(&share, "d/sub").await);
    assert!(!is_held(&share, "other").await);
    share.close(&root(), &file).await.unwrap();
    let beside = opened(&share, "d/subway").await;
    assert!(is_held(&share, "d").await && !is_held(&share, "d/sub").await);
    share.close(&root(), &beside).await.unwrap();
    let itself = opened(&share, "d").await;
    assert!(!is_held(&share, "d").await, "nobody stands in the own way");
    let below = opened(&share, "d/sub").await;
    assert!(is_held(&share, "d").await && !is_held(&share, "d/sub").await);
    share.close(&root(), &itself).await.unwrap();
    share.close(&root(), &below).await.unwrap();
    assert!(!is_held(&share, "d").await);
}

#[tokio::test]
async fn what_moves_is_in_the_way_where_it_comes_to_lie() {
    let share = share_of(Arc::new(MemoryStore::new())).await;
    make(&share, &root(), "d/sub/file", FileKind::Regular, 0o644).await;
    let file = opened(&share, "d/sub/file").await;
    move_name(&share, ("d/sub", "file"), ("other", "new")).await;
    assert!(!is_held(&share, "d").await && is_held(&share, "other").await);
    move_name(&share, ("other", "new"), ("d/sub", "file")).await;
    assert!(is_held(&share, "d").await && !is_held(&share, "other").await);
    move_name(&share, ("d", "sub"), ("other", "sub")).await;
    assert!(!is_held(&share, "d").await && is_held(&share, "other").await, "with its directory");
    share.remove(&root(), &node(&share, "other/sub").await, b"file", false).await.unwrap();
    assert!(!is_held(&share, "other").await, "it has no name any more");
    share.close(&root(), &file).await.unwrap();
}

#[tokio::test]
async fn what_others_move_away_is_not_in_the_way() {
    let store = Arc::new(MemoryStore::new());
    let share = share_of(store.clone()).await;
    make(&share, &root(), "d/sub/file", FileKind::Regular, 0o644).await;
    let file = opened(&share, "d/sub/file").await;
    let (from, to) = (node(&share, "d/sub").await, node(&share, "other").await);
    let name = storage::Name::new(b"file").unwrap();
    from.rename(name, &*to, name, Replace::Never, MAY).unwrap();
    assert!(!is_held(&share, "d").await);
    share.close(&root(), &file).await.unwrap();
}

#[tokio::test]
async fn only_the_name_that_is_open_is_in_the_way() {
    let share = share_of(Arc::new(MemoryStore::new())).await;
    let found = make(&share, &root(), "d/file", FileKind::Regular, 0o644).await;
    let other = node(&share, "other").await;
    share.link(&root(), &found.node, &other, b"link", Case::Sensitive, None).await.unwrap();
    let file = opened(&share, "other/link").await;
    assert!(!is_held(&share, "d").await);
    let first = opened(&share, "d/file").await;
    assert!(is_held(&share, "d").await);
    share.close(&root(), &first).await.unwrap();
    share.close(&root(), &file).await.unwrap();
}

#[tokio::test]
async fn the_store_is_not_asked_for_each_open_file() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let share = share_of(store.clone()).await;
    let mut opens = Vec::new();
    for number in 0..100 {
        make(&share, &root(), &format!("other/{number}"), FileKind::Regular, 0o644).await;
        opens.push(opened(&share, &format!("other/{number}")).await);
    }
    let d = node(&share, "d").await;
    let before = store.calls(fault::Call::Path);
    assert!(!share.stays_open(&d).await);
    // Twice, for what is opened meanwhile: where the directory lies, and the other one.
    assert_eq!(store.calls(fault::Call::Path) - before, 4);
    for open in opens {
        share.close(&root(), &open).await.unwrap();
    }
}

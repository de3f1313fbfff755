//! Change notification: who watches a directory or a tree.

use anabranch_share::{
    Access, Case, Change, ChangeAction, ChangeKinds, File, NewObject, OpenRequest, Seen, Sharing, Watch,
};
use storage::{Error as StorageError, FileKind, SetAttributes, Stability};

use crate::{MOVE, at, find, make, object, open, root, share, user};

#[tokio::test]
async fn watches_see_changes_of_both_protocols() {
    let share = share();
    let dir = make(&share, &root(), "dir", FileKind::Directory, 0o755).await;
    make(&share, &root(), "dir/sub", FileKind::Directory, 0o755).await;
    let flat = share.watch(&root().caller, &dir.node, false, ChangeKinds::FILE_NAME).unwrap();
    let deep = share.watch(&root().caller, share.root(), true, ChangeKinds::all()).unwrap();
    make(&share, &root(), "dir/sub/file", FileKind::Regular, 0o644).await;
    assert_eq!(flat.take(), None, "not in this directory");
    let file = make(&share, &root(), "dir/file", FileKind::Regular, 0o644).await;
    let stateless = File::Stateless(file.node.clone());
    share.write(&root(), &stateless, 0, b"x".to_vec(), Stability::Unstable).await.unwrap();
    share.rename(&root(), at(&dir.node, b"file"), at(&dir.node, b"other"), MOVE).await.unwrap();
    let seen = |watch: &Watch| match watch.take() {
        Some(Seen::Changes(changes)) => {
            changes.into_iter().map(|c| (c.action, String::from_utf8(c.path).unwrap())).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let named =
        |list: &[(ChangeAction, &str)]| list.iter().map(|(a, p)| (*a, (*p).to_owned())).collect::<Vec<_>>();
    use ChangeAction::{Added, Modified, RenamedFrom, RenamedTo};
    assert_eq!(seen(&flat), named(&[(Added, "file"), (RenamedFrom, "file"), (RenamedTo, "other")]));
    assert_eq!(
        seen(&deep),
        named(&[
            (Added, "dir/sub/file"),
            (Added, "dir/file"),
            (Modified, "dir/file"),
            (RenamedFrom, "dir/file"),
            (RenamedTo, "dir/other"),
        ])
    );
    share.remove(&root(), &dir.node, b"other", false).await.unwrap();
    assert_eq!(seen(&flat), named(&[(ChangeAction::Removed, "other")]));
    drop((flat, deep));
    assert!(!share.changes().is_watched());
}

#[tokio::test]
async fn a_watch_that_nobody_reads_overflows() {
    let share = share();
    let watch = share.watch(&root().caller, share.root(), false, ChangeKinds::all()).unwrap();
    for n in 0..5000 {
        make(&share, &root(), &format!("f{n}"), FileKind::Regular, 0o644).await;
    }
    assert_eq!(watch.take(), Some(Seen::Overflow));
    assert_eq!(watch.take(), None);
    make(&share, &root(), "after", FileKind::Regular, 0o644).await;
    assert!(matches!(watch.take(), Some(Seen::Changes(list)) if list.len() == 1));
}

/// However many watch, what nobody reads is bounded: those that it is too much for look for themselves.
#[tokio::test]
async fn watches_that_nobody_reads_share_their_room() {
    let share = share();
    let top = share.root().clone();
    let watches: Vec<_> = (0..300)
        .map(|n| share.watch(&root().caller, &top, n % 2 == 0, ChangeKinds::FILE_NAME).unwrap())
        .collect();
    let name = |n: u32| format!("{n:0>250}").into_bytes();
    for n in 0..900 {
        let new = object(FileKind::Regular, 0o644, "");
        share.create(&root(), &top, &name(n), Case::Sensitive, new).await.unwrap();
    }
    let seen: Vec<_> = watches.iter().map(|watch| watch.take().unwrap()).collect();
    let bytes: usize = seen
        .iter()
        .map(|seen| match seen {
            Seen::Changes(changes) => changes.iter().map(|change| change.path.len()).sum(),
            Seen::Overflow | Seen::Gone => 0,
        })
        .sum();
    assert!(bytes > 16 << 20 && bytes <= 64 << 20, "{bytes}");
    assert!(seen.contains(&Seen::Overflow));
    // There is room again.
    share.remove(&root(), &top, &name(0), false).await.unwrap();
    assert!(watches.iter().all(|watch| matches!(watch.take(), Some(Seen::Changes(list)) if list.len() == 1)));
}

/// A watch of a tree sees what happens below, by its path from there, and nothing beside.
#[tokio::test]
async fn trees_are_watched_at_every_depth() {
    let share = share();
    for dir in ["a", "a/b", "a/b/c", "a2"] {
        make(&share, &root(), dir, FileKind::Directory, 0o755).await;
    }
    let mut watches = Vec::new();
    for dir in ["", "a", "a/b", "a/b/c", "a2"] {
        let dir = find(&share, &root(), dir).await.unwrap().node;
        watches.push(share.watch(&root().caller, &dir, true, ChangeKinds::all()).unwrap());
    }
    make(&share, &root(), "a/b/c/new", FileKind::Regular, 0o644).await;
    let seen: Vec<_> = watches.iter().map(Watch::take).collect();
    let added = |path: &str| {
        let change = Change { action: ChangeAction::Added, path: path.into() };
        Some(Seen::Changes(vec![change]))
    };
    assert_eq!(seen, [added("a/b/c/new"), added("b/c/new"), added("c/new"), added("new"), None]);
}

/// Who watches a tree hears nothing of directories that it could not look into.
#[tokio::test]
async fn a_watch_gives_no_names_away() {
    let share = share();
    for (dir, mode) in [("public", 0o755), ("private", 0o700), ("private/deep", 0o755), ("box", 0o733)] {
        make(&share, &root(), dir, FileKind::Directory, mode).await;
    }
    let watch = share.watch(&user(10).caller, share.root(), true, ChangeKinds::FILE_NAME).unwrap();
    for file in ["private/a", "private/deep/b", "box/c", "public/d"] {
        make(&share, &root(), file, FileKind::Regular, 0o644).await;
    }
    let Some(Seen::Changes(seen)) = watch.take() else { panic!("nothing was seen") };
    let seen: Vec<_> = seen.iter().map(|change| change.path.as_slice()).collect();
    assert_eq!(seen, [&b"public/d"[..]]);
}

#[tokio::test]
async fn who_watches_a_directory_hears_that_it_is_to_be_deleted() {
    let share = share();
    let dir = make(&share, &root(), "dir", FileKind::Directory, 0o755).await;
    let held = open(&share, &dir, Access::READ_DATA, Sharing::all()).unwrap();
    let watch = share.watch(&root().caller, &dir.node, false, ChangeKinds::all()).unwrap();
    let doomed = open(&share, &dir, Access::DELETE, Sharing::all()).unwrap();
    share.set_delete_pending(&root(), &doomed, true).await.unwrap();
    assert_eq!(watch.take(), Some(Seen::Gone));
    share.set_delete_pending(&root(), &doomed, false).await.unwrap();
    share.close(&root(), &doomed).await.unwrap();
    assert_eq!(watch.take(), None);
    let request = OpenRequest { delete_on_close: true, ..OpenRequest::new(Access::DELETE, Sharing::all()) };
    let doomed = share.open(&root(), &dir, &request).await.unwrap();
    assert_eq!(watch.take(), None, "it may still stay");
    share.close(&root(), &doomed).await.unwrap();
    assert_eq!(watch.take(), Some(Seen::Gone), "while somebody else has it open");
    share.close(&root(), &held).await.unwrap();
    assert_eq!(find(&share, &root(), "dir").await.unwrap_err(), StorageError::NotFound.into());
}

#[tokio::test]
async fn who_does_not_watch_for_names_sees_a_renamed_file_as_modified() {
    let share = share();
    make(&share, &root(), "old", FileKind::Regular, 0o644).await;
    let top = share.root().clone();
    let names =
        share.watch(&root().caller, &top, false, ChangeKinds::FILE_NAME | ChangeKinds::ATTRIBUTES).unwrap();
    let attributes = share.watch(&root().caller, &top, false, ChangeKinds::ATTRIBUTES).unwrap();
    share.rename(&root(), at(&top, b"old"), at(&top, b"new"), MOVE).await.unwrap();
    let seen = |watch: &Watch| match watch.take() {
        Some(Seen::Changes(list)) => list.into_iter().map(|c| (c.action, c.path)).collect(),
        _ => vec![],
    };
    let (from, to) = (ChangeAction::RenamedFrom, ChangeAction::RenamedTo);
    assert_eq!(seen(&names), [(from, b"old".to_vec()), (to, b"new".to_vec())]);
    assert_eq!(seen(&attributes), [(ChangeAction::Modified, b"new".to_vec())]);
}

#[tokio::test]
async fn new_objects_with_attributes_are_one_change() {
    let share = share();
    let watch = share.watch(&root().caller, share.root(), false, ChangeKinds::all()).unwrap();
    let set = SetAttributes { flags: Some(storage::FileFlags::HIDDEN), ..SetAttributes::default() };
    let new = NewObject { set, ..object(FileKind::Regular, 0o644, "") };
    let top = share.root().clone();
    share.create(&root(), &top, b"new", Case::Sensitive, new).await.unwrap();
    assert!(matches!(watch.take(), Some(Seen::Changes(list)) if list.len() == 1));
}

//! What is done to a file without an open: by its permissions alone.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use acl::{AccessMask, Ace, AceFlags, Acl, Control, Sid};
use anabranch_share::{
    Call, Caller, Case, CloneRule, Error, File, Identity, NewObject, Proof, SecurityChange, Settings, Share,
    ShareId,
};
use storage::memory::MemoryStore;
use storage::{Device, Error as StorageError, FileKind, SeekTo, SetAttributes, Stability, Want, XattrMode};

#[expect(dead_code, reason = "what other tests use")]
mod fronts;

use fronts::{NFS3, call};

fn share() -> Arc<Share> {
    Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()))
}

fn user(uid: u32) -> Call {
    call(&NFS3, Caller::new(Identity::unix(uid, uid, vec![]), Proof::Stated))
}

/// A file of user 7.
async fn file(share: &Arc<Share>, name: &str, mode: u32) -> File {
    let set = SetAttributes { uid: Some(7), gid: Some(7), ..SetAttributes::default() };
    let new = NewObject {
        kind: FileKind::Regular,
        target: vec![],
        device: Device::default(),
        mode,
        umask: 0,
        set,
        want: Want::empty(),
        security: None,
        mode_bounds: false,
    };
    let made = share.create(&user(0), share.root(), name.as_bytes(), Case::Sensitive, new).await;
    File::Stateless(made.unwrap().found.node)
}

async fn write(share: &Arc<Share>, file: &File, offset: u64, data: &[u8]) {
    share.write(&user(0), file, offset, data.to_vec(), Stability::Unstable).await.unwrap();
}

async fn read(share: &Arc<Share>, file: &File) -> Vec<u8> {
    let size = size(share, file).await;
    share.read(&user(0), file, 0, vec![0; usize::try_from(size).unwrap()]).await.unwrap().0
}

async fn size(share: &Arc<Share>, file: &File) -> u64 {
    share.attributes(&user(0), file.node(), Want::empty()).await.unwrap().size
}

const DENIED: Error = Error::AccessDenied;

#[tokio::test]
async fn extended_attributes_need_the_data_rights() {
    let share = share();
    let file = file(&share, "f", 0o640).await;
    let node = file.node();
    let set = |who: Call, mode| {
        let (share, file) = (Arc::clone(&share), file.clone());
        async move { share.set_xattr(&who, &file, b"one", Some(b"1"), mode).await }
    };
    let missing = Error::from(StorageError::NoAttribute);
    assert_eq!(set(user(8), XattrMode::Set).await.unwrap_err(), DENIED);
    assert_eq!(set(user(7), XattrMode::Replace).await.unwrap_err(), missing);
    let changed = set(user(7), XattrMode::Create).await.unwrap();
    assert!(changed.after.ctime > changed.before.ctime);
    assert_eq!(set(user(7), XattrMode::Create).await.unwrap_err(), StorageError::Exists.into());
    assert_eq!(share.xattr(&user(8), node, b"one").await, Err(DENIED));
    assert_eq!(share.xattr(&user(7), node, b"one").await.unwrap(), b"1");
    assert_eq!(share.xattr_names(&user(8), node).await, Err(DENIED));
    assert_eq!(share.xattr_names(&user(7), node).await.unwrap(), [b"one".to_vec()]);
    let remove = |who| {
        let (share, file) = (Arc::clone(&share), file.clone());
        async move { share.set_xattr(&who, &file, b"one", None, XattrMode::Replace).await }
    };
    assert_eq!(remove(user(8)).await.unwrap_err(), DENIED);
    remove(user(7)).await.unwrap();
    assert_eq!(remove(user(7)).await.unwrap_err(), missing);
}

#[tokio::test]
async fn holes_are_made_found_and_filled() {
    let share = share();
    let file = file(&share, "f", 0o640).await;
    write(&share, &file, 0, &[1; 3 * 65536]).await;
    assert_eq!(share.zero_range(&user(8), &file, 0, 1).await, Err(DENIED));
    share.zero_range(&user(7), &file, 65536, 65536).await.unwrap();
    assert_eq!(share.seek(&user(8), &file, 0, SeekTo::Hole).await, Err(DENIED));
    assert_eq!(share.seek(&user(7), &file, 0, SeekTo::Hole).await, Ok(Some(65536)));
    assert_eq!(share.seek(&user(7), &file, 65536, SeekTo::Data).await, Ok(Some(131_072)));
    assert_eq!(share.seek(&user(7), &file, 131_072, SeekTo::Hole).await, Ok(Some(196_608)));
    assert_eq!(share.seek(&user(7), &file, 196_608, SeekTo::Hole).await, Ok(None));
    assert_eq!(share.reserve_range(&user(8), &file, 0, 1).await, Err(DENIED));
    share.reserve_range(&user(7), &file, 196_600, 100).await.unwrap();
    assert_eq!(size(&share, &file).await, 196_700);
    assert_eq!(share.zero_range(&user(7), &file, u64::MAX, 2).await, Err(Error::InvalidRange));
}

#[tokio::test]
async fn clones_end_within_their_source() {
    let share = share();
    let (from, to) = (file(&share, "a", 0o640).await, file(&share, "b", 0o644).await);
    write(&share, &from, 0, b"0123456789").await;
    let (share, from, to) = (&share, &from, &to);
    let clone = |who, source, target, length| async move {
        share.clone_range(&user(who), source, target, length, CloneRule::Grows).await
    };
    let refused = Err(StorageError::InvalidArgument.into());
    assert_eq!(clone(7, (from, 0), (to, 0), 11).await, refused, "behind its end");
    assert_eq!(clone(7, (from, 0), (from, 4), 5).await, refused, "overlapping");
    assert_eq!(clone(8, (from, 0), (to, 0), 10).await, Err(DENIED));
    let within = share.clone_range(&user(7), (from, 0), (to, 0), 10, CloneRule::Within).await;
    assert_eq!(within, Err(StorageError::NotSupported.into()));
    clone(7, (from, 0), (to, 0), 10).await.unwrap();
    assert_eq!(read(share, to).await, b"0123456789", "the target grows");
}

#[tokio::test]
async fn copies_need_both_files() {
    let share = share();
    let (from, to) = (file(&share, "a", 0o640).await, file(&share, "b", 0o604).await);
    write(&share, &from, 0, b"0123456789").await;
    let copied = share.copy_range(&user(8), (&from, 2), (&to, 0), 3).await;
    assert_eq!(copied, Err(DENIED));
    share.copy_range(&user(7), (&from, 2), (&to, 0), 3).await.unwrap();
    assert_eq!(read(&share, &to).await, b"234");
}

#[tokio::test]
async fn a_list_is_set_by_who_may() {
    let share = share();
    let file = file(&share, "f", 0o644).await;
    let aces = vec![Ace::allow(Sid::of_user(9), AccessMask::FILE_READ, AceFlags::empty())];
    let dacl = Some((Control::DACL_PRESENT, Some(Acl { revision: 2, aces })));
    let change = SecurityChange { dacl, ..SecurityChange::default() };
    let refused = share.set_security(&user(8), &file, change.clone()).await;
    assert_eq!(refused, Err(Error::NotOwner));
    share.set_security(&user(7), &file, change).await.unwrap();
    assert!(share.read(&user(9), &file, 0, vec![0; 1]).await.is_ok());
    assert_eq!(share.read(&user(8), &file, 0, vec![0; 1]).await.unwrap_err(), DENIED);
}

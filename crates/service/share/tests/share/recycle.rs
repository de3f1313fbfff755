//! The recycle bin.

use std::time::SystemTime;

use anabranch_share::{ChangeAction, Seen};
use storage::FileFlags;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn with_bin(settings: &str, store: Arc<dyn Storage>) -> Arc<Share> {
    let recycle_bin = Some(settings.parse().unwrap());
    Share::new(ShareId(1), Settings { recycle_bin, ..Settings::new("data") }, store)
}

fn bin(settings: &str) -> Arc<Share> {
    with_bin(settings, Arc::new(MemoryStore::new()))
}

async fn file(share: &Arc<Share>, path: &str, data: &[u8]) -> Found {
    let made = make(share, &root(), path, FileKind::Regular, 0o644).await;
    let to = File::Stateless(made.node.clone());
    share.write(&root(), &to, 0, data.to_vec(), Stability::Unstable).await.unwrap();
    made
}

async fn remove(share: &Arc<Share>, path: &str) -> Result<(), Error> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let dir = find(share, &root(), dir).await.unwrap().node;
    share.remove(&root(), &dir, name.as_bytes(), false).await.map(|_| ())
}

async fn text(share: &Arc<Share>, path: &str) -> String {
    let file = File::Stateless(find(share, &root(), path).await.unwrap().node);
    let (data, count) = share.read(&root(), &file, 0, vec![0; 64]).await.unwrap();
    String::from_utf8(data[..count].to_vec()).unwrap()
}

async fn is_there(share: &Arc<Share>, path: &str) -> bool {
    match find(share, &root(), path).await {
        Ok(_) => true,
        Err(Error::Storage(StorageError::NotFound | StorageError::NotDirectory)) => false,
        Err(e) => panic!("{path}: {e}"),
    }
}

/// By the clock of the store.
async fn change_time(share: &Arc<Share>, path: &str) -> SystemTime {
    let ctime = find(share, &root(), path).await.unwrap().attributes.ctime;
    SystemTime::UNIX_EPOCH + Duration::new(u64::try_from(ctime.secs).unwrap(), ctime.nanos)
}

#[tokio::test]
async fn a_deleted_file_can_be_taken_back() {
    let share = bin("on");
    for dir in ["a", "a/b"] {
        make(&share, &root(), dir, FileKind::Directory, 0o755).await;
    }
    // Without an open, as NFS deletes.
    let before = file(&share, "a/b/f", b"one").await;
    remove(&share, "a/b/f").await.unwrap();
    assert!(!is_there(&share, "a/b/f").await);
    let kept = find(&share, &root(), ".recycle/a/b/f").await.unwrap();
    assert_eq!(kept.node.id(), before.node.id());
    // With an open, when it is closed, as SMB deletes.
    let found = file(&share, "a/b/f", b"two").await;
    let open = open(&share, &found, Access::DELETE, Sharing::all()).unwrap();
    share.set_delete_pending(&root(), &open, true).await.unwrap();
    share.close(&root(), &open).await.unwrap();
    assert!(!is_there(&share, "a/b/f").await);
    assert_eq!(text(&share, ".recycle/a/b/f").await, "one");
    assert_eq!(text(&share, ".recycle/a/b/Copy #1 of f").await, "two");
    let from = find(&share, &root(), ".recycle/a/b").await.unwrap().node;
    let to = find(&share, &root(), "a").await.unwrap().node;
    share.rename(&root(), at(&from, b"f"), at(&to, b"f"), MOVE).await.unwrap();
    assert_eq!(text(&share, "a/f").await, "one");
    // In the bin, deletion is for good.
    remove(&share, ".recycle/a/b/Copy #1 of f").await.unwrap();
    assert!(!is_there(&share, ".recycle/a/b/Copy #1 of f").await);
    assert!(!is_there(&share, ".recycle/.recycle").await);
}

#[tokio::test]
async fn who_has_the_file_open_keeps_it() {
    let share = bin("on");
    let found = file(&share, "f", b"one").await;
    let open = open(&share, &found, Access::READ_DATA | Access::WRITE_DATA, Sharing::all()).unwrap();
    remove(&share, "f").await.unwrap();
    let place = share.location(&open).unwrap();
    assert_eq!((place.parent.path().unwrap(), place.name), (b".recycle".to_vec(), b"f".to_vec()));
    share
        .write(&root(), &File::Open(Arc::clone(&open)), 3, b"two".to_vec(), Stability::Unstable)
        .await
        .unwrap();
    share.close(&root(), &open).await.unwrap();
    assert_eq!(text(&share, ".recycle/f").await, "onetwo");
}

#[tokio::test]
async fn what_is_no_loss_is_removed() {
    let share = bin("on largest=1KiB exclude=*.tmp exclude=cache/");
    make(&share, &root(), "cache", FileKind::Directory, 0o755).await;
    make(&share, &root(), "d", FileKind::Directory, 0o755).await;
    file(&share, "a.tmp", b"1").await;
    file(&share, "cache/f", b"1").await;
    file(&share, "large", &[1; 1025]).await;
    let temporary = file(&share, "temporary", b"1").await;
    let set = SetAttributes { flags: Some(FileFlags::TEMPORARY), ..SetAttributes::default() };
    share.set_attributes(&root(), &File::Stateless(temporary.node), &set, None).await.unwrap();
    let several = file(&share, "several", b"1").await;
    let top = share.root().clone();
    share.link(&root(), &several.node, &top, b"names", Case::Sensitive, None).await.unwrap();
    share
        .create(&root(), &top, b"link", Case::Sensitive, object(FileKind::Symlink, 0o777, "a.tmp"))
        .await
        .unwrap();
    for name in ["a.tmp", "cache/f", "large", "temporary", "several", "link"] {
        remove(&share, name).await.unwrap();
    }
    share.remove(&root(), &top, b"d", true).await.unwrap();
    assert!(!is_there(&share, ".recycle").await);
    // The last name is the file's.
    remove(&share, "names").await.unwrap();
    assert!(is_there(&share, ".recycle/names").await);
    share.set_recycle_bin(None);
    file(&share, "f", b"1").await;
    remove(&share, "f").await.unwrap();
    assert!(!is_there(&share, ".recycle/f").await);
}

#[tokio::test]
async fn what_is_in_the_bin_is_as_well_protected_as_before() {
    let share = bin("on");
    let top = share.root().clone();
    let open_to_all = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
    share.set_attributes(&root(), &File::Stateless(top), &open_to_all, None).await.unwrap();
    let dir = make(&share, &user(10), "secret", FileKind::Directory, 0o700).await;
    file(&share, "secret/f", b"1").await;
    // Somebody else has the name of the bin.
    make(&share, &user(20), ".recycle", FileKind::Directory, 0o777).await;
    assert_eq!(remove(&share, "secret/f").await, Err(Error::AccessDenied));
    assert!(is_there(&share, "secret/f").await);
    share.remove(&root(), share.root(), b".recycle", true).await.unwrap();
    make(&share, &root(), ".recycle", FileKind::Directory, 0o700).await;
    // Somebody else has made the directory in the bin before, to look into it later.
    let of = async |path: &str| {
        let node = find(&share, &root(), path).await.unwrap().node;
        let attributes = node.attributes(Want::empty(), Wait::May(MAY)).unwrap();
        (attributes.uid, attributes.gid, attributes.mode)
    };
    make(&share, &root(), "any", FileKind::Directory, 0o777).await;
    file(&share, "any/f", b"1").await;
    remove(&share, "any/f").await.unwrap();
    assert_eq!((of(".recycle").await, of(".recycle/any").await), ((0, 0, 0o777), (0, 0, 0o777)));
    make(&share, &user(20), ".recycle/secret", FileKind::Directory, 0o777).await;
    remove(&share, "secret/f").await.unwrap();
    let kept = ".recycle/Copy #1 of secret";
    assert_eq!((of(".recycle/secret").await, of(kept).await), ((20, 20, 0o777), (10, 10, 0o700)));
    let in_it = format!("{kept}/f");
    let refused = find(&share, &user(20), &in_it).await.map(|_| ());
    assert_eq!(refused, Err(Error::AccessDenied));
    assert!(find(&share, &user(10), &in_it).await.is_ok());
    // After a change of the descriptor, too; the directory of before stays as it is.
    let deny = Ace::deny(Sid::of_user(10), AccessMask::all(), AceFlags::empty());
    let dacl = Some((Control::DACL_PRESENT, Some(Acl { revision: 2, aces: vec![deny] })));
    let change = SecurityChange { dacl, ..SecurityChange::default() };
    share.set_security(&root(), &File::Stateless(dir.node.clone()), change).await.unwrap();
    for name in ["g", "h"] {
        file(&share, &format!("secret/{name}"), b"1").await;
        remove(&share, &format!("secret/{name}")).await.unwrap();
        assert!(is_there(&share, &format!(".recycle/Copy #2 of secret/{name}")).await);
    }
    let mirrored = find(&share, &root(), ".recycle/Copy #2 of secret").await.unwrap().node;
    let descriptor = async |node| share.security(&root(), node).await.unwrap();
    assert_eq!(descriptor(&mirrored).await, descriptor(&dir.node).await);
    assert_eq!(of(kept).await, (10, 10, 0o700));
}

#[tokio::test]
async fn a_full_disk_can_be_emptied_and_other_faults_lose_nothing() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let share = with_bin("on", Arc::clone(&store) as Arc<dyn Storage>);
    file(&share, "f", b"1").await;
    store.inject(Rule::once(fault::Call::Rename, Fault::Fail(StorageError::Io(5))));
    assert_eq!(remove(&share, "f").await, Err(Error::Storage(StorageError::Io(5))));
    assert_eq!(text(&share, "f").await, "1");
    for call in [fault::Call::Create, fault::Call::Rename] {
        file(&share, "g", b"1").await;
        let _ = share.remove(&root(), share.root(), b".recycle", true).await;
        store.inject(Rule::once(call, Fault::Fail(StorageError::NoSpace)));
        remove(&share, "g").await.unwrap();
        assert!(!is_there(&share, "g").await && !is_there(&share, ".recycle/g").await);
    }
    // A directory of the bin goes while a file is moved there.
    store.inject(Rule::once(fault::Call::Rename, Fault::Fail(StorageError::Stale)));
    remove(&share, "f").await.unwrap();
    assert!(is_there(&share, ".recycle/f").await);
    // A file is where the bin must be.
    let share = bin("on");
    file(&share, ".recycle", b"1").await;
    file(&share, "f", b"1").await;
    assert_eq!(remove(&share, "f").await, Err(Error::AccessDenied));
    assert!(is_there(&share, "f").await);
}

#[tokio::test]
async fn files_stay_as_long_as_the_settings_say() {
    let share = bin("on keep=30d");
    for dir in ["a", "a/b", "c"] {
        make(&share, &root(), dir, FileKind::Directory, 0o755).await;
    }
    for path in ["a/b/f", "c/g", "c/h", "i"] {
        file(&share, path, b"1").await;
        remove(&share, path).await.unwrap();
    }
    let now = change_time(&share, ".recycle/i").await;
    assert_eq!(share.empty_recycle_bin(now + 29 * DAY, MAY), Ok(0));
    assert!(is_there(&share, ".recycle/a/b/f").await);
    // What is open stays.
    let open_one = find(&share, &root(), ".recycle/c/h").await.unwrap();
    let open_one = open(&share, &open_one, Access::READ_DATA, Sharing::READ).unwrap();
    assert_eq!(share.empty_recycle_bin(now + 31 * DAY, MAY), Ok(3));
    for gone in [".recycle/a", ".recycle/c/g", ".recycle/i"] {
        assert!(!is_there(&share, gone).await, "{gone}");
    }
    assert!(is_there(&share, ".recycle/c/h").await && is_there(&share, "a/b").await);
    share.close(&root(), &open_one).await.unwrap();
    // Without a limit, nothing goes.
    share.set_recycle_bin(Some("on".parse().unwrap()));
    assert_eq!(share.empty_recycle_bin(now + 3000 * DAY, MAY), Ok(0));
    share.set_recycle_bin(Some("on keep=1d".parse().unwrap()));
    assert_eq!(share.empty_recycle_bin(now + 2 * DAY, MAY), Ok(1));
    assert!(!is_there(&share, ".recycle/c").await && is_there(&share, ".recycle").await);
}

#[tokio::test]
async fn each_home_has_a_bin_of_its_own() {
    let share = bin("on keep=1d");
    share.set_terms(Terms::HOMES);
    make(&share, &root(), "anna", FileKind::Directory, 0o700).await;
    make(&share, &root(), "anna/d", FileKind::Directory, 0o700).await;
    for path in ["anna/d/f", "anna/g", "beside"] {
        file(&share, path, b"1").await;
        remove(&share, path).await.unwrap();
    }
    assert!(is_there(&share, "anna/.recycle/d/f").await && is_there(&share, "anna/.recycle/g").await);
    assert!(!is_there(&share, ".recycle").await && !is_there(&share, "beside").await);
    let now = change_time(&share, "anna/.recycle/g").await;
    assert_eq!(share.empty_recycle_bin(now + 2 * DAY, MAY), Ok(2));
}

#[tokio::test]
async fn watchers_see_the_file_move() {
    let share = bin("on");
    file(&share, "f", b"1").await;
    file(&share, "g", b"1").await;
    remove(&share, "f").await.unwrap();
    let top = find(&share, &root(), "").await.unwrap();
    let bin = find(&share, &root(), ".recycle").await.unwrap();
    let names =
        |found: &Found| share.watch(&root().caller, &found.node, false, ChangeKinds::FILE_NAME).unwrap();
    let (of_top, of_bin) = (names(&top), names(&bin));
    remove(&share, "g").await.unwrap();
    for (watch, action) in [(of_top, ChangeAction::Removed), (of_bin, ChangeAction::Added)] {
        let Some(Seen::Changes(changes)) = watch.take() else { panic!("nothing was seen") };
        let seen: Vec<_> = changes.iter().map(|change| (change.action, &change.path[..])).collect();
        assert_eq!(seen, [(action, b"g".as_slice())]);
    }
}

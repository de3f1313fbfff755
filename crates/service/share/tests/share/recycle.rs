//! The recycle bin.

use std::time::SystemTime;

use anabranch_share::{ChangeAction, Seen};
use storage::{FileFlags, NewKind, NewNode};

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
    // Somebody else has the name of the bin: a local program, since clients are not given it.
    let plant = |mode, uid| {
        let new = NewNode { kind: NewKind::Directory, mode, uid, gid: uid };
        share.root().create(storage::Name::new(b".recycle").unwrap(), &new, MAY).unwrap();
    };
    plant(0o777, 20);
    assert_eq!(remove(&share, "secret/f").await, Err(Error::AccessDenied));
    assert!(is_there(&share, "secret/f").await);
    share.remove(&root(), share.root(), b".recycle", true).await.unwrap();
    // What is there stays as it is.
    plant(0o700, 0);
    let of = async |path: &str| {
        let node = find(&share, &root(), path).await.unwrap().node;
        let attributes = node.attributes(Want::empty(), Wait::May(MAY)).unwrap();
        (attributes.uid, attributes.gid, attributes.mode)
    };
    make(&share, &root(), "any", FileKind::Directory, 0o777).await;
    file(&share, "any/f", b"1").await;
    remove(&share, "any/f").await.unwrap();
    assert_eq!((of(".recycle").await, of(".recycle/any").await), ((0, 0, 0o700), (0, 0, 0o777)));
    let made_by_the_server = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
    let bin = find(&share, &root(), ".recycle").await.unwrap().node;
    share.set_attributes(&root(), &File::Stateless(bin), &made_by_the_server, None).await.unwrap();
    // Somebody else has made the directory in the bin before, to look into it later.
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
    share.set_recycle_bin(None);
    file(&share, ".recycle", b"1").await;
    share.set_recycle_bin(Some("on".parse().unwrap()));
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

#[tokio::test]
async fn clients_make_nothing_else_the_bin_and_put_no_directory_there() {
    let share = bin("on keep=1d");
    let top = share.root().clone();
    for (path, mode) in [("private", 0o700), ("d", 0o755), ("d/e", 0o755)] {
        make(&share, &root(), path, FileKind::Directory, mode).await;
    }
    file(&share, "private/old", b"1").await;
    let found = find(&share, &root(), "private").await.unwrap();
    let rename = async |from: Location, to: Location| share.rename(&root(), from, to, MOVE).await.map(|_| ());
    let denied = Err(Error::AccessDenied);
    for kind in [FileKind::Regular, FileKind::Directory, FileKind::Symlink] {
        let made = share.create(&root(), &top, b".recycle", Case::Sensitive, object(kind, 0o755, "d")).await;
        assert_eq!(made.map(|_| ()), denied, "{kind:?}");
    }
    let old = find(&share, &root(), "private/old").await.unwrap().node;
    assert_eq!(share.link(&root(), &old, &top, b".recycle", Case::Sensitive, None).await.map(|_| ()), denied);
    assert_eq!(rename(at(&top, b"private"), at(&top, b".recycle")).await, denied);
    file(&share, "f", b"1").await;
    remove(&share, "f").await.unwrap();
    assert_eq!(rename(at(&top, b".recycle"), at(&top, b"x")).await, denied);
    let bin = find(&share, &root(), ".recycle").await.unwrap().node;
    assert_eq!(rename(at(&top, b"private"), at(&bin, b"private")).await, denied);
    // Elsewhere the name is any name, and files may be moved there.
    let d = find(&share, &root(), "d").await.unwrap().node;
    rename(at(&d, b"e"), at(&d, b".recycle")).await.unwrap();
    rename(at(&found.node, b"old"), at(&bin, b"old")).await.unwrap();
    // Directories of the bin may move in it, and out of it.
    file(&share, "d/g", b"1").await;
    remove(&share, "d/g").await.unwrap();
    rename(at(&bin, b"d"), at(&bin, b"d2")).await.unwrap();
    rename(at(&bin, b"d2"), at(&top, b"back")).await.unwrap();
    let now = change_time(&share, "back/g").await;
    assert_eq!(share.empty_recycle_bin(now + 2 * DAY, MAY), Ok(2), "f and old");
    assert!(is_there(&share, "back/g").await);
    share.set_recycle_bin(None);
    rename(at(&top, b".recycle"), at(&top, b"x")).await.unwrap();
}

#[test]
fn what_is_taken_back_while_the_bin_is_looked_through_stays() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let share = with_bin("on keep=1d", Arc::clone(&store) as Arc<dyn Storage>);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let now = runtime.block_on(async {
        make(&share, &root(), "d", FileKind::Directory, 0o755).await;
        for path in ["d/f", "d/g"] {
            file(&share, path, b"1").await;
            remove(&share, path).await.unwrap();
        }
        share.remove(&root(), share.root(), b"d", true).await.unwrap();
        change_time(&share, ".recycle/d/f").await
    });
    // When the names in the directory are read, the directory moves: first the bin is read, then this.
    let (bin, top) =
        (runtime.block_on(find(&share, &root(), ".recycle")).unwrap().node, share.root().clone());
    let back = move || {
        let name = storage::Name::new(b"d").unwrap();
        let _ = bin.rename(name, &*top, name, Replace::Never, MAY);
    };
    store.inject(Rule { call: fault::Call::ReadDir, skip: 1, times: 1, fault: Fault::Slow(Arc::new(back)) });
    assert_eq!(share.empty_recycle_bin(now + 2 * DAY, MAY), Ok(0));
    assert!(runtime.block_on(is_there(&share, "d/f")) && runtime.block_on(is_there(&share, "d/g")));
}

#[test]
fn files_that_are_deleted_side_by_side_lie_side_by_side() {
    let share = bin("on");
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime().block_on(async {
        make(&share, &root(), "d", FileKind::Directory, 0o755).await;
        for number in 0..64 {
            file(&share, &format!("d/{number}"), b"1").await;
        }
    });
    std::thread::scope(|scope| {
        for first in 0..8 {
            let share = &share;
            scope.spawn(move || {
                for number in (first..64).step_by(8) {
                    runtime().block_on(remove(share, &format!("d/{number}"))).unwrap();
                }
            });
        }
    });
    for number in 0..64 {
        assert!(runtime().block_on(is_there(&share, &format!(".recycle/d/{number}"))), "{number}");
    }
}

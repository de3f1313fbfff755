//! Quotas: who is charged for what, what is refused, and what clients see of them.

use std::time::Instant;

use anabranch_share::{
    CloneRule, GRACE, QuotaFor, QuotaLimits, QuotaRule, QuotaStatus, QuotaSubject as Subject, Restoration,
    RestoreProgress, Restored, Result,
};
use storage::StoreThread;
use storage_local::{LocalOptions, LocalStore};

use super::*;

const KIB: u64 = 1024;
/// What the store allocates at a time.
const BLOCK: u64 = 4 * KIB;

fn hard(bytes: u64) -> QuotaLimits {
    QuotaLimits::new(None, Some(bytes), GRACE).unwrap()
}

fn dir(path: &str) -> Subject {
    Subject::Directory(path.as_bytes().to_vec())
}

/// Sets the quotas, and waits until all files are counted.
fn limit<const N: usize>(share: &Arc<Share>, quotas: [(Subject, QuotaLimits); N]) {
    let rule = |(subject, limits)| QuotaRule { subject: QuotaFor::Known(subject), limits };
    share.set_quota_rules(quotas.map(rule).to_vec());
    count(share);
}

/// How the quotas stand, asked from a thread of its own: tests have runtimes or none.
fn status(share: &Arc<Share>) -> QuotaStatus {
    let ask = || runtime().block_on(share.quota_status()).unwrap().unwrap();
    std::thread::scope(|scope| scope.spawn(ask).join().unwrap())
}

/// Waits until all files are counted anew.
fn count(share: &Arc<Share>) {
    share.count_quotas_again();
    let deadline = Instant::now() + Duration::from_secs(60);
    while status(share).is_counting {
        assert!(Instant::now() < deadline, "they were not counted");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(status(share).counted.is_some());
}

#[tokio::test]
async fn files_are_being_counted_from_the_moment_that_somebody_asks_for_it() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let share = open_to_all(Arc::clone(&store) as _).await;
    limit(&share, [(Subject::User(7), hard(4 * BLOCK))]);
    for uid in [7, 8] {
        file(&share, uid, &format!("f{uid}")).await;
    }
    let stall = store.hang(fault::Call::ReadDir);
    // The keeper has not begun, or hangs.
    for _ in 0..100 {
        share.count_quotas_again();
        let now = share.quota_glance().unwrap();
        assert!(now.is_counting && now.counted.is_some());
    }
    share.set_quota_rules(vec!["8 hard=4KiB".parse().unwrap()]);
    assert!(share.quota_glance().unwrap().is_counting);
    drop(stall);
    count(&share);
}

fn used(share: &Arc<Share>, subject: &Subject) -> u64 {
    let standings = status(share).standings;
    standings.iter().find(|(of, _)| of == subject).map_or(0, |(_, standing)| standing.used)
}

/// What a user holds and may hold at last.
async fn of_user(share: &Arc<Share>, uid: u32) -> Option<(u64, Option<u64>)> {
    let told = share.user_quotas(vec![uid]).await.unwrap();
    let [user] = told[..] else { panic!("{told:?}") };
    user.map(|user| (user.used, user.limits.and_then(|limits| limits.hard())))
}

/// A share that anybody may write to.
async fn open_to_all(store: Arc<dyn Storage>) -> Arc<Share> {
    let share = Share::new(ShareId(1), Settings::new("data"), store);
    let mode = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
    share.set_attributes(&root(), &File::Stateless(share.root().clone()), &mode, None).await.unwrap();
    share
}

async fn in_memory() -> Arc<Share> {
    open_to_all(Arc::new(MemoryStore::new())).await
}

async fn file(share: &Arc<Share>, who: u32, path: &str) -> File {
    File::Stateless(make(share, &user(who), path, FileKind::Regular, 0o644).await.node)
}

async fn write(share: &Arc<Share>, file: &File, offset: u64, bytes: u64) -> Result<()> {
    let data = vec![7; usize::try_from(bytes).unwrap()];
    share.write(&root(), file, offset, data, Stability::Unstable).await.map(drop)
}

async fn give(share: &Arc<Share>, file: &File, uid: u32) -> Result<()> {
    let set = SetAttributes { uid: Some(uid), ..SetAttributes::default() };
    share.set_attributes(&root(), file, &set, None).await.map(drop)
}

async fn cut(share: &Arc<Share>, file: &File, size: u64) -> Result<()> {
    let set = SetAttributes { size: Some(size), ..SetAttributes::default() };
    share.set_attributes(&root(), file, &set, None).await.map(drop)
}

#[tokio::test]
async fn the_last_block_fits_and_the_owner_is_charged_whoever_writes() {
    let share = in_memory().await;
    limit(&share, [(Subject::User(7), hard(4 * BLOCK))]);
    let (mine, other) = (file(&share, 7, "mine").await, file(&share, 8, "other").await);
    write(&share, &mine, 0, 3 * BLOCK).await.unwrap();
    write(&share, &other, 0, 100 * BLOCK).await.unwrap();
    assert_eq!(write(&share, &mine, 3 * BLOCK, BLOCK + 1).await, Err(Error::OverQuota));
    assert_eq!(share.attributes(&root(), mine.node(), Want::empty()).await.unwrap().size, 3 * BLOCK);
    write(&share, &mine, 3 * BLOCK, BLOCK).await.unwrap();
    assert_eq!(write(&share, &mine, 4 * BLOCK, 1).await, Err(Error::OverQuota));
    // What is there already needs no more room, and what is freed gives some.
    write(&share, &mine, 0, 4 * BLOCK).await.unwrap();
    cut(&share, &mine, BLOCK).await.unwrap();
    assert_eq!(used(&share, &Subject::User(7)), BLOCK);
    write(&share, &mine, BLOCK, 3 * BLOCK).await.unwrap();
    share.zero_range(&root(), &mine, 0, 2 * BLOCK).await.unwrap();
    assert_eq!(used(&share, &Subject::User(7)), 2 * BLOCK);
    // A hole that is filled again.
    write(&share, &mine, 0, 2 * BLOCK).await.unwrap();
    share.remove(&root(), share.root(), b"mine", false).await.unwrap();
    assert_eq!(used(&share, &Subject::User(7)), 0);
    count(&share);
    assert_eq!((used(&share, &Subject::User(7)), used(&share, &Subject::User(8))), (0, 100 * BLOCK));
}

#[tokio::test]
async fn users_are_told_alone_what_the_list_of_all_says() {
    let share = in_memory().await;
    assert_eq!(of_user(&share, 7).await, None, "there are no quotas");
    for (uid, blocks) in [(0, 1), (7, 2), (8, 3)] {
        let name = format!("f{uid}");
        let made = file(&share, uid, &name).await;
        write(&share, &made, 0, blocks * BLOCK).await.unwrap();
    }
    limit(&share, [(Subject::User(7), hard(40 * BLOCK)), (Subject::User(9), hard(1)), (dir("d"), hard(7))]);
    assert_eq!(of_user(&share, 7).await, Some((2 * BLOCK, Some(40 * BLOCK))));
    assert_eq!(of_user(&share, 8).await, Some((3 * BLOCK, None)), "no quota holds");
    assert_eq!(of_user(&share, 9).await, Some((0, Some(1))), "who holds nothing");
    assert_eq!(of_user(&share, 10).await, None);
    let each = hard(50 * BLOCK);
    limit(&share, [(Subject::User(7), hard(40 * BLOCK)), (Subject::EachUser, each)]);
    assert_eq!(of_user(&share, 10).await, Some((0, Some(50 * BLOCK))));
    assert_eq!(of_user(&share, 0).await, Some((BLOCK, None)), "the superuser is not each user");
    // What was written a moment ago counts.
    let seven = find(&share, &root(), "f7").await.unwrap().node;
    write(&share, &File::Stateless(seven), 2 * BLOCK, BLOCK).await.unwrap();
    let all = status(&share).users();
    assert_eq!(all.iter().map(|user| user.uid).collect::<Vec<_>>(), [0, 7, 8]);
    let asked = [8, 7, 10, 0];
    let told = share.user_quotas(asked.to_vec()).await.unwrap();
    for (uid, told) in asked.iter().zip(told).filter(|(uid, _)| **uid != 10) {
        assert_eq!(told.as_ref(), all.iter().find(|user| user.uid == *uid), "{uid}");
    }
    assert_eq!(of_user(&share, 7).await, Some((3 * BLOCK, Some(40 * BLOCK))));
}

#[tokio::test]
async fn what_clients_see_is_the_nearest_quota() {
    let share = in_memory().await;
    make(&share, &root(), "d", FileKind::Directory, 0o777).await;
    let everything = share.space(&user(9), share.root()).await.unwrap();
    limit(&share, [(dir("d"), hard(10 * BLOCK)), (Subject::User(7), hard(20 * BLOCK))]);
    let d = find(&share, &root(), "d").await.unwrap().node;
    let f = file(&share, 7, "d/f").await;
    write(&share, &f, 0, 4 * BLOCK).await.unwrap();
    let seen = async |who: u32, node: &NodeRef| {
        let space = share.space(&user(who), node).await.unwrap();
        (space.total, space.free, space.available)
    };
    assert_eq!(seen(9, share.root()).await.0, everything.total);
    assert_eq!(seen(7, share.root()).await, (20 * BLOCK, 16 * BLOCK, 16 * BLOCK));
    assert_eq!(seen(7, &d).await, (10 * BLOCK, 6 * BLOCK, 6 * BLOCK));
    assert_eq!(seen(9, f.node()).await, (10 * BLOCK, 6 * BLOCK, 6 * BLOCK));
    let room = share.quota_room(&user(9), f.node()).await.unwrap().unwrap();
    assert_eq!((room.hard_left, room.soft_left, room.used), (6 * BLOCK, 6 * BLOCK, 4 * BLOCK));
    assert_eq!(share.quota_room(&user(9), share.root()).await.unwrap(), None);
}

#[tokio::test]
async fn a_file_that_changes_hands_must_fit_there() {
    let share = in_memory().await;
    let f = file(&share, 7, "f").await;
    write(&share, &f, 0, 3 * BLOCK).await.unwrap();
    limit(&share, [(Subject::User(8), hard(2 * BLOCK)), (Subject::User(9), hard(3 * BLOCK))]);
    assert_eq!(give(&share, &f, 8).await, Err(Error::OverQuota));
    assert_eq!(share.attributes(&root(), f.node(), Want::empty()).await.unwrap().uid, 7);
    give(&share, &f, 9).await.unwrap();
    assert_eq!((used(&share, &Subject::User(7)), used(&share, &Subject::User(9))), (0, 3 * BLOCK));
    let taken = SecurityChange { owner: Some(Sid::of_user(8)), ..SecurityChange::default() };
    assert_eq!(share.set_security(&root(), &f, taken).await, Err(Error::OverQuota));
    let back = SecurityChange { owner: Some(Sid::of_user(7)), ..SecurityChange::default() };
    share.set_security(&root(), &f, back).await.unwrap();
    assert_eq!((used(&share, &Subject::User(7)), used(&share, &Subject::User(9))), (3 * BLOCK, 0));
    assert_eq!(used(&share, &Subject::Group(7)), 3 * BLOCK);
}

#[tokio::test]
async fn the_nearest_directory_is_charged_and_files_move_between_them() {
    let share = in_memory().await;
    for name in ["a", "a/in", "a/in/x", "b", "c"] {
        make(&share, &root(), name, FileKind::Directory, 0o777).await;
    }
    limit(&share, [(dir("a"), hard(4 * BLOCK)), (dir("a/in"), hard(2 * BLOCK)), (dir("b"), hard(2 * BLOCK))]);
    let (outer, inner) = (file(&share, 7, "a/f").await, file(&share, 7, "a/in/x/f").await);
    write(&share, &outer, 0, 3 * BLOCK).await.unwrap();
    write(&share, &inner, 0, 2 * BLOCK).await.unwrap();
    assert_eq!(write(&share, &inner, 2 * BLOCK, 1).await, Err(Error::OverQuota));
    assert_eq!((used(&share, &dir("a")), used(&share, &dir("a/in"))), (3 * BLOCK, 2 * BLOCK));
    let node = async |path: &str| find(&share, &root(), path).await.unwrap().node;
    let (a, b, c) = (node("a").await, node("b").await, node("c").await);
    let inside = node("a/in").await;
    let rename = async |from: (&NodeRef, &str), to: (&NodeRef, &str)| {
        let (from, to) = (at(from.0, from.1.as_bytes()), at(to.0, to.1.as_bytes()));
        share.rename(&root(), from, to, MOVE).await.map(drop)
    };
    assert_eq!(rename((&a, "f"), (&b, "f")).await, Err(Error::OverQuota));
    rename((&a, "f"), (&c, "f")).await.unwrap();
    assert_eq!(used(&share, &dir("a")), 0);
    rename((&c, "f"), (&a, "g")).await.unwrap();
    assert_eq!(used(&share, &dir("a")), 3 * BLOCK);
    // A directory stays in the reach of its quota, so that clients copy it elsewhere; one with a quota stays where it is.
    let elsewhere = Err(Error::Storage(StorageError::CrossDevice));
    assert_eq!(rename((&inside, "x"), (&c, "x")).await, elsewhere);
    rename((&inside, "x"), (&inside, "y")).await.unwrap();
    assert_eq!(rename((&a, "in"), (&a, "out")).await, Err(Error::AccessDenied));
    assert_eq!(rename((share.root(), "a"), (share.root(), "z")).await, Err(Error::AccessDenied));
    // A further name may not be in the reach of another quota.
    let link = async |to: &NodeRef| {
        share.link(&root(), outer.node(), to, b"again", Case::Sensitive, None).await.map(drop)
    };
    assert_eq!((link(&c).await, link(&inside).await), (elsewhere, elsewhere));
    link(&a).await.unwrap();
    assert_eq!(rename((&a, "again"), (&c, "again")).await, elsewhere);
    share.remove(&root(), &a, b"g", false).await.unwrap();
    assert_eq!(used(&share, &dir("a")), 3 * BLOCK, "it has another name");
    count(&share);
    assert_eq!((used(&share, &dir("a")), used(&share, &dir("a/in"))), (3 * BLOCK, 2 * BLOCK));
    share.remove(&root(), &a, b"again", false).await.unwrap();
    assert_eq!(used(&share, &dir("a")), 0);
}

#[tokio::test]
async fn a_new_directory_at_the_path_of_a_quota_has_it() {
    let share = in_memory().await;
    limit(&share, [(dir("later/on"), hard(BLOCK))]);
    make(&share, &root(), "later", FileKind::Directory, 0o777).await;
    make(&share, &root(), "later/on", FileKind::Directory, 0o777).await;
    let f = file(&share, 7, "later/on/f").await;
    assert_eq!(write(&share, &f, 0, BLOCK + 1).await, Err(Error::OverQuota));
    write(&share, &f, 0, BLOCK).await.unwrap();
}

#[tokio::test]
async fn streams_are_charged_with_their_file() {
    let share = in_memory().await;
    limit(&share, [(Subject::User(7), hard(3 * BLOCK)), (Subject::User(8), hard(2 * BLOCK))]);
    let found = make(&share, &user(7), "f", FileKind::Regular, 0o644).await;
    let f = File::Stateless(found.node.clone());
    write(&share, &f, 0, BLOCK).await.unwrap();
    let stream = share.create_stream(&root(), &found, b"s").await.unwrap();
    let opened = open(&share, &stream, Access::WRITE_DATA | Access::DELETE, Sharing::all()).unwrap();
    let through = File::Open(opened.clone());
    assert_eq!(write(&share, &through, 0, 2 * BLOCK + 1).await, Err(Error::OverQuota));
    write(&share, &through, 0, 2 * BLOCK).await.unwrap();
    assert_eq!(used(&share, &Subject::User(7)), 3 * BLOCK);
    assert_eq!(give(&share, &f, 8).await, Err(Error::OverQuota));
    count(&share);
    assert_eq!(used(&share, &Subject::User(7)), 3 * BLOCK);
    share.set_delete_pending(&root(), &opened, true).await.unwrap();
    share.close(&root(), &opened).await.unwrap();
    assert_eq!(used(&share, &Subject::User(7)), BLOCK);
    give(&share, &f, 8).await.unwrap();
}

#[tokio::test]
async fn emptied_replaced_and_deleted_files_are_charged_no_more() {
    let share = in_memory().await;
    limit(&share, [(Subject::EachUser, hard(4 * BLOCK))]);
    let me = Subject::User(7);
    let f = file(&share, 7, "f").await;
    write(&share, &f, 0, 4 * BLOCK).await.unwrap();
    let found = find(&share, &root(), "f").await.unwrap();
    let request = OpenRequest::new(Access::WRITE_DATA | Access::DELETE, Sharing::all());
    let Admission::Done((open, _)) = share.open_overwriting(&root(), &found, &request, None).await.unwrap()
    else {
        panic!("it waits");
    };
    assert_eq!(used(&share, &me), 0);
    let through = File::Open(open.clone());
    write(&share, &through, 0, 3 * BLOCK).await.unwrap();
    // Another file takes its name.
    let g = file(&share, 7, "g").await;
    write(&share, &g, 0, BLOCK).await.unwrap();
    share.close(&root(), &open).await.unwrap();
    let how = RenameHow { replace: Replace::Yes, ..MOVE };
    share.rename(&root(), at(share.root(), b"g"), at(share.root(), b"f"), how).await.unwrap();
    assert_eq!(used(&share, &me), BLOCK);
    let found = find(&share, &root(), "f").await.unwrap();
    let open = share.open(&root(), &found, &request).await.unwrap();
    share.set_delete_pending(&root(), &open, true).await.unwrap();
    assert_eq!(used(&share, &me), BLOCK);
    share.close(&root(), &open).await.unwrap();
    assert_eq!(used(&share, &me), 0);
}

/// An NFSv4 client may go on writing to a file that another client has removed.
#[tokio::test]
async fn a_file_without_a_name_is_charged_while_it_is_written() {
    let share = in_memory().await;
    limit(&share, [(Subject::User(7), hard(4 * BLOCK))]);
    let f = file(&share, 7, "f").await;
    write(&share, &f, 0, 3 * BLOCK).await.unwrap();
    share.remove(&root(), share.root(), b"f", false).await.unwrap();
    assert_eq!(used(&share, &Subject::User(7)), 0);
    // How much it has is known once it was written to.
    write(&share, &f, 3 * BLOCK, BLOCK).await.unwrap();
    assert_eq!(used(&share, &Subject::User(7)), 4 * BLOCK);
    assert_eq!(write(&share, &f, 4 * BLOCK, BLOCK).await, Err(Error::OverQuota));
    count(&share);
    drop(f);
    let deadline = Instant::now() + Duration::from_secs(60);
    while used(&share, &Subject::User(7)) > 0 {
        assert!(Instant::now() < deadline, "it is charged for ever");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    count(&share);
    assert_eq!(used(&share, &Subject::User(7)), 0);
}

#[tokio::test]
async fn copies_and_reservations_are_charged() {
    let share = in_memory().await;
    limit(&share, [(Subject::User(7), hard(4 * BLOCK))]);
    let (f, g) = (file(&share, 7, "f").await, file(&share, 7, "g").await);
    write(&share, &f, 0, 3 * BLOCK).await.unwrap();
    let copy = async |length: u64| share.copy_range(&root(), (&f, 0), (&g, 0), length).await;
    assert_eq!(copy(2 * BLOCK).await, Err(Error::OverQuota));
    copy(BLOCK).await.unwrap();
    // It is not there to be copied, so nobody asks whether it fits.
    let invalid = Err(Error::Storage(storage::Error::InvalidArgument));
    assert_eq!(copy(9 * BLOCK).await, invalid);
    assert_eq!(share.clone_range(&root(), (&f, 0), (&g, 0), 9 * BLOCK, CloneRule::Grows).await, invalid);
    let clone = share.clone_range(&root(), (&f, 0), (&g, BLOCK), BLOCK, CloneRule::Grows).await;
    assert!(clone.is_err());
    assert_eq!(share.reserve_range(&root(), &g, 0, 2 * BLOCK).await, Err(Error::OverQuota));
    assert_eq!(used(&share, &Subject::User(7)), 4 * BLOCK);
}

/// What was allocated in advance can be written, whatever is left beside it. Once something was cut, nothing is known of it.
#[tokio::test]
async fn what_was_allocated_in_advance_can_be_written() {
    let place = tempfile::tempdir().unwrap();
    let store = LocalStore::open(place.path(), LocalOptions::default()).unwrap();
    let share = open_to_all(Arc::new(store)).await;
    limit(&share, [(Subject::User(7), hard(4 * BLOCK))]);
    let found = make(&share, &user(7), "f", FileKind::Regular, 0o644).await;
    let open = open(&share, &found, Access::READ_DATA | Access::WRITE_DATA, Sharing::all()).unwrap();
    let f = File::Open(Arc::clone(&open));
    // The file does not grow: what it has beyond its end does not tell that it has everything before.
    match share.reserve_space(&root(), &open, 4 * BLOCK).await {
        Err(Error::Storage(storage::Error::NotSupported)) => return,
        reserved => reserved.unwrap(),
    }
    write(&share, &f, 0, 4 * BLOCK).await.unwrap();
    write(&share, &f, BLOCK, BLOCK).await.unwrap();
    assert_eq!(used(&share, &Subject::User(7)), 4 * BLOCK);
    assert_eq!(write(&share, &f, 4 * BLOCK, 1).await, Err(Error::OverQuota));
    cut(&share, &f, BLOCK).await.unwrap();
    write(&share, &f, BLOCK, 3 * BLOCK).await.unwrap();
    assert_eq!(write(&share, &f, 4 * BLOCK, 1).await, Err(Error::OverQuota));
}

/// Local programs change files beside the server: the next count finds it.
#[tokio::test]
async fn a_count_finds_what_local_programs_have_changed_and_each_file_once() {
    let place = tempfile::tempdir().unwrap();
    let store = LocalStore::open(place.path(), LocalOptions::default()).unwrap();
    let share = open_to_all(Arc::new(store)).await;
    std::fs::create_dir(place.path().join("d")).unwrap();
    std::fs::write(place.path().join("d/f"), vec![7; 64 * 1024]).unwrap();
    std::fs::hard_link(place.path().join("d/f"), place.path().join("d/again")).unwrap();
    limit(&share, [(dir("d"), hard(1 << 30))]);
    assert_eq!(used(&share, &dir("d")), 64 * KIB);
    std::fs::remove_file(place.path().join("d/again")).unwrap();
    std::fs::write(place.path().join("d/g"), vec![7; 4096]).unwrap();
    count(&share);
    assert_eq!(used(&share, &dir("d")), 68 * KIB);
}

/// What the store reports for the files of a user.
fn reported(share: &Arc<Share>, uid: u32) -> u64 {
    let (mut dirs, mut sum) = (vec![share.root().clone()], 0);
    while let Some(dir) = dirs.pop() {
        let mut names = Vec::new();
        dir.survey(MAY, &mut |entry| {
            names.push(entry.name.to_vec());
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        for name in names {
            let node = dir.lookup(storage::Name::new(&name).unwrap(), Wait::May(MAY)).unwrap();
            let attributes = node.attributes(Want::empty(), Wait::May(MAY)).unwrap();
            match attributes.kind {
                FileKind::Directory => dirs.push(node),
                _ if attributes.uid == uid => sum += attributes.allocated,
                _ => {}
            }
        }
    }
    sum
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// Eight threads write as clients of two protocols, to files of their own and to one of all, until nothing fits any more.
#[test]
fn a_quota_is_exact_to_a_block_under_eight_writers() {
    let share = runtime().block_on(in_memory());
    let blocks = 500;
    limit(&share, [(Subject::User(7), hard(blocks * BLOCK))]);
    let common = runtime().block_on(file(&share, 7, "common"));
    let write_until_full = |number: u64| {
        let front = if number.is_multiple_of(2) { &SMB } else { &fronts::NFS3 };
        let client = call(front, Caller::new(Identity::unix(7, 7, vec![]), Proof::Stated));
        let own = runtime().block_on(file(&share, 7, &number.to_string()));
        let mut written = 0;
        for block in 0..2 * blocks {
            // Of the common file each writes every eighth block, and twice: the second time it needs no room.
            let (file, at) = if block % 3 == 0 {
                (&common, (block / 6 * 8 + number) * BLOCK)
            } else {
                (&own, block * BLOCK)
            };
            let data = vec![7; usize::try_from(BLOCK).unwrap()];
            match runtime().block_on(share.write(&client, file, at, data, Stability::Unstable)) {
                Ok(_) => written += 1,
                Err(e) => assert_eq!(e, Error::OverQuota),
            }
        }
        written
    };
    let written: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || write_until_full(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("{written} writes into {blocks} blocks");
    assert_eq!(reported(&share, 7), blocks * BLOCK, "the last block was used, and no other");
    assert_eq!(used(&share, &Subject::User(7)), blocks * BLOCK);
    count(&share);
    assert_eq!(used(&share, &Subject::User(7)), blocks * BLOCK);
}

/// One change of some file; what is refused, or not there, changes nothing.
async fn change(share: &Arc<Share>, random: &mut impl FnMut(u64) -> u64) {
    let place = |dir: u64| if dir == 0 { String::new() } else { format!("d{dir}") };
    let (from, to) = (place(random(3)), place(random(3)));
    let name = random(12).to_string();
    let (Ok(from), Ok(to)) = (find(share, &root(), &from).await, find(share, &root(), &to).await) else {
        return;
    };
    let found = find(share, &root(), &format!("{}/{name}", String::from_utf8_lossy(&from.name))).await;
    let size = random(6 * BLOCK);
    match (random(8), found) {
        (0 | 1, Err(_)) => {
            let who = user(7 + u32::try_from(random(2)).unwrap());
            let new = object(FileKind::Regular, 0o666, "");
            let _ = share.create(&who, &from.node, name.as_bytes(), Case::Sensitive, new).await;
        }
        (0..=3, Ok(found)) => {
            let _ = write(share, &File::Stateless(found.node), random(4 * BLOCK), size).await;
        }
        (4, Ok(found)) => {
            let _ = cut(share, &File::Stateless(found.node), size).await;
        }
        (5, Ok(found)) => {
            let to = 7 + u32::try_from(random(2)).unwrap();
            let _ = give(share, &File::Stateless(found.node), to).await;
        }
        (6, Ok(_)) => {
            let how = RenameHow { replace: Replace::Yes, ..MOVE };
            let other = random(12).to_string();
            let moved = (at(&from.node, name.as_bytes()), at(&to.node, other.as_bytes()));
            let _ = share.rename(&root(), moved.0, moved.1, how).await;
        }
        (7, Ok(_)) => {
            let _ = share.remove(&root(), &from.node, name.as_bytes(), false).await;
        }
        _ => {}
    }
}

#[test]
fn counts_beside_changes_find_what_the_store_reports() {
    let share = runtime().block_on(in_memory());
    for name in ["d1", "d2"] {
        runtime().block_on(make(&share, &root(), name, FileKind::Directory, 0o777));
    }
    limit(&share, [(dir("d1"), hard(30 * BLOCK)), (Subject::User(8), hard(40 * BLOCK))]);
    let busy = |number: u64| {
        let mut state = number;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        runtime().block_on(async {
            for _ in 0..3000 {
                change(&share, &mut random).await;
            }
        });
    };
    for round in 0..3 {
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..3).map(|number| scope.spawn(move || busy(round * 3 + number))).collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                count(&share);
            }
        });
        let sums = [7, 8].map(|uid| reported(&share, uid));
        let present = || [7, 8].map(|uid| used(&share, &Subject::User(uid)));
        // Files that were removed while they were written are charged for some seconds.
        let deadline = Instant::now() + Duration::from_secs(60);
        while present() != sums {
            assert!(Instant::now() < deadline, "after counts beside changes: {:?}, not {sums:?}", present());
            std::thread::sleep(Duration::from_millis(50));
        }
        let in_d1 = used(&share, &dir("d1"));
        count(&share);
        assert_eq!((present(), used(&share, &dir("d1"))), (sums, in_d1), "after a count of its own");
        assert!(sums[1] <= 40 * BLOCK && in_d1 <= 30 * BLOCK);
    }
}

#[tokio::test]
async fn what_is_in_the_recycle_bin_is_still_its_owners() {
    let share = in_memory().await;
    share.set_recycle_bin(Some("on".parse().unwrap()));
    make(&share, &root(), "d", FileKind::Directory, 0o777).await;
    limit(&share, [(dir("d"), hard(10 * BLOCK)), (Subject::User(7), hard(20 * BLOCK))]);
    let both = || (used(&share, &dir("d")), used(&share, &Subject::User(7)));
    let f = file(&share, 7, "d/f").await;
    write(&share, &f, 0, 4 * BLOCK).await.unwrap();
    assert_eq!(both(), (4 * BLOCK, 4 * BLOCK));
    let remove = async |path: &str| {
        let dir = find(&share, &root(), path).await.unwrap().node;
        share.remove(&root(), &dir, b"f", false).await.unwrap();
    };
    remove("d").await;
    assert_eq!(both(), (0, 4 * BLOCK));
    count(&share);
    assert_eq!(both(), (0, 4 * BLOCK));
    remove(".recycle/d").await;
    assert_eq!(both(), (0, 0));
}

#[tokio::test]
async fn what_is_restored_is_charged_and_not_kept_back() {
    let store = Arc::new(MemoryStore::new());
    let share = open_to_all(Arc::clone(&store) as Arc<dyn Storage>).await;
    let f = file(&share, 7, "f").await;
    write(&share, &f, 0, 3 * BLOCK).await.unwrap();
    let from = store.snapshots().unwrap().take("test", MAY).unwrap().id;
    cut(&share, &f, BLOCK).await.unwrap();
    limit(&share, [(Subject::User(7), hard(2 * BLOCK))]);
    let restore = |target: &str| {
        let target = parts(target);
        let ordered = Duration::from_secs(1 << 32);
        let order = Restoration { from, source: parts("f"), target, replace: true, ordered, number: 1 };
        let progress = RestoreProgress::default();
        let restored =
            share.restore_from(&order, &progress, &|_| panic!("it waits"), &StoreThread::simulated());
        assert_eq!(restored, Ok(Restored::Whole));
        used(&share, &Subject::User(7))
    };
    assert_eq!((restore("f"), restore("g")), (3 * BLOCK, 6 * BLOCK));
    count(&share);
    assert_eq!(used(&share, &Subject::User(7)), 6 * BLOCK);
    assert_eq!(write(&share, &file(&share, 7, "h").await, 0, 1).await, Err(Error::OverQuota));
}

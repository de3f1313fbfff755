//! What clients have agreed on, without a share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use file_state::{Access, ByteRange, Caching, LockKind, Operation, Sharing};
use parking_lot::Mutex;
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{Name, NewKind, NewNode, NodeRef, Storage, Wait, Want};

use super::*;
use crate::call::of_tests::{LOOKUP, call};
use crate::found::Found;
use crate::{Client, Settings};

/// A client that holds grants, and remembers what it was told.
#[derive(Debug, Default)]
struct Keeper {
    told: Mutex<Vec<&'static str>>,
    is_late: AtomicBool,
}

impl GrantHolder for Keeper {
    fn shrink(&self, _: &file_state::Break) {
        self.told.lock().push("shrink");
    }

    fn revoked(&self, _: Caching) {
        self.told.lock().push("revoked");
    }

    fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    fn evict(&self) {
        self.told.lock().push("evict");
    }
}

fn agreement(break_timeout: Duration, opens_max: usize) -> Agreement {
    let retry_after = Duration::from_millis(1);
    Agreement::new(ShareId(7), &Settings { break_timeout, retry_after, opens_max, ..Settings::new("data") })
}

fn patient() -> Agreement {
    agreement(Duration::from_secs(3600), 100)
}

fn make(dir: &NodeRef, name: &[u8], kind: NewKind<'_>) -> Found {
    let new = NewNode { kind, mode: 0o644, uid: 0, gid: 0 };
    let node = dir.create(Name::new(name).unwrap(), &new, MAY).unwrap();
    let attributes = node.attributes(Want::FLAGS, Wait::May(MAY)).unwrap();
    Found { dir: Some(Arc::clone(dir)), name: name.to_vec(), ..Found::alone(node, attributes) }
}

fn file() -> Found {
    make(&MemoryStore::new().root(), b"file", NewKind::Regular)
}

fn enter(agreement: &Agreement, found: &Found, request: &OpenRequest) -> Result<Admission<Arc<Open>>> {
    let operation = Operation::Open { access: request.reserved, sharing: request.sharing };
    agreement.enter(found, request, operation, None, |_, _| Ok(()))
}

/// An open that nothing is in the way of.
fn open(agreement: &Agreement, found: &Found, request: &OpenRequest) -> Arc<Open> {
    match enter(agreement, found, request) {
        Ok(Admission::Done(open)) => open,
        other => panic!("it is not admitted: {other:?}"),
    }
}

fn reading() -> OpenRequest {
    OpenRequest::new(Access::READ_DATA, Sharing::all())
}

fn writing() -> OpenRequest {
    OpenRequest::new(Access::READ_DATA | Access::WRITE_DATA | Access::DELETE, Sharing::all())
}

/// An open whose client caches.
fn caching(client: &Arc<Keeper>, wanted: Caching) -> OpenRequest {
    let client: Arc<dyn GrantHolder> = Arc::clone(client) as _;
    OpenRequest { grant: Some(GrantRequest { key: GrantKey::Open, wanted, client }), ..reading() }
}

#[test]
fn an_open_that_excludes_others_is_agreed_on_until_it_ends() {
    let (agreement, found) = (patient(), file());
    let alone = open(&agreement, &found, &OpenRequest::new(Access::WRITE_DATA, Sharing::empty()));
    assert_eq!(enter(&agreement, &found, &reading()).unwrap_err(), Error::SharingViolation);
    assert!(agreement.is_open(&found.node));
    assert!(matches!(agreement.release(&alone), Ended::Now));
    assert!(matches!(agreement.release(&alone), Ended::Before));
    assert_eq!(alone.require(Access::WRITE_DATA), Err(Error::Closed));
    open(&agreement, &found, &reading());
}

#[test]
fn where_files_change_without_the_server_nobody_caches() {
    for is_allowed in [true, false] {
        let settings = Settings { caching: is_allowed, ..Settings::new("data") };
        let (agreement, found) = (Agreement::new(ShareId(1), &settings), file());
        let keeper = Arc::<Keeper>::default();
        let one = open(&agreement, &found, &caching(&keeper, Caching::READ | Caching::WRITE));
        assert_eq!(!agreement.granted(&one).state.is_empty(), is_allowed);
    }
}

#[test]
fn opens_are_limited_and_what_was_refused_is_not_counted() {
    let (agreement, found) = (agreement(Duration::ZERO, 3), file());
    let refuse = |of_object, of_share| {
        assert_eq!((of_object, of_share), (0, 0));
        Err(Error::TooManyOpens)
    };
    let operation = Operation::Open { access: Access::READ_DATA, sharing: Sharing::all() };
    for _ in 0..10 {
        let refused = agreement.enter(&found, &reading(), operation, None, refuse);
        assert_eq!(refused.unwrap_err(), Error::TooManyOpens);
    }
    let opens: Vec<_> = (0..3).map(|_| open(&agreement, &found, &reading())).collect();
    assert_eq!(enter(&agreement, &found, &reading()).unwrap_err(), Error::LimitReached("opens"));
    agreement.set_opens_max(4);
    open(&agreement, &found, &reading());
    assert!(opens.iter().all(|open| matches!(agreement.release(open), Ended::Now)));
}

#[test]
fn the_last_open_says_which_name_goes() {
    let (agreement, found) = (patient(), file());
    let marks = open(&agreement, &found, &writing());
    let last = open(&agreement, &found, &reading());
    agreement.set_delete_pending(&marks, true);
    assert!(agreement.is_delete_pending(found.node.id()));
    assert_eq!(enter(&agreement, &found, &reading()).unwrap_err(), Error::DeletePending);
    assert!(matches!(agreement.release(&marks), Ended::Now));
    let Ended::Deleting(doomed) = agreement.release(&last) else { panic!("it was the last") };
    assert_eq!(doomed.location.name, b"file");
    assert!(matches!(enter(&agreement, &found, &reading()), Ok(Admission::Wait(_))), "the name is going");
    agreement.forget_unused(found.node.id());
    assert!(!agreement.has_opens(found.node.id()));
}

#[tokio::test]
async fn a_holder_is_told_once_and_waited_for_until_it_answers() {
    let (agreement, found, client) = (patient(), file(), Arc::new(Keeper::default()));
    let held = open(&agreement, &found, &caching(&client, Caching::READ | Caching::WRITE | Caching::HANDLE));
    assert!(held.granted().grown && agreement.grants_given() == 1);
    for _ in 0..3 {
        assert!(matches!(enter(&agreement, &found, &reading()), Ok(Admission::Wait(_))));
    }
    assert_eq!(*client.told.lock(), ["shrink"]);
    let Ok(Admission::Wait(answering)) = enter(&agreement, &found, &reading()) else {
        panic!("it must wait")
    };
    let kept = Caching::READ;
    agreement.acknowledge(found.node.id(), held.holder(), kept).unwrap();
    answering.over().await;
    assert_eq!(agreement.granted(&held).state, kept);
    open(&agreement, &found, &reading());
    agreement.written_since(1, &File::Stateless(Arc::clone(&found.node)));
    assert_eq!(agreement.granted(&held).state, kept, "no grant was given since");
    agreement.written_since(0, &File::Stateless(Arc::clone(&found.node)));
    assert!(agreement.granted(&held).breaking || agreement.granted(&held).state != kept);
}

#[tokio::test]
async fn who_does_not_answer_in_time_loses_the_grant() {
    let (agreement, found) = (agreement(Duration::from_millis(1), 100), file());
    let client = Arc::new(Keeper::default());
    let held = open(&agreement, &found, &caching(&client, Caching::READ | Caching::WRITE));
    while let Admission::Wait(answering) = enter(&agreement, &found, &reading()).unwrap() {
        answering.over().await;
    }
    assert_eq!(*client.told.lock(), ["shrink", "revoked"]);
    assert!(agreement.granted(&held).state.is_empty());
    assert_eq!(agreement.grant_counts().revoked.load(Ordering::Relaxed), 1);
}

#[test]
fn a_late_client_that_is_in_the_way_loses_what_it_holds() {
    let (agreement, found, client) = (patient(), file(), Arc::new(Keeper::default()));
    let request = OpenRequest { sharing: Sharing::empty(), ..caching(&client, Caching::empty()) };
    open(&agreement, &found, &request);
    assert_eq!(enter(&agreement, &found, &writing()).unwrap_err(), Error::SharingViolation);
    client.is_late.store(true, Ordering::Relaxed);
    assert!(matches!(enter(&agreement, &found, &writing()), Ok(Admission::Wait(_))));
    assert_eq!(*client.told.lock(), ["evict"]);
}

#[test]
fn listings_are_looked_for_only_while_somebody_may_cache_one() {
    let (agreement, client) = (patient(), Arc::new(Keeper::default()));
    let dir = make(&MemoryStore::new().root(), b"dir", NewKind::Directory);
    assert!(!agreement.caches_listings());
    let request = OpenRequest {
        access: Access::LIST_DIRECTORY,
        reserved: Access::empty(),
        ..caching(&client, Caching::READ)
    };
    let held = open(&agreement, &dir, &request);
    assert!(agreement.caches_listings());
    agreement.entries_changed(dir.node.id(), Some(held.holder()));
    assert!(client.told.lock().is_empty(), "by the holder itself");
    agreement.entries_changed(dir.node.id(), None);
    assert_eq!(*client.told.lock(), ["shrink"]);
    agreement.release(&held);
    assert!(!agreement.caches_listings());
}

#[tokio::test]
async fn a_lock_waits_for_the_one_that_is_in_its_way() {
    let (agreement, found) = (patient(), file());
    let [first, second] = [(); 2].map(|()| open(&agreement, &found, &writing()));
    let range = ByteRange::new(0, 10).unwrap();
    agreement.lock(&first, range, LockKind::Exclusive, LockWait::Never).await.unwrap();
    let never = agreement.lock(&second, range, LockKind::Shared, LockWait::Never).await;
    assert_eq!(never, Err(Error::LockNotGranted));
    let overlapping = ByteRange::new(5, 10).unwrap();
    let write = |open: &Arc<Open>, range| {
        agreement.check_range(None, &File::Open(Arc::clone(open)), range, Operation::Write)
    };
    assert_eq!(write(&second, overlapping).unwrap_err(), Error::RangeLocked);
    assert!(write(&first, overlapping).is_ok());
    let waits = agreement.lock(&second, range, LockKind::Shared, LockWait::UntilGranted);
    let (locked, unlocked) = tokio::join!(waits, async {
        tokio::task::yield_now().await;
        agreement.unlock(&first, range)
    });
    assert_eq!((locked, unlocked), (Ok(()), Ok(())));
    assert_eq!(agreement.holding(&second).unwrap().locks, [(range, LockKind::Shared)]);
    assert_eq!(agreement.unlock(&first, range), Err(Error::RangeNotLocked));
}

#[tokio::test]
async fn while_some_reclaim_others_are_held_back() {
    let (agreement, found) = (patient(), file());
    let call = call(&LOOKUP, Client::Unknown);
    agreement.hold_back(Instant::now() + Duration::from_secs(3600));
    assert_eq!(agreement.check_let_in(), Err(Error::Delayed));
    assert!(agreement.held_back(&reading()).is_some());
    assert!(agreement.held_back(&OpenRequest { is_reclaim: true, ..reading() }).is_none());
    assert!(agreement.held_back(&OpenRequest::new(Access::READ_ATTRIBUTES, Sharing::all())).is_none());
    let waits = || Ok(((), agreement.make_removable(&found.node, None, Operation::Delete)?));
    assert_eq!(agreement.settled(&call, waits).await, Err(Error::Delayed), "no longer than its front waits");
    agreement.let_in();
    assert_eq!(agreement.settled(&call, waits).await, Ok(()));
    agreement.hold_back(Instant::now());
    assert_eq!(agreement.check_let_in(), Ok(()), "the time is over");
}

#[test]
fn what_is_restored_holds_what_it_held_or_nothing() {
    let (agreement, found, client) = (patient(), file(), Arc::new(Keeper::default()));
    let range = ByteRange::new(0, 1).unwrap();
    let held = Holding {
        access: Access::READ_DATA | Access::DELETE,
        sharing: Sharing::READ,
        delete_on_close: false,
        delete_pending: true,
        locks: vec![(range, LockKind::Exclusive)],
        caching: Caching::empty(),
    };
    let grant = || {
        let client: Arc<dyn GrantHolder> = Arc::clone(&client) as _;
        GrantRequest { key: GrantKey::Open, wanted: Caching::READ, client }
    };
    let restore =
        |held: &Holding| agreement.restore(&found, held, grant(), Openers::default(), |_, _| Ok(()));
    let open = restore(&held).unwrap();
    assert_eq!(restore(&held).map(drop), Err(Error::SharingViolation));
    let reads = Holding { access: Access::READ_DATA, sharing: Sharing::all(), ..held.clone() };
    assert_eq!(restore(&reads).map(drop), Err(Error::LockNotGranted));
    agreement.settle_restored(&open, GrantKey::Open, &held);
    assert_eq!(agreement.holding(&open).as_ref(), Some(&held));
    assert!(matches!(agreement.release(&open), Ended::Deleting(_)), "what was refused is not open");
    agreement.forget_unused(found.node.id());
    let caches = Holding { delete_pending: false, locks: Vec::new(), caching: Caching::READ, ..held };
    let open = restore(&caches).unwrap();
    assert_eq!(agreement.granted(&open).state, Caching::empty(), "others may follow");
    agreement.settle_restored(&open, GrantKey::Open, &caches);
    assert_eq!(agreement.holding(&open), Some(caches));
}

#[tokio::test]
async fn a_directory_is_in_use_while_something_below_it_is() {
    let (agreement, root) = (patient(), MemoryStore::new().root());
    let dir = make(&root, b"dir", NewKind::Directory);
    let below = make(&dir.node, b"below", NewKind::Regular);
    assert!(!agreement.is_open(&dir.node));
    let open = open(&agreement, &below, &reading());
    assert!(agreement.is_open(&dir.node) && agreement.stays_open(&dir.node).await);
    assert!(agreement.is_open(&root) && !agreement.is_open(&make(&root, b"d", NewKind::Directory).node));
    agreement.release(&open);
    assert!(!agreement.stays_open(&dir.node).await);
}

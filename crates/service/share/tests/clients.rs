//! What clients of NFSv4 hold, against what the others do: locks of their owners, delegations, what is reclaimed, and what a
//! client loses that is silent.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use anabranch_share::{
    Access, Admission, Answering, Break, ByteRange, Caching, Call, Caller, Case, ClientLock, Error, File,
    Found, GrantHolder, GrantKey, GrantRequest, Holder, Identity, LockKind, LockOwner, LockWait, NewObject,
    Open, OpenRequest, Operation, Proof, Restoration, RestoreProgress, Restored, Settings, Share, ShareId,
    Sharing,
};
use parking_lot::Mutex;
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{Device, FileKind, SetAttributes, Stability, Storage, StoreThread, Want};

mod fronts;

use fronts::{NFS3, NFS4, SMB, call};

const READ: Access = Access::READ_DATA;
const BOTH: Access = Access::READ_DATA.union(Access::WRITE_DATA);
const READ_DELEGATION: Caching = Caching::READ.union(Caching::HANDLE);
const WRITE_DELEGATION: Caching = Caching::all();

fn share() -> Arc<Share> {
    let settings = Settings { retry_after: Duration::from_millis(20), ..Settings::new("data") };
    Share::new(ShareId(1), settings, Arc::new(MemoryStore::new()))
}

fn caller(operation: &'static Operation) -> Call {
    call(operation, Caller::new(Identity::unix(0, 0, vec![]), Proof::Stated))
}

async fn file(share: &Arc<Share>) -> Found {
    let new = NewObject {
        kind: FileKind::Regular,
        target: Vec::new(),
        device: Device::default(),
        mode: 0o644,
        umask: 0,
        set: SetAttributes::default(),
        want: Want::empty(),
        security: None,
        mode_bounds: false,
    };
    let root = Arc::clone(share.root());
    share.create(&caller(&SMB), &root, b"file", Case::Sensitive, new).await.unwrap().found
}

/// A client of NFSv4, as the share sees it.
#[derive(Debug, Default)]
struct Client {
    told: AtomicUsize,
    is_late: AtomicBool,
    opens: Mutex<Vec<(Arc<Share>, Arc<Open>)>>,
}

impl GrantHolder for Client {
    fn shrink(&self, told: &Break) {
        assert_eq!(told.to, Caching::empty(), "a delegation is recalled as a whole");
        self.told.fetch_add(1, Ordering::Relaxed);
    }

    fn revoked(&self, _: Caching) {}

    fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    fn evict(&self) {
        for (share, open) in self.opens.lock().drain(..) {
            for owner in [1 << 32 | 5, 2 << 32 | 5] {
                share.release_locks(open.node().id(), owner);
            }
            now(share.close(&caller(&SMB), &open)).unwrap();
        }
    }
}

fn now<T>(call: impl Future<Output = T>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("it waits"),
    }
}

fn request(number: u64, client: &Arc<Client>, access: Access, wanted: Caching) -> OpenRequest {
    let grant = GrantRequest { key: GrantKey::Delegation(number), wanted, client: Arc::clone(client) as _ };
    OpenRequest { grant: Some(grant), ..OpenRequest::new(access, Sharing::all()) }
}

fn open(share: &Arc<Share>, found: &Found, request: &OpenRequest) -> Result<Arc<Open>, Error> {
    match share.open_granted(found, request)? {
        Admission::Done(open) => Ok(open),
        Admission::Wait(_) => Err(Error::Delayed),
    }
}

fn smb(access: Access, sharing: Sharing) -> OpenRequest {
    OpenRequest::new(access, sharing)
}

fn lock(owner: u64, offset: u64, kind: LockKind) -> ClientLock {
    ClientLock { owner, range: ByteRange::new(offset, 10).unwrap(), kind }
}

#[tokio::test]
async fn locks_of_either_protocol_are_locks_to_the_other() {
    let share = share();
    let found = file(&share).await;
    let client = Arc::new(Client::default());
    let nfs = open(&share, &found, &request(1, &client, BOTH, Caching::empty())).unwrap();
    let windows = open(&share, &found, &smb(BOTH, Sharing::all())).unwrap();
    let exclusive = LockKind::Exclusive;
    let mine = lock(1 << 32 | 5, 0, exclusive);
    assert_eq!(share.lock_as(&caller(&NFS4), &nfs, mine).await, Ok(None));
    let refused = share.lock(&windows, mine.range, exclusive, LockWait::Never).await;
    assert_eq!(refused, Err(Error::LockNotGranted));
    // SMB's reads and writes count on locks being kept, as those of the one who took the lock do not.
    let (smb, nfs4) = (caller(&SMB), caller(&NFS4));
    let through = |open: &Arc<Open>| File::Open(Arc::clone(open));
    let written = share.write(&smb, &through(&windows), 5, b"x", Stability::Unstable).await;
    assert_eq!(written.unwrap_err(), Error::RangeLocked);
    assert!(share.write(&nfs4, &through(&nfs), 5, b"x", Stability::Unstable).await.is_ok());
    // The other way round.
    share.lock(&windows, ByteRange::new(100, 10).unwrap(), exclusive, LockWait::Never).await.unwrap();
    let theirs = share.lock_as(&caller(&NFS4), &nfs, lock(mine.owner, 105, exclusive)).await.unwrap();
    assert_eq!(theirs.unwrap().owner, LockOwner::Open(windows.key()));
    let written = share.write(&nfs4, &through(&nfs), 105, b"x", Stability::Unstable).await;
    assert_eq!(written.unwrap_err(), Error::RangeLocked);
    assert!(share.read(&nfs4, &through(&nfs), 105, [0; 1]).await.is_err());
    // Who waits hears of it when it is free.
    let waiting =
        tokio::spawn(Arc::clone(&share).lockable(Arc::clone(&nfs), lock(mine.owner, 105, exclusive)));
    tokio::task::yield_now().await;
    share.close(&caller(&SMB), &windows).await.unwrap();
    assert!(waiting.await.unwrap());
    assert!(share.holds_locks(nfs.node(), mine.owner));
    share.unlock_as(&nfs, mine.owner, ByteRange::to_end(0)).unwrap();
    assert!(!share.holds_locks(nfs.node(), mine.owner));
}

#[tokio::test]
async fn a_read_delegation_stands_for_readers_and_goes_for_a_writer() {
    let share = share();
    let found = file(&share).await;
    let (one, two) = (Arc::new(Client::default()), Arc::new(Client::default()));
    let first = open(&share, &found, &request(1, &one, READ, READ_DELEGATION)).unwrap();
    assert_eq!(first.granted().state, READ_DELEGATION);
    let delegation =
        OpenRequest { reserved: Access::READ_ATTRIBUTES, ..request(1, &one, READ, Caching::empty()) };
    let delegation = open(&share, &found, &delegation).unwrap();
    share.close(&caller(&SMB), &first).await.unwrap();
    let second = open(&share, &found, &request(2, &two, READ, READ_DELEGATION)).unwrap();
    assert_eq!(second.granted().state, READ_DELEGATION, "readers share");
    share.close(&caller(&SMB), &second).await.unwrap();
    assert_eq!(one.told.load(Ordering::Relaxed), 0);
    // It is there without any other open, and data is read through it.
    let data = share.read(&caller(&NFS4), &File::Open(Arc::clone(&delegation)), 0, [0; 4]).await;
    assert_eq!(data.unwrap().1, 0);
    // One's own client is not in the way, whether it has an open or not.
    assert!(open(&share, &found, &request(1, &one, BOTH, Caching::empty())).is_ok());
    let own = call(&NFS4, caller(&NFS4).caller.of_client(Holder::Delegation(1)));
    let stateless = File::Stateless(Arc::clone(&found.node));
    assert!(share.write(&own, &stateless, 0, b"x", Stability::Unstable).await.is_ok());
    assert_eq!(one.told.load(Ordering::Relaxed), 0);
    // Writers of any protocol are.
    for protocol in [&NFS3, &NFS4] {
        let written = share.write(&caller(protocol), &stateless, 0, b"x", Stability::Unstable).await;
        assert_eq!(written.unwrap_err(), Error::Delayed, "{protocol:?}");
    }
    assert_eq!(open(&share, &found, &smb(BOTH, Sharing::all())).unwrap_err(), Error::Delayed);
    let dir = Arc::clone(share.root());
    assert_eq!(share.remove(&caller(&NFS3), &dir, b"file", false).await.unwrap_err(), Error::Delayed);
    assert_eq!(one.told.load(Ordering::Relaxed), 1, "told once");
    share.acknowledge(found.node.id(), Holder::Delegation(1), Caching::empty()).unwrap();
    share.close(&caller(&SMB), &delegation).await.unwrap();
    assert!(open(&share, &found, &smb(BOTH, Sharing::all())).is_ok());
}

#[tokio::test]
async fn a_delegation_denies_nothing_once_it_is_returned() {
    let share = share();
    let found = file(&share).await;
    let one = Arc::new(Client::default());
    let first = open(&share, &found, &request(1, &one, BOTH, WRITE_DELEGATION)).unwrap();
    assert_eq!(first.granted().state, WRITE_DELEGATION);
    let delegation =
        OpenRequest { reserved: Access::READ_ATTRIBUTES, ..request(1, &one, BOTH, Caching::empty()) };
    let delegation = open(&share, &found, &delegation).unwrap();
    share.close(&caller(&SMB), &first).await.unwrap();
    // A deny mode that the delegation's reading and writing would be against, were they reserved.
    assert_eq!(open(&share, &found, &smb(BOTH, Sharing::empty())).unwrap_err(), Error::Delayed);
    assert_eq!(one.told.load(Ordering::Relaxed), 1);
    share.give_up(found.node.id(), Holder::Delegation(1));
    assert!(open(&share, &found, &smb(BOTH, Sharing::empty())).is_ok());
    drop(delegation);
}

#[tokio::test]
async fn a_late_client_loses_what_somebody_needs() {
    let share = share();
    let found = file(&share).await;
    let (one, two) = (Arc::new(Client::default()), Arc::new(Client::default()));
    let deny = OpenRequest { sharing: Sharing::empty(), ..request(1, &one, BOTH, Caching::empty()) };
    let first = open(&share, &found, &deny).unwrap();
    one.opens.lock().push((Arc::clone(&share), first));
    assert_eq!(open(&share, &found, &smb(READ, Sharing::all())).unwrap_err(), Error::SharingViolation);
    one.is_late.store(true, Ordering::Relaxed);
    let admitted = share.open(&caller(&SMB), &found, &smb(READ, Sharing::all())).await;
    assert!(admitted.is_ok(), "it is told to go, and the open tries again");
    // Locks too.
    let second = open(&share, &found, &request(2, &two, BOTH, Caching::empty())).unwrap();
    let third = open(&share, &found, &request(3, &one, BOTH, Caching::empty())).unwrap();
    let taken = share.lock_as(&caller(&NFS4), &second, lock(2 << 32 | 5, 0, LockKind::Exclusive)).await;
    assert_eq!(taken, Ok(None));
    two.opens.lock().push((Arc::clone(&share), second));
    let wanted = lock(3 << 32 | 1, 0, LockKind::Exclusive);
    assert!(share.lock_as(&caller(&NFS4), &third, wanted).await.unwrap().is_some());
    two.is_late.store(true, Ordering::Relaxed);
    assert_eq!(share.lock_as(&caller(&NFS4), &third, wanted).await, Ok(None));
}

#[tokio::test]
async fn while_clients_reclaim_nobody_else_gets_in() {
    let share = share();
    let found = file(&share).await;
    let client = Arc::new(Client::default());
    share.hold_back(Instant::now() + Duration::from_secs(3600));
    assert_eq!(open(&share, &found, &smb(READ, Sharing::all())).unwrap_err(), Error::Delayed);
    assert!(open(&share, &found, &smb(Access::READ_ATTRIBUTES, Sharing::all())).is_ok());
    let stateless = File::Stateless(Arc::clone(&found.node));
    assert_eq!(share.read(&caller(&NFS3), &stateless, 0, [0; 1]).await.unwrap_err(), Error::Delayed);
    let dir = Arc::clone(share.root());
    assert_eq!(share.remove(&caller(&NFS3), &dir, b"file", false).await.unwrap_err(), Error::Delayed);
    let reclaim = OpenRequest { is_reclaim: true, ..request(1, &client, BOTH, WRITE_DELEGATION) };
    let reclaimed = open(&share, &found, &reclaim).unwrap();
    assert_eq!(reclaimed.granted().state, WRITE_DELEGATION);
    let waiting = {
        let (share, found) = (Arc::clone(&share), found.clone());
        async move { share.open(&caller(&SMB), &found, &smb(Access::READ_DATA, Sharing::all())).await }
    };
    let mut waiting = pin!(waiting);
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(client.told.load(Ordering::Relaxed), 0);
    share.close(&caller(&SMB), &reclaimed).await.unwrap();
    share.let_in();
    assert!(waiting.await.is_ok());
    // Its time is over even if nobody says so.
    share.hold_back(Instant::now());
    assert!(share.read(&caller(&NFS3), &stateless, 0, [0; 1]).await.is_ok());
}

#[tokio::test]
async fn which_parts_hold_data_is_asked_when_others_have_written_it() {
    let share = share();
    let found = file(&share).await;
    let client = Arc::new(Client::default());
    let delegation = open(&share, &found, &request(1, &client, BOTH, WRITE_DELEGATION)).unwrap();
    assert_eq!(delegation.granted().state, WRITE_DELEGATION);
    let stateless = File::Stateless(Arc::clone(&found.node));
    let nfs = caller(&NFS4);
    let early = share.data_ranges(&nfs, &stateless, 0, 100, 4).await;
    assert_eq!((early, client.told.load(Ordering::Relaxed)), (Err(Error::Delayed), 1));
    let own = File::Open(Arc::clone(&delegation));
    share.write(&nfs, &own, 0, b"late".to_vec(), Stability::Unstable).await.unwrap();
    share.close(&caller(&SMB), &delegation).await.unwrap();
    let told = share.data_ranges(&nfs, &stateless, 0, 100, 4).await;
    assert_eq!(told, Ok((vec![ByteRange::new(0, 4).unwrap()], false)));
}

#[tokio::test]
async fn what_is_restored_waits_for_a_client_that_caches_the_file() {
    let store = Arc::new(MemoryStore::new());
    let share = Share::new(ShareId(1), Settings::new("data"), Arc::clone(&store) as Arc<dyn Storage>);
    let found = file(&share).await;
    let from = store.snapshots().unwrap().take("test", MAY).unwrap().id;
    let client = Arc::new(Client::default());
    let held = open(&share, &found, &request(1, &client, READ, READ_DELEGATION)).unwrap();
    let path = vec![b"file".to_vec()];
    let ordered = Duration::from_secs(u64::MAX);
    let order = Restoration { from, source: path.clone(), target: path, replace: true, ordered, number: 1 };
    let waited = AtomicUsize::new(0);
    let wait = |_: Answering| {
        waited.fetch_add(1, Ordering::Relaxed);
        assert_eq!(client.told.load(Ordering::Relaxed), 1, "it was asked first");
        now(share.close(&caller(&NFS4), &held)).unwrap();
    };
    let progress = RestoreProgress::default();
    let outcome = share.restore_from(&order, &progress, &wait, &StoreThread::simulated());
    assert_eq!((outcome, waited.into_inner()), (Ok(Restored::Whole), 1));
    assert_eq!(progress.figures().restored, 1);
}

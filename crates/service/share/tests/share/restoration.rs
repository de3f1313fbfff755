//! What is restored from a snapshot into a share, while clients use it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::time::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

use anabranch_share::{
    Answering, CannotRestore, ChangeAction, LeftAlone, Restoration, RestoreFailure, RestoreFigures,
    RestoreProgress, Restored, Seen,
};
use storage::{
    Attributes, FileFlags, Name, NewKind, NewNode, Node, SnapshotId, StoreThread, StreamName, XattrMode,
};

use super::*;

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

fn clock() -> Timestamp {
    let now = since_1970();
    Timestamp { secs: now.as_secs().cast_signed(), nanos: now.subsec_nanos() }
}

fn share_on(store: &Arc<MemoryStore>) -> Arc<Share> {
    Share::new(ShareId(1), Settings::new("data"), Arc::clone(store) as Arc<dyn Storage>)
}

fn take(share: &MemoryStore) -> SnapshotId {
    share.snapshots().unwrap().take("test", MAY).unwrap().id
}

fn order(from: SnapshotId, source: &str, target: &str) -> Restoration {
    let ordered = since_1970();
    Restoration { from, source: parts(source), target: parts(target), replace: true, ordered, number: 7 }
}

fn nobody(_: Answering) {
    panic!("nobody is waited for");
}

type Outcome = Result<Restored, RestoreFailure>;

fn restore(share: &Arc<Share>, order: &Restoration) -> (Outcome, RestoreFigures) {
    let progress = RestoreProgress::default();
    let outcome = share.restore_from(order, &progress, &nobody, &StoreThread::simulated());
    (outcome, progress.figures())
}

fn restored(share: &Arc<Share>, order: &Restoration) -> RestoreFigures {
    let (outcome, figures) = restore(share, order);
    assert_eq!(outcome, Ok(Restored::Whole), "{figures:?}");
    figures
}

fn name(at: &str) -> Name<'_> {
    Name::new(at.as_bytes()).unwrap()
}

fn stream_name(at: &str) -> StreamName<'_> {
    StreamName::new(at.as_bytes()).unwrap()
}

fn new_file(dir: &NodeRef, at: &str) -> NodeRef {
    let new = NewNode { kind: NewKind::Regular, mode: 0o640, uid: 3, gid: 4 };
    dir.create(name(at), &new, MAY).unwrap()
}

fn write(node: &dyn Node, offset: u64, bytes: &[u8]) {
    node.write(offset, &[std::io::IoSlice::new(bytes)], Stability::Unstable, Wait::May(MAY)).unwrap();
}

fn data(node: &dyn Node, offset: u64, count: usize) -> Vec<u8> {
    let mut into = vec![0; count];
    let read = node.read(offset, &mut into, Wait::May(MAY)).unwrap();
    into.truncate(read);
    into
}

fn lookup(root: &NodeRef, path: &str) -> NodeRef {
    parts(path)
        .iter()
        .fold(Arc::clone(root), |at, part| at.lookup(Name::new(part).unwrap(), Wait::May(MAY)).unwrap())
}

fn make_dir(dir: &NodeRef, at: &str) -> NodeRef {
    dir.create(name(at), &NewNode { kind: NewKind::Directory, mode: 0o750, uid: 3, gid: 4 }, MAY).unwrap()
}

/// All that clients see of a tree, by path.
fn seen(root: &NodeRef) -> BTreeMap<String, String> {
    let (mut seen, mut dirs) = (BTreeMap::new(), vec![(String::new(), Arc::clone(root))]);
    let mut numbers = BTreeMap::new();
    while let Some((path, dir)) = dirs.pop() {
        let mut names = Vec::new();
        dir.read_dir(0, MAY, &mut |entry| {
            names.push(String::from_utf8(entry.name.to_vec()).unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
        names.sort();
        for at in names {
            let node = dir.lookup(name(&at), Wait::May(MAY)).unwrap();
            let path = format!("{path}/{at}");
            let known = node.attributes(Want::FLAGS, Wait::May(MAY)).unwrap();
            // Which names are of one file.
            let number = numbers.len();
            let number = *numbers.entry(known.id.number).or_insert(number);
            seen.insert(path.clone(), format!("{number} {}", told(&node, &known)));
            if node.kind() == FileKind::Directory {
                dirs.push((path, node));
            }
        }
    }
    seen
}

/// What tells long data from other data.
fn short(data: Vec<u8>) -> Vec<u8> {
    if data.len() < 100 {
        return data;
    }
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    [data.len() as u64, hasher.finish()].map(u64::to_be_bytes).concat()
}

fn told(node: &NodeRef, known: &Attributes) -> String {
    let Attributes { kind, mode, links, uid, gid, size, atime, mtime, btime, flags, .. } = known;
    let links = if *kind == FileKind::Directory { &0 } else { links };
    // Of other objects, no client sets it.
    let btime = btime.filter(|_| matches!(kind, FileKind::Regular | FileKind::Directory));
    let attributes = (kind, mode, links, uid, gid, size, (atime, mtime, btime, flags));
    let content = |node: &dyn Node| match node.kind() {
        FileKind::Regular => short(data(node, 0, 1 << 22)),
        FileKind::Symlink => node.read_link(MAY).unwrap(),
        _ => Vec::new(),
    };
    let (mut streams, mut xattrs, mut security) = (Vec::new(), Vec::new(), None);
    if matches!(kind, FileKind::Regular | FileKind::Directory) {
        for stream in node.streams(MAY).unwrap() {
            let of = node.stream(StreamName::new(&stream.name).unwrap(), MAY).unwrap();
            streams.push((stream.name, content(&*of)));
        }
        xattrs = node.xattrs(MAY).unwrap().into_iter().map(|x| (node.xattr(&x, MAY).unwrap(), x)).collect();
        security = node.security(known, Wait::May(MAY)).unwrap();
    }
    streams.sort();
    xattrs.sort();
    format!("{attributes:?} {:?} {streams:?} {xattrs:?} {security:?}", content(&**node))
}

fn descriptor() -> acl::SecurityDescriptor {
    let ace = Ace::allow(Sid::EVERYONE, AccessMask::READ_DATA, AceFlags::empty());
    acl::SecurityDescriptor {
        control: Control::DACL_PRESENT,
        owner: Some(Sid::EVERYONE),
        group: Some(Sid::EVERYONE),
        dacl: Some(Acl { revision: 2, aces: vec![ace] }),
        ..acl::SecurityDescriptor::default()
    }
}

/// A tree with everything that a store keeps, below `tree`.
fn plant(root: &NodeRef) {
    let tree = make_dir(root, "tree");
    let sub = make_dir(&tree, "sub");
    make_dir(&sub, "empty");
    write(&*new_file(&tree, "plain"), 0, b"plain");
    let dressed = new_file(&sub, "dressed");
    write(&*dressed, 0, b"dressed");
    let sparse = new_file(&sub, "sparse");
    write(&*sparse, 3 << 20, b"behind a hole");
    let set = SetAttributes { size: Some(4 << 20), ..SetAttributes::default() };
    sparse.set_attributes(&set, MAY).unwrap();
    for node in [&dressed, &sub] {
        write(&*node.create_stream(stream_name("stream"), MAY).unwrap(), 0, b"beside");
        node.set_xattr(b"colour", b"blue", XattrMode::Set, MAY).unwrap();
        let set = SetAttributes {
            mode: Some(0o2751),
            uid: Some(7),
            gid: Some(8),
            flags: Some(FileFlags::HIDDEN | FileFlags::READONLY),
            btime: Some(Timestamp { secs: 77, nanos: 700 }),
            ..SetAttributes::default()
        };
        node.set_attributes(&set, MAY).unwrap();
        node.set_security(Some(descriptor()), MAY).unwrap();
    }
    tree.link(name("linked"), &*dressed, MAY).unwrap();
    sub.link(name("again"), &*dressed, MAY).unwrap();
    for (at, kind) in [("link", NewKind::Symlink(b"sub/dressed")), ("fifo", NewKind::Fifo)] {
        tree.create(name(at), &NewNode { kind, mode: 0o640, uid: 5, gid: 6 }, MAY).unwrap();
    }
    let times = SetAttributes {
        atime: Some(SetTime::To(Timestamp { secs: 1000, nanos: 1 })),
        mtime: Some(SetTime::To(Timestamp { secs: 2000, nanos: 2 })),
        ..SetAttributes::default()
    };
    for at in ["tree/sub/empty", "tree/sub/dressed", "tree/plain", "tree/link", "tree/sub", "tree"] {
        lookup(root, at).set_attributes(&times, MAY).unwrap();
    }
}

fn clear(dir: &NodeRef) {
    let mut names = Vec::new();
    dir.read_dir(0, MAY, &mut |entry| {
        names.push(entry.name.to_vec());
        ControlFlow::Continue(())
    })
    .unwrap();
    for at in names {
        let at = Name::new(&at).unwrap();
        let node = dir.lookup(at, Wait::May(MAY)).unwrap();
        if node.kind() == FileKind::Directory {
            clear(&node);
            dir.remove_dir(at, MAY).unwrap();
        } else {
            dir.remove_file(at, MAY).unwrap();
        }
    }
}

/// A share that has lost what is in a snapshot.
struct Lost {
    share: Arc<Share>,
    root: NodeRef,
    expected: BTreeMap<String, String>,
    from: SnapshotId,
}

impl Lost {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::with_clock(clock));
        let (share, root) = (share_on(&store), store.root());
        plant(&root);
        let expected = seen(&root);
        let from = take(&store);
        clear(&root);
        Self { share, root, expected, from }
    }
}

#[test]
fn a_tree_is_restored_with_all_that_it_had() {
    let Lost { share, root, expected, from } = Lost::new();
    let figures = restored(&share, &order(from, "tree", "tree"));
    assert_eq!(seen(&root), expected);
    assert_eq!((figures.restored, figures.unchanged, figures.left), (7, 0, 0));
    let bytes = [b"plain".len() as u64, 3 * 7, 4 << 20, b"sub/dressed".len() as u64];
    assert_eq!(figures.bytes, bytes.iter().sum::<u64>());

    // Elsewhere, beside what is there.
    restored(&share, &order(from, "tree/sub", "tree/copy"));
    let copy = seen(&lookup(&root, "tree/copy"));
    assert_eq!(copy.len(), 4);
    assert!(copy["/dressed"].contains(&format!("{:?}", b"beside")) && copy["/again"] == copy["/dressed"]);
    // What was restored under this order already is not restored again.
    let same = order(from, "tree", "tree");
    clear(&root);
    assert_eq!(restored(&share, &same).restored, 7);
    let again = restored(&share, &same);
    assert_eq!((again.restored, again.unchanged, seen(&root)), (0, 7, expected));
}

#[test]
fn an_attempt_that_goes_on_sees_what_has_changed_beside_the_data() {
    let Lost { share, root, expected, from } = Lost::new();
    let order = order(from, "tree", "tree");
    restored(&share, &order);
    let dressed = || lookup(&root, "tree/sub/dressed");
    let stream = || dressed().stream(stream_name("stream"), MAY).unwrap();
    let changes: [(&str, &dyn Fn()); 7] = [
        ("another stream", &|| drop(dressed().create_stream(stream_name("more"), MAY).unwrap())),
        ("no stream", &|| dressed().remove_stream(stream_name("stream"), MAY).unwrap()),
        ("a stream of the same length", &|| write(&*stream(), 0, b"BESIDE")),
        ("an attribute", &|| dressed().set_xattr(b"colour", b"red", XattrMode::Set, MAY).unwrap()),
        ("no attribute", &|| dressed().remove_xattr(b"colour", MAY).unwrap()),
        ("no descriptor", &|| {
            dressed().set_security(None, MAY).unwrap();
        }),
        ("born later", &|| {
            let btime = Some(Timestamp { secs: 78, nanos: 0 });
            let set = SetAttributes { btime, ..SetAttributes::default() };
            dressed().set_attributes(&set, MAY).unwrap();
        }),
    ];
    for (what, change) in changes {
        change();
        assert_ne!(seen(&root), expected, "{what}");
        let figures = restored(&share, &order);
        // The file has three names.
        assert_eq!((figures.restored, figures.unchanged), (3, 4), "{what}");
        assert_eq!(seen(&root), expected, "{what}");
    }
    let again = restored(&share, &order);
    assert_eq!((again.restored, again.unchanged), (0, 7));
}

#[test]
fn what_is_counted_is_what_there_is_to_go_through() {
    let store = Arc::new(MemoryStore::with_clock(clock));
    let (share, root) = (share_on(&store), store.root());
    plant(&root);
    new_file(&lookup(&root, "tree"), ".anabranch-restoring-00000000000000aa");
    let from = take(&store);
    let counted = |source: &str| {
        let progress = RestoreProgress::default();
        share.count_restoration(&order(from, source, "x"), &progress, &StoreThread::simulated());
        (progress.figures().files_all, progress.figures().bytes_all)
    };
    assert_eq!(counted("tree/plain"), (Some(1), Some(5)));
    assert_eq!(counted("").0, Some(7));
    assert_eq!(counted("nothing"), (None, None));
    let figures = restored(&share, &order(from, "", ""));
    assert_eq!(figures.restored + figures.unchanged, 7, "what another restoration was making is left out");
}

#[test]
fn files_take_the_place_of_those_that_are_there_and_other_files_stay() {
    let store = Arc::new(MemoryStore::with_clock(clock));
    let (share, root) = (share_on(&store), store.root());
    plant(&root);
    std::thread::sleep(Duration::from_millis(1100));
    let from = take(&store);
    let tree = lookup(&root, "tree");
    let old = lookup(&root, "tree/plain");
    write(&*old, 0, b"new data");
    write(&*new_file(&tree, "later"), 0, b"later");
    tree.remove_file(name("fifo"), MAY).unwrap();
    make_dir(&tree, "fifo");
    tree.remove_file(name("link"), MAY).unwrap();
    let figures = restored(&share, &order(from, "tree", "tree"));
    // The names of one file, and the one behind a hole, are what they were.
    assert_eq!((figures.restored, figures.unchanged), (2, 4));
    let kind = LeftAlone { path: b"tree/fifo".to_vec(), error: StorageError::IsDirectory.into() };
    assert_eq!((figures.left, figures.named), (1, vec![kind]));
    assert_eq!(data(&*lookup(&root, "tree/plain"), 0, 99), b"plain");
    assert_eq!(data(&*lookup(&root, "tree/later"), 0, 99), b"later");
    assert_eq!(data(&*old, 0, 99), b"new data", "whoever has it open keeps it");
    assert_ne!(lookup(&root, "tree/plain").id(), old.id());
    // Unless that was asked for, nothing takes the place of anything.
    let careful = Restoration { replace: false, ..order(from, "tree", "tree") };
    write(&*lookup(&root, "tree/plain"), 0, b"newer");
    let figures = restored(&share, &careful);
    let there = LeftAlone { path: b"tree/plain".to_vec(), error: StorageError::Exists.into() };
    assert!(figures.named.contains(&there), "{figures:?}");
    assert_eq!(data(&*lookup(&root, "tree/plain"), 0, 99), b"newer");
}

#[tokio::test]
async fn an_order_is_checked_first() {
    let store = Arc::new(MemoryStore::with_clock(clock));
    let (share, root) = (share_on(&store), store.root());
    plant(&root);
    let from = take(&store);
    let check = async |source: &str, target: &str, replace| {
        share.check_restoration(Restoration { replace, ..order(from, source, target) }).await
    };
    assert_eq!(check("tree/plain", "tree/plain", false).await, Err(CannotRestore::Exists));
    assert_eq!(check("tree/plain", "tree/plain", true).await, Ok(false));
    assert_eq!(check("tree", "new", false).await, Ok(true));
    assert_eq!(check("", "", false).await, Err(CannotRestore::Exists));
    assert_eq!(check("", "", true).await, Ok(true));
    assert_eq!(check("", "new", false).await, Ok(true));
    assert_eq!(check("tree/nothing", "new", false).await, Err(CannotRestore::NoSource));
    assert_eq!(check("tree/link/dressed", "new", false).await, Err(CannotRestore::NoSource));
    assert_eq!(check("tree/plain", "nothing/new", false).await, Err(CannotRestore::NoPlace));
    assert_eq!(check("tree/plain", "tree/plain/new", false).await, Err(CannotRestore::NoPlace));
    assert_eq!(check("tree/plain", "tree/sub", true).await, Err(CannotRestore::OtherKind));
    assert_eq!(check("tree", "tree/plain", true).await, Err(CannotRestore::OtherKind));
    assert_eq!(check("tree/plain", "", true).await, Err(CannotRestore::OtherKind));
    let unknown = share.check_restoration(order(SnapshotId(99), "tree", "new")).await;
    assert_eq!(unknown, Err(CannotRestore::Failed(StorageError::NotFound.into())));
    share.set_terms(Terms::READ_ONLY);
    assert!(matches!(check("tree", "new", false).await, Err(CannotRestore::Failed(Error::ReadOnly(_)))));
}

#[tokio::test]
async fn clients_learn_of_it_and_those_who_do_not_share_keep_their_files() {
    let store = Arc::new(MemoryStore::with_clock(clock));
    let (share, root_dir) = (share_on(&store), store.root());
    plant(&root_dir);
    let from = take(&store);
    write(&*lookup(&root_dir, "tree/plain"), 0, b"new data");
    write(&*lookup(&root_dir, "tree/sub/sparse"), 0, b"new data");
    let shared = find(&share, &root(), "tree/plain").await.unwrap();
    let shared = open(&share, &shared, Access::READ_DATA, Sharing::all()).unwrap();
    let alone = find(&share, &root(), "tree/sub/sparse").await.unwrap();
    let alone = open(&share, &alone, Access::READ_DATA, Sharing::READ).unwrap();
    let watch = share.watch(&root().caller, share.root(), true, ChangeKinds::FILE_NAME).unwrap();
    let figures = restored(&share, &order(from, "tree", "tree"));
    let in_use = LeftAlone { path: b"tree/sub/sparse".to_vec(), error: Error::SharingViolation };
    assert_eq!(figures.named, [in_use]);
    let Some(Seen::Changes(changes)) = watch.take() else { panic!("nothing was seen") };
    let told: Vec<_> = changes.iter().map(|c| (c.action, String::from_utf8_lossy(&c.path))).collect();
    for action in [ChangeAction::Removed, ChangeAction::Added] {
        assert!(told.contains(&(action, "tree/plain".into())), "{told:?}");
    }
    assert!(!told.iter().any(|(_, path)| path.contains("restoring") || path.contains("sparse")), "{told:?}");
    let read = async |open: &Arc<Open>| {
        let file = File::Open(Arc::clone(open));
        share.read(&root(), &file, 0, vec![0; 8]).await.unwrap().0
    };
    assert_eq!((read(&shared).await, read(&alone).await), (b"new data".to_vec(), b"new data".to_vec()));
    let now = File::Stateless(find(&share, &root(), "tree/plain").await.unwrap().node);
    assert_eq!(share.read(&root(), &now, 0, vec![0; 5]).await.unwrap().0, b"plain");
    // One file that is in use is an error of the whole.
    let (outcome, _) = restore(&share, &order(from, "tree/sub/sparse", "tree/sub/sparse"));
    let failure = RestoreFailure { path: b"tree/sub/sparse".to_vec(), error: Error::SharingViolation };
    assert_eq!(outcome, Err(failure));
    share.close(&root(), &alone).await.unwrap();
    restored(&share, &order(from, "tree/sub/sparse", "tree/sub/sparse"));
}

#[test]
fn what_failed_or_was_stopped_anywhere_goes_on_and_leaves_nothing_behind() {
    use fault::Call as C;
    for call in [C::Create, C::Rename, C::Write, C::SetAttributes, C::SetSecurity, C::Link, C::CreateStream] {
        for skip in 0.. {
            let memory = Arc::new(MemoryStore::with_clock(clock));
            plant(&memory.root());
            let expected = seen(&memory.root());
            let from = take(&memory);
            clear(&memory.root());
            let store = Arc::new(FaultyStore::new(Arc::clone(&memory) as _));
            let share = Share::new(ShareId(1), Settings::new("data"), Arc::clone(&store) as _);
            store.inject(Rule { call, skip, times: 1, fault: Fault::Fail(StorageError::NoSpace) });
            let order = order(from, "tree", "tree");
            let (outcome, _) = restore(&share, &order);
            let failed = outcome.is_err();
            if let Err(failure) = outcome {
                assert_eq!(failure.error, StorageError::NoSpace.into(), "{call:?} {skip}");
                assert!(
                    !seen(&memory.root()).keys().any(|path| path.contains("restoring")),
                    "{call:?} {skip}"
                );
                restored(&share, &order);
            }
            assert_eq!(seen(&memory.root()), expected, "{call:?} {skip}");
            if !failed {
                assert!(skip > 0, "{call:?} is never called");
                break;
            }
        }
    }
}

#[test]
fn nobody_has_more_access_in_between() {
    use fault::Call as C;
    /// Permission bits and descriptor of the directory, if it is there.
    fn permits(root: &NodeRef) -> Option<(u32, Option<Arc<acl::SecurityDescriptor>>)> {
        let tree = root.lookup(name("tree"), Wait::May(MAY)).ok()?;
        let sub = tree.lookup(name("sub"), Wait::May(MAY)).ok()?;
        let known = sub.attributes(Want::empty(), Wait::May(MAY)).unwrap();
        Some((known.mode & 0o777, sub.security(&known, Wait::May(MAY)).unwrap()))
    }
    let mut stopped = [0, 0];
    for (call, skip) in
        [C::SetAttributes, C::SetSecurity].into_iter().flat_map(|c| (0..8).map(move |n| (c, n)))
    {
        for is_there in [false, true] {
            let memory = Arc::new(MemoryStore::with_clock(clock));
            plant(&memory.root());
            let wanted = permits(&memory.root()).unwrap();
            assert!(wanted.0 & 0o077 != 0 && wanted.1.is_some());
            let from = take(&memory);
            clear(&memory.root());
            if is_there {
                let sub = make_dir(&make_dir(&memory.root(), "tree"), "sub");
                let set = SetAttributes { mode: Some(0o700), ..SetAttributes::default() };
                sub.set_attributes(&set, MAY).unwrap();
            }
            let store = Arc::new(FaultyStore::new(Arc::clone(&memory) as _));
            let share = Share::new(ShareId(1), Settings::new("data"), Arc::clone(&store) as _);
            // As a server that is killed: from some change on, it makes none, and does not clear up.
            for (call, skip) in [(call, skip), (C::RemoveDir, 0)] {
                store.inject(Rule { call, skip, times: u64::MAX, fault: Fault::Fail(StorageError::NoSpace) });
            }
            let (outcome, _) = restore(&share, &order(from, "tree", "tree"));
            stopped[usize::from(is_there)] += u32::from(outcome.is_err());
            let Some(left) = permits(&memory.root()) else { continue };
            assert!(left == wanted || left == (0o700, None), "{call:?} {skip} {is_there}: {left:?}");
        }
    }
    assert!(stopped.iter().all(|stopped| *stopped > 4), "{stopped:?}");
}

#[test]
fn it_stops_when_it_is_told_to_and_removes_what_was_left() {
    let Lost { share, root, expected, from } = Lost::new();
    let progress = RestoreProgress::default();
    progress.stop();
    let order = order(from, "tree", "tree");
    let outcome = share.restore_from(&order, &progress, &nobody, &StoreThread::simulated());
    assert_eq!(outcome, Ok(Restored::Stopped));
    assert_eq!(progress.figures().restored, 0);
    // A server that was killed has left this.
    let left = new_file(&lookup(&root, "tree"), ".anabranch-restoring-0000000000000007");
    write(&*left, 0, b"half");
    restored(&share, &order);
    assert_eq!(seen(&root), expected);
}

#[test]
fn the_size_of_the_share_counts_and_nothing_is_lost_where_it_does_not_suffice() {
    let store = Arc::new(MemoryStore::with_clock(clock));
    let settings = Settings {
        provisioned: limits::Provisioned::new("custom capacity=4MiB".parse().unwrap()),
        ..Settings::new("data")
    };
    let share = Share::new(ShareId(1), settings, Arc::clone(&store) as Arc<dyn Storage>);
    let root = store.root();
    write(&*new_file(&root, "f"), 0, &vec![1; 3 << 20]);
    let from = take(&store);
    write(&*lookup(&root, "f"), 0, &vec![2; 3 << 20]);
    // The share is counted in the background.
    let begun = Instant::now();
    while share.limits_status().used.is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it was not counted");
        let _ = at_once(share.space(&super::root(), share.root()));
        std::thread::sleep(Duration::from_millis(10));
    }
    let (outcome, _) = restore(&share, &order(from, "f", "f"));
    assert_eq!(outcome, Err(RestoreFailure { path: b"f".to_vec(), error: Error::PlanFull }));
    assert_eq!(seen(&root).len(), 1);
    assert!(data(&*lookup(&root, "f"), 0, 3 << 20) == vec![2; 3 << 20]);
    root.remove_file(name("f"), MAY).unwrap();
}

//! Snapshots that others make and remove meanwhile, the limit of Ceph, and how long snapshots take.

use std::collections::BTreeSet;
use std::io::{IoSlice, stdin};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anabranch_storage_ceph::{Mount, Place};
use storage::conformance::{MAY, Subject};
use storage::{
    Error, Name, NewKind, Node, NodeRef, Replace, Result, Snapshot, Snapshots, Stability, Storage,
    StreamName, Wait, Want, XattrMode,
};

use super::{OnCeph, made};

/// What is written before a snapshot is taken, and afterwards.
const THEN: &[u8] = b"then";
const NOW: &[u8] = b"longer now";
/// How long the data of a snapshot is read after others have removed it: CephFS gives the space back after some seconds.
const AFTERWARDS: Duration = Duration::from_secs(15);
/// More snapshots than any cluster of a test allows.
const MANY: usize = 1000;

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn find(dir: &NodeRef, text: &str) -> Result<NodeRef> {
    dir.lookup(name(text), Wait::May(MAY))
}

fn write(file: &dyn Node, data: &[u8]) {
    file.write(0, &[IoSlice::new(data)], Stability::File, Wait::May(MAY)).unwrap();
}

fn read(file: &NodeRef) -> Result<Vec<u8>> {
    let mut data = [0; 16];
    file.read(0, &mut data, Wait::May(MAY)).map(|count| data[..count].to_vec())
}

fn size(file: &NodeRef) -> Result<u64> {
    Ok(file.attributes(Want::all(), Wait::May(MAY))?.size)
}

/// Waits until the other side has done what it was told.
fn wait_for_others() {
    let _ = stdin().read_line(&mut String::new());
}

fn named(snapshots: &dyn Snapshots, begins: &str) -> Snapshot {
    let listed = snapshots.list(MAY).unwrap();
    listed.into_iter().find(|snapshot| snapshot.name.starts_with(begins)).unwrap()
}

/// Makes a directory `deep/in` with files, and prints `made PATH`. After a line of input, others have made a snapshot `theirs` of the
/// store, and one, `above`, of the directory that holds it. Prints `used`; after another line of input, they have removed `theirs`.
pub(crate) fn of_others(place: &Place, mount: &Arc<Mount>) -> ExitCode {
    let subject = OnCeph::new(place, mount, format!("snapshots-{}", std::process::id()));
    let root = subject.store().root();
    let deep = made(&*root, "deep", NewKind::Directory);
    let dir = made(&*deep, "in", NewKind::Directory);
    let files = ["held", "opened", "handle", "unread", "unopened"]
        .map(|called| made(&*dir, called, NewKind::Regular));
    files.iter().for_each(|file| write(&**file, THEN));
    let stream = StreamName::new(b"stream").unwrap();
    write(&*files[0].create_stream(stream, MAY).unwrap(), THEN);
    files[0].set_xattr(b"kept", THEN, XattrMode::Set, MAY).unwrap();
    println!("made {}", subject.path);
    wait_for_others();
    files.iter().for_each(|file| write(&**file, NOW));
    files[0].set_xattr(b"kept", NOW, XattrMode::Set, MAY).unwrap();

    let snapshots = subject.store().snapshots().unwrap();
    let (theirs, above) = (named(&*snapshots, "theirs"), named(&*snapshots, "_above"));
    assert!(!theirs.is_own && !above.is_own);
    assert_eq!(snapshots.remove(theirs.id, MAY), Err(Error::NotPermitted));
    let view = snapshots.open(theirs.id, MAY).unwrap();
    let then = |view: &dyn Storage| find(&find(&view.root(), "deep").unwrap(), "in").unwrap();
    let read_in = |view: &dyn Storage| read(&find(&then(view), "held").unwrap());
    assert_eq!(read_in(&*view).as_deref(), Ok(THEN));
    assert_eq!(read_in(&*snapshots.open(above.id, MAY).unwrap()).as_deref(), Ok(THEN));

    // A file that is held; one that was read; the handle of one that nobody has open; a stream; while the present moves on.
    let held = find(&then(&*view), "held").unwrap();
    let opened = find(&then(&*view), "opened").unwrap();
    assert_eq!(read(&opened).as_deref(), Ok(THEN));
    let unopened = find(&then(&*view), "unopened").unwrap();
    let stream = held.stream(stream, MAY).unwrap();
    let handles = [then(&*view).handle().unwrap(), find(&then(&*view), "handle").unwrap().handle().unwrap()];
    dir.rename(name("held"), &*root, name("moved"), Replace::Never, MAY).unwrap();
    dir.remove_file(name("opened"), MAY).unwrap();
    dir.remove_file(name("handle"), MAY).unwrap();
    dir.remove_file(name("unopened"), MAY).unwrap();
    root.rename(name("deep"), &*root, name("elsewhere"), Replace::Never, MAY).unwrap();
    drop((dir, files));
    make_library_forget(&root);
    assert_eq!(unopened.xattrs(MAY), Ok(Vec::new()));
    for file in [&held, &opened, &unopened, &stream] {
        assert_eq!(size(file), Ok(THEN.len() as u64));
        assert_eq!(read(file).as_deref(), Ok(THEN));
    }
    assert_eq!(held.xattr(b"kept", MAY).as_deref(), Ok(THEN));
    let by_handle = |number: usize| view.by_handle(&handles[number], Wait::May(MAY));
    assert_eq!(by_handle(0).unwrap().path().as_deref(), Ok(b"deep/in".as_slice()));
    assert_eq!(read(&by_handle(1).unwrap()).as_deref(), Ok(THEN));
    let unread = find(&then(&*view), "unread").unwrap();
    println!("used");
    wait_for_others();

    assert!(snapshots.list(MAY).unwrap().iter().all(|snapshot| snapshot.id != theirs.id));
    assert_eq!(snapshots.open(theirs.id, MAY).err(), Some(Error::NotFound));
    let begun = Instant::now();
    let mut results = BTreeSet::new();
    while begun.elapsed() < AFTERWARDS {
        for file in [&held, &opened, &unread] {
            let read = read(file);
            assert!(!Arc::ptr_eq(file, &unread) || read.is_err(), "its data is nowhere in memory: {read:?}");
            assert!(
                matches!(read.as_deref(), Ok(THEN) | Err(Error::Stale)),
                "of a snapshot that is gone: {read:?}"
            );
            results.insert(format!("{read:?}"));
        }
        assert_eq!(find(&view.root(), "deep").err(), Some(Error::Stale));
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("after it was removed: {results:?}");
    ExitCode::SUCCESS
}

/// Finds so many files that the library forgets the names of others.
fn make_library_forget(root: &NodeRef) {
    const FILES: usize = 300;
    let many = made(&**root, "many", NewKind::Directory);
    (0..FILES).for_each(|number| drop(made(&*many, &format!("f{number}"), NewKind::Regular)));
    (0..FILES).for_each(|number| drop(find(&many, &format!("f{number}")).unwrap()));
    // It looks once a second.
    std::thread::sleep(Duration::from_secs(3));
}

/// Takes as many snapshots as the cluster allows, and prints how long that takes, with so many files.
pub(crate) fn limit(place: &Place, mount: &Arc<Mount>, files: usize) -> ExitCode {
    let subject = OnCeph::new(place, mount, format!("limit-{}", std::process::id()));
    let root = subject.store().root();
    let mut dir = made(&*root, "d", NewKind::Directory);
    for number in 0..files {
        if number % 1000 == 0 {
            dir = made(&*root, &format!("d{number}"), NewKind::Directory);
        }
        made(&*dir, &format!("f{number}"), NewKind::Regular);
    }
    let snapshots = subject.store().snapshots().unwrap();
    let mut taken = Vec::new();
    let mut times = Vec::new();
    let refused = (0..MANY).find_map(|_| {
        let begun = Instant::now();
        let one = snapshots.take("check", MAY);
        times.push(begun.elapsed());
        one.map(|snapshot| taken.push(snapshot)).err()
    });
    let most = u32::try_from(taken.len()).unwrap();
    assert_eq!(refused, Some(Error::SnapshotLimit(most)));
    println!("{most} snapshots, then: {}", refused.unwrap());
    println!("the first: {:?}", times[0]);
    tell("take", &mut times);
    let timed = |what: &str, call: &dyn Fn()| {
        let begun = Instant::now();
        call();
        println!("{what}: {:?}", begun.elapsed());
    };
    timed("list", &|| assert_eq!(snapshots.list(MAY).unwrap(), taken));
    let ids: Vec<_> = taken.iter().map(|snapshot| snapshot.id).collect();
    let path = format!("d{}/f{}", (files - 1) / 1000 * 1000, files - 1);
    let ask = || assert_eq!(snapshots.with_path(path.as_bytes(), &ids, MAY).unwrap(), ids);
    timed("the versions of a file, asked for the first time", &ask);
    timed("and again", &ask);
    let view = snapshots.open(ids[0], MAY).unwrap();
    for (what, root) in [("now", Arc::clone(&root)), ("in a snapshot", view.root())] {
        let dir = find(&root, "d0").unwrap();
        let many = files.min(1000);
        let find_all = || (0..many).for_each(|number| drop(find(&dir, &format!("f{number}")).unwrap()));
        timed(&format!("{many} names, {what}"), &find_all);
    }
    let mut times = Vec::new();
    for snapshot in &taken {
        let begun = Instant::now();
        snapshots.remove(snapshot.id, MAY).unwrap();
        times.push(begun.elapsed());
    }
    tell("remove", &mut times);
    while_others_write(&root, &*snapshots);
    ExitCode::SUCCESS
}

fn tell(what: &str, times: &mut [Duration]) {
    times.sort();
    println!("{what}: {:?} in the middle, {:?} at most", times[times.len() / 2], times[times.len() - 1]);
}

/// Takes snapshots while a file is written, piece by piece, each safe before the next, and prints how long both take.
fn while_others_write(root: &NodeRef, snapshots: &dyn Snapshots) {
    const SNAPSHOTS: usize = 20;
    let file = made(&**root, "written", NewKind::Regular);
    let is_done = AtomicBool::new(false);
    let (mut taken, mut writes) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..SNAPSHOTS {
                std::thread::sleep(Duration::from_millis(500));
                let begun = Instant::now();
                snapshots.take("check", MAY).unwrap();
                taken.push(begun.elapsed());
            }
            is_done.store(true, Ordering::Relaxed);
        });
        for number in 0_u64.. {
            if is_done.load(Ordering::Relaxed) {
                break;
            }
            let begun = Instant::now();
            let piece = [IoSlice::new(&[7; 4096])];
            file.write(number % 1000 * 4096, &piece, Stability::File, Wait::May(MAY)).unwrap();
            writes.push(begun.elapsed());
        }
    });
    tell("take, while others write", &mut taken);
    tell("their writes of 4 KiB", &mut writes);
}

//! When no descriptors are left, nodes that nobody uses make room. Only one test, since the limit applies to the whole
//! process.

use anabranch_storage_local::{LocalOptions, LocalStore, raise_descriptor_limit};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use storage::conformance::MAY;
use storage::{Name, NewKind, NewNode, Storage, Wait};

#[test]
fn few_descriptors_many_files() {
    assert_eq!(Some(raise_descriptor_limit()), getrlimit(Resource::Nofile).maximum);
    let limit = Rlimit { current: Some(100), maximum: getrlimit(Resource::Nofile).maximum };
    setrlimit(Resource::Nofile, limit).expect("a lower limit");
    let dir = tempfile::tempdir().expect("a directory");
    let options = LocalOptions { nodes_max: Some(10_000), ..LocalOptions::default() };
    let store = LocalStore::open(dir.path(), options).expect("a store");
    let root = store.root();
    let new = NewNode { kind: NewKind::Regular, mode: 0o600, uid: 0, gid: 0 };
    let names: Vec<_> = (0..300).map(|n| format!("f{n}")).collect();
    for name in &names {
        root.create(Name::new(name.as_bytes()).expect("a name"), &new, MAY).expect("created");
    }
    for name in &names {
        let node = root.lookup(Name::new(name.as_bytes()).expect("a name"), Wait::May(MAY)).expect("found");
        assert_eq!(node.read(0, &mut [0; 10], Wait::May(MAY)), Ok(0));
    }
    // Held nodes take all descriptors, and then the error says so.
    let held: Vec<_> =
        names.iter().map_while(|n| root.lookup(Name::new(n.as_bytes()).ok()?, Wait::May(MAY)).ok()).collect();
    assert!(held.len() > 50 && held.len() < 100, "{} nodes", held.len());
    let next = Name::new(names[held.len()].as_bytes()).expect("a name");
    assert_eq!(root.lookup(next, Wait::May(MAY)).err(), Some(storage::Error::OutOfResources));
    drop(held);
    assert!(root.lookup(next, Wait::May(MAY)).is_ok());
}

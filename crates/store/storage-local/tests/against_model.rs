//! Random calls on the local store and on the model.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

use std::path::Path;

use anabranch_storage_local::{LocalOptions, LocalStore};
use proptest::prelude::*;
use storage::{Capabilities, Storage};

mod model;

#[expect(dead_code, reason = "no program is needed here")]
#[path = "../../../anabranch/tests/program/needs/mod.rs"]
mod needs;

fn compare(parent: &Path, ops: &[model::Op]) {
    let dir = tempfile::tempdir_in(parent).unwrap();
    let local = LocalStore::open(dir.path(), LocalOptions::default()).unwrap();
    if !local.capabilities().contains(Capabilities::OWNERS | Capabilities::XATTRS) {
        return needs::not_tested("the model sets owners and extended attributes, this user or place cannot");
    }
    model::compare(&local, ops);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tmpfs_is_like_the_model(ops in model::ops()) {
        let shm = Path::new("/dev/shm");
        let disk = std::env::temp_dir();
        compare(if shm.is_dir() { shm } else { &disk }, &ops);
    }

    #[test]
    fn a_disk_is_like_the_model(ops in model::ops()) {
        compare(&std::env::temp_dir(), &ops);
    }
}

//! Names with a special meaning to the file system do not exist for clients.

use std::fs;
use std::ops::ControlFlow;

use anabranch_storage_local::{LocalOptions, LocalStore, lacks_reserved_names};
use storage::conformance::MAY;
use storage::{Error, Name, NewKind, NewNode, NodeRef, Replace, Storage, View, Wait};
use tempfile::TempDir;

const NEW_DIRECTORY: NewNode<'static> = NewNode { kind: NewKind::Directory, mode: 0o755, uid: 0, gid: 0 };
const NEW_FILE: NewNode<'static> = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
const FORMS: [&str; 3] = [".snap", ".SNAP", ".Snap"];

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

/// A store with `dir/.snap/inside`, created by a local program.
fn open(directory: &TempDir, reserved_names: Vec<String>) -> (LocalStore, NodeRef) {
    fs::create_dir_all(directory.path().join("dir/.snap/inside")).expect("directories");
    let options = LocalOptions { reserved_names, ..LocalOptions::default() };
    let store = LocalStore::open(directory.path(), options).expect("a store");
    let dir = store.root().lookup(name("dir"), Wait::May(MAY)).expect("dir");
    (store, dir)
}

fn listed(dir: &NodeRef) -> Vec<String> {
    let mut names = Vec::new();
    let each = &mut |entry: storage::DirEntry<'_>| {
        names.push(String::from_utf8_lossy(entry.name).into_owned());
        ControlFlow::Continue(())
    };
    dir.read_dir(0, MAY, each).expect("a listing");
    names
}

#[test]
fn reserved_names_are_neither_found_nor_listed_nor_made_nor_moved() {
    let directory = TempDir::new().expect("a directory");
    let (store, dir) = open(&directory, vec![".snap".to_owned()]);
    for root in [dir.clone(), store.root()] {
        let file = root.create(name("file"), &NEW_FILE, MAY).expect("a file");
        for form in FORMS {
            for wait in [Wait::May(MAY), Wait::Never(View::FRESH)] {
                assert_eq!(root.lookup(name(form), wait).err(), Some(Error::NotFound), "{form}");
            }
            for new in [&NEW_DIRECTORY, &NEW_FILE] {
                assert_eq!(root.create(name(form), new, MAY).err(), Some(Error::PermissionDenied), "{form}");
            }
            assert_eq!(root.link(name(form), &*file, MAY), Err(Error::PermissionDenied), "{form}");
            for replace in [Replace::Never, Replace::Yes] {
                let to = root.rename(name("file"), &*root, name(form), replace, MAY);
                assert_eq!(to, Err(Error::PermissionDenied), "{form}");
                let from = root.rename(name(form), &*root, name("other"), replace, MAY);
                assert_eq!(from, Err(Error::NotFound), "{form}");
            }
            assert_eq!(root.remove_dir(name(form), MAY), Err(Error::NotFound), "{form}");
            assert_eq!(root.remove_file(name(form), MAY), Err(Error::NotFound), "{form}");
        }
    }
    assert_eq!(listed(&dir), ["file"]);
    assert!(directory.path().join("dir/.snap/inside").is_dir());
}

#[test]
fn elsewhere_they_are_names_as_others_are() {
    let directory = TempDir::new().expect("a directory");
    assert_eq!(lacks_reserved_names(directory.path()), Ok(false));
    let (_store, dir) = open(&directory, Vec::new());
    assert_eq!(listed(&dir), [".snap"]);
    let inside = dir.lookup(name(".snap"), Wait::May(MAY)).expect("the directory");
    assert_eq!(listed(&inside), ["inside"]);
    dir.create(name(".zfs"), &NEW_DIRECTORY, MAY).expect("a directory");
    dir.rename(name(".zfs"), &*dir, name(".SNAP"), Replace::Never, MAY).expect("another name");
}

//! What NFS clients change, as those see it who watch a directory through another protocol.

use nfs_wire::v3::attr::SetAttributes;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::types::Path;
use nfs_wire::v3::{Procedure, link, remove, rename, rmdir, setattr, symlink};
use share::{ChangeAction, ChangeKinds, Seen, Watch};

use crate::client::{Client, TestServer, by_smb, place, with_mode};

/// Watches the root of `/data`.
fn watch(server: &TestServer, recursive: bool, kinds: ChangeKinds) -> Watch {
    let superuser = by_smb(0, 0);
    server.data.watch(&superuser.caller, server.data.root(), recursive, kinds).unwrap()
}

/// What was seen since: the server has told of it before it answers.
fn seen(watch: &Watch) -> Vec<(ChangeAction, String)> {
    match watch.take() {
        None => Vec::new(),
        Some(Seen::Changes(changes)) => {
            changes.into_iter().map(|c| (c.action, String::from_utf8(c.path).unwrap())).collect()
        }
        Some(other) => panic!("{other:?}"),
    }
}

fn one(action: ChangeAction, name: &str) -> Vec<(ChangeAction, String)> {
    vec![(action, name.to_owned())]
}

fn set(client: &mut Client, object: FileHandle, new_attributes: SetAttributes) {
    let args = setattr::Args { object, new_attributes, guard: None };
    client.nfs::<setattr::Res>(Procedure::SetAttr, &args).unwrap();
}

#[test]
fn names_that_come_go_and_change_are_seen() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let (files, dirs) =
        (watch(&server, false, ChangeKinds::FILE_NAME), watch(&server, false, ChangeKinds::DIR_NAME));
    let file = client.make_file(root, "file", 0o644, b"");
    assert_eq!(seen(&files), one(ChangeAction::Added, "file"));
    let dir = client.make_dir(root, "dir", 0o755);
    let args = symlink::Args {
        place: place(root, "symlink"),
        attributes: SetAttributes::default(),
        data: Path(b"file"),
    };
    client.nfs::<symlink::Res>(Procedure::SymLink, &args).unwrap();
    assert_eq!(seen(&files), one(ChangeAction::Added, "symlink"));
    let args = link::Args { file, link: place(root, "link") };
    client.nfs::<link::Res>(Procedure::Link, &args).unwrap();
    assert_eq!(seen(&files), one(ChangeAction::Added, "link"));
    let args = rename::Args { from: place(root, "link"), to: place(root, "renamed") };
    client.nfs::<rename::Res>(Procedure::Rename, &args).unwrap();
    let renamed = [(ChangeAction::RenamedFrom, "link"), (ChangeAction::RenamedTo, "renamed")];
    assert_eq!(seen(&files), renamed.map(|(action, name)| (action, name.to_owned())));
    let args = rename::Args { from: place(root, "renamed"), to: place(dir, "moved") };
    client.nfs::<rename::Res>(Procedure::Rename, &args).unwrap();
    assert_eq!(seen(&files), one(ChangeAction::Removed, "renamed"));
    client.nfs::<remove::Res>(Procedure::Remove, &remove::Args { object: place(root, "file") }).unwrap();
    assert_eq!(seen(&files), one(ChangeAction::Removed, "file"));
    assert_eq!(seen(&dirs), one(ChangeAction::Added, "dir"), "of all that, the only directory");
    client.nfs::<remove::Res>(Procedure::Remove, &remove::Args { object: place(dir, "moved") }).unwrap();
    client.nfs::<rmdir::Res>(Procedure::RmDir, &rmdir::Args { object: place(root, "dir") }).unwrap();
    assert_eq!(seen(&dirs), one(ChangeAction::Removed, "dir"));
    assert_eq!(seen(&files), []);
}

#[test]
fn data_and_attributes_that_change_are_seen_by_those_who_want_to() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o644, b"");
    let kinds = [ChangeKinds::SIZE, ChangeKinds::LAST_WRITE, ChangeKinds::SECURITY, ChangeKinds::FILE_NAME];
    let [sizes, writes, security, names] = kinds.map(|kinds| watch(&server, false, kinds));
    let modified = one(ChangeAction::Modified, "file");
    client.write(file, 0, b"data").unwrap();
    assert_eq!((seen(&sizes), seen(&writes), seen(&security)), (modified.clone(), modified.clone(), vec![]));
    set(&mut client, file, with_mode(0o600));
    assert_eq!((seen(&sizes), seen(&writes), seen(&security)), (vec![], vec![], modified.clone()));
    set(&mut client, file, SetAttributes { size: Some(1), ..SetAttributes::default() });
    assert_eq!((seen(&sizes), seen(&security)), (modified, vec![]));
    assert_eq!(seen(&names), []);
}

#[test]
fn what_lies_deeper_is_seen_by_those_who_watch_the_tree() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "a", 0o755);
    let deeper = client.make_dir(dir, "b", 0o755);
    let kinds = ChangeKinds::FILE_NAME | ChangeKinds::SIZE;
    let (flat, tree) = (watch(&server, false, kinds), watch(&server, true, kinds));
    let file = client.make_file(deeper, "file", 0o644, b"");
    assert_eq!(seen(&tree), one(ChangeAction::Added, "a/b/file"));
    client.write(file, 0, b"data").unwrap();
    assert_eq!(seen(&tree), one(ChangeAction::Modified, "a/b/file"));
    assert_eq!(seen(&flat), []);
}

#[test]
fn too_much_is_an_overflow() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let names = watch(&server, false, ChangeKinds::FILE_NAME);
    for _ in 0..2100 {
        client.make_file(root, "file", 0o644, b"");
        client.nfs::<remove::Res>(Procedure::Remove, &remove::Args { object: place(root, "file") }).unwrap();
    }
    assert_eq!(names.take(), Some(Seen::Overflow));
    client.make_file(root, "after", 0o644, b"");
    assert_eq!(seen(&names), one(ChangeAction::Added, "after"));
}

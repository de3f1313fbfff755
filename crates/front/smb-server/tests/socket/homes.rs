//! Shares whose users each see the directory with their own name.

use acl::{Ace, AceFlags};
use anabranch_smb_server::{Config, Dialect};
use share::Terms;
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions};
use smb_wire::fscc::FileInfoClass;
use smb_wire::fscc::file_info::{All, DispositionFlags, Rename, RenameFlags};
use smb_wire::{AccessMask, NtStatus};

use crate::client::{Client, GUEST, OTHER_USER, PASSWORD, SHARE, TestServer};
use crate::guest::without_a_name;
use crate::information::{query, set};
use crate::opening::{ALL, Opening, make_file};
use crate::security::{BOB, set_dacl};

/// A server with the directories `Ann` and `bob`, and a client that saw all of them before the share got its term.
fn with_homes() -> (TestServer, Client) {
    let server = TestServer::start(Config::default());
    let mut all = server.client();
    for name in ["Ann", "bob"] {
        Opening::directory().try_out(&mut all, name).unwrap();
    }
    make_file(&mut all, "guest", b"a file is no home");
    server.share.set_terms(Terms::HOMES);
    (server, all)
}

fn log_in(server: &TestServer, user: &str) -> Client {
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    client.log_in(user, PASSWORD).unwrap();
    client
}

fn rename_to(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Rename { flags: RenameFlags::empty(), root_directory: 0, name: name.into() }
        .encode_into(&mut out)
        .unwrap();
    out
}

/// The path of an open file, as the client is told.
fn path_of(client: &mut Client, name: &str) -> String {
    let readable = Opening { access: AccessMask::READ_ATTRIBUTES, ..Opening::default() };
    let file = readable.send(client, name).unwrap().id;
    let all = query(client, file, FileInfoClass::All).unwrap();
    client.close(file).unwrap();
    All::decode(&all).unwrap().name.name.decode().unwrap()
}

#[test]
fn each_user_sees_their_own_directory() {
    let (server, mut all) = with_homes();
    let mut ann = log_in(&server, "ann");
    for name in [SHARE, "ANN"] {
        ann.tree_connect(name).unwrap();
        make_file(&mut ann, name, name.as_bytes());
        let file = Opening::default().send(&mut all, &format!(r"Ann\{name}")).unwrap().id;
        assert_eq!(all.read(file, 0, 100).unwrap(), name.as_bytes());
    }
    Opening::directory().try_out(&mut ann, "d").unwrap();
    let file = Opening::default().send(&mut ann, "ann").unwrap().id;
    set(&mut ann, file, FileInfoClass::Rename, &rename_to(r"D\new")).unwrap();
    ann.close(file).unwrap();
    assert_eq!(path_of(&mut ann, r"d\new"), r"\d\new");
    assert_eq!(path_of(&mut ann, ""), r"\");
    assert_eq!(path_of(&mut all, r"ann\d\new"), r"\Ann\d\new");

    for (path, status) in [
        (r"..\bob", NtStatus::OBJECT_PATH_SYNTAX_BAD),
        ("bob", NtStatus::OBJECT_NAME_NOT_FOUND),
        (r"Ann\d", NtStatus::OBJECT_PATH_NOT_FOUND),
    ] {
        assert_eq!(Opening::default().send(&mut ann, path).map(|_| ()), Err(status), "{path}");
    }
    let mut bob = log_in(&server, OTHER_USER);
    bob.tree_connect(SHARE).unwrap();
    assert_eq!(Opening::default().send(&mut bob, "d").map(|_| ()), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(bob.tree_connect("ann").map(|_| ()), Err(NtStatus::BAD_NETWORK_NAME), "another user's name");
}

#[test]
fn who_has_no_home_is_refused() {
    let (server, _) = with_homes();
    let mut without = log_in(&server, GUEST);
    for name in [SHARE, GUEST] {
        assert_eq!(without.tree_connect(name).map(|_| ()), Err(NtStatus::BAD_NETWORK_NAME), "{name}");
    }
    server.share.set_terms(Terms::HOMES | Terms::GUESTS);
    let mut nobody = server.connect();
    nobody.negotiate(&[Dialect::Smb311]);
    without_a_name(&mut nobody).unwrap();
    assert_eq!(nobody.tree_connect(SHARE).map(|_| ()), Err(NtStatus::ACCESS_DENIED));
}

#[test]
fn a_home_can_neither_be_renamed_nor_removed_by_its_user() {
    let (server, mut all) = with_homes();
    let mut ann = log_in(&server, "ann");
    ann.tree_connect(SHARE).unwrap();
    let deletable = Opening { access: AccessMask::DELETE, ..Opening::default() };
    let at_close = Opening { options: CreateOptions::DELETE_ON_CLOSE, ..deletable.clone() };
    assert_eq!(at_close.send(&mut ann, "").map(|_| ()), Err(NtStatus::CANNOT_DELETE));
    for (client, whose) in [(&mut ann, "the user's"), (&mut all, "the share's")] {
        let refused = deletable.send(client, "").map(|_| ());
        assert_eq!(
            refused,
            Err(NtStatus::ACCESS_DENIED),
            "{whose} root is in no directory that gives the right"
        );
    }
    make_file(&mut ann, "f", b"");
    let file = Opening::default().send(&mut ann, "f").unwrap().id;
    let onto_root = set(&mut ann, file, FileInfoClass::Rename, &rename_to("\\"));
    assert_eq!(onto_root, Err(NtStatus::OBJECT_NAME_INVALID));
    ann.close(file).unwrap();
    Opening { options: CreateOptions::DELETE_ON_CLOSE, ..Opening::default() }
        .send(&mut ann, "f")
        .map(|opened| ann.close(opened.id).unwrap())
        .unwrap();

    // Without the directory, its user cannot make another.
    let open = deletable.send(&mut all, "Ann").unwrap().id;
    set(&mut all, open, FileInfoClass::Disposition, &[1]).unwrap();
    all.close(open).unwrap();
    let again =
        Opening { options: CreateOptions::DIRECTORY_FILE, ..Opening::with(CreateDisposition::OpenIf) };
    assert_eq!(again.send(&mut ann, "").map(|_| ()), Err(NtStatus::OBJECT_PATH_NOT_FOUND));
    assert_eq!(again.send(&mut ann, "new").map(|_| ()), Err(NtStatus::OBJECT_PATH_NOT_FOUND));
}

/// The list of the directory itself may give its user the right to delete it, beside what the share's directory gives.
#[test]
fn a_home_whose_list_grants_deletion_stays() {
    let (server, mut all) = with_homes();
    let home = Opening::default().send(&mut all, "bob").unwrap().id;
    set_dacl(&mut all, home, vec![Ace::allow(BOB, ALL, AceFlags::empty())]).unwrap();
    all.close(home).unwrap();
    let mut bob = log_in(&server, OTHER_USER);
    bob.tree_connect(SHARE).unwrap();
    let deletable = Opening { access: AccessMask::DELETE, ..Opening::default() };
    let at_close = Opening { options: CreateOptions::DELETE_ON_CLOSE, ..deletable.clone() };
    assert_eq!(at_close.send(&mut bob, "").map(|_| ()), Err(NtStatus::CANNOT_DELETE));
    let home = deletable.send(&mut bob, "").expect("the list gives the right").id;
    let delete = DispositionFlags::DELETE.bits().to_le_bytes();
    for (class, buffer) in
        [(FileInfoClass::Disposition, &[1][..]), (FileInfoClass::DispositionEx, &delete[..])]
    {
        assert_eq!(set(&mut bob, home, class, buffer), Err(NtStatus::CANNOT_DELETE), "{class:?}");
    }
    let renamed = set(&mut bob, home, FileInfoClass::Rename, &rename_to("other"));
    assert_eq!(renamed, Err(NtStatus::INVALID_PARAMETER), "it has no name there");
    bob.close(home).unwrap();
    assert_eq!(Opening::default().try_out(&mut all, "bob"), Ok(CreateAction::Opened));
}

//! The roles of a share's users: what TREE_CONNECT tells of them ([MS-SMB2] 2.2.10), and what they are at each open.

use acl::{Ace, AceFlags, Sid};
use anabranch_smb_server::Config;
use share::{Group, Names, Right, Role, Rules};
use smb_proto::dialect::Dialect;
use smb_wire::create::CreateDisposition;
use smb_wire::create_context::RequestContext;
use smb_wire::query_info::SecurityInformation;
use smb_wire::{AccessMask, FileId, NtStatus};
use storage::SetAttributes;
use storage::conformance::MAY;

use crate::client::{Client, OTHER_USER, PASSWORD, SHARE, TestServer, USER};
use crate::opening::{ALL, Opening, delete, make_file};
use crate::security::{BOB, bytes, dacl, parts_of, set_dacl, set_owner};

/// FILE_GENERIC_READ and FILE_GENERIC_EXECUTE; FILE_ALL_ACCESS without WRITE_DAC and WRITE_OWNER.
const READ: AccessMask = AccessMask::from_bits_retain(0x0012_00A9);
const CONTRIBUTE: AccessMask = AccessMask::from_bits_retain(0x0013_01FF);
const NONE: AceFlags = AceFlags::empty();
const DENIED: NtStatus = NtStatus::ACCESS_DENIED;

fn right(who: &str, role: Role) -> Right {
    Right { who: who.parse().unwrap(), role }
}

/// A server whose share everybody may write to by its mode, and which knows the group staff, with [`OTHER_USER`] in it.
fn start() -> TestServer {
    let server = TestServer::start(Config::default());
    let mode = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
    server.share.root().set_attributes(&mode, MAY).unwrap();
    let staff = Group { gid: 50, members: vec![OTHER_USER.to_owned()] };
    server.share.set_names(Names { groups: [("staff".to_owned(), staff)].into(), ..Names::default() });
    server
}

/// [`OTHER_USER`], logged on; and what TREE_CONNECT tells it.
fn bob(server: &TestServer) -> (Client, Result<AccessMask, NtStatus>) {
    let mut bob = server.connect();
    bob.negotiate(&[Dialect::Smb311]);
    bob.log_in(OTHER_USER, PASSWORD).unwrap();
    let told = bob.tree_connect(SHARE).map(|told| told.maximal_access);
    (bob, told)
}

/// [`OTHER_USER`] on a tree connect with this role, where another user has more.
fn bob_as(server: &TestServer, role: Role) -> Client {
    let rights = vec![right(OTHER_USER, role), right(USER, Role::Admin)];
    server.share.set_rules(Rules { rights, ..Rules::default() });
    bob(server).0
}

fn open(client: &mut Client, name: &str, access: AccessMask) -> Result<FileId, NtStatus> {
    Opening { access, ..Opening::default() }.send(client, name).map(|opened| opened.id)
}

fn make(client: &mut Client, name: &str, access: AccessMask) -> Result<FileId, NtStatus> {
    Opening { access, ..Opening::with(CreateDisposition::Create) }.send(client, name).map(|opened| opened.id)
}

#[test]
fn tree_connect_tells_each_role_by_user_and_by_group() {
    let server = start();
    let told = |rights: Vec<Right>, default_role| {
        server.share.set_rules(Rules { rights, default_role, ..Rules::default() });
        bob(&server).1
    };
    // Somebody else has more.
    let admin = || right(USER, Role::Admin);
    for who in [OTHER_USER, "@staff", "S-1-22-1-1000"] {
        for (role, mask) in
            [(Role::Reader, READ), (Role::Contributor, CONTRIBUTE), (Role::Elevated, ALL), (Role::Admin, ALL)]
        {
            assert_eq!(told(vec![right(who, role), admin()], None), Ok(mask), "{who} {role:?}");
        }
    }
    let both = vec![right(OTHER_USER, Role::Reader), right("@staff", Role::Contributor), admin()];
    assert_eq!(told(both, None), Ok(CONTRIBUTE), "the most that an entry gives");
    assert_eq!(told(vec![admin()], None), Err(DENIED));
    assert_eq!(told(vec![admin()], Some(Role::Reader)), Ok(READ));
    assert_eq!(told(vec![admin()], Some(Role::Contributor)), Ok(CONTRIBUTE));
    assert_eq!(
        told(vec![right(OTHER_USER, Role::Contributor)], None),
        Ok(ALL),
        "without higher roles, as ever"
    );
}

#[test]
fn contributors_change_files_and_no_permissions() {
    let server = start();
    make_file(&mut server.client(), "roots", b"");
    let mut bob = bob_as(&server, Role::Contributor);
    let file = make(&mut bob, "mine", CONTRIBUTE).unwrap();
    bob.write(file, 0, b"data").unwrap();
    assert_eq!(set_dacl(&mut bob, file, vec![Ace::allow(Sid::EVERYONE, ALL, NONE)]), Err(DENIED));
    assert_eq!(set_owner(&mut bob, file, BOB), Err(DENIED));
    bob.close(file).unwrap();
    for access in [AccessMask::WRITE_DAC, AccessMask::WRITE_OWNER, AccessMask::GENERIC_ALL] {
        assert_eq!(open(&mut bob, "mine", access), Err(DENIED), "{access:?}");
        assert_eq!(make(&mut bob, "new", access), Err(DENIED), "{access:?}");
    }
    let list = dacl(vec![Ace::allow(Sid::EVERYONE, ALL, NONE)]);
    let list: &'static [u8] = Vec::leak(bytes(&list));
    let with_list = Opening {
        access: CONTRIBUTE,
        contexts: vec![RequestContext::SdBuffer(list)],
        ..Opening::with(CreateDisposition::Create)
    };
    assert_eq!(with_list.send(&mut bob, "new").map(drop), Err(DENIED));
    assert_eq!(open(&mut bob, "new", READ), Err(NtStatus::OBJECT_NAME_NOT_FOUND), "nothing was made");
    let most = open(&mut bob, "mine", AccessMask::MAXIMUM_ALLOWED).unwrap();
    assert_eq!(set_dacl(&mut bob, most, Vec::new()), Err(DENIED), "the maximum is that of the role");
    bob.close(most).unwrap();
    assert_eq!(delete(&mut bob, "mine"), Ok(()));
    assert_eq!(delete(&mut bob, "roots"), Ok(()), "the directory lets everybody");
}

#[test]
fn elevated_contributors_change_the_permissions_that_the_file_lets_them_change() {
    let server = start();
    make_file(&mut server.client(), "roots", b"");
    let mut bob = bob_as(&server, Role::Elevated);
    let file = make(&mut bob, "mine", ALL).unwrap();
    assert_eq!(set_dacl(&mut bob, file, vec![Ace::allow(Sid::EVERYONE, READ, NONE)]), Ok(()));
    assert_eq!(open(&mut bob, "roots", AccessMask::WRITE_DAC), Err(DENIED));
    assert_eq!(open(&mut bob, "roots", AccessMask::WRITE_OWNER), Err(DENIED));
}

#[test]
fn administrators_do_everything_whatever_the_permissions_say() {
    let server = start();
    let mut root = server.client();
    make_file(&mut root, "secret", b"data");
    let file = open(&mut root, "secret", ALL).unwrap();
    set_dacl(&mut root, file, vec![Ace::deny(BOB, ALL, NONE)]).unwrap();
    root.close(file).unwrap();
    assert_eq!(open(&mut bob_as(&server, Role::Elevated), "secret", READ), Err(DENIED));
    let mut bob = bob_as(&server, Role::Admin);
    let file = open(&mut bob, "secret", ALL).unwrap();
    assert_eq!(bob.read(file, 0, 4), Ok(b"data".to_vec()));
    assert_eq!(set_owner(&mut bob, file, BOB), Ok(()), "takes ownership");
    assert_eq!(set_owner(&mut bob, file, Sid::of_user(7)), Ok(()), "and gives it away");
    assert_eq!(set_dacl(&mut bob, file, vec![Ace::allow(Sid::EVERYONE, READ, NONE)]), Ok(()));
    bob.close(file).unwrap();
    let closed = SetAttributes { mode: Some(0o700), ..SetAttributes::default() };
    server.share.root().set_attributes(&closed, MAY).unwrap();
    let file = make(&mut bob, "new", ALL).unwrap();
    let parts = SecurityInformation::OWNER;
    assert_eq!(parts_of(&mut bob, file, parts).owner, Some(BOB), "what is new is its maker's");
    bob.close(file).unwrap();
    assert_eq!(delete(&mut bob, "secret"), Ok(()));
    // What the share refuses to all, it refuses to administrators.
    server.share.set_terms(share::Terms::READ_ONLY);
    assert_eq!(bob.tree_connect(SHARE).unwrap().maximal_access, READ);
    assert_eq!(make(&mut bob, "more", READ | AccessMask::WRITE_DATA), Err(DENIED));
}

#[test]
fn another_role_ends_the_tree_connect() {
    let server = start();
    let mut bob = bob_as(&server, Role::Elevated);
    let file = make(&mut bob, "mine", ALL).unwrap();
    let rights = vec![right("@staff", Role::Contributor), right(USER, Role::Elevated)];
    server.share.set_rules(Rules { rights, ..Rules::default() });
    assert_eq!(set_dacl(&mut bob, file, Vec::new()), Err(NtStatus::NETWORK_NAME_DELETED));
    assert_eq!(bob.tree_connect(SHARE).unwrap().maximal_access, CONTRIBUTE);
}

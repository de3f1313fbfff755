//! Security descriptors: stored, enforced, inherited. [MS-SMB2] 3.3.5.20.3, 3.3.5.21.3, [MS-FSA] 2.1.5.17, [MS-DTYP] 2.5.3.

use std::sync::Arc;

use acl::{Ace, AceFlags, Acl, Control, SecurityDescriptor, Sid};
use anabranch_smb_server::Config;
use share::{Settings, Terms};
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions};
use smb_wire::create_context::RequestContext;
use smb_wire::fscc::FileInfoClass;
use smb_wire::fscc::file_info::{Rename, RenameFlags};
use smb_wire::query_info::{InfoType, SecurityInformation};
use smb_wire::tree_connect::ShareFlags;
use smb_wire::{AccessMask, FileId, NtStatus};
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{Name, SetAttributes, Wait, Want};

use crate::client::{Client, OTHER_USER, PASSWORD, SHARE, TestServer};
use crate::directory::listed;
use crate::information::{Query, set_any};
use crate::opening::{ALL, Opening, delete, make_file};

/// [`OTHER_USER`]; [`crate::client::USER`] is the superuser.
pub(crate) const BOB: Sid = Sid::of_user(1000);
const READ: AccessMask = AccessMask::FILE_READ;
const NONE: AceFlags = AceFlags::empty();
const OI: AceFlags = AceFlags::OBJECT_INHERIT;
const CI: AceFlags = AceFlags::CONTAINER_INHERIT;
const ANY: SecurityInformation =
    SecurityInformation::OWNER.union(SecurityInformation::GROUP).union(SecurityInformation::DACL);

pub(crate) fn dacl(aces: Vec<Ace>) -> SecurityDescriptor {
    let dacl = Some(Acl { revision: 2, aces });
    SecurityDescriptor { control: Control::DACL_PRESENT, dacl, ..SecurityDescriptor::default() }
}

pub(crate) fn bytes(descriptor: &SecurityDescriptor) -> Vec<u8> {
    let mut bytes = Vec::new();
    descriptor.encode_into(&mut bytes).unwrap();
    bytes
}

fn set(
    client: &mut Client,
    file: FileId,
    parts: SecurityInformation,
    descriptor: &SecurityDescriptor,
) -> Result<(), NtStatus> {
    set_any(client, file, (InfoType::Security, 0, parts.bits()), &bytes(descriptor))
}

pub(crate) fn set_dacl(client: &mut Client, file: FileId, aces: Vec<Ace>) -> Result<(), NtStatus> {
    set(client, file, SecurityInformation::DACL, &dacl(aces))
}

pub(crate) fn set_owner(client: &mut Client, file: FileId, owner: Sid) -> Result<(), NtStatus> {
    let descriptor = SecurityDescriptor { owner: Some(owner), ..SecurityDescriptor::default() };
    set(client, file, SecurityInformation::OWNER, &descriptor)
}

fn get(client: &mut Client, file: FileId) -> SecurityDescriptor {
    parts_of(client, file, ANY)
}

pub(crate) fn parts_of(client: &mut Client, file: FileId, parts: SecurityInformation) -> SecurityDescriptor {
    SecurityDescriptor::decode(&Query::security(parts).get(client, file).unwrap()).unwrap()
}

fn aces(client: &mut Client, file: FileId) -> Vec<Ace> {
    get(client, file).dacl.unwrap().aces
}

fn open(client: &mut Client, name: &str, access: AccessMask) -> Result<FileId, NtStatus> {
    Opening { access, ..Opening::default() }.send(client, name).map(|opened| opened.id)
}

fn make(client: &mut Client, name: &str, is_dir: bool) -> FileId {
    let opening = if is_dir { Opening::directory() } else { Opening::with(CreateDisposition::Create) };
    opening.send(client, name).unwrap().id
}

/// A server whose share everybody may write to, a client of the superuser and one of [`BOB`].
fn start() -> (TestServer, Client, Client) {
    let server = TestServer::start(Config::default());
    let mode = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
    server.share.root().set_attributes(&mode, MAY).unwrap();
    let ann = server.client();
    let mut bob = server.connect();
    bob.negotiate(&[smb_proto::dialect::Dialect::Smb311]);
    bob.log_in(OTHER_USER, PASSWORD).unwrap();
    bob.tree_connect(SHARE).unwrap();
    (server, ann, bob)
}

fn mode(server: &TestServer, name: &str) -> u32 {
    let node = server.share.root().lookup(Name::new(name.as_bytes()).unwrap(), Wait::May(MAY)).unwrap();
    node.attributes(Want::empty(), Wait::May(MAY)).unwrap().mode
}

#[test]
fn a_dacl_is_kept_and_the_mode_follows() {
    let (server, mut ann, _) = start();
    make_file(&mut ann, "file", b"");
    let file = open(&mut ann, "file", ALL).unwrap();
    let somebody: Sid = "S-1-5-21-1-2-3-1000".parse().unwrap();
    let list = vec![
        Ace::deny(somebody, AccessMask::WRITE_DATA, NONE),
        Ace::allow(Sid::of_user(0), READ | AccessMask::WRITE_DATA | AccessMask::APPEND_DATA, NONE),
        Ace::allow(Sid::EVERYONE, AccessMask::GENERIC_READ, NONE),
    ];
    set_dacl(&mut ann, file, list).unwrap();
    assert_eq!(mode(&server, "file"), 0o644);
    let kept = get(&mut ann, file);
    assert_eq!((kept.owner, kept.group), (Some(Sid::of_user(0)), Some(Sid::of_group(0))));
    let kept = kept.dacl.unwrap().aces;
    assert_eq!(kept[0], Ace::deny(somebody, AccessMask::WRITE_DATA, NONE), "in the order that it came in");
    assert_eq!(kept[2], Ace::allow(Sid::EVERYONE, READ, NONE), "generic rights are mapped");
    set_dacl(&mut ann, file, vec![]).unwrap();
    assert_eq!((mode(&server, "file"), aces(&mut ann, file)), (0, vec![]));
}

#[test]
fn what_it_denies_is_denied() {
    let (_server, mut ann, mut bob) = start();
    make_file(&mut ann, "file", b"data");
    let file = open(&mut ann, "file", ALL).unwrap();
    let write = AccessMask::WRITE_DATA;
    let list = vec![Ace::deny(BOB, write, NONE), Ace::allow(Sid::EVERYONE, READ | write, NONE)];
    set_dacl(&mut ann, file, list).unwrap();
    let reader = open(&mut bob, "file", READ).unwrap();
    assert_eq!(bob.read(reader, 0, 4), Ok(b"data".to_vec()));
    assert_eq!(open(&mut bob, "file", write), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(open(&mut bob, "file", AccessMask::WRITE_DAC), Err(NtStatus::ACCESS_DENIED));
    // [MS-SMB2] 2.2.13.1: all that is allowed, and not what is asked for beside it if that is not.
    assert!(open(&mut bob, "file", AccessMask::MAXIMUM_ALLOWED).is_ok());
    assert_eq!(open(&mut bob, "file", AccessMask::MAXIMUM_ALLOWED | write), Err(NtStatus::ACCESS_DENIED));
    let maximal = Opening {
        access: READ,
        contexts: vec![RequestContext::QueryMaximalAccess { timestamp: None }],
        ..Opening::default()
    };
    let (_, maximal) = maximal.send(&mut bob, "file").unwrap().maximal_access.unwrap();
    assert_eq!(maximal, READ | AccessMask::DELETE, "DELETE is the directory's to give");
    set_dacl(&mut ann, file, vec![Ace::allow(BOB, write, NONE)]).unwrap();
    assert!(open(&mut bob, "file", write).is_ok(), "somebody whom no bit speaks of");
    assert_eq!(open(&mut bob, "file", READ), Err(NtStatus::ACCESS_DENIED));
}

#[test]
fn the_owner_may_always_change_it_unless_its_rights_are_named() {
    let (_server, _, mut bob) = start();
    let file = make(&mut bob, "mine", false);
    set_dacl(&mut bob, file, vec![]).unwrap();
    assert_eq!(open(&mut bob, "mine", AccessMask::READ_DATA), Err(NtStatus::ACCESS_DENIED));
    let again = open(&mut bob, "mine", AccessMask::WRITE_DAC | AccessMask::READ_CONTROL).unwrap();
    let rights = vec![Ace::allow(Sid::OWNER_RIGHTS, AccessMask::READ_DATA, NONE)];
    set_dacl(&mut bob, again, rights).unwrap();
    assert_eq!(open(&mut bob, "mine", AccessMask::WRITE_DAC), Err(NtStatus::ACCESS_DENIED));
    assert!(open(&mut bob, "mine", AccessMask::READ_DATA).is_ok());
}

#[test]
fn what_is_made_inherits() {
    let (server, mut ann, mut bob) = start();
    let dir = make(&mut ann, "dir", true);
    let all = AccessMask::FILE_ALL;
    let list = vec![
        Ace::allow(Sid::EVERYONE, all, CI),
        Ace::allow(Sid::CREATOR_OWNER, AccessMask::GENERIC_READ, OI | CI | AceFlags::INHERIT_ONLY),
    ];
    let both = Control::DACL_AUTO_INHERITED | Control::DACL_AUTO_INHERIT_REQ;
    let list = SecurityDescriptor { control: Control::DACL_PRESENT | both, ..dacl(list) };
    set(&mut ann, dir, SecurityInformation::DACL, &list).unwrap();
    let file = make(&mut bob, r"dir\file", false);
    assert_eq!(aces(&mut bob, file), [Ace::allow(BOB, READ, AceFlags::INHERITED)]);
    assert!(get(&mut bob, file).control.contains(Control::DACL_AUTO_INHERITED));
    assert_eq!(bob.write(file, 0, b"x"), Ok(()), "its maker got what it asked for");
    assert_eq!(open(&mut bob, r"dir\file", AccessMask::WRITE_DATA), Err(NtStatus::ACCESS_DENIED));
    let below = make(&mut bob, r"dir\below", true);
    let id = AceFlags::INHERITED;
    let expected = [
        Ace::allow(Sid::EVERYONE, all, CI | id),
        Ace::allow(BOB, READ, id),
        Ace::allow(Sid::CREATOR_OWNER, AccessMask::GENERIC_READ, OI | CI | AceFlags::INHERIT_ONLY | id),
    ];
    assert_eq!(aces(&mut bob, below), expected);
    assert_eq!(mode(&server, "dir"), 0o777);
}

#[test]
fn a_descriptor_given_at_creation_counts_instead() {
    let (server, _, mut bob) = start();
    let given = dacl(vec![Ace::allow(Sid::EVERYONE, READ, NONE)]);
    let with = |descriptor: &SecurityDescriptor| {
        let leaked: &'static [u8] = bytes(descriptor).leak();
        Opening {
            contexts: vec![RequestContext::SdBuffer(leaked)],
            ..Opening::with(CreateDisposition::Create)
        }
    };
    let file = with(&given).send(&mut bob, "given").unwrap().id;
    assert_eq!(aces(&mut bob, file), [Ace::allow(Sid::EVERYONE, READ, NONE)]);
    assert_eq!(mode(&server, "given"), 0o444);
    let for_another = SecurityDescriptor { owner: Some(Sid::of_user(0)), ..given };
    assert_eq!(with(&for_another).send(&mut bob, "refused"), Err(NtStatus::INVALID_OWNER));
    assert_eq!(open(&mut bob, "refused", READ), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn what_bits_say_is_not_stored_and_chmod_takes_the_rest_back() {
    let (server, _, mut bob) = start();
    let file = make(&mut bob, "file", false);
    let node = server.share.root().lookup(Name::new(b"file").unwrap(), Wait::May(MAY)).unwrap();
    let stored =
        || node.security(&node.attributes(Want::empty(), Wait::May(MAY)).unwrap(), Wait::May(MAY)).unwrap();
    let of_mode = get(&mut bob, file);
    set_dacl(&mut bob, file, vec![Ace::allow(Sid::of_user(7), READ, NONE)]).unwrap();
    assert!(stored().is_some());
    set(&mut bob, file, SecurityInformation::DACL, &of_mode).unwrap();
    assert!(stored().is_none());
    assert_eq!(get(&mut bob, file), of_mode);
    set_dacl(&mut bob, file, vec![Ace::allow(Sid::of_user(7), READ, NONE)]).unwrap();
    // By a local program.
    node.set_attributes(&SetAttributes { mode: Some(0o640), ..SetAttributes::default() }, MAY).unwrap();
    let of_mode = SecurityDescriptor::of_mode(0o640, false, 1000, 1000).with_ownership().dacl.unwrap().aces;
    assert_eq!(aces(&mut bob, file), of_mode);
}

#[test]
fn owners_are_taken_and_not_given() {
    let (_server, mut ann, mut bob) = start();
    make_file(&mut ann, "file", b"");
    let file = open(&mut ann, "file", ALL).unwrap();
    set_dacl(&mut ann, file, vec![Ace::allow(BOB, AccessMask::WRITE_OWNER, NONE)]).unwrap();
    let owner = |sid| SecurityDescriptor { owner: Some(sid), ..SecurityDescriptor::default() };
    let taken = open(&mut bob, "file", AccessMask::WRITE_OWNER).unwrap();
    let part = SecurityInformation::OWNER;
    assert_eq!(set(&mut bob, taken, part, &owner(Sid::of_user(7))), Err(NtStatus::INVALID_OWNER));
    assert_eq!(set(&mut bob, taken, part, &SecurityDescriptor::default()), Err(NtStatus::INVALID_OWNER));
    set(&mut bob, taken, part, &owner(BOB)).unwrap();
    let kept = get(&mut ann, file);
    assert_eq!(kept.owner, Some(BOB));
    assert_eq!(kept.dacl.unwrap().aces, [Ace::allow(BOB, AccessMask::WRITE_OWNER, NONE)], "the list stays");
    assert!(open(&mut bob, "file", AccessMask::WRITE_DAC).is_ok(), "it is bob's now");
    let group = SecurityDescriptor { group: Some(Sid::of_group(7)), ..SecurityDescriptor::default() };
    let refused = set(&mut bob, taken, SecurityInformation::GROUP, &group);
    assert_eq!(refused, Err(NtStatus::INVALID_PRIMARY_GROUP));
    set(&mut ann, file, part, &owner(Sid::of_user(7))).unwrap();
    assert_eq!(get(&mut ann, file).owner, Some(Sid::of_user(7)), "the superuser names anybody");
    // An owner of another machine is kept, though nobody here.
    let stranger: Sid = "S-1-5-21-1-2-3-1000".parse().unwrap();
    set(&mut ann, file, part, &owner(stranger)).unwrap();
    assert_eq!(get(&mut ann, file).owner, Some(stranger));
}

#[test]
fn each_part_takes_its_right() {
    let (_server, mut ann, _) = start();
    make_file(&mut ann, "file", b"");
    let reader = open(&mut ann, "file", AccessMask::READ_DATA).unwrap();
    let nobody = SecurityDescriptor::default();
    for part in [
        SecurityInformation::OWNER,
        SecurityInformation::GROUP,
        SecurityInformation::DACL,
        SecurityInformation::SACL,
    ] {
        assert_eq!(set(&mut ann, reader, part, &nobody), Err(NtStatus::ACCESS_DENIED), "{part:?}");
        assert_eq!(Query::security(part).get(&mut ann, reader), Err(NtStatus::ACCESS_DENIED), "{part:?}");
    }
    let file = open(&mut ann, "file", ALL).unwrap();
    let what = (InfoType::Security, 0, SecurityInformation::DACL.bits());
    assert_eq!(set_any(&mut ann, file, what, &[1, 2, 3]), Err(NtStatus::INVALID_SECURITY_DESCR));
    let audit = AccessMask::ACCESS_SYSTEM_SECURITY | READ;
    assert_eq!(open(&mut ann, "file", audit), Err(NtStatus::PRIVILEGE_NOT_HELD));
}

#[test]
fn deletion_is_the_objects_or_its_directorys() {
    let (_server, mut ann, mut bob) = start();
    let dir = make(&mut ann, "dir", true);
    let traverse = AccessMask::TRAVERSE | AccessMask::LIST_DIRECTORY;
    set_dacl(&mut ann, dir, vec![Ace::allow(Sid::EVERYONE, traverse, NONE)]).unwrap();
    make_file(&mut ann, r"dir\kept", b"");
    make_file(&mut ann, r"dir\free", b"");
    let free = open(&mut ann, r"dir\free", ALL).unwrap();
    set_dacl(&mut ann, free, vec![Ace::allow(BOB, AccessMask::DELETE, NONE)]).unwrap();
    ann.close(free).unwrap();
    assert_eq!(delete(&mut bob, r"dir\kept"), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(delete(&mut bob, r"dir\free"), Ok(()));
    set_dacl(&mut ann, dir, vec![Ace::allow(BOB, traverse | AccessMask::DELETE_CHILD, NONE)]).unwrap();
    assert_eq!(delete(&mut bob, r"dir\kept"), Ok(()));
    let add = Opening::with(CreateDisposition::Create).send(&mut bob, r"dir\new");
    assert_eq!(add.map(|_| ()), Err(NtStatus::ACCESS_DENIED), "ADD_FILE is another right");
    set_dacl(&mut ann, dir, vec![Ace::allow(BOB, traverse | AccessMask::ADD_FILE, NONE)]).unwrap();
    make_file(&mut bob, r"dir\new", b"");
    assert_eq!(Opening::directory().try_out(&mut bob, r"dir\sub"), Err(NtStatus::ACCESS_DENIED));
}

/// A link that may not be made takes nothing from who has its name.
#[test]
fn a_refused_link_replaces_nothing() {
    let (_server, mut ann, mut bob) = start();
    let dir = make(&mut ann, "dir", true);
    make_file(&mut ann, r"dir\there", b"");
    let rights = AccessMask::TRAVERSE | AccessMask::LIST_DIRECTORY | AccessMask::DELETE_CHILD;
    set_dacl(&mut ann, dir, vec![Ace::allow(BOB, rights, NONE)]).unwrap();
    make_file(&mut bob, "own", b"");
    let own = open(&mut bob, "own", ALL).unwrap();
    let flags = RenameFlags::REPLACE_IF_EXISTS;
    let mut link = Vec::new();
    let target = Rename { flags, root_directory: 0, name: r"dir\there".into() };
    target.encode_into(&mut link).unwrap();
    let class = u8::from(FileInfoClass::Link);
    let linked = set_any(&mut bob, own, (InfoType::File, class, 0), &link);
    assert_eq!(linked, Err(NtStatus::ACCESS_DENIED));
    assert!(open(&mut ann, r"dir\there", READ).is_ok(), "it is gone");
}

#[test]
fn overwriting_takes_more_than_writing() {
    let (_server, mut ann, mut bob) = start();
    let file = make(&mut ann, "file", false);
    let overwrite = Opening { access: READ, ..Opening::with(CreateDisposition::Overwrite) };
    let supersede = Opening { disposition: CreateDisposition::Supersede, ..overwrite.clone() };
    let denied = Err(NtStatus::ACCESS_DENIED);
    set_dacl(&mut ann, file, vec![Ace::allow(BOB, READ | AccessMask::WRITE_DATA, NONE)]).unwrap();
    assert_eq!(overwrite.try_out(&mut bob, "file"), denied);
    set_dacl(&mut ann, file, vec![Ace::allow(BOB, READ | AccessMask::FILE_WRITE, NONE)]).unwrap();
    assert_eq!(overwrite.try_out(&mut bob, "file"), Ok(CreateAction::Overwritten));
    assert_eq!(
        supersede.try_out(&mut bob, "file"),
        Ok(CreateAction::Superseded),
        "DELETE is the directory's"
    );
    let dir = make(&mut ann, "dir", true);
    set_dacl(&mut ann, dir, vec![Ace::allow(BOB, AccessMask::TRAVERSE, NONE)]).unwrap();
    let inside = make(&mut ann, r"dir\file", false);
    set_dacl(&mut ann, inside, vec![Ace::allow(BOB, READ | AccessMask::FILE_WRITE, NONE)]).unwrap();
    assert_eq!(supersede.try_out(&mut bob, r"dir\file"), denied);
    assert_eq!(overwrite.try_out(&mut bob, r"dir\file"), Ok(CreateAction::Overwritten));
}

#[test]
fn listings_show_what_their_reader_may_read() {
    let hiding = Settings { terms: Terms::ACCESS_BASED_ENUMERATION, ..Settings::new(SHARE) };
    let server = TestServer::sharing(Config::default(), hiding, Arc::new(MemoryStore::new()));
    let mut ann = server.log_in();
    assert!(ann.tree_connect(SHARE).unwrap().share_flags.contains(ShareFlags::ACCESS_BASED_DIRECTORY_ENUM));
    for name in ["open", "closed"] {
        make_file(&mut ann, name, b"");
        let file = open(&mut ann, name, ALL).unwrap();
        let whom = if name == "open" { Sid::EVERYONE } else { Sid::of_user(7) };
        set_dacl(&mut ann, file, vec![Ace::allow(whom, READ, NONE)]).unwrap();
        ann.close(file).unwrap();
    }
    let mut bob = server.connect();
    bob.negotiate(&[smb_proto::dialect::Dialect::Smb311]);
    bob.log_in(OTHER_USER, PASSWORD).unwrap();
    bob.tree_connect(SHARE).unwrap();
    let listed = |client: &mut Client, pattern: &str| {
        let dir = Opening { options: CreateOptions::DIRECTORY_FILE, access: READ, ..Opening::default() };
        let dir = dir.send(client, "").unwrap().id;
        listed(client, dir, pattern)
    };
    assert_eq!(listed(&mut bob, "*"), [".", "..", "open"]);
    assert_eq!(listed(&mut bob, "closed"), Vec::<String>::new());
    assert_eq!(open(&mut bob, "closed", READ), Err(NtStatus::ACCESS_DENIED), "it is there all the same");
    assert_eq!(listed(&mut ann, "*").len(), 4);
}

//! Names and attributes: LOOKUP, LOOKUPP, READDIR, CREATE, REMOVE, RENAME, LINK, READLINK, SECINFO, GETATTR, SETATTR, VERIFY,
//! NVERIFY, ACCESS, access control lists, extended attributes, filehandles.

use std::net::Ipv4Addr;
use std::sync::Arc;

use anabranch_nfs_server::Config;
use nfs_wire::v4::access::Access;
use nfs_wire::v4::acl::{Ace, AceFlags, AceMask, ace_type};
use nfs_wire::v4::attr::{Attribute, AttributeSet, Attributes, AttributesBuf, Value};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::create::What;
use nfs_wire::v4::fs_locations::{FsLocation, FsLocations};
use nfs_wire::v4::open::{How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::secinfo::SecInfo;
use nfs_wire::v4::setxattr::SetOption;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Name, Stateid, Text, Verifier};
use nfs_wire::v4::{
    access, create, getattr, getxattr, link, listxattrs, lookup, nverify, readdir, remove, removexattr,
    rename, secinfo, setattr, setxattr, verify,
};
use share::{Case, Squash};

use crate::client::{V4Client, put};
use crate::opens::{runtime, started};
use crate::server::{TestServer, by_smb, export};

fn look(name: &[u8]) -> ArgOp<'_> {
    ArgOp::Lookup(lookup::Args { name: Name(name) })
}

fn make<'a>(name: &'a str, what: What<'a>) -> ArgOp<'a> {
    ArgOp::Create(create::Args { what, name: Name(name.as_bytes()), attributes: Attributes::EMPTY })
}

fn rename_to<'a>(old: &'a str, new: &'a str) -> ArgOp<'a> {
    ArgOp::Rename(rename::Args { old_name: Name(old.as_bytes()), new_name: Name(new.as_bytes()) })
}

fn remove_name(name: &str) -> ArgOp<'_> {
    ArgOp::Remove(remove::Args { target: Name(name.as_bytes()) })
}

fn get(attributes: &[Attribute]) -> ArgOp<'static> {
    ArgOp::GetAttr(getattr::Args { request: AttributeSet::of(attributes) })
}

fn set<'a>(file: &'a [u8], attributes: &'a AttributesBuf) -> [ArgOp<'a>; 2] {
    let attributes = attributes.as_attributes();
    [put(file), ArgOp::SetAttr(setattr::Args { stateid: Stateid::ANONYMOUS, attributes })]
}

/// Names with their cookies, and whether that was all.
type Listed = Result<(Vec<(Vec<u8>, u64)>, bool), Status>;

/// One READDIR.
fn page(client: &mut V4Client, dir: &[u8], cookie: u64, max_count: u32) -> Listed {
    let request = AttributeSet::of(&[Attribute::FileId, Attribute::RdattrError]);
    let args = readdir::Args { cookie, cookie_verifier: Verifier([0; 8]), dir_count: 0, max_count, request };
    let reply = client.compound(&[put(dir), ArgOp::ReadDir(args)]);
    match reply.last() {
        ResOp::ReadDir(Ok(ok)) => {
            let names = ok.listing.entries.iter().map(|entry| (entry.name.0.to_vec(), entry.cookie));
            Ok((names.collect(), ok.listing.eof))
        }
        _ => Err(reply.status.unwrap_err()),
    }
}

#[test]
fn paths_lead_down_and_up() {
    let (_server, mut client, root) = started();
    client.ok(&[put(&root), make("dir", What::Directory)]);
    let dir = client.path("/data/dir");
    let up = client.ok(&[put(&dir), ArgOp::LookupP, ArgOp::GetFh]).file_handle();
    assert_eq!(up, root);
    let top = client.ok(&[put(&root), ArgOp::LookupP, ArgOp::GetFh]).file_handle();
    assert_eq!(top, client.ok(&[ArgOp::PutRootFh, ArgOp::GetFh]).file_handle());
    assert_eq!(client.fails(&[ArgOp::PutRootFh, ArgOp::LookupP]), Status::NoEnt);
    client.open(&root, "file");
    let file = client.path("/data/file");
    assert_eq!(client.fails(&[put(&file), look(b"x")]), Status::NotDir);
    assert_eq!(client.fails(&[put(&file), ArgOp::LookupP]), Status::NotDir);
    let long = vec![b'n'; 256];
    let bad: [(&[u8], Status); 6] = [
        (b"missing", Status::NoEnt),
        (b"", Status::Inval),
        (b".", Status::BadName),
        (b"..", Status::BadName),
        (b"a/b", Status::BadChar),
        (&long, Status::NameTooLong),
    ];
    for (name, status) in bad {
        assert_eq!(client.fails(&[put(&root), look(name)]), status, "{name:?}");
    }
    let bad_name = make("..", What::Directory);
    assert_eq!(client.fails(&[put(&root), bad_name]), Status::BadName);
    assert_eq!(client.fails(&[ArgOp::PutRootFh, make("share", What::Directory)]), Status::RoFs);
}

#[test]
fn an_empty_directory_needs_room_for_its_end() {
    let (_server, mut client, root) = started();
    client.ok(&[put(&root), make("dir", What::Directory)]);
    let dir = client.path("/data/dir");
    assert_eq!(page(&mut client, &dir, 0, 15), Err(Status::TooSmall));
    assert_eq!(page(&mut client, &dir, 0, 16), Ok((Vec::new(), true)));
}

#[test]
fn directories_are_listed_page_by_page() {
    let (_server, mut client, root) = started();
    let mut made: Vec<Vec<u8>> = (0..40).map(|number| format!("name-{number:02}").into_bytes()).collect();
    for name in &made {
        client.ok(&[put(&root), make(std::str::from_utf8(name).unwrap(), What::Fifo)]);
    }
    let (mut names, mut cookie, mut pages) = (Vec::new(), 0, 0);
    loop {
        let (part, eof) = page(&mut client, &root, cookie, 512).unwrap();
        assert!(part.iter().all(|(_, cookie)| *cookie > 2), "0, 1 and 2 are reserved");
        cookie = part.last().map_or(cookie, |last| last.1);
        names.extend(part.into_iter().map(|entry| entry.0));
        pages += 1;
        if eof {
            break;
        }
    }
    names.sort();
    made.sort();
    assert_eq!(names, made);
    assert!(pages > 3, "{pages}");
    assert_eq!(page(&mut client, &root, 0, 16), Err(Status::TooSmall));
    assert_eq!(page(&mut client, &root, 1, 4096), Err(Status::BadCookie));
    let file = client.path("/data/name-00");
    assert_eq!(page(&mut client, &file, 0, 4096), Err(Status::NotDir));
    let top = client.ok(&[ArgOp::PutRootFh, ArgOp::GetFh]).file_handle();
    let shares = page(&mut client, &top, 0, 4096).unwrap();
    let shares: Vec<_> = shares.0.into_iter().map(|entry| entry.0).collect();
    assert_eq!(shares, [b"data".to_vec(), b"other".to_vec()]);
}

#[test]
fn names_are_made_moved_linked_and_removed() {
    let (_server, mut client, root) = started();
    client.ok(&[put(&root), make("dir", What::Directory)]);
    client.ok(&[put(&root), make("symlink", What::SymbolicLink(Text(b"some/where")))]);
    assert_eq!(client.fails(&[put(&root), make("dir", What::Directory)]), Status::Exist);
    assert_eq!(client.fails(&[put(&root), make("odd", What::Other(99))]), Status::BadType);
    let reply = client.ok(&[put(&root), look(b"symlink"), ArgOp::ReadLink]);
    let ResOp::ReadLink(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!(ok.link, Text(b"some/where"));
    assert_eq!(client.fails(&[put(&root), ArgOp::ReadLink]), Status::WrongType);
    let (_, file) = client.open(&root, "file");
    let dir = client.path("/data/dir");
    let hard = ArgOp::Link(link::Args { new_name: Name(b"hard") });
    client.ok(&[put(&file), ArgOp::SaveFh, put(&dir), hard.clone()]);
    assert_eq!(client.fails(&[put(&file), ArgOp::SaveFh, put(&dir), hard.clone()]), Status::Exist);
    assert_eq!(client.fails(&[put(&dir), ArgOp::SaveFh, put(&root), hard.clone()]), Status::IsDir);
    let links = client.ok(&[put(&file), get(&[Attribute::NumLinks])]);
    assert_eq!(links.attribute(Attribute::NumLinks), Some(Value::NumLinks(2)));
    client.ok(&[put(&root), ArgOp::SaveFh, put(&dir), rename_to("file", "moved")]);
    assert_eq!(client.path("/data/dir/moved"), file, "it is the same object");
    let missing = [put(&root), ArgOp::SaveFh, put(&dir), rename_to("file", "moved")];
    assert_eq!(client.fails(&missing), Status::NoEnt);
    assert_eq!(client.fails(&[put(&root), remove_name("dir")]), Status::NotEmpty);
    assert_eq!(client.fails(&[put(&root), remove_name("..")]), Status::BadName);
    client.ok(&[put(&dir), remove_name("moved")]);
    client.ok(&[put(&dir), remove_name("hard")]);
    client.ok(&[put(&root), remove_name("dir")]);
    // To another share nothing is moved or linked.
    let (_, file) = client.open(&root, "stays");
    let other = client.path("/other");
    assert_eq!(client.fails(&[put(&file), ArgOp::SaveFh, put(&other), hard]), Status::XDev);
    let across = [put(&root), ArgOp::SaveFh, put(&other), rename_to("stays", "gone")];
    assert_eq!(client.fails(&across), Status::XDev);
}

#[test]
fn what_secures_a_name_is_told_and_uses_the_filehandle_up() {
    let (_server, mut client, root) = started();
    client.open(&root, "file");
    let ask = |name| ArgOp::SecInfo(secinfo::Args { name: Name(name) });
    let reply = client.ok(&[put(&root), ask(b"file")]);
    let ResOp::SecInfo(Ok(flavors)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!(flavors, [SecInfo::Flavor(1)]);
    assert_eq!(client.fails(&[put(&root), ask(b"file"), ArgOp::GetFh]), Status::NoFileHandle);
    assert_eq!(client.fails(&[put(&root), ask(b"missing")]), Status::NoEnt);
}

#[test]
fn attributes_are_set_told_and_compared() {
    let (_server, mut client, root) = started();
    let (stateid, file) = client.open(&root, "file");
    client.write(&file, stateid, 0, b"hello");
    let mode: AttributesBuf = [Value::Mode(0o640), Value::Size(3)].into_iter().collect();
    client.ok(&set(&file, &mode));
    let reply = client.ok(&[put(&file), get(&[Attribute::Mode, Attribute::Size, Attribute::Owner])]);
    assert_eq!(reply.attribute(Attribute::Mode), Some(Value::Mode(0o640)));
    assert_eq!(reply.attribute(Attribute::Size), Some(Value::Size(3)));
    assert_eq!(reply.attribute(Attribute::Owner), Some(Value::Owner(Text(b"0"))));
    let other: AttributesBuf = [Value::Mode(0o600)].into_iter().collect();
    let same = |attributes| ArgOp::Verify(verify::Args { attributes });
    let differs = |attributes| ArgOp::NVerify(nverify::Args { attributes });
    client.ok(&[put(&file), same(mode.as_attributes()), differs(other.as_attributes())]);
    assert_eq!(client.fails(&[put(&file), same(other.as_attributes())]), Status::NotSame);
    assert_eq!(client.fails(&[put(&file), differs(mode.as_attributes())]), Status::Same);
    let read_only: AttributesBuf = [Value::NumLinks(7)].into_iter().collect();
    assert_eq!(client.fails(&set(&file, &read_only)), Status::Inval);
    assert_eq!(client.fails(&[put(&file), get(&[Attribute::TimeModifySet])]), Status::Inval);
    client.become_user(1000, 100, &[]);
    assert_eq!(client.fails(&set(&file, &other)), Status::Perm);
    let asked = Access::READ | Access::MODIFY | Access::EXTEND;
    let reply = client.ok(&[put(&file), ArgOp::Access(access::Args { access: asked })]);
    let ResOp::Access(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!((ok.supported, ok.access), (asked, Access::empty()));
}

#[test]
fn who_asks_is_told_where_else_the_server_can_be_reached() {
    let listen = |config: &mut Config| config.listen = vec![Ipv4Addr::LOCALHOST.into()];
    let server = TestServer::with(Arc::default(), export(Squash::None), 1, |_| {}, listen);
    let top = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    let here = |root: Vec<Text<'static>>| {
        let location = FsLocation { servers: vec![Text(b"127.0.0.1")], root: root.clone() };
        Some(Value::FsLocations(FsLocations { root, locations: vec![location] }))
    };
    let reply = client.ok(&[put(&top), get(&[Attribute::FsLocations])]);
    assert_eq!(reply.attribute(Attribute::FsLocations), here(vec![Text(b"data")]));
    let reply = client.ok(&[ArgOp::PutRootFh, get(&[Attribute::FsLocations])]);
    assert_eq!(reply.attribute(Attribute::FsLocations), here(vec![]));

    let (_server, mut client, top) = started();
    let reply = client.ok(&[put(&top), get(&[Attribute::FsLocations])]);
    let nowhere = FsLocations { root: vec![Text(b"data")], locations: vec![] };
    assert_eq!(reply.attribute(Attribute::FsLocations), Some(Value::FsLocations(nowhere)));
}

#[test]
fn a_size_is_not_set_against_a_deny_mode() {
    let (server, mut client, root) = started();
    let (_, file) = client.open(&root, "file");
    let mut other = V4Client::start(server.address, "two");
    other.open(&root, "file");
    let size: AttributesBuf = [Value::Size(0)].into_iter().collect();
    other.ok(&set(&file, &size));
    let (of_third, denied) = other.open(&root, "denied");
    other.close(&denied, of_third);
    let modes = (ShareAccess::READ.with_want(Want::None), ShareDeny::WRITE);
    let deny = other.open_args(b"denier", "denied", modes, How::NoCreate);
    other.ok(&[put(&root), ArgOp::Open(deny)]);
    assert!(matches!(client.fails(&set(&denied, &size)), Status::ShareDenied | Status::Locked));
}

#[test]
fn an_access_control_list_holds_and_all_protocols_see_it() {
    let (server, mut client, root) = started();
    let (stateid, file) = client.open(&root, "file");
    client.write(&file, stateid, 0, b"data");
    let entry = |ace_type, mask, who| Ace { ace_type, flags: AceFlags::empty(), mask, who: Text(who) };
    let read = AceMask::READ_DATA | AceMask::READ_ATTRIBUTES | AceMask::READ_ACL;
    let list = vec![
        entry(ace_type::DENY, AceMask::WRITE_DATA, b"1000"),
        entry(ace_type::ALLOW, read | AceMask::WRITE_DATA, b"1001"),
        entry(ace_type::ALLOW, read, b"1000"),
    ];
    let acl: AttributesBuf = [Value::Acl(list.clone())].into_iter().collect();
    client.ok(&set(&file, &acl));
    let reply = client.ok(&[put(&file), get(&[Attribute::Acl])]);
    let Some(Value::Acl(told)) = reply.attribute(Attribute::Acl) else { panic!("{reply:?}") };
    for entry in &list {
        assert!(told.contains(entry), "{entry:?} of {told:?}");
    }
    let allowed = |uid| {
        let caller = by_smb(uid, 100);
        let open = |access| {
            runtime().block_on(async {
                let want = storage::Want::empty();
                let root = server.data.root();
                let found =
                    server.data.lookup(&caller, root, b"file", Case::Insensitive, want).await.unwrap();
                let request = share::OpenRequest::new(access, share::Sharing::all());
                server.data.open(&caller, &found, &request).await.is_ok()
            })
        };
        (open(share::Access::READ_DATA), open(share::Access::WRITE_DATA))
    };
    assert_eq!([1000, 1001, 1002].map(allowed), [(true, false), (true, true), (false, false)]);
    let unknown: AttributesBuf =
        [Value::Acl(vec![entry(ace_type::ALLOW, read, b"nobody@nowhere")])].into_iter().collect();
    assert_eq!(client.fails(&set(&file, &unknown)), Status::BadOwner);
}

#[test]
fn extended_attributes_come_and_go() {
    let server = TestServer::start();
    let mut client = V4Client::start_minor(server.address, "one", 2);
    let root = server.mounted().1.as_bytes().to_vec();
    let (_, file) = client.open(&root, "file");
    let name = Name(b"one");
    let set = |option| ArgOp::SetXattr(setxattr::Args { option, name, value: b"value" });
    let value = ArgOp::GetXattr(getxattr::Args { name });
    let take = ArgOp::RemoveXattr(removexattr::Args { name });
    assert_eq!(client.fails(&[put(&file), set(SetOption::Replace)]), Status::NoXattr);
    client.ok(&[put(&file), set(SetOption::Create)]);
    assert_eq!(client.fails(&[put(&file), set(SetOption::Create)]), Status::Exist);
    let reply = client.ok(&[put(&file), value.clone()]);
    let ResOp::GetXattr(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!(ok.value, b"value");
    let list = ArgOp::ListXattrs(listxattrs::Args { cookie: 0, count: 1024 });
    let reply = client.ok(&[put(&file), list]);
    let ResOp::ListXattrs(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!((ok.names, ok.eof), (vec![name], true));
    client.ok(&[put(&file), take.clone()]);
    assert_eq!(client.fails(&[put(&file), take]), Status::NoXattr);
    assert_eq!(client.fails(&[put(&file), value]), Status::NoXattr);
}

#[test]
fn filehandles_are_not_made_up() {
    let (_server, mut client, root) = started();
    let mut forged = root.clone();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(client.fails(&[put(&forged)]), Status::BadHandle);
    assert_eq!(client.fails(&[put(b"short")]), Status::BadHandle);
    assert_eq!(client.fails(&[put(&[0xff; 128])]), Status::BadHandle);
    // A stateid is of no use with the file of another share.
    let (stateid, _) = client.open(&root, "file");
    let other = client.path("/other");
    let (_, elsewhere) = client.open(&other, "file");
    let read = nfs_wire::v4::read::Args { stateid, offset: 0, count: 1 };
    assert_eq!(client.fails(&[put(&elsewhere), ArgOp::Read(read)]), Status::BadStateId);
}

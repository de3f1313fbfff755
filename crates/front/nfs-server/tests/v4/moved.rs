//! Shares that other servers have: absent file systems. RFC 8881 11.3, 11.4, 11.16; RFC 7530 8.2, 8.3.

use nfs_wire::v4::attr::{Attribute, AttributeSet, Attributes, AttributesBuf, Value};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::fs_locations::{FsLocation, FsLocations};
use nfs_wire::v4::sequence::StatusFlags;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Fsid, Name, Text, Verifier};
use nfs_wire::v4::{access, close, getattr, lookup, nverify, read, readdir, rename, secinfo, verify};
use share::{Gone, Settings, Share, ShareId};
use storage::memory::MemoryStore;

use crate::client::{Reply, V4Client, put};
use crate::opens::started;
use crate::server::TestServer;

/// The number of a share that was never here.
const NEVER: u32 = 77;

fn look(name: &[u8]) -> ArgOp<'_> {
    ArgOp::Lookup(lookup::Args { name: Name(name) })
}

fn get(attributes: &[Attribute]) -> ArgOp<'static> {
    ArgOp::GetAttr(getattr::Args { request: AttributeSet::of(attributes) })
}

fn gone(id: u32, name: &str) -> Gone {
    let addresses = ["192.0.2.7:2049", "[2001:db8::7]:2049", "192.0.2.8:20490"];
    let addresses = addresses.map(|address| address.parse().unwrap()).to_vec();
    Gone { id: ShareId(id), name: name.to_owned(), addresses, is_hidden: false }
}

/// The share `/data` goes to another server.
fn moves(server: &TestServer) {
    let data = server.table.has_gone(gone(server.data.id().0, "data")).unwrap().unwrap();
    server.end_share(&data);
}

/// Where the client finds the share by this name: the client has an address of IPv4.
fn there(name: &'static [u8]) -> Value<'static> {
    let servers = vec![Text(b"192.0.2.7"), Text(b"192.0.2.8.80.10")];
    let (root, there) = (vec![Text(name)], vec![Text(name)]);
    Value::FsLocations(FsLocations { root, locations: vec![FsLocation { servers, root: there }] })
}

/// The attributes of the last GETATTR.
fn told(reply: &Reply) -> AttributeSet {
    let ResOp::GetAttr(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    ok.attributes.set
}

/// The entries of the pseudo root: each with its attributes.
fn listed(client: &mut V4Client, request: &[Attribute]) -> Vec<(String, AttributesBuf)> {
    let args = readdir::Args {
        cookie: 0,
        cookie_verifier: Verifier([0; 8]),
        dir_count: 0,
        max_count: 8192,
        request: AttributeSet::of(request),
    };
    let reply = client.ok(&[ArgOp::PutRootFh, ArgOp::ReadDir(args)]);
    let ResOp::ReadDir(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    let entries = ok.listing.entries.iter();
    let entry = |entry: &readdir::Entry<'_>| {
        let values: Vec<_> = entry.attributes.values().map(Result::unwrap).collect();
        (String::from_utf8(entry.name.0.to_vec()).unwrap(), values.into_iter().collect())
    };
    entries.map(entry).collect()
}

#[test]
fn a_client_learns_where_a_share_is_by_its_name() {
    let (server, mut client, _) = started();
    server.table.has_gone(gone(NEVER, "moved")).unwrap();
    let wanted = [
        Attribute::FsLocations,
        Attribute::Fsid,
        Attribute::MountedOnFileId,
        Attribute::Type,
        Attribute::FileId,
        Attribute::LeaseTime,
    ];
    let reply = client.ok(&[ArgOp::PutRootFh, look(b"moved"), get(&wanted)]);
    // RFC 7530 8.3.1: "Other attributes SHOULD NOT be made available".
    assert_eq!(told(&reply), AttributeSet::of(&wanted[..3]));
    assert_eq!(reply.attribute(Attribute::FsLocations), Some(there(b"moved")));
    let fsid = reply.attribute(Attribute::Fsid).unwrap();
    for present in ["/", "/data", "/other"] {
        let place = client.path(present);
        let reply = client.ok(&[put(&place), get(&[Attribute::Fsid])]);
        assert_ne!(reply.attribute(Attribute::Fsid), Some(fsid.clone()), "{present}");
    }
    assert!(matches!(fsid, Value::Fsid(Fsid { minor: 0, .. })));
    assert_eq!(client.fails(&[ArgOp::PutRootFh, look(b"Moved")]), Status::NoEnt);
    // A client at which the lookup fails asks for the flavors: those of the root will do.
    let asks = ArgOp::SecInfo(secinfo::Args { name: Name(b"moved") });
    let reply = client.ok(&[ArgOp::PutRootFh, asks]);
    assert!(matches!(reply.last(), ResOp::SecInfo(Ok(flavors)) if !flavors.is_empty()), "{reply:?}");
}

#[test]
fn all_else_fails_there() {
    let (server, mut client, root) = started();
    let (stateid, file) = client.open(&root, "file");
    moves(&server);
    for handle in [&root, &file] {
        client.ok(&[put(handle)]);
        let reply = client.ok(&[put(handle), get(&[Attribute::FsLocations, Attribute::MountedOnFileId])]);
        assert_eq!(told(&reply), AttributeSet::of(&[Attribute::FsLocations]));
        assert_eq!(reply.attribute(Attribute::FsLocations), Some(there(b"data")));
        let access = ArgOp::Access(access::Args { access: access::Access::READ });
        for operation in [
            ArgOp::GetFh,
            ArgOp::SaveFh,
            ArgOp::LookupP,
            look(b"file"),
            access,
            get(&[Attribute::Size]),
            get(&[]),
            ArgOp::Read(read::Args { stateid, offset: 0, count: 1 }),
            ArgOp::Close(close::Args { seqid: 0, open_stateid: stateid }),
        ] {
            assert_eq!(client.fails(&[put(handle), operation.clone()]), Status::Moved, "{operation:?}");
        }
    }
    let renamed = ArgOp::Rename(rename::Args { old_name: Name(b"a"), new_name: Name(b"b") });
    let other = client.path("/other");
    assert_eq!(client.fails(&[put(&other), ArgOp::SaveFh, put(&root), renamed]), Status::Moved);
    // 11.3: operations that only set the filehandle do not look at the one before.
    client.ok(&[put(&root), ArgOp::PutRootFh, look(b"other"), ArgOp::GetFh]);
    client.ok(&[put(&other), ArgOp::SaveFh, put(&root), ArgOp::RestoreFh, ArgOp::GetFh]);
}

#[test]
fn places_are_compared() {
    let (server, mut client, root) = started();
    moves(&server);
    let (here, elsewhere) = (there(b"data"), there(b"other"));
    let same = |values: &[Value<'_>]| values.iter().cloned().collect::<AttributesBuf>();
    let compare = |client: &mut V4Client, attributes: &Attributes<'_>| {
        client.fails(&[put(&root), ArgOp::NVerify(nverify::Args { attributes: *attributes })])
    };
    assert_eq!(compare(&mut client, &same(std::slice::from_ref(&here)).as_attributes()), Status::Same);
    let without = same(&[Value::Fsid(Fsid { major: 1, minor: 0 })]);
    assert_eq!(compare(&mut client, &without.as_attributes()), Status::Moved);
    let more = same(&[Value::Size(0), here.clone()]);
    assert_eq!(compare(&mut client, &more.as_attributes()), Status::Moved);
    let (same, other) = (same(&[here]), same(&[elsewhere]));
    client.ok(&[put(&root), ArgOp::Verify(verify::Args { attributes: same.as_attributes() })]);
    let args = verify::Args { attributes: other.as_attributes() };
    assert_eq!(client.fails(&[put(&root), ArgOp::Verify(args)]), Status::NotSame);
}

#[test]
fn a_listing_shows_what_is_elsewhere_to_those_who_ask_for_it() {
    let (server, mut client, _) = started();
    let change = |client: &mut V4Client| {
        let reply = client.ok(&[ArgOp::PutRootFh, get(&[Attribute::Change])]);
        format!("{:?}", reply.attribute(Attribute::Change))
    };
    let before = change(&mut client);
    server.table.has_gone(gone(NEVER, "moved")).unwrap();
    server.table.has_gone(Gone { is_hidden: true, ..gone(NEVER + 1, "secret") }).unwrap();
    assert_ne!(change(&mut client), before, "the root has another name in it");
    let of = |entries: &[(String, AttributesBuf)], name: &str| {
        let entry = entries.iter().find(|(known, _)| known == name);
        entry.map(|(_, attributes)| attributes.as_attributes().set)
    };
    use Attribute::{FileId, FsLocations, Fsid, MountedOnFileId, RdattrError, Size};
    let entries = listed(&mut client, &[RdattrError, Size, MountedOnFileId, FsLocations]);
    assert_eq!(of(&entries, "moved"), Some(AttributeSet::of(&[RdattrError, MountedOnFileId, FsLocations])));
    assert_eq!(of(&entries, "secret"), None);
    let entries = listed(&mut client, &[RdattrError, Size, Fsid, FileId]);
    assert_eq!(of(&entries, "moved"), Some(AttributeSet::of(&[RdattrError, Fsid])));
    assert_eq!(of(&entries, "data"), Some(AttributeSet::of(&[RdattrError, Size, Fsid, FileId])));
    let (_, attributes) = entries.iter().find(|(name, _)| name == "moved").unwrap();
    assert_eq!(attributes.as_attributes().value(RdattrError), Some(Value::RdattrError(Err(Status::Moved))));
    let entries = listed(&mut client, &[Size]);
    assert_eq!((of(&entries, "moved"), of(&entries, "data")), (None, Some(AttributeSet::of(&[Size]))));
}

/// RFC 8881 18.46.3.
#[test]
fn who_had_something_there_is_told_until_it_has_asked() {
    let (server, mut client, root) = started();
    let mut idle = V4Client::start(server.address, "idle");
    let other = client.path("/other");
    let (kept, kept_file) = client.open(&other, "kept");
    client.open(&root, "file");
    moves(&server);
    let is_told = |reply: &Reply| reply.sequence().status_flags.contains(StatusFlags::LEASE_MOVED);
    assert!(is_told(&client.ok(&[put(&other)])));
    assert!(!is_told(&idle.ok(&[ArgOp::PutRootFh])), "it had nothing there");
    assert_eq!(client.fails(&[put(&root), ArgOp::GetFh]), Status::Moved);
    assert!(is_told(&client.ok(&[put(&other)])), "it has not asked where");
    client.ok(&[put(&root), get(&[Attribute::FsLocations])]);
    assert!(!is_told(&client.ok(&[put(&other)])));
    client.write(&kept_file, kept, 0, b"goes on");
    client.close(&kept_file, kept);
}

#[test]
fn a_share_that_comes_again_is_a_share() {
    let (server, mut client, root) = started();
    moves(&server);
    let asks = [put(&root), get(&[Attribute::FsLocations])];
    client.ok(&asks);
    let back = Share::new(ShareId(78), Settings::new("data"), std::sync::Arc::new(MemoryStore::new()));
    server.table.enter(&back).unwrap();
    assert_eq!(client.compound(&asks).status, Err(Status::Stale), "it is another one");
    server.table.has_gone(gone(78, "data")).unwrap();
    server.table.is_gone_no_more("data");
    assert_eq!(client.fails(&[ArgOp::PutRootFh, look(b"data")]), Status::NoEnt);
}

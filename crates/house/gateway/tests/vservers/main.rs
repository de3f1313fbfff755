//! Vservers: several in one process, and one that moves from a gateway to another, with its clients.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate krb5 as anabranch_krb5;
extern crate nfs_server as anabranch_nfs_server;

mod cluster;
/// The client of SMB that the tests of that server use.
mod client {
    pub(crate) use crate::protection::Protection;
    pub(crate) use crate::raw::{Client, Reply};
}
mod faulty;
#[allow(dead_code, reason = "the tests of NFS use the rest")]
#[path = "../../../../front/nfs-server/tests/gss/client.rs"]
mod gss;
mod keytabs;
#[path = "../../../../rules/krb5/tests/mint/mod.rs"]
mod mint;
#[allow(dead_code, reason = "the tests of the program use the rest")]
#[path = "../../../../anabranch/tests/program/nfs4/mod.rs"]
mod nfs4;
#[path = "../no_program/mod.rs"]
mod no_program;
#[path = "../../../../anabranch/tests/program/persistent/mod.rs"]
mod persistent;
#[allow(dead_code, reason = "the tests of SMB use the rest")]
#[path = "../../../../front/smb-server/tests/socket/client/protection.rs"]
mod protection;
#[allow(dead_code, reason = "the tests of SMB use the rest")]
#[path = "../../../../front/smb-server/tests/socket/client/raw.rs"]
mod raw;
mod seen;
#[allow(dead_code, reason = "the tests of NFS use the rest")]
#[expect(clippy::result_large_err, reason = "results with attributes in both arms")]
#[path = "../../../../front/nfs-server/tests/server/client.rs"]
mod server;
mod shares;
#[path = "../ticket/mod.rs"]
mod ticket;
mod users;
mod world;

use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anabranch_gateway::Cause;
use control::Administration as _;
use control::shares::NewShare;
use nfs_wire::v4::open::ShareDeny;
use nfs_wire::v4::status::Status;
use smb_server::PersistentOpens as _;
use smb_wire::{Guid, NtStatus};
use state::PersistentOpenTable;
use state::cluster::{Begun, Owner};

use nfs4::Nfs4;
use persistent::{EXCLUSIVE, lock, open, open_persistent, reclaim};
use world::{At, HOME, PATIENCE, World, nfs, smb};

fn reclaiming(at: At, name: &str) -> Nfs4 {
    Nfs4::reclaiming(HOME, &at.nfs.to_string(), name)
}

fn is_ended(mut stream: &TcpStream) -> bool {
    stream.read(&mut [0]).is_ok_and(|count| count == 0)
}

#[test]
fn a_vserver_moves_with_what_nfs_clients_have_and_others_have_no_grace() {
    let Some(world) = World::new("a vserver that moves, over NFS") else { return };
    let (a, b) = (world.node("a"), world.node("b"));
    let (moving, staying) = (world.data("moving"), world.data("staying"));
    let at = a.serve("files", &moving, None).unwrap();
    let beside = b.serve("others", &staying, None).unwrap();

    let mut before = nfs(at, "one");
    let top = before.top("data").unwrap();
    let held = before.open(&top, "f", ShareDeny::WRITE).unwrap();
    before.write(&held).unwrap();
    let mut other = nfs(beside, "two");
    let others_top = other.top("data").unwrap();
    let others = other.open(&others_top, "f", ShareDeny::NONE).unwrap();

    assert!(a.gateway.end_vserver("files").unwrap());
    assert!(is_ended(&before.stream), "its client is told to come again");
    assert!(TcpStream::connect(at.nfs).is_err());
    b.serve("files", &moving, Some(at)).unwrap();
    let owners = b.gateway.vservers();
    let owned = |name: &str, epoch| (name.to_owned(), Owner { epoch, gateway: "b".to_owned() });
    assert_eq!(owners, [owned("files", 2), owned("others", 1)]);

    // Who held nothing waits; who held something has its filehandles, and has it back.
    let mut late = nfs(at, "late");
    assert_eq!(late.top("data").unwrap(), top, "the same filehandle");
    assert_eq!(late.open(&top, "f", ShareDeny::NONE).unwrap_err(), Status::Grace);
    let mut after = reclaiming(at, "one");
    assert_eq!(after.server, before.server, "the same server, by its owner and its scope");
    assert_ne!(after.server, other.server, "and another than the one beside it");
    let again = after.reclaim(&held.0, ShareDeny::WRITE).unwrap();
    after.write(&again).unwrap();
    // Meanwhile the other vserver of this gateway knows of no grace.
    other.write(&others).unwrap();
    nfs(beside, "three").open(&others_top, "g", ShareDeny::NONE).unwrap();
    assert_eq!(late.open(&top, "g", ShareDeny::NONE).unwrap_err(), Status::Grace);
    // All who are recorded have reported: the grace ends.
    after.complete();
    assert_eq!(late.open(&top, "f", ShareDeny::NONE).unwrap_err(), Status::ShareDenied);
    late.open(&top, "g", ShareDeny::NONE).unwrap();

    a.stop();
    b.stop();
}

#[test]
fn a_vserver_moves_with_persistent_opens() {
    let Some(world) = World::new("a vserver that moves, over SMB") else { return };
    let (a, b) = (world.node("a"), world.node("b"));
    let directory = world.data("moving");
    let at = a.serve("files", &directory, None).unwrap();
    let (mut one, guid) = smb(at, Guid([1; 16]), 0);
    let id = open_persistent(&mut one);
    assert_eq!(lock(&mut one, id, EXCLUSIVE), NtStatus::SUCCESS);
    one.write(id, 0, b"acknowledged").unwrap();
    let session = one.session_id;

    for (from, to) in [(&a, &b), (&b, &a)] {
        assert!(from.gateway.end_vserver("files").unwrap());
        to.serve("files", &directory, Some(at)).unwrap();
        let (mut other, now) = smb(at, Guid([2; 16]), 0);
        assert_eq!(now, guid, "the same server");
        assert_eq!(
            open(&mut other, Vec::new()),
            Err(NtStatus::FILE_NOT_AVAILABLE),
            "before its client is back"
        );
        (one, _) = smb(at, Guid([1; 16]), session);
        let again = reclaim(&mut one, id).unwrap();
        assert_eq!(again.persistent, id.persistent);
        assert_eq!(one.read(again, 0, 12).unwrap(), b"acknowledged");
        let (others, _) = open(&mut other, Vec::new()).unwrap();
        assert_eq!(lock(&mut other, others, EXCLUSIVE), NtStatus::LOCK_NOT_GRANTED);
    }
    a.stop();
    b.stop();
}

#[test]
fn vservers_of_one_gateway_are_several_servers() {
    let Some(world) = World::new("several vservers in one gateway") else { return };
    let node = world.node("a");
    let [one, two] = ["one", "two"].map(|name| node.serve(name, &world.data(name), None).unwrap());
    let ((mut in_one, of_one), (mut in_two, of_two)) =
        (smb(one, Guid([1; 16]), 0), smb(two, Guid([1; 16]), 0));
    assert_ne!(of_one, of_two);
    let (file, _) = open(&mut in_one, Vec::new()).unwrap();
    in_one.write(file, 0, b"in one").unwrap();
    open(&mut in_two, Vec::new()).unwrap();
    assert_eq!(std::fs::read(world.data("two").join("f")).unwrap(), b"", "another directory, another file");
    let (mut nfs_one, mut nfs_two) = (nfs(one, "c"), nfs(two, "c"));
    assert_ne!(nfs_one.server, nfs_two.server);
    let top = nfs_one.top("data").unwrap();
    assert_ne!(top, nfs_two.top("data").unwrap());
    assert_eq!(
        nfs_two.open(&top, "f", ShareDeny::NONE).unwrap_err(),
        Status::BadHandle,
        "a filehandle is of one vserver"
    );
    // Neither is found where the gateway itself is, nor does it end with the other.
    let mut own = Nfs4::start(HOME, &node.gateway.addresses().nfs[0].to_string(), "c");
    assert_eq!(own.top("data").unwrap_err(), Status::NoEnt);
    own.top("own").unwrap();
    assert!(node.gateway.end_vserver("one").unwrap());
    assert!(!node.gateway.end_vserver("one").unwrap(), "it is not served any more");
    open(&mut in_two, Vec::new()).unwrap();
    node.stop();
}

#[test]
fn a_vserver_that_cannot_be_served_is_free_for_others() {
    let Some(world) = World::new("vservers that cannot be served") else { return };
    let (a, b) = (world.node("a"), world.node("b"));
    let data = world.data("data");
    let refused = |vserver: &str, directory: &Path, cause, why: &str| {
        let problem = a.serve(vserver, directory, None).map(|_| ()).unwrap_err();
        assert!(problem.cause == cause && problem.what.contains(why), "{problem}");
        b.own(vserver).end().unwrap();
    };
    let problem = a.serve("Files", &data, None).map(|_| ()).unwrap_err();
    assert!(problem.cause == Cause::Settings, "{problem}");
    refused("files", &world.directory.path().join("missing"), Cause::Directory, "does not exist");
    refused("files", &world.directory.path().join("own of a"), Cause::Directory, "own");
    refused("files", &world.directory.path().join("state of a"), Cause::Directory, "state");
    a.serve("files", &data, None).unwrap();
    refused("more", &data, Cause::Directory, "data of the vserver files");

    // The same of a share that is created by command.
    let new =
        NewShare { name: "more".to_owned(), directory: data.display().to_string(), ..NewShare::default() };
    let refusal = a.gateway.administration().create_share(new).unwrap_err();
    assert!(refusal.what.contains("data of the vserver files"), "{}", refusal.what);

    // One gateway has it until it lets go; the end of a gateway is one way to do so.
    let problem = b.serve("files", &data, None).map(|_| ()).unwrap_err();
    assert!(problem.what.contains("is served by the gateway a"), "{problem}");
    a.stop();
    b.own("files").end().unwrap();
    b.stop();
}

#[test]
fn a_gateway_that_loses_its_place_answers_nobody_and_lets_nothing_go() {
    let Some(world) = World::new("a gateway that loses its lease") else { return };
    let node = world.node("a");
    let data = world.data("data");
    let at = node.serve("files", &data, None).unwrap();
    let (mut one, _) = smb(at, Guid([1; 16]), 0);
    let id = open_persistent(&mut one);
    let client = nfs(at, "c");
    assert_eq!(world.member("a").unwrap_err().gateway, "a", "its name is taken");

    world.fence(&node);
    assert!(is_ended(&client.stream));
    let begun = Instant::now();
    while TcpStream::connect(at.nfs).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it listens still");
    }
    assert_eq!(node.gateway.vservers(), []);
    let problem = node.serve("more", &world.data("more"), None).map(|_| ()).unwrap_err();
    assert!(problem.what.contains("has no place among others"), "{problem}");
    // The gateway goes on with what is its own.
    Nfs4::start(HOME, &node.gateway.addresses().nfs[0].to_string(), "c").top("own").unwrap();

    // One of its name follows, when its lease has run out, and finds what clients have.
    let again = loop {
        match world.member("a") {
            Ok(member) => break member,
            Err(holder) => assert!(begun.elapsed() < PATIENCE, "{holder:?} has the name still"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let Begun::Owned(ownership) = again.own("files").unwrap() else { panic!("others serve it") };
    assert_eq!(ownership.owner().epoch, 2);
    let kept = PersistentOpenTable(ownership.records().unwrap().store()).all().unwrap();
    assert!(kept.iter().any(|open| open.id == id.persistent), "{kept:?}");
    node.stop();
}

#[test]
fn a_session_that_cannot_be_ended_is_left_for_whoever_serves_next() {
    let Some(world) = World::new("a takeover that fails halfway") else { return };
    let dead = world.member_with("dead", "anabranch-dead").unwrap();
    let Begun::Owned(_) = dead.own("files").unwrap() else { panic!("others serve it") };
    dead.leave().unwrap();
    // There is no Ceph here, so nobody can end it.
    for name in ["a", "b"] {
        let node = world.node(name);
        let problem = node.serve("files", Path::new("cephfs:/files"), None).map(|_| ()).unwrap_err();
        assert!(problem.what.contains("the session of anabranch-dead in CephFS"), "{problem}");
        node.stop();
    }
    let Begun::Owned(next) = world.member("c").unwrap().own("files").unwrap() else {
        panic!("others serve it")
    };
    assert_eq!(next.left_sessions(), ["anabranch-dead"]);
}

//! Which clients the rules of a share admit: at its name, and for every operation on filehandles that a client has.

use nfs_wire::v4::attr::AttributeSet;
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::lock::{self, LockType, Locker};
use nfs_wire::v4::open::{Delegation, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::sequence::StatusFlags;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Name, OwnerId, StateOwner, Stateid, Verifier};
use nfs_wire::v4::{close, free_stateid, getattr, lookup, read, readdir, test_stateid};
use share::{Names, Protocols, Right, Role, Rules, Terms};

use crate::client::{V4Client, put};
use crate::opens::runtime;
use crate::server::{TestServer, listed, rules};

fn enter<'a>(share: &'a str) -> [ArgOp<'a>; 2] {
    [ArgOp::PutRootFh, ArgOp::Lookup(lookup::Args { name: Name(share.as_bytes()) })]
}

fn look() -> ArgOp<'static> {
    ArgOp::GetAttr(getattr::Args { request: AttributeSet::EMPTY })
}

#[test]
fn a_share_that_is_not_for_the_client_cannot_be_entered() {
    let server = TestServer::exporting(listed(&["192.0.2.0/24"]));
    let mut client = V4Client::start(server.address, "stranger");
    assert_eq!(client.fails(&enter("data")), Status::Access);
    assert_eq!(client.fails(&enter("none")), Status::NoEnt);
    client.ok(&enter("other"));
    server.data.set_rules(rules(&["127.0.0.1 protocols=smb"]));
    assert_eq!(client.fails(&enter("data")), Status::Access);
    server.data.set_rules(rules(&["127.0.0.1"]));
    client.ok(&enter("data"));
}

#[test]
fn filehandles_are_of_no_use_while_their_client_is_not_let_in_but_what_is_held_is_given_back() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let root = client.path("/data");
    let (stateid, file) = client.open(&root, "file");
    client.write(&file, stateid, 0, b"before");
    server.data.set_rules(Rules { protocols: Protocols::SMB, ..Rules::default() });
    assert_eq!(client.fails(&[put(&root), look()]), Status::Access);
    assert_eq!(client.fails(&[put(&file), look()]), Status::Access);
    assert_eq!(client.fails(&[put(&root), ArgOp::SaveFh, ArgOp::RestoreFh, look()]), Status::Access);
    let close = ArgOp::Close(close::Args { seqid: 0, open_stateid: stateid });
    client.ok(&[put(&file), close]);
    server.data.set_rules(rules(&["127.0.0.1 access=ro"]));
    client.ok(&[put(&file), look()]);
    let remove = nfs_wire::v4::remove::Args { target: Name(b"file") };
    assert_eq!(client.fails(&[put(&root), ArgOp::Remove(remove)]), Status::RoFs);
}

#[test]
fn root_of_a_client_mounts_for_those_on_the_list_and_nobody_else_has_anything() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "machine");
    let root = client.path("/data");
    let (stateid, file) = client.open(&root, "file");
    client.close(&file, stateid);
    let reader = Right { who: "anna".parse().unwrap(), role: Role::Reader };
    server.data.set_names(Names { accounts: [(1000, vec!["anna".to_owned()])].into(), ..Names::default() });
    server.data.set_rules(Rules { rights: vec![reader], ..Rules::default() });
    assert_eq!(client.path("/data"), root);
    let look_up = || ArgOp::Lookup(lookup::Args { name: Name(b"file") });
    client.ok(&[put(&root), look()]);
    assert_eq!(client.fails(&[put(&root), look_up()]), Status::Access);
    assert_eq!(client.fails(&[put(&file), look()]), Status::Access);
    let remove = || ArgOp::Remove(nfs_wire::v4::remove::Args { target: Name(b"file") });
    client.become_user(1000, 100, &[]);
    client.ok(&[put(&root), look_up(), look()]);
    assert_eq!(client.fails(&[put(&root), remove()]), Status::RoFs);
    client.become_user(1001, 100, &[]);
    assert_eq!(client.fails(&[put(&root), remove()]), Status::Access);
}

#[test]
fn a_hidden_share_is_entered_by_its_name_alone() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let mut names = || {
        let request = AttributeSet::EMPTY;
        let args = readdir::Args {
            cookie: 0,
            cookie_verifier: Verifier([0; 8]),
            dir_count: 0,
            max_count: 4096,
            request,
        };
        let reply = client.ok(&[ArgOp::PutRootFh, ArgOp::ReadDir(args)]);
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        (text.contains("data"), text.contains("other"))
    };
    assert_eq!(names(), (true, true));
    server.data.set_terms(Terms::HIDDEN);
    assert_eq!(names(), (false, true));
    client.ok(&enter("data"));
}

/// Locks the first bytes of a file against all others.
fn lock_begin<'a>(client: &V4Client, file: &'a [u8], open_stateid: Stateid) -> [ArgOp<'a>; 2] {
    let owner = StateOwner { client_id: client.client_id, owner: OwnerId(b"locker") };
    let locker = Locker::New { open_seqid: 0, open_stateid, lock_seqid: 0, owner };
    let lock = lock::Args { lock_type: LockType::Write, reclaim: false, offset: 0, length: 10, locker };
    [put(file), ArgOp::Lock(lock)]
}

fn locked(client: &mut V4Client, file: &[u8], open: Stateid) -> Stateid {
    let operations = lock_begin(client, file, open);
    let reply = client.ok(&operations);
    let ResOp::Lock(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    ok.lock_stateid
}

/// An OPEN of a file that is there, wanting no delegation.
fn open<'a>(
    client: &V4Client,
    root: &'a [u8],
    name: &'a str,
    access: ShareAccess,
    deny: ShareDeny,
) -> [ArgOp<'a>; 2] {
    let modes = (access.with_want(Want::None), deny);
    [put(root), ArgOp::Open(client.open_args(b"opener", name, modes, How::NoCreate))]
}

/// A delegation for reading of a file that is made, with no other open of it.
fn delegated(client: &mut V4Client, root: &[u8], name: &str) -> (Vec<u8>, Stateid) {
    let (made, file) = client.open(root, name);
    client.close(&file, made);
    let modes = (ShareAccess::READ.with_want(Want::Read), ShareDeny::NONE);
    let args = client.open_args(b"opener", name, modes, How::NoCreate);
    let reply = client.ok(&[put(root), ArgOp::Open(args)]);
    let opened = reply.opened();
    let Delegation::Read(delegation) = opened.delegation else { panic!("{reply:?}") };
    client.close(&file, opened.stateid);
    (file, delegation.stateid)
}

/// The rules of the share `data` are others from now on, and are looked through.
fn change_rules(server: &TestServer, rules: Rules) {
    server.data.set_rules(rules);
    runtime().block_on(server.server.reconsider(&server.data));
}

fn tested(client: &mut V4Client, stateids: &[Stateid]) -> Vec<Result<(), Status>> {
    let reply = client.ok(&[ArgOp::TestStateid(test_stateid::Args { stateids: stateids.to_vec() })]);
    let ResOp::TestStateid(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    ok.statuses
}

fn is_told_of_loss(client: &mut V4Client) -> bool {
    let flags = client.ok(&[ArgOp::PutRootFh]).sequence().status_flags;
    flags.contains(StatusFlags::ADMIN_STATE_REVOKED)
}

#[test]
fn who_is_not_let_in_any_more_keeps_nobody_out() {
    let server = TestServer::start();
    let mut gone = V4Client::start(server.address, "gone");
    let mut stays = V4Client::start_at([127, 0, 0, 2].into(), server.address, "stays");
    let root = gone.path("/data");
    for name in ["denied", "locked"] {
        let (made, file) = gone.open(&root, name);
        gone.close(&file, made);
    }
    let denies = open(&gone, &root, "denied", ShareAccess::READ, ShareDeny::BOTH);
    let denial = gone.ok(&denies).opened().stateid;
    let (opened, file) = gone.open(&root, "locked");
    let locks = locked(&mut gone, &file, opened);
    let (delegated, delegation) = delegated(&mut gone, &root, "delegated");
    let (kept, kept_file) = {
        let other = gone.path("/other");
        gone.open(&other, "kept")
    };

    let reads = open(&stays, &root, "denied", ShareAccess::READ, ShareDeny::NONE);
    assert_eq!(stays.fails(&reads), Status::ShareDenied);
    let (own, _) = stays.open(&root, "locked");
    let wants = lock_begin(&stays, &file, own);
    assert_eq!(stays.fails(&wants), Status::Denied);

    change_rules(&server, rules(&["127.0.0.2"]));
    stays.ok(&reads);
    locked(&mut stays, &file, own);
    // Nobody is asked for a delegation that is gone.
    let writes = open(&stays, &root, "delegated", ShareAccess::WRITE, ShareDeny::NONE);
    stays.ok(&writes);
    assert!(!is_told_of_loss(&mut stays) && is_told_of_loss(&mut gone) && gone.callbacks.is_empty());

    let lost = [denial, opened, locks, delegation];
    assert_eq!(tested(&mut gone, &lost), [Err(Status::AdminRevoked); 4]);
    assert_eq!(tested(&mut gone, &[kept]), [Ok(())], "another share's");
    let close = |stateid| ArgOp::Close(close::Args { seqid: 0, open_stateid: stateid });
    assert_eq!(gone.fails(&[put(&file), close(opened)]), Status::AdminRevoked);
    // Admitted again, the client has to begin again.
    change_rules(&server, Rules::default());
    let read = |stateid| ArgOp::Read(read::Args { stateid, offset: 0, count: 1 });
    for (file, stateid) in [(&file, opened), (&file, locks), (&delegated, delegation)] {
        assert_eq!(gone.fails(&[put(file), read(stateid)]), Status::AdminRevoked);
    }
    for stateid in lost {
        assert!(is_told_of_loss(&mut gone));
        gone.ok(&[ArgOp::FreeStateid(free_stateid::Args { stateid })]);
    }
    assert!(!is_told_of_loss(&mut gone));
    assert_eq!(tested(&mut gone, &lost), [Err(Status::BadStateId); 4]);
    gone.write(&kept_file, kept, 0, b"goes on");
    let (again, file) = gone.open(&root, "locked");
    gone.write(&file, again, 10, b"goes on");
}

#[test]
fn who_has_lost_a_right_loses_what_was_opened_by_it_and_nobody_else_does() {
    let server = TestServer::start();
    let mut machine = V4Client::start(server.address, "machine");
    let root = machine.path("/data");
    let accounts =
        [(0, "anna"), (1001, "otto"), (1002, "eve")].map(|(uid, name)| (uid, vec![name.to_owned()]));
    server.data.set_names(Names { accounts: accounts.into(), ..Names::default() });
    let (mut old, top) = server.mounted();
    old.make_file(top, "file", 0o644, b"data");
    let mut opened = |uid, owner: &'static [u8], access: ShareAccess| {
        machine.become_user(uid, 100, &[]);
        let modes = (access.with_want(Want::None), ShareDeny::NONE);
        let args = machine.open_args(owner, "file", modes, How::NoCreate);
        machine.ok(&[put(&root), ArgOp::Open(args)]).opened().stateid
    };
    let stateids = [
        opened(0, b"anna", ShareAccess::READ),
        opened(0, b"anna writes", ShareAccess::WRITE),
        opened(1001, b"otto", ShareAccess::READ),
        opened(1002, b"eve", ShareAccess::READ),
    ];
    let right = |who: &str, role| Right { who: who.parse().unwrap(), role };
    let rights = vec![right("anna", Role::Reader), right("otto", Role::Contributor)];
    change_rules(&server, Rules { rights, ..Rules::default() });
    let lost = Err(Status::AdminRevoked);
    assert_eq!(tested(&mut machine, &stateids), [Ok(()), lost, Ok(()), lost]);
}

#[test]
fn a_client_that_comes_from_elsewhere_keeps_what_it_may_use_from_there() {
    let server = TestServer::start();
    let mut first = V4Client::start(server.address, "moves");
    let root = first.path("/data");
    let (stateid, file) = first.open(&root, "file");
    let mut second = first.another_connection_at([127, 0, 0, 2].into(), server.address);
    second.ok(&[put(&file)]);
    change_rules(&server, rules(&["127.0.0.2"]));
    assert_eq!(tested(&mut second, &[stateid]), [Ok(())]);
    second.write(&file, stateid, 0, b"goes on");
}

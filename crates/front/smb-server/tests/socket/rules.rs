//! Which clients the rules of a share admit: at TREE_CONNECT, and when they change.

use anabranch_smb_server::{Config, Dialect};
use share::{Protocols, Right, Role, Rules, Terms};
use smb_wire::create::CreateDisposition;
use smb_wire::{AccessMask, NtStatus};

use crate::client::{OTHER_USER, SHARE, TestServer, USER};
use crate::guest::stranger;

fn rules(clients: &[&str]) -> Rules {
    let clients = clients.iter().map(|rule| rule.parse().unwrap()).collect();
    Rules { clients, ..Rules::default() }
}

#[test]
fn a_client_is_let_in_by_the_first_rule_that_fits() {
    let server = TestServer::start(Config::default());
    let mut client = server.log_in();
    for (list, is_let_in) in [
        (rules(&["192.0.2.0/24"]), false),
        (rules(&["127.0.0.1 protocols=nfs", "*"]), false),
        (rules(&["192.0.2.0/24", "127.0.0.0/8 squash=all protocols=smb"]), true),
        (rules(&["*"]), true),
        (Rules { protocols: Protocols::NFS, ..Rules::default() }, false),
    ] {
        server.share.set_rules(list.clone());
        let connected = client.tree_connect(SHARE).map(|_| ());
        let expected = if is_let_in { Ok(()) } else { Err(NtStatus::ACCESS_DENIED) };
        assert_eq!(connected, expected, "{list:?}");
    }
}

#[test]
fn a_read_only_client_is_told_so_and_changes_nothing() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    client.create("file", CreateDisposition::Create).unwrap();
    server.share.set_rules(rules(&["127.0.0.1 access=ro"]));
    let told = client.tree_connect(SHARE).unwrap().maximal_access;
    assert!(told.contains(AccessMask::READ_DATA));
    assert!(!told.intersects(AccessMask::WRITE_DATA | AccessMask::DELETE | AccessMask::WRITE_DAC));
    assert_eq!(client.create("new", CreateDisposition::Create), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(client.create("file", CreateDisposition::OpenIf), Err(NtStatus::ACCESS_DENIED));
}

#[test]
fn a_tree_connect_that_would_be_another_now_ends_with_what_is_open() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("file", CreateDisposition::Create).unwrap();
    client.write(file, 0, b"before").unwrap();
    // Others than before, but the same for this client.
    server.share.set_rules(rules(&["127.0.0.0/8", "192.0.2.0/24"]));
    assert_eq!(client.read(file, 0, 6).unwrap(), b"before");
    server.share.set_rules(rules(&["192.0.2.0/24"]));
    assert_eq!(client.read(file, 0, 6), Err(NtStatus::NETWORK_NAME_DELETED));
    assert!(server.server.report().iter().all(|session| session.opens == 0 && session.trees == 0));
    assert_eq!(client.tree_connect(SHARE).unwrap_err(), NtStatus::ACCESS_DENIED);
    server.share.set_rules(rules(&["*"]));
    client.tree_connect(SHARE).unwrap();
}

#[test]
fn those_on_the_list_of_users_come_in_and_readers_change_nothing() {
    let server = TestServer::start(Config::default());
    server.client().create("file", CreateDisposition::Create).unwrap();
    let right = |who: &str, role| Right { who: who.parse().unwrap(), role };
    let connect = |rights: Vec<Right>| {
        server.share.set_rules(Rules { rights, ..Rules::default() });
        let mut client = server.log_in();
        let told = client.tree_connect(SHARE)?;
        let made = client.create("made", CreateDisposition::OpenIf).map(|_| ());
        Ok((told.maximal_access.contains(AccessMask::WRITE_DATA), made))
    };
    let read_only = Ok((false, Err(NtStatus::ACCESS_DENIED)));
    assert_eq!(connect(vec![right(USER, Role::Reader)]), read_only);
    assert_eq!(connect(vec![right(OTHER_USER, Role::Contributor)]), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(connect(vec![right("@nobody", Role::Contributor)]), Err(NtStatus::ACCESS_DENIED));
    let both = vec![right(USER, Role::Reader), right(&USER.to_uppercase(), Role::Contributor)];
    assert_eq!(connect(both), Ok((true, Ok(()))));
}

#[test]
fn guests_are_on_no_list() {
    let server = TestServer::on_terms(Config::default(), Terms::GUESTS);
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    stranger(&mut client).unwrap();
    client.tree_connect(SHARE).unwrap();
    let rights = vec![Right { who: "stranger".parse().unwrap(), role: Role::Reader }];
    server.share.set_rules(Rules { rights, ..Rules::default() });
    assert_eq!(client.tree_connect(SHARE).unwrap_err(), NtStatus::ACCESS_DENIED);
}

#[test]
fn an_administrator_ends_tree_connects_without_waiting_for_a_request() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    client.create("file", CreateDisposition::Create).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let opens = || server.server.report().iter().map(|session| session.opens).sum::<usize>();
    server.share.set_rules(rules(&["127.0.0.1"]));
    runtime.block_on(server.server.reconsider(&server.share));
    assert_eq!(opens(), 1);
    server.share.set_rules(rules(&["127.0.0.1 access=ro"]));
    runtime.block_on(server.server.reconsider(&server.share));
    assert_eq!(opens(), 0);
    assert_eq!(client.tree_connect(SHARE).map(|_| ()), Ok(()));
}

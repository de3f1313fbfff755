//! Shares that other servers have. [MS-SMB2] 2.2.2.2.2, 2.2.9, 3.2.5.5.

use anabranch_smb_server::{Config, Dialect};
use share::{Gone, Settings, Share, ShareId, Terms};
use smb_wire::share_redirect::ShareRedirect;
use smb_wire::tree_connect::{Request, RequestFlags, ShareCapabilities};
use smb_wire::{Command, NtStatus, error_response};
use storage::memory::MemoryStore;

use crate::client::{Client, PASSWORD, Reply, SHARE, TestServer, USER};
use crate::guest::stranger;

/// TREE_CONNECT of a client that understands redirects.
fn ask(client: &mut Client, share: &str) -> Reply {
    let path = format!(r"\\server\{share}");
    let request = Request { flags: RequestFlags::REDIRECT_TO_OWNER, path: path.as_str().into() };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    client.call(Command::TreeConnect, &body)
}

/// Where the reply sends the client: addresses, and the name of the share.
fn sent_to(reply: &Reply) -> Option<(Vec<String>, String)> {
    assert_eq!(reply.status(), NtStatus::BAD_NETWORK_NAME);
    let error = error_response::Response::decode(&reply.message).unwrap();
    let contexts = error.contexts().unwrap();
    let [context] = contexts.as_slice() else {
        assert!(contexts.is_empty() && error.data.is_empty(), "{error:?}");
        return None;
    };
    assert_eq!(context.id, error_response::ERROR_ID_SHARE_REDIRECT);
    let redirect = ShareRedirect::decode(context.data).unwrap();
    let addresses = redirect.addresses.iter().map(ToString::to_string).collect();
    Some((addresses, redirect.resource_name.decode().unwrap()))
}

fn moves(server: &TestServer, id: ShareId, name: &str) {
    let addresses = ["192.0.2.7:2049", "[2001:db8::7]:2049", "192.0.2.8:2049"];
    let addresses = addresses.map(|address| address.parse().unwrap()).to_vec();
    server.table.has_gone(Gone { id, name: name.to_owned(), addresses, is_hidden: false }).unwrap();
}

#[test]
fn a_client_that_understands_it_is_sent_to_the_share() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    moves(&server, server.share.id(), "Data");
    assert_eq!(client.tree_connect(SHARE).unwrap_err(), NtStatus::BAD_NETWORK_NAME);
    let plain = client.tree_connect_path(r"\\server\Data");
    assert_eq!(sent_to(&plain), None, "this client does not ask to be sent on");
    // The client has an address of IPv4. The name is that of the share, however the client writes it.
    let there = (vec!["192.0.2.7".to_owned(), "192.0.2.8".to_owned()], "Data".to_owned());
    assert_eq!(sent_to(&ask(&mut client, "dATA")), Some(there));
    assert_eq!(sent_to(&ask(&mut client, "nothing")), None);
    // The session goes on, and other shares are as they were.
    assert_eq!(ask(&mut client, "Fixed").status(), NtStatus::SUCCESS);

    server.table.is_gone_no_more("data");
    assert_eq!(sent_to(&ask(&mut client, "Data")), None);
    moves(&server, ShareId(77), "Data");
    let back = Share::new(ShareId(78), Settings::new("data"), std::sync::Arc::new(MemoryStore::new()));
    server.table.enter(&back).unwrap();
    assert_eq!(ask(&mut client, "Data").status(), NtStatus::SUCCESS);
}

/// The flags exist in SMB 3.1.1 only (2.2.9).
#[test]
fn older_dialects_know_no_redirect() {
    let server = TestServer::start(Config::default());
    moves(&server, ShareId(77), "moved");
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb302]);
    client.log_in(USER, PASSWORD).unwrap();
    let reply = ask(&mut client, "moved");
    assert_eq!(reply.status(), NtStatus::BAD_NETWORK_NAME);
    let error = error_response::Response::decode(&reply.message).unwrap();
    assert_eq!((error.context_count, error.data), (0, &[][..]));
}

#[test]
fn guests_are_not_told_where_a_share_is() {
    let server = TestServer::on_terms(Config::default(), Terms::GUESTS);
    moves(&server, ShareId(77), "moved");
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    stranger(&mut client).unwrap();
    assert_eq!(sent_to(&ask(&mut client, "moved")), None);
}

/// SMB2_SHARE_CAP_CLUSTER promises a witness service, SCALEOUT a share that each node serves at once (2.2.10): there is none.
#[test]
fn a_continuously_available_share_promises_nothing_else() {
    let server = TestServer::on_terms(Config::default(), Terms::CONTINUOUSLY_AVAILABLE);
    let mut client = server.log_in();
    let share = client.tree_connect(SHARE).unwrap();
    let other = share.capabilities.difference(ShareCapabilities::CONTINUOUS_AVAILABILITY);
    assert!(other.is_empty(), "{other:?}");
}

//! What an administrator is told of the sessions.

use anabranch_smb_server::report::Principal;
use anabranch_smb_server::{Config, Dialect};
use smb_wire::create::CreateDisposition;

use crate::client::{CLIENT_GUID, TestServer, USER};

#[test]
fn a_session_is_reported_with_its_channel_and_what_it_holds() {
    let server = TestServer::start(Config::default());
    assert!(server.server.report().is_empty());
    let mut client = server.client();
    client.create("open", CreateDisposition::Create).unwrap();
    let reports = server.server.report();
    let [session] = reports.as_slice() else { panic!("one session: {reports:?}") };
    assert_eq!((session.id, session.user.as_str()), (client.session_id, USER));
    assert_eq!((session.principal, session.client_guid), (Principal::User, CLIENT_GUID.0));
    assert_eq!((session.dialect, session.trees, session.opens), (Dialect::Smb311, 1, 1));
    assert!(session.cipher.is_some() && !session.encryption_required && session.signing_required);
    let [channel] = session.channels.as_slice() else { panic!("one channel: {session:?}") };
    assert_eq!((channel.peer, channel.local), (client.address(), server.address));
    assert!(channel.shard < 2 && channel.since <= session.since);
    assert!(channel.requests >= 1 && channel.idle.as_secs() < 60, "{channel:?}");
    assert!(session.interfaces_asked.is_none() && session.refused_bindings.is_empty());
}

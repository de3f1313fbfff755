//! Guessed passwords: they are answered late, end the connection, and keep nobody else out.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_smb_server::report::Mechanism;
use anabranch_smb_server::{Config, Dialect, LogonCounts};
use smb_wire::NtStatus;

use crate::client::{Client, OTHER_USER, PASSWORD, SHARE, TestServer, USER};

const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

fn negotiated(mut client: Client) -> Client {
    client.negotiate(&[Dialect::Smb311]);
    client
}

/// A logon that is refused.
fn guess(client: &mut Client, password: &str) -> NtStatus {
    client.session_id = 0;
    client.log_in(USER, password).unwrap_err()
}

#[test]
fn a_connection_that_is_nobodys_ends_after_five_failed_logons() {
    let server = TestServer::start(Config::default());
    let mut client = negotiated(server.connect());
    for password in ["1", "2", "3", "4", "5"] {
        assert_eq!(guess(&mut client, password), NtStatus::LOGON_FAILURE);
    }
    client.expect_closed();
    assert_eq!(server.server.logon_counts(), LogonCounts { succeeded: 0, failed: 5, unheard: 0 });
    let by_ntlm = |server: &TestServer| {
        let all = server.server.logons_by_mechanism();
        let others = all.iter().filter(|count| count.mechanism != Mechanism::Ntlm);
        assert!(others.clone().all(|count| (count.succeeded, count.failed) == (0, 0)) && others.count() == 2);
        all.iter()
            .find(|count| count.mechanism == Mechanism::Ntlm)
            .map(|count| (count.succeeded, count.failed))
    };
    assert_eq!(by_ntlm(&server), Some((0, 5)));
    // Who took the answers has waited enough.
    let mut client = negotiated(server.connect());
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    assert_eq!(by_ntlm(&server), Some((1, 5)));
}

#[test]
fn a_connection_with_a_session_goes_on() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let (own, protection) = (client.session_id, client.protection.take());
    client.sign = false;
    for password in ["1", "2", "3", "4", "5", "6"] {
        assert_eq!(guess(&mut client, password), NtStatus::LOGON_FAILURE);
    }
    (client.session_id, client.protection, client.sign) = (own, protection, true);
    assert!(client.is_alive());
}

#[test]
fn the_right_password_gets_in_from_elsewhere_while_others_guess() {
    let server = TestServer::start(Config::default());
    std::thread::scope(|scope| {
        let guesses: Vec<_> =
            (0..6).map(|_| scope.spawn(|| guess(&mut negotiated(server.connect()), "wrong"))).collect();
        let mut owner = negotiated(server.connect_from(ELSEWHERE));
        owner.log_in(USER, PASSWORD).unwrap();
        owner.tree_connect(SHARE).unwrap();
        // And others from where the guesses come from.
        let mut other = negotiated(server.connect());
        other.log_in(OTHER_USER, PASSWORD).unwrap();
        for guess in guesses {
            let status = guess.join().unwrap();
            let refused = [NtStatus::LOGON_FAILURE, NtStatus::ACCOUNT_LOCKED_OUT];
            assert!(refused.contains(&status), "{status}");
        }
    });
    let LogonCounts { succeeded, failed, unheard } = server.server.logon_counts();
    assert_eq!((succeeded, failed + unheard), (2, 6));
    assert_eq!(guess(&mut negotiated(server.connect_from(ELSEWHERE)), "wrong"), NtStatus::LOGON_FAILURE);
}

#[test]
fn who_does_not_wait_leaves_nothing_behind() {
    let server = TestServer::start(Config::default());
    for _ in 0..3 {
        let mut client = negotiated(server.connect());
        assert_eq!(guess(&mut client, "wrong"), NtStatus::LOGON_FAILURE);
    }
    // The connection ends while the answer of the fourth is held back, and nobody is served in its place.
    let mut client = negotiated(server.connect());
    let (_, reply) = client.session_setup(&auth::ntlm::negotiate_message());
    assert_eq!(reply.status(), NtStatus::MORE_PROCESSING_REQUIRED);
    drop(client);
    assert_eq!(server.server.report().len(), 0);
}

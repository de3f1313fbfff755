//! Logons with tickets, as a client of a domain or of MIT's KDC makes them.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anabranch_smb_server::{ChannelBinding, Config, KerberosKeys};
use auth::spnego::{KERBEROS, MechTypes, NegTokenInit};
use auth::{Mapping, Numbering};
use krb5::keytab::{Entry, Keytab};
use krb5::{Acceptor, ChannelBindings, Enctype, Settings, Time};
use share::{Domains, Formula};
use smb_proto::dialect::Dialect;
use smb_wire::NtStatus;

use crate::client::{Client, PASSWORD, TestServer, USER};
use crate::mint::{self, FLAGS, GSS_CHECKSUM, REALM, SERVICE, gss_checksum, key, principal};

/// Gives a server the key of [`SERVICE`]; users of this realm are the accounts of their names.
fn use_keys(server: &TestServer, account_realm: &str) {
    let enctype = Enctype::Aes256Sha1;
    let entry = Entry::new(principal(&SERVICE, REALM), 3, Time::from_unix(0), key(enctype, 0x11)).unwrap();
    let acceptor = Acceptor::new(Keytab::new(vec![entry]).unwrap(), Settings::default());
    let domains = Arc::new(Domains::of_any(Formula::Rid { base: 1_000_000 }));
    let numbering = Numbering::Formula(domains);
    let mapping = Mapping { numbering, account_realms: vec![account_realm.to_owned()], trusted: Vec::new() };
    server.server.use_kerberos(Some(KerberosKeys { acceptor, mapping }));
}

/// A ticket of [`USER`], of now.
fn ticket() -> mint::Ticket<'static> {
    let now = now();
    mint::Ticket {
        client: &[USER],
        auth_time: now - 60,
        start_time: Some(now - 30),
        end_time: now + 3600,
        ..mint::Ticket::new(Enctype::Aes256Sha1)
    }
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// A token for a ticket, which differs from all others.
fn token<'a>(ticket: &mint::Ticket<'a>) -> mint::Token<'a> {
    let cusec = i64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_micros());
    mint::Token { ctime: now(), cusec, ..mint::Token::new(ticket) }
}

/// SPNEGO's first token around a ticket.
fn in_spnego(token: &[u8]) -> Vec<u8> {
    let mech_types = MechTypes::new(&[KERBEROS]);
    NegTokenInit { mech_types, mech_token: Some(token), mech_list_mic: None }.encode()
}

/// Logs on with a ticket whose authenticator is bound to this channel.
fn log_on(mut client: Client, bindings: Option<ChannelBindings>) -> NtStatus {
    client.negotiate(&[Dialect::Smb311]);
    let bindings = bindings.map_or([0; 16], |bindings| *bindings.as_bytes());
    let checksum = Some((GSS_CHECKSUM, gss_checksum(FLAGS, bindings)));
    let token = mint::Token { checksum, ..token(&ticket()) };
    client.session_setup(&in_spnego(&token.encode())).1.status()
}

/// The same with a password.
fn log_on_with_password(mut client: Client, bindings: Option<ChannelBindings>) -> NtStatus {
    client.negotiate(&[Dialect::Smb311]);
    client.channel_bindings = bindings;
    client.log_in(USER, PASSWORD).err().unwrap_or(NtStatus::SUCCESS)
}

/// RFC 5929 4.1: a logon is good for the channel whose certificate it names.
#[test]
fn a_logon_over_quic_may_be_bound_to_the_certificate_and_must_if_that_is_required() {
    let (good, bad) = (NtStatus::SUCCESS, NtStatus::LOGON_FAILURE);
    for (channel_binding, to_another, to_none) in [
        (ChannelBinding::Accepted, bad, good),
        (ChannelBinding::Required, bad, bad),
        (ChannelBinding::Off, good, good),
    ] {
        let server = TestServer::start(Config { channel_binding, ..Config::default() });
        use_keys(&server, REALM);
        let (own, other) = (Some(server.quic.channel_bindings()), ChannelBindings::sent([7; 16]));
        for (bindings, expected) in [(own, good), (other, to_another), (None, to_none)] {
            let ticket = log_on(server.connect_over_quic(), bindings);
            let password = log_on_with_password(server.connect_over_quic(), bindings);
            assert_eq!((ticket, password), (expected, expected), "{channel_binding:?} {bindings:?}");
            // Over TCP there is no certificate to which anybody could be bound.
            let ticket = log_on(server.connect(), bindings);
            let password = log_on_with_password(server.connect(), bindings);
            assert_eq!((ticket, password), (good, good), "{channel_binding:?} {bindings:?}");
        }
    }
}

/// A realm that is a domain says who its users are: in a PAC. Without one, a name alone makes nobody an account.
#[test]
fn a_ticket_without_a_pac_of_a_realm_that_is_not_for_accounts_is_refused() {
    let server = TestServer::start(Config::default());
    use_keys(&server, REALM);
    assert_eq!(log_on(server.connect(), None), NtStatus::SUCCESS, "the realm is one of accounts");
    use_keys(&server, "OTHER.TEST");
    assert_eq!(log_on(server.connect(), None), NtStatus::LOGON_FAILURE);
}

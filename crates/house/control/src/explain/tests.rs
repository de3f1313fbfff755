//! Tests each finding with a session to which it applies.

use std::net::SocketAddr;

use super::*;
use crate::clients::{Channel, Clients, Encryption, NfsConnection, NfsTransfers, Signing, Transport};
use crate::findings;

const GBIT: u64 = 1_000_000_000;

fn interface(index: u32, bits_per_second: u64, rss: bool) -> Interface {
    let last = u8::try_from(index).unwrap();
    Interface { index, address: IpAddr::from([10, 0, last, 1]), bits_per_second, rss }
}

fn offer(interfaces: &[Interface]) -> SmbOffer {
    SmbOffer { multichannel: true, max_channels: 8, interfaces: interfaces.to_vec() }
}

fn channel(interface: Interface, port: u16) -> Channel {
    Channel {
        client: SocketAddr::from(([10, 0, 9, 9], port)),
        server: SocketAddr::new(interface.address, 445),
        interface: Some(interface),
        round_trip_us: Some(150),
        transport: Transport::Tcp,
        requests: 9,
        age_seconds: 60,
        idle_seconds: 0,
    }
}

/// A session that has asked for everything, with channels to these interfaces.
fn session(channels: &[Interface]) -> SmbSession {
    SmbSession {
        vserver: None,
        id: "0x1".to_owned(),
        client_guid: String::new(),
        user: "anna".to_owned(),
        principal: Principal::User,
        dialect: "3.1.1".to_owned(),
        signing: Signing { algorithm: "AES-GMAC".to_owned(), required: true },
        encryption: Some(Encryption { cipher: "AES-128-GCM".to_owned(), required: false }),
        trees: 1,
        opens: 0,
        mechanism: None,
        expires_in_seconds: None,
        age_seconds: 60,
        idle_seconds: 0,
        client_multichannel: true,
        max_channels: 8,
        channels: channels.iter().zip(50_000..).map(|(interface, port)| channel(*interface, port)).collect(),
        addresses_told: Some(1),
        refused_bindings: Vec::new(),
    }
}

fn ids(offer: &SmbOffer, session: &SmbSession) -> Vec<&'static str> {
    let findings = smb_session(offer, session);
    for finding in &findings {
        assert!(!finding.evidence.is_empty() && finding.advice.ends_with('.'), "{finding:?}");
        assert!(finding.what.ends_with('.') && !finding.what.contains("  "), "{finding:?}");
    }
    findings.iter().map(|finding| finding.id).collect()
}

#[test]
fn nothing_is_found_where_nothing_limits() {
    let (one, two) = (interface(1, GBIT, true), interface(2, GBIT, true));
    assert_eq!(ids(&offer(&[one]), &session(&[one; 4])), [""; 0]);
    assert_eq!(ids(&offer(&[one, two]), &session(&[one, one, one, one, two, two, two, two])), [""; 0]);
}

#[test]
fn sessions_of_a_vserver_are_held_against_what_it_offers() {
    let (one, two) = (interface(1, GBIT, true), interface(2, GBIT, false));
    let of = |interface, session| Clients {
        smb_offer: offer(&[interface]),
        smb_sessions: vec![session],
        ..Clients::default()
    };
    let older = SmbSession { id: "0x2".to_owned(), age_seconds: 90, ..session(&[two]) };
    let clients = of(one, session(&[one; 4])).with_vserver("files", of(two, older));
    let ids: Vec<_> = clients.smb_sessions.iter().map(|one| (one.vserver.as_deref(), &*one.id)).collect();
    assert_eq!(ids, [(Some("files"), "0x2"), (None, "0x1")], "oldest first");
    let found = findings::of(&clients).clients;
    let found: Vec<_> = found.iter().map(|of| (of.vserver.as_deref(), of.possible)).collect();
    assert_eq!(found, [(Some("files"), Some(1)), (None, Some(4))]);
    let own = clients.without_vservers().smb_sessions;
    assert_eq!(own.iter().map(|one| &*one.id).collect::<Vec<_>>(), ["0x1"]);
}

#[test]
fn what_allows_one_channel_only_is_found() {
    let one = interface(1, GBIT, true);
    let two = interface(2, GBIT, true);
    let (all, few) = (offer(&[one, two]), session(&[one]));
    let off = SmbOffer { multichannel: false, max_channels: 1, ..all.clone() };
    let table: [(&SmbOffer, SmbSession, &[&str]); 6] = [
        (&off, SmbSession { max_channels: 1, ..few.clone() }, &["server-has-it-off"]),
        (
            &all,
            SmbSession { dialect: "2.1".to_owned(), client_multichannel: false, ..few.clone() },
            &["dialect-too-old"],
        ),
        (&all, SmbSession { principal: Principal::Guest, ..few.clone() }, &["no-key"]),
        (
            &all,
            SmbSession { principal: Principal::Anonymous, client_multichannel: false, ..few.clone() },
            &["no-key", "client-did-not-ask"],
        ),
        (
            &all,
            SmbSession { client_multichannel: false, addresses_told: None, ..few.clone() },
            &["client-did-not-ask"],
        ),
        (&all, SmbSession { addresses_told: None, ..few.clone() }, &["client-never-queried"]),
    ];
    for (offer, session, expected) in table {
        assert_eq!(ids(offer, &session), expected);
        assert!(smb_session(offer, &session).iter().all(|finding| finding.limits));
    }
}

#[test]
fn the_servers_addresses_limit() {
    let poor = interface(1, GBIT, false);
    assert_eq!(channels_possible(&offer(&[poor]), &session(&[poor])), 1);
    assert_eq!(ids(&offer(&[poor]), &session(&[poor])), ["not-rss-capable"]);
    assert_eq!(ids(&offer(&[]), &session(&[poor])), ["no-address-offered"]);
    // Linux opens one more channel.
    assert_eq!(channels_possible(&offer(&[poor]), &session(&[poor, poor])), 2);
    assert_eq!(ids(&offer(&[poor]), &session(&[poor, poor])), ["not-rss-capable"]);
    // Two addresses of one interface count as one.
    let other = Interface { address: IpAddr::from([10, 0, 1, 2]), ..poor };
    assert_eq!(channels_possible(&offer(&[poor, other]), &session(&[poor])), 1);
}

#[test]
fn the_limit_is_found_where_the_addresses_carry_more() {
    let interfaces = [1, 2, 3].map(|index| interface(index, GBIT, true));
    let full = session(&interfaces.repeat(3)[..8]);
    assert_eq!(ids(&offer(&interfaces), &full), ["limit-reached"]);
    assert!(smb_session(&offer(&interfaces), &full)[0].advice.contains("--max-channels 12"));
}

#[test]
fn a_refused_binding_is_told_with_its_reason() {
    let one = interface(1, GBIT, true);
    let refused =
        |reason, count| RefusedBinding { reason, message: "the cipher is another".to_owned(), count };
    let few = SmbSession {
        refused_bindings: vec![refused(RefusalReason::Cipher, 3), refused(RefusalReason::User, 1)],
        ..session(&[one])
    };
    let findings = smb_session(&offer(&[one]), &few);
    assert_eq!(ids(&offer(&[one]), &few), ["binding-refused", "binding-refused"]);
    assert_eq!(findings[0].evidence, "3 times: the cipher is another");
    assert!(findings[1].evidence.starts_with("once"), "{findings:?}");
    // Earlier refusals limit nothing once all channels exist.
    let whole = SmbSession { channels: session(&[one; 4]).channels, ..few };
    assert!(smb_session(&offer(&[one]), &whole).iter().all(|finding| !finding.limits));
}

#[test]
fn an_address_without_a_channel_is_named() {
    let (one, two) = (interface(1, GBIT, true), interface(2, GBIT, true));
    let few = SmbSession { addresses_told: Some(2), ..session(&[one]) };
    assert_eq!(ids(&offer(&[one, two]), &few), ["address-not-used", "client-opened-no-more"]);
    let findings = smb_session(&offer(&[one, two]), &few);
    assert!(
        findings[0].evidence.contains("was offered 2 addresses, has channels to 10.0.1.1, none to 10.0.2.1")
    );
    assert!(findings[0].advice.contains("nc -vz 10.0.2.1 445"), "{findings:?}");
    assert!(findings[1].advice.contains("max_channels=8"), "{findings:?}");
    // A slower interface is not missed.
    let slow = interface(2, GBIT / 10, true);
    assert_eq!(ids(&offer(&[one, slow]), &few), ["address-slower", "client-opened-no-more"]);
    let poor = interface(2, 10 * GBIT, false);
    assert_eq!(ids(&offer(&[one, poor]), &few), ["address-slower", "client-opened-no-more"]);
}

#[test]
fn a_client_that_stops_by_itself_is_told_apart() {
    let one = interface(1, GBIT, true);
    assert_eq!(ids(&offer(&[one]), &session(&[one, one])), ["client-opened-no-more"]);
    let young = SmbSession { age_seconds: 1, ..session(&[one]) };
    assert_eq!(ids(&offer(&[one]), &young), ["client-opened-no-more", "just-logged-on"]);
}

#[test]
fn slow_signing_is_noted() {
    let one = interface(1, GBIT, true);
    let signing = |required| Signing { algorithm: "AES-CMAC".to_owned(), required };
    let whole = SmbSession { signing: signing(true), ..session(&[one; 4]) };
    assert_eq!(ids(&offer(&[one]), &whole), ["slow-signing"]);
    assert!(!smb_session(&offer(&[one]), &whole)[0].limits);
    assert_eq!(ids(&offer(&[one]), &SmbSession { signing: signing(false), ..whole.clone() }), [""; 0]);
    let encryption = Some(Encryption { cipher: "AES-128-GCM".to_owned(), required: true });
    assert_eq!(ids(&offer(&[one]), &SmbSession { encryption, ..whole }), [""; 0]);
}

#[test]
fn an_nfs_client_is_told_of_nconnect() {
    let connection = NfsConnection {
        client: SocketAddr::from(([10, 0, 9, 9], 700)),
        server: SocketAddr::from(([10, 0, 1, 1], 2049)),
        version: Some(3),
        minor_version: None,
        tls: None,
        security: Vec::new(),
        calls: 1,
        round_trip_us: None,
        in_flight: 0,
        reads: NfsTransfers::default(),
        writes: NfsTransfers::default(),
        age_seconds: 1,
        idle_seconds: 1,
    };
    let mut client = NfsClient {
        vserver: None,
        address: connection.client.ip(),
        mounts: Vec::new(),
        shares: Vec::new(),
        connections: vec![connection.clone()],
        sessions: Vec::new(),
        users: Vec::new(),
        lock_hosts: Vec::new(),
    };
    assert_eq!(nfs_client(&client)[0].id, "one-connection");
    // The connection of the mount protocol does not count.
    client.connections.push(NfsConnection { version: None, ..connection.clone() });
    assert_eq!(nfs_client(&client)[0].id, "one-connection");
    client.connections = vec![connection.clone(); 4];
    assert_eq!(nfs_client(&client), []);
    client.connections = vec![connection; 16];
    assert_eq!(nfs_client(&client)[0].id, "many-connections");
}

#[test]
fn an_nfs_client_is_bound_by_its_slots_or_by_its_one_connection() {
    let session = |slots_in_use_max, connections| NfsSession {
        client: "Linux NFSv4.1 c1".to_owned(),
        connections,
        slots_granted: 64,
        slots_in_use: 0,
        slots_in_use_max,
        slot_highest: None,
        back_channel: true,
        idle_seconds: 0,
    };
    for (in_use_max, connections, bound) in
        [(64, 4, "slots"), (64, 1, "slots"), (63, 4, "-"), (16, 1, "one connection"), (15, 1, "-")]
    {
        assert_eq!(bound_by(&session(in_use_max, connections)), bound);
    }
    let client = |session| NfsClient {
        vserver: None,
        address: [10, 0, 9, 9].into(),
        mounts: Vec::new(),
        shares: Vec::new(),
        connections: Vec::new(),
        sessions: vec![session],
        users: Vec::new(),
        lock_hosts: Vec::new(),
    };
    let findings = nfs_client(&client(session(64, 4)));
    assert_eq!(
        (findings[0].id, findings[0].evidence.as_str()),
        ("slots-used-up", "64 of 64 slots were in use at a time")
    );
    assert_eq!(nfs_client(&client(session(63, 4))), []);
}

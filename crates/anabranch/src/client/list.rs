//! `anabranch client list`: the clients and their connections, as tables.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use control::clients::{
    Channel, Clients, Mechanism, NfsClient, NfsLockHost, NfsSession, SmbSession, Transport,
};
use control::explain::bound_by;

use super::{counted, duration, harmless, latency, table};

/// The clients, for people.
pub(crate) fn render(clients: &Clients) -> String {
    let mut text = String::new();
    let channels: usize = clients.smb_sessions.iter().map(|session| session.channels.len()).sum();
    let _ = writeln!(
        text,
        "SMB: {}, {}",
        counted(clients.smb_sessions.len(), "session"),
        counted(channels, "channel")
    );
    if !clients.smb_sessions.is_empty() {
        let _ =
            write!(text, "\n{}\n{}", sessions(&clients.smb_sessions), channel_table(&clients.smb_sessions));
    }
    if clients.smb_sessions.iter().any(|session| session.expires_in_seconds.is_some()) {
        let _ = write!(text, "\n{}", tickets(&clients.smb_sessions));
    }
    let connections: usize = clients.nfs_clients.iter().map(|client| client.connections.len()).sum();
    let _ = writeln!(
        text,
        "\nNFS: {}, {}",
        counted(clients.nfs_clients.len(), "client"),
        counted(connections, "connection")
    );
    if !clients.nfs_clients.is_empty() {
        let _ = write!(text, "\n{}", nfs(&clients.nfs_clients));
    }
    if clients.nfs_clients.iter().any(|client| client.connections.iter().any(|one| one.tls.is_some())) {
        let _ = write!(text, "\n{}", encrypted(&clients.nfs_clients));
    }
    if clients.nfs_clients.iter().any(|client| !client.users.is_empty()) {
        let _ = write!(text, "\n{}", ticketed(&clients.nfs_clients));
    }
    if clients.nfs_clients.iter().any(|client| !client.lock_hosts.is_empty()) {
        let _ = write!(text, "\n{}", lock_hosts(&clients.nfs_clients));
    }
    if clients.nfs_clients.iter().any(|client| !client.sessions.is_empty()) {
        let _ = write!(text, "\n{}", nfs_sessions(&clients.nfs_clients));
    }
    text
}

fn sessions(sessions: &[SmbSession]) -> String {
    let rows: Vec<_> = sessions.iter().map(|one| (one.vserver.as_deref(), session(one))).collect();
    let heads =
        ["SESSION", "USER", "CLIENT", "DIALECT", "SIGNING", "ENCRYPTION", "CURRENT", "MAX", "OPENS", "IDLE"];
    table::with_vservers(heads, &rows)
}

fn session(session: &SmbSession) -> [String; 10] {
    [
        session.id.clone(),
        user(session),
        session.client().map_or_else(|| "-".to_owned(), |client| client.to_string()),
        session.dialect.clone(),
        signing(session),
        encryption(session),
        session.channels.len().to_string(),
        session.max_channels.to_string(),
        session.opens.to_string(),
        duration(session.idle_seconds),
    ]
}

/// The user, or as what a client without an account was admitted.
pub(crate) fn user(session: &SmbSession) -> String {
    if session.user.is_empty() { format!("({})", session.principal) } else { harmless(&session.user) }
}

/// How messages are signed: what is encrypted needs no signature.
pub(crate) fn signing(session: &SmbSession) -> String {
    let need = match (session.encrypts(), session.signing.required) {
        (true, _) => "not needed",
        (false, true) => "required",
        (false, false) => "optional",
    };
    format!("{}, {need}", session.signing.algorithm)
}

/// How messages are encrypted.
pub(crate) fn encryption(session: &SmbSession) -> String {
    match &session.encryption {
        None => "none".to_owned(),
        Some(encryption) if encryption.required => format!("{}, required", encryption.cipher),
        Some(encryption) => format!("{}, optional", encryption.cipher),
    }
}

/// The sessions whose users have shown tickets, and when these end.
fn tickets(sessions: &[SmbSession]) -> String {
    let row = |session: &SmbSession| {
        let left = session.expires_in_seconds?;
        let with = session.mechanism.map_or("-", |mechanism| match mechanism {
            Mechanism::Kerberos => "Kerberos",
            Mechanism::Iakerb => "IAKERB",
            Mechanism::Ntlm => "NTLM",
        });
        Some([session.id.clone(), user(session), with.to_owned(), duration(left)])
    };
    let rows: Vec<_> = sessions.iter().filter_map(row).collect();
    table::render(["SESSION", "USER", "LOGGED ON WITH", "TICKET ENDS IN"], &rows)
}

fn channel_table(sessions: &[SmbSession]) -> String {
    let of_session = |session: &SmbSession| {
        let row = |channel: &Channel| {
            let interface = channel.interface;
            [
                session.id.clone(),
                channel.client.to_string(),
                server_end(channel),
                interface.map_or_else(|| "-".to_owned(), |interface| interface.index.to_string()),
                interface.map_or_else(|| "-".to_owned(), |interface| speed(interface.bits_per_second)),
                interface.map_or("-", |interface| if interface.rss { "yes" } else { "no" }).to_owned(),
                round_trips(channel.round_trip_us),
                channel.requests.to_string(),
                duration(channel.idle_seconds),
                duration(channel.age_seconds),
            ]
        };
        session.channels.iter().map(row).collect::<Vec<_>>()
    };
    let rows: Vec<_> = sessions.iter().flat_map(of_session).collect();
    table::render(
        [
            "SESSION",
            "CHANNEL FROM",
            "TO",
            "INTERFACE",
            "SPEED",
            "RSS",
            "ROUND TRIP",
            "REQUESTS",
            "IDLE",
            "AGE",
        ],
        &rows,
    )
}

/// The server's end of a channel, and what carries the channel if it is not TCP.
fn server_end(channel: &Channel) -> String {
    match channel.transport {
        Transport::Tcp => channel.server.to_string(),
        Transport::Quic => format!("{} (QUIC)", channel.server),
    }
}

/// The shortest and the longest of some round trips, in microseconds.
fn round_trips(micros: impl IntoIterator<Item = u64> + Clone) -> String {
    let for_people = |micros| latency(Duration::from_micros(micros).as_secs_f64());
    let (least, most) = (micros.clone().into_iter().min(), micros.into_iter().max());
    match least.map(for_people).zip(most.map(for_people)) {
        None => "-".to_owned(),
        Some((least, most)) if least == most => most,
        Some((least, most)) => format!("{least} - {most}"),
    }
}

fn speed(bits_per_second: u64) -> String {
    let (unit, name) = match bits_per_second {
        1_000_000_000.. => (1_000_000_000, "Gbit/s"),
        1_000_000.. => (1_000_000, "Mbit/s"),
        _ => (1000, "kbit/s"),
    };
    let (whole, tenth) = (bits_per_second / unit, bits_per_second % unit * 10 / unit);
    if tenth == 0 { format!("{whole} {name}") } else { format!("{whole}.{tenth} {name}") }
}

fn nfs(clients: &[NfsClient]) -> String {
    let rows: Vec<_> = clients.iter().map(|client| (client.vserver.as_deref(), nfs_client(client))).collect();
    let heads = [
        "CLIENT",
        "SHARES",
        "VERSION",
        "SECURITY",
        "CONNECTIONS",
        "ROUND TRIP",
        "CALLS",
        "IN FLIGHT",
        "READS UP TO",
        "WRITES UP TO",
        "IDLE",
    ];
    table::with_vservers(heads, &rows)
}

/// The clients with TLS, and the names in their certificates.
fn encrypted(clients: &[NfsClient]) -> String {
    let row = |client: &NfsClient| {
        let connections = client.connections.iter();
        let with_tls: Vec<_> = connections.filter_map(|connection| connection.tls.as_ref()).collect();
        let ciphers = with_tls.iter().map(|tls| format!("TLS {} {}", tls.version, tls.cipher));
        let names =
            with_tls.iter().filter_map(|tls| tls.certificate.as_ref()).map(|shown| match &*shown.names {
                [] => format!("without a name, SHA-256 {}", shown.fingerprint),
                names => harmless(&names.join(" ")),
            });
        let count = format!("{} of {}", with_tls.len(), client.connections.len());
        [client.address.to_string(), count, each_once(ciphers), each_once(names)]
    };
    let has_tls = |client: &&NfsClient| client.connections.iter().any(|connection| connection.tls.is_some());
    let with_tls = clients.iter().filter(has_tls);
    let rows: Vec<_> = with_tls.map(|client| (client.vserver.as_deref(), row(client))).collect();
    table::with_vservers(["CLIENT", "CONNECTIONS WITH TLS", "CIPHER", "CERTIFICATE"], &rows)
}

/// The different ones of some words.
fn each_once(words: impl Iterator<Item = String>) -> String {
    let words: BTreeSet<_> = words.collect();
    if words.is_empty() { "-".to_owned() } else { words.into_iter().collect::<Vec<_>>().join(", ") }
}

/// The users who have shown tickets.
fn ticketed(clients: &[NfsClient]) -> String {
    let with_users = clients.iter().filter(|client| !client.users.is_empty());
    let names =
        |client: &NfsClient| client.users.iter().map(|user| harmless(user)).collect::<Vec<_>>().join(", ");
    let rows: Vec<_> = with_users
        .map(|client| (client.vserver.as_deref(), [client.address.to_string(), names(client)]))
        .collect();
    table::with_vservers(["CLIENT", "USERS WITH TICKETS"], &rows)
}

/// The hosts that hold NFSv3 locks.
fn lock_hosts(clients: &[NfsClient]) -> String {
    let row = |client: &NfsClient, host: &NfsLockHost| {
        [client.address.to_string(), harmless(&host.name), host.files.to_string()]
    };
    let hosts = clients.iter().flat_map(|client| client.lock_hosts.iter().map(move |host| (client, host)));
    let rows: Vec<_> = hosts.map(|(client, host)| (client.vserver.as_deref(), row(client, host))).collect();
    table::with_vservers(["CLIENT", "NFSV3 LOCKS OF", "FILES"], &rows)
}

/// The sessions of NFSv4 clients, with their slots.
fn nfs_sessions(clients: &[NfsClient]) -> String {
    let row = |client: &NfsClient, session: &NfsSession| {
        [
            client.address.to_string(),
            harmless(&session.client),
            session.connections.to_string(),
            session.slots_granted.to_string(),
            session.slots_in_use.to_string(),
            session.slots_in_use_max.to_string(),
            session.slot_highest.map_or_else(|| "-".to_owned(), |slot| slot.to_string()),
            if session.back_channel { "yes" } else { "no" }.to_owned(),
            bound_by(session).to_owned(),
        ]
    };
    let sessions =
        clients.iter().flat_map(|client| client.sessions.iter().map(move |session| (client, session)));
    let rows: Vec<_> =
        sessions.map(|(client, session)| (client.vserver.as_deref(), row(client, session))).collect();
    let heads = [
        "CLIENT",
        "NFSV4 SESSION OF",
        "CONNECTIONS",
        "SLOTS",
        "IN USE",
        "AT ONCE",
        "HIGHEST",
        "CALLBACKS",
        "BOUND BY",
    ];
    table::with_vservers(heads, &rows)
}

/// A size in bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0 => "-".to_owned(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// A version of NFS for people.
fn nfs_version((version, minor_version): (u32, Option<u32>)) -> String {
    match minor_version.filter(|_| version == 4) {
        Some(minor_version) => format!("{version}.{minor_version}"),
        None => version.to_string(),
    }
}

fn nfs_client(client: &NfsClient) -> [String; 11] {
    let connections = &client.connections;
    let mut versions: Vec<_> = connections
        .iter()
        .filter_map(|connection| Some((connection.version?, connection.minor_version)))
        .collect();
    versions.sort_unstable();
    versions.dedup();
    let versions: Vec<String> = versions.into_iter().map(nfs_version).collect();
    let shares: Vec<String> = client.shares.iter().map(|share| harmless(share)).collect();
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    [
        client.address.to_string(),
        or_none(shares.join(" ")),
        or_none(versions.join(", ")),
        each_once(connections.iter().flat_map(|connection| connection.security.iter().cloned())),
        connections.len().to_string(),
        round_trips(connections.iter().filter_map(|connection| connection.round_trip_us)),
        connections.iter().map(|connection| connection.calls).sum::<u64>().to_string(),
        connections.iter().map(|connection| connection.in_flight).sum::<u64>().to_string(),
        size(client.reads().bytes_max),
        size(client.writes().bytes_max),
        connections
            .iter()
            .map(|connection| connection.idle_seconds)
            .min()
            .map_or_else(|| "-".to_owned(), duration),
    ]
}

#[cfg(test)]
mod tests {
    use control::clients::{NfsConnection, NfsTransfers, Tls, TlsCertificate};

    use super::*;

    #[test]
    fn speeds_are_short() {
        for (bits, text) in [
            (10_000_000_000, "10 Gbit/s"),
            (2_500_000_000, "2.5 Gbit/s"),
            (100_000_000, "100 Mbit/s"),
            (0, "0 kbit/s"),
        ] {
            assert_eq!(speed(bits), text);
        }
    }

    #[test]
    fn round_trips_are_one_or_from_to() {
        assert_eq!((round_trips(None), round_trips(Some(120))), ("-".to_owned(), "120 us".to_owned()));
        assert_eq!(round_trips([2500, 120, 900]), "120 us - 2.50 ms");
    }

    #[test]
    fn nfs_versions_have_their_minor_version() {
        let shown = [(3, None), (3, Some(1)), (4, None), (4, Some(0)), (4, Some(2))].map(nfs_version);
        assert_eq!(shown, ["3", "3", "4", "4.0", "4.2"]);
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [(0, "-"), (1 << 20, "1 MiB"), (65_536, "64 KiB"), (1_000_000, "1000000 B")] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn clients_with_tls_have_their_certificates() {
        let tls = |names: &[&str]| Tls {
            version: "1.3".to_owned(),
            cipher: "TLS_AES_256_GCM_SHA384".to_owned(),
            certificate: Some(TlsCertificate {
                names: names.iter().map(|&name| name.to_owned()).collect(),
                fingerprint: "ab12".to_owned(),
            }),
        };
        let connection = |tls, security: &[&str]| NfsConnection {
            client: ([10, 0, 0, 2], 700).into(),
            server: ([10, 0, 0, 1], 2049).into(),
            version: Some(4),
            minor_version: Some(2),
            tls,
            security: security.iter().map(|&flavor| flavor.to_owned()).collect(),
            round_trip_us: None,
            calls: 1,
            in_flight: 0,
            reads: NfsTransfers::default(),
            writes: NfsTransfers::default(),
            age_seconds: 1,
            idle_seconds: 1,
        };
        let client = |connections| NfsClient {
            vserver: None,
            address: [10, 0, 0, 2].into(),
            mounts: Vec::new(),
            shares: Vec::new(),
            connections,
            sessions: Vec::new(),
            users: Vec::new(),
            lock_hosts: Vec::new(),
        };
        let one = [connection(None, &["sys"]), connection(Some(tls(&["a.lab.test"])), &["krb5", "krb5p"])];
        let other = [connection(Some(tls(&[])), &[]), connection(Some(tls(&[])), &[])];
        let clients = [client(one.to_vec()), client(other.to_vec()), client(vec![connection(None, &[])])];
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words(&encrypted(&clients)),
            "CLIENT CONNECTIONS WITH TLS CIPHER CERTIFICATE \
             10.0.0.2 1 of 2 TLS 1.3 TLS_AES_256_GCM_SHA384 a.lab.test \
             10.0.0.2 2 of 2 TLS 1.3 TLS_AES_256_GCM_SHA384 without a name, SHA-256 ab12"
        );
        let security = clients.each_ref().map(|client| nfs_client(client)[3].clone());
        assert_eq!(security, ["krb5, krb5p, sys", "-", "-"]);
    }

    #[test]
    fn clients_of_vservers_say_of_which() {
        let client = |vserver: Option<&str>| NfsClient {
            vserver: vserver.map(str::to_owned),
            address: [10, 0, 0, 2].into(),
            mounts: Vec::new(),
            shares: vec!["data".to_owned()],
            connections: Vec::new(),
            sessions: Vec::new(),
            users: vec!["anna".to_owned()],
            lock_hosts: Vec::new(),
        };
        let listed = |clients: &[NfsClient]| {
            let clients = Clients { nfs_clients: clients.to_vec(), ..Clients::default() };
            render(&clients)
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
        };
        let both = listed(&[client(None), client(Some("files"))]);
        for line in ["10.0.0.2 - data -", "10.0.0.2 files data -", "10.0.0.2 files anna"] {
            assert!(both.iter().any(|printed| printed.starts_with(line)), "{both:?}");
        }
        assert!(!listed(&[client(None)]).iter().any(|line| line.contains("VSERVER")));
    }

    #[test]
    fn nobody_is_no_table() {
        assert_eq!(
            render(&Clients::default()),
            "SMB: 0 sessions, 0 channels\n\nNFS: 0 clients, 0 connections\n"
        );
    }
}

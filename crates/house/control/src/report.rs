//! What the two servers report of their clients, in the form of the API.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nfs_server::{ConnectionReport, NfsServer, Origin, Secured, SessionReport, Sizes};
use share::{Client, Share, ShareTable};
use smb_server::report;

use crate::clients::{
    Channel, Clients, Encryption, Interface, Mechanism, NfsClient, NfsConnection, NfsLockHost, NfsSession,
    NfsTransfers, Principal, RefusalReason, RefusedBinding, Signing, SmbOffer, SmbSession, Tls,
    TlsCertificate, Transport,
};

/// The most users who are told of one NFS client.
const USERS_MAX: usize = 100;

/// The current clients of both servers, with the shares (of these) that they use.
#[must_use]
pub fn clients(smb: &smb_server::Server, nfs: &NfsServer, shares: &ShareTable) -> Clients {
    let offer = smb.offer();
    let mut sessions = smb.report();
    sessions.sort_by_key(|session| session.since);
    let now = SystemTime::now();
    Clients {
        smb_offer: SmbOffer {
            multichannel: offer.channels_max > 1,
            max_channels: u32::try_from(offer.channels_max).unwrap_or(u32::MAX),
            interfaces: offer.interfaces.iter().map(interface).collect(),
        },
        smb_sessions: sessions.iter().map(|session| smb_session(session, &offer, now)).collect(),
        nfs_clients: nfs_clients(nfs, &Used::of(shares)),
        ..Clients::default()
    }
}

fn smb_session(session: &report::Session, offer: &report::Offer, now: SystemTime) -> SmbSession {
    let channels: Vec<Channel> =
        session.channels.iter().map(|channel| smb_channel(channel, offer, now)).collect();
    SmbSession {
        vserver: None,
        id: format!("0x{:x}", session.id),
        client_guid: session.client_guid.iter().map(|byte| format!("{byte:02x}")).collect(),
        user: session.user.clone(),
        principal: principal(session.principal),
        dialect: session.dialect.name().to_owned(),
        signing: Signing {
            algorithm: session.signing_algorithm.name().to_owned(),
            required: session.signing_required,
        },
        encryption: session.cipher.map(|cipher| Encryption {
            cipher: cipher.name().to_owned(),
            required: session.encryption_required,
        }),
        trees: session.trees as u64,
        opens: session.opens as u64,
        mechanism: Some(mechanism(session.mechanism)),
        expires_in_seconds: session.expires.map(|end| seconds(now, end)),
        age_seconds: seconds(session.since, now),
        idle_seconds: channels.iter().map(|channel| channel.idle_seconds).min().unwrap_or(0),
        client_multichannel: session.client_multichannel,
        max_channels: u32::try_from(session.channels_max).unwrap_or(u32::MAX),
        channels,
        addresses_told: session.interfaces_asked.map(|asked| asked.addresses as u64),
        refused_bindings: session.refused_bindings.iter().map(refused_binding).collect(),
    }
}

fn smb_channel(channel: &report::Channel, offer: &report::Offer, now: SystemTime) -> Channel {
    let told = offer.interfaces.iter().find(|told| told.address == channel.local.ip().to_canonical());
    Channel {
        client: channel.peer,
        server: channel.local,
        transport: match channel.transport {
            report::Transport::Tcp => Transport::Tcp,
            report::Transport::Quic => Transport::Quic,
        },
        interface: told.map(interface),
        round_trip_us: channel.round_trip.map(micros),
        requests: channel.requests,
        age_seconds: seconds(channel.since, now),
        idle_seconds: channel.idle.as_secs(),
    }
}

fn interface(interface: &smb_server::Interface) -> Interface {
    Interface {
        index: interface.index,
        address: interface.address,
        bits_per_second: interface.link_speed,
        rss: interface.rss,
    }
}

fn mechanism(mechanism: report::Mechanism) -> Mechanism {
    match mechanism {
        report::Mechanism::Kerberos => Mechanism::Kerberos,
        report::Mechanism::Iakerb => Mechanism::Iakerb,
        report::Mechanism::Ntlm => Mechanism::Ntlm,
    }
}

fn principal(principal: report::Principal) -> Principal {
    match principal {
        report::Principal::User => Principal::User,
        report::Principal::Guest => Principal::Guest,
        report::Principal::Anonymous => Principal::Anonymous,
    }
}

fn refused_binding(refused: &report::RefusedBinding) -> RefusedBinding {
    use report::BindingRefusal as Refusal;
    let reason = match refused.reason {
        Refusal::NotMultichannel => RefusalReason::NotMultichannel,
        Refusal::Dialect => RefusalReason::Dialect,
        Refusal::NotSigned => RefusalReason::NotSigned,
        Refusal::InProgress => RefusalReason::InProgress,
        Refusal::Expired => RefusalReason::Expired,
        Refusal::NoKey => RefusalReason::NoKey,
        Refusal::AlreadyBound => RefusalReason::AlreadyBound,
        Refusal::Cipher => RefusalReason::Cipher,
        Refusal::WeakerSigning | Refusal::StrongerSigning => RefusalReason::SigningAlgorithm,
        Refusal::Ended => RefusalReason::Ended,
        Refusal::Signature => RefusalReason::Signature,
        Refusal::Authentication => RefusalReason::Authentication,
        Refusal::User => RefusalReason::User,
        Refusal::TooManyChannels => RefusalReason::TooManyChannels,
    };
    RefusedBinding { reason, message: refused.reason.to_string(), count: refused.count }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn seconds(since: SystemTime, now: SystemTime) -> u64 {
    now.duration_since(since).map_or(0, |age| age.as_secs())
}

/// For each share, the clients that have made calls to it, as far as they are counted.
struct Used(Vec<(String, HashSet<Client>)>);

impl Used {
    fn of(shares: &ShareTable) -> Self {
        let clients = |share: &Arc<Share>| {
            let records = share.accounting().snapshot();
            (share.name().to_owned(), records.iter().map(|record| record.client).collect())
        };
        Self(shares.present().in_order().iter().map(clients).collect())
    }

    fn by(&self, client: Client) -> Vec<String> {
        self.0.iter().filter(|(_, clients)| clients.contains(&client)).map(|(name, _)| name.clone()).collect()
    }
}

/// The users of NFS who have shown tickets, with the addresses of their clients.
struct Users(Vec<(Origin, Arc<str>)>);

impl Users {
    fn at(&self, address: IpAddr) -> Vec<String> {
        let here = self.0.iter().filter(|(of, _)| *of == Origin::from(address));
        here.take(USERS_MAX).map(|(_, name)| name.to_string()).collect()
    }
}

fn nfs_clients(nfs: &NfsServer, used: &Used) -> Vec<NfsClient> {
    let mut clients: Vec<NfsClient> = Vec::new();
    let mut sessions = nfs.sessions();
    let users = Users(nfs.users());
    for connection in nfs.connections() {
        let address = connection.client.ip().to_canonical();
        let known = clients.last().is_some_and(|client| client.address == address);
        if !known {
            let mounts = mounts(nfs, address);
            let shares = used.by(Client::Address(address));
            clients.push(NfsClient {
                vserver: None,
                address,
                mounts,
                shares,
                connections: Vec::new(),
                sessions: Vec::new(),
                users: users.at(address),
                lock_hosts: lock_hosts(nfs, address),
            });
        }
        if let Some(client) = clients.last_mut() {
            client.connections.push(nfs_connection(&connection));
            // A session over several addresses of a client is listed with the first address.
            let here = sessions.extract_if(.., |session| session.connections.contains(&connection.number));
            client.sessions.extend(here.map(|session| nfs_session(&session)));
        }
    }
    clients
}

fn lock_hosts(nfs: &NfsServer, address: IpAddr) -> Vec<NfsLockHost> {
    let here = nfs.lock_hosts().into_iter().filter(|host| host.address == address);
    here.map(|host| NfsLockHost { name: host.name, files: host.files as u64 }).collect()
}

fn nfs_session(session: &SessionReport) -> NfsSession {
    NfsSession {
        client: String::from_utf8_lossy(&session.client).into_owned(),
        connections: session.connections.len() as u64,
        slots_granted: session.slots.granted,
        slots_in_use: session.slots.running,
        slots_in_use_max: session.slots.running_max,
        slot_highest: session.slots.highest_used,
        back_channel: session.back_channel,
        idle_seconds: session.idle.as_secs(),
    }
}

fn nfs_transfers(sizes: Sizes) -> NfsTransfers {
    NfsTransfers { calls: sizes.calls, bytes: sizes.bytes, bytes_max: sizes.bytes_max }
}

fn mounts(nfs: &NfsServer, client: IpAddr) -> Vec<String> {
    nfs.mounts().into_iter().filter(|mounted| mounted.client == client).map(|mounted| mounted.path).collect()
}

/// What the handshake has shown. The library calls TLS_AES_256_GCM_SHA384 (RFC 8446 B.4) TLS13_AES_256_GCM_SHA384.
fn tls(secured: &Secured) -> Tls {
    let Secured { cipher, certificate } = secured;
    let certificate = certificate
        .as_ref()
        .map(|shown| TlsCertificate { names: shown.names.clone(), fingerprint: shown.fingerprint.clone() });
    // RFC 9289 5: no earlier version is negotiated.
    Tls { version: "1.3".to_owned(), cipher: cipher.replacen("TLS13_", "TLS_", 1), certificate }
}

fn nfs_connection(report: &ConnectionReport) -> NfsConnection {
    NfsConnection {
        client: report.client,
        server: report.server,
        version: report.version,
        minor_version: report.minor_version,
        tls: report.secured.as_deref().map(tls),
        security: report.security.iter().map(|flavor| (*flavor).to_owned()).collect(),
        round_trip_us: report.round_trip.map(micros),
        calls: report.calls,
        in_flight: report.in_flight,
        reads: nfs_transfers(report.reads),
        writes: nfs_transfers(report.writes),
        age_seconds: report.age.as_secs(),
        idle_seconds: report.idle.as_secs(),
    }
}

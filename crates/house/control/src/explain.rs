//! Why a client has fewer connections than possible: derives findings from facts, and does nothing else.

use std::net::IpAddr;

use serde::Serialize;

use crate::clients::{
    Interface, NfsClient, NfsSession, Principal, RefusalReason, RefusedBinding, SmbOffer, SmbSession,
};

/// Channels that clients open to one address whose interface spreads connections over processors: the default of
/// Windows (ConnectionCountPerRssNetworkInterface).
const CHANNELS_PER_RSS_ADDRESS: u32 = 4;
/// A client that logged on less than this ago may still be opening channels.
const YOUNG_SECONDS: u64 = 5;
/// The number of concurrent requests that keeps one connection busy.
const BUSY_REQUESTS: u32 = 16;
/// Connections of an NFS client beyond which measurements showed no gain.
const NCONNECT_ENOUGH: usize = 4;

/// A finding about a client's connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// For programs: a stable identifier of the finding.
    pub id: &'static str,
    /// Whether the finding is a reason why there are fewer connections than possible.
    pub limits: bool,
    /// What was found.
    pub what: String,
    /// The facts behind the finding.
    pub evidence: String,
    /// What to do about it.
    pub advice: String,
}

impl Finding {
    fn limit(id: &'static str, what: &str, evidence: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { id, limits: true, what: what.to_owned(), evidence: evidence.into(), advice: advice.into() }
    }

    fn note(id: &'static str, what: &str, evidence: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { limits: false, ..Self::limit(id, what, evidence, advice) }
    }
}

/// How many channels a session could have: as many as the addresses allow, within the server's limit, but never fewer
/// than it has, since some clients open more than others.
#[must_use]
pub fn channels_possible(offer: &SmbOffer, session: &SmbSession) -> u32 {
    let present = u32::try_from(session.channels.len()).unwrap_or(u32::MAX);
    addresses_carry(&offer.interfaces).max(1).min(session.max_channels).max(present)
}

fn addresses_carry(interfaces: &[Interface]) -> u32 {
    let carries = |interface: &Interface| if interface.rss { CHANNELS_PER_RSS_ADDRESS } else { 1 };
    // Several addresses of one interface carry no more than one address.
    let mut seen = Vec::new();
    let first = |interface: &&Interface| {
        let new = !seen.contains(&interface.index);
        seen.push(interface.index);
        new
    };
    interfaces.iter().filter(first).map(carries).fold(0, u32::saturating_add)
}

/// Why a session has no more channels: first the reasons, then other useful findings.
#[must_use]
pub fn smb_session(offer: &SmbOffer, session: &SmbSession) -> Vec<Finding> {
    let mut findings = never_more_than_one(offer, session);
    if findings.is_empty() {
        findings = fewer_than_possible(offer, session);
    }
    findings.extend(protection(session));
    findings
}

/// What limits a session to one channel, whatever the network is like.
fn never_more_than_one(offer: &SmbOffer, session: &SmbSession) -> Vec<Finding> {
    let mut findings = Vec::new();
    let old = !session.dialect.starts_with('3');
    if !offer.multichannel || session.max_channels <= 1 {
        findings.push(Finding::limit(
            "server-has-it-off",
            "This server allows one channel for each session.",
            format!("it was started with a limit of {} channels a session", session.max_channels),
            "Start the server with --max-channels 4 (or max-channels = 4 in the file); clients must connect again to use it.",
        ));
    }
    if old {
        findings.push(Finding::limit(
            "dialect-too-old",
            "The dialect has no multichannel, which came with SMB 3.0.",
            format!("client and server agreed on {}, the highest that the client offered", session.dialect),
            "Linux: mount with vers=3.1.1 (or without vers=). Windows: 8 or Server 2012 at least.",
        ));
    }
    if session.principal != Principal::User {
        findings.push(Finding::limit(
            "no-key",
            "A session without an account has no key with which to bind further channels.",
            format!("the user was admitted as {}", session.principal),
            "Log on with an account of this server.",
        ));
    }
    if !session.client_multichannel && !old {
        findings.push(Finding::limit(
            "client-did-not-ask",
            "The client did not ask for more than one channel.",
            "its NEGOTIATE request lacks SMB2_GLOBAL_CAP_MULTI_CHANNEL",
            "Linux: mount with multichannel,max_channels=4. Windows: Set-SmbClientConfiguration -EnableMultiChannel \
             $true. Then unmount and mount again: a session that exists stays as it is.",
        ));
    }
    findings
}

/// What prevents further channels in a session that may have several.
fn fewer_than_possible(offer: &SmbOffer, session: &SmbSession) -> Vec<Finding> {
    let channels = u32::try_from(session.channels.len()).unwrap_or(u32::MAX);
    let possible = channels_possible(offer, session);
    let mut findings: Vec<Finding> = session
        .refused_bindings
        .iter()
        .map(|refused| binding_refused(refused, channels < possible))
        .collect();
    if channels >= possible {
        findings.extend(at_the_limit(offer, session));
        return findings;
    }
    if offer.interfaces.is_empty() {
        findings.push(no_interfaces());
    } else if session.addresses_told.is_none() && channels <= 1 {
        findings.push(Finding::limit(
            "client-never-queried",
            "The client asked for multichannel, but never for the server's addresses.",
            "no FSCTL_QUERY_NETWORK_INTERFACE_INFO came in this session",
            "Windows asks when there is enough to do: copy a large file and look again. Linux asks while it mounts: \
             mount again what was mounted before the server could do it. smbclient never has more than one channel.",
        ));
    } else {
        findings.extend(unused_addresses(offer, session));
        if session.refused_bindings.is_empty() {
            findings.push(client_stopped(session, channels, possible));
        }
    }
    if session.age_seconds < YOUNG_SECONDS {
        findings.push(Finding::note(
            "just-logged-on",
            "The client may still be opening channels.",
            format!("it logged on {} s ago", session.age_seconds),
            "Look again in a moment.",
        ));
    }
    findings
}

/// For a session that has all possible channels: what limits their number.
fn at_the_limit(offer: &SmbOffer, session: &SmbSession) -> Option<Finding> {
    let carried = addresses_carry(&offer.interfaces);
    if carried > session.max_channels {
        return Some(Finding::limit(
            "limit-reached",
            "The session has as many channels as the server allows.",
            format!("{} of {} channels", session.channels.len(), session.max_channels),
            format!(
                "Start the server with --max-channels {}, as many as its addresses carry.",
                carried.min(32)
            ),
        ));
    }
    if offer.interfaces.is_empty() {
        return Some(no_interfaces());
    }
    let poor = offer.interfaces.iter().find(|interface| !interface.rss)?;
    Some(Finding::limit(
        "not-rss-capable",
        "Clients open one channel to an interface that does not spread connections over processors (RSS).",
        format!("{} address(es) offered, {} without RSS", offer.interfaces.len(), poor.address),
        "Give the server an interface with several receive queues (`ethtool -l INTERFACE`; for a virtual machine \
         more queues in its settings), or a second address on another interface.",
    ))
}

fn no_interfaces() -> Finding {
    Finding::limit(
        "no-address-offered",
        "The server has no address to offer to clients.",
        "the list for FSCTL_QUERY_NETWORK_INTERFACE_INFO is empty: link-local addresses and those that SMB does not \
         listen on are left out",
        "Name them with --smb-interface ADDR, or listen on more with --smb 0.0.0.0:445.",
    )
}

fn binding_refused(refused: &RefusedBinding, limits: bool) -> Finding {
    let RefusedBinding { reason, message, count } = refused;
    let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
    let advice = match reason {
        RefusalReason::NotMultichannel => "Start the server with --max-channels 4, then mount again.",
        RefusalReason::TooManyChannels => "Raise --max-channels, or lower the client's number.",
        RefusalReason::InProgress | RefusalReason::Expired | RefusalReason::Ended => {
            "The client logs on again and then opens the channel again: look again in a moment."
        }
        RefusalReason::Authentication | RefusalReason::User => {
            "Each channel logs on as the same user: mount again if the password was changed meanwhile."
        }
        RefusalReason::NoKey => "Log on with an account of this server.",
        RefusalReason::Signature | RefusalReason::NotSigned => {
            "Make sure that nothing between client and server changes messages; otherwise the client has a fault."
        }
        RefusalReason::Dialect
        | RefusalReason::Cipher
        | RefusalReason::SigningAlgorithm
        | RefusalReason::AlreadyBound => {
            "All channels of a client must be alike: the client has a fault, or something in between speaks SMB."
        }
    };
    let make = if limits { Finding::limit } else { Finding::note };
    make("binding-refused", "A further channel was refused.", format!("{times}: {message}"), advice)
}

/// Addresses that are reported to clients and carry none of the session's channels.
fn unused_addresses(offer: &SmbOffer, session: &SmbSession) -> Vec<Finding> {
    let used: Vec<u32> =
        session.channels.iter().filter_map(|channel| Some(channel.interface?.index)).collect();
    let unused: Vec<&Interface> =
        offer.interfaces.iter().filter(|interface| !used.contains(&interface.index)).collect();
    let best = offer.interfaces.iter().map(rank).max();
    let (equal, lesser): (Vec<&Interface>, _) = unused.into_iter().partition(|i| Some(rank(i)) == best);
    let used = used_addresses(session);
    let mut findings = Vec::new();
    if let Some(first) = equal.first() {
        let port = session.channels.first().map_or(445, |channel| channel.server.port());
        let addresses = joined(&equal);
        findings.push(Finding::limit(
            "address-not-used",
            "The client uses only some of the addresses that the server offered.",
            format!("{}, has channels to {used}, none to {addresses}", told(session)),
            format!(
                "Can the client reach it? Linux: nc -vz {0} {port}. Windows: Test-NetConnection {0} -Port {port}. If it \
                 is not meant to, leave it out: --smb-interface for each of the others.",
                first.address
            ),
        ));
    }
    if !lesser.is_empty() {
        findings.push(Finding::note(
            "address-slower",
            "Some addresses are less suitable: clients use those with RSS first, then the fastest.",
            format!("no channel to {}", joined(&lesser)),
            "Nothing, unless the order is wrong: compare the speeds that `client list` shows.",
        ));
    }
    findings
}

fn told(session: &SmbSession) -> String {
    match session.addresses_told {
        None => "it never asked for the addresses".to_owned(),
        Some(1) => "it asked and was offered 1 address".to_owned(),
        Some(count) => format!("it asked and was offered {count} addresses"),
    }
}

/// The order in which clients prefer interfaces.
fn rank(interface: &Interface) -> (bool, u64) {
    (interface.rss, interface.bits_per_second)
}

fn used_addresses(session: &SmbSession) -> String {
    let mut used: Vec<IpAddr> = session.channels.iter().map(|channel| channel.server.ip()).collect();
    used.sort_unstable();
    used.dedup();
    used.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ")
}

fn joined(interfaces: &[&Interface]) -> String {
    interfaces.iter().map(|interface| interface.address.to_string()).collect::<Vec<_>>().join(", ")
}

/// The server knows of nothing that prevents further channels.
fn client_stopped(session: &SmbSession, channels: u32, possible: u32) -> Finding {
    Finding::limit(
        "client-opened-no-more",
        "The client opened no more channels, and none was refused.",
        format!(
            "{channels} of {possible} possible; {}; the server allows {}",
            told(session),
            session.max_channels
        ),
        format!(
            "Linux: mount with max_channels={possible} (without it there are 2). Windows: \
             Get-SmbClientConfiguration | select ConnectionCountPerRssNetworkInterface, MaximumConnectionCountPerServer; \
             Get-SmbClientNetworkInterface shows whether the client's own interfaces are RSS capable."
        ),
    )
}

/// Findings about signing and encryption: unnecessary cost, or less protection than possible.
fn protection(session: &SmbSession) -> Option<Finding> {
    let algorithm = &session.signing.algorithm;
    if session.signing.required && !session.encrypts() && algorithm != "AES-GMAC" {
        return Some(Finding::note(
            "slow-signing",
            "Messages are signed with an algorithm that is slower than AES-GMAC.",
            format!("signing is required; client and server agreed on {algorithm}"),
            "Windows 11 and Server 2022 have AES-GMAC; Linux: load the module cifs with enable_negotiate_signing=1.",
        ));
    }
    None
}

/// Why an NFS client has no more connections.
#[must_use]
pub fn nfs_client(client: &NfsClient) -> Vec<Finding> {
    let connections = client.connections.iter().filter(|connection| connection.version.is_some()).count();
    let mut findings: Vec<_> = client.sessions.iter().filter_map(slots_used_up).collect();
    if connections == 1 {
        let busiest = client.sessions.iter().map(|session| session.slots_in_use_max).max();
        let seen = match busiest.filter(|busiest| *busiest >= BUSY_REQUESTS) {
            Some(busiest) => {
                format!("up to {busiest} requests were under way at a time, all over one connection")
            }
            None => "it mounted without nconnect, or an earlier mount from this server had none".to_owned(),
        };
        findings.push(Finding::limit(
            "one-connection",
            "The client has one connection.",
            seen,
            "Linux 5.3 or later: mount with nconnect=4. The first mount from a server decides for all mounts from it: \
             unmount them all first.",
        ));
    }
    if connections > NCONNECT_ENOUGH {
        findings.push(Finding::note(
            "many-connections",
            "More than 4 connections rarely make a client faster.",
            format!("{connections} connections"),
            "Compare with nconnect=4.",
        ));
    }
    findings
}

/// What the requests of a session wait for on the client's side, as far as the server can tell.
#[must_use]
pub fn bound_by(session: &NfsSession) -> &'static str {
    if session.slots_in_use_max >= session.slots_granted {
        "slots"
    } else if session.connections == 1 && session.slots_in_use_max >= BUSY_REQUESTS {
        "one connection"
    } else {
        "-"
    }
}

/// The client of this session has had as many requests under way as its slots allow.
fn slots_used_up(session: &NfsSession) -> Option<Finding> {
    let NfsSession { slots_granted, slots_in_use_max, .. } = session;
    (slots_in_use_max >= slots_granted).then(|| {
        Finding::limit(
            "slots-used-up",
            "The client has used all of its slots at once: further requests waited in the client.",
            format!("{slots_in_use_max} of {slots_granted} slots were in use at a time"),
            "Linux asks for 64 slots a session unless it is told otherwise: set max_session_slots=180 for its module nfs \
             (in /etc/modprobe.d) and mount anew. A server gives out fewer when its clients are many.",
        )
    })
}

#[cfg(test)]
mod tests;

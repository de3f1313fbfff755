//! `anabranch client hint`: what to set on NFS clients, with their own figures.
//!
//! How far a Linux client reads ahead decides how fast it reads a file from one end to the other. Up to Linux 5.3 that
//! was 15 times what one READ carries; since 5.4 it is 128 KiB, unless somebody sets it.

use std::fmt::Write;
use std::net::IpAddr;

use control::clients::{Clients, NfsClient};
use serde::Serialize;

use super::list::size;
use super::{counted, harmless};

/// READs that a client before Linux 5.4 sends ahead.
const READS_AHEAD: u64 = 15;
/// What Linux 5.4 and later read ahead, unless it is set.
const DEFAULT_BYTES: u64 = 128 << 10;
/// What is good for files that are read sequentially.
const GOOD_BYTES: u64 = 15 << 20;

/// The rule of udev that sets it for every mount, in one line.
const RULE: &str = concat!(
    r#"SUBSYSTEM=="bdi", ACTION=="add", "#,
    r#"PROGRAM="/usr/bin/awk -v bdi=$kernel 'BEGIN{ret=1} {if ($4 == bdi) {ret=0}} END{exit ret}' "#,
    r#"/proc/fs/nfsfs/volumes", ATTR{read_ahead_kb}="15360""#,
);

/// What is to be set, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct Hints {
    udev_rule: &'static str,
    read_ahead_bytes: u64,
    clients: Vec<ClientHint>,
}

#[derive(Debug, Serialize)]
struct ClientHint {
    address: IpAddr,
    mounts: Vec<String>,
    versions: Vec<u32>,
    connections: usize,
    /// The largest READ seen: as a rule its rsize.
    read_bytes_max: u64,
    /// What it reads ahead before Linux 5.4.
    read_ahead_bytes_before_5_4: u64,
}

/// The hints for these clients.
pub(crate) fn of(clients: &Clients) -> Hints {
    let clients = clients.nfs_clients.iter().map(client_hint).collect();
    Hints { udev_rule: RULE, read_ahead_bytes: GOOD_BYTES, clients }
}

fn client_hint(client: &NfsClient) -> ClientHint {
    let mut versions: Vec<_> =
        client.connections.iter().filter_map(|connection| connection.version).collect();
    versions.sort_unstable();
    versions.dedup();
    let read_bytes_max = client.reads().bytes_max;
    ClientHint {
        address: client.address,
        mounts: client.mounts.iter().map(|mount| harmless(mount)).collect(),
        versions,
        connections: client.connections.len(),
        read_bytes_max,
        read_ahead_bytes_before_5_4: read_bytes_max.saturating_mul(READS_AHEAD),
    }
}

/// The hints, for people.
pub(crate) fn render(clients: &Clients) -> String {
    let Hints { clients, .. } = of(clients);
    if clients.is_empty() {
        return "no NFS client is connected\n".to_owned();
    }
    let mut text = String::new();
    for client in &clients {
        let _ =
            writeln!(text, "NFS client {}: {}", client.address, counted(client.connections, "connection"));
        if client.read_bytes_max == 0 {
            let _ = writeln!(text, "  it has read nothing yet: its read-ahead is not known");
            continue;
        }
        let (read, ahead) = (size(client.read_bytes_max), size(client.read_ahead_bytes_before_5_4));
        let _ = writeln!(text, "  largest read seen: {read} (its rsize, once it has read a large file)");
        let _ = writeln!(text, "  before Linux 5.4 it reads ahead {ahead} (15 x {read}): leave it");
        let _ = writeln!(
            text,
            "  Linux 5.4 and later: {}, {} of its reads, unless set: sequential reads are slower than before an upgrade",
            size(DEFAULT_BYTES),
            reads_ahead(client.read_bytes_max),
        );
    }
    let _ = write!(text, "{}", advice());
    text
}

/// How many READs the default is.
fn reads_ahead(read_bytes: u64) -> String {
    match DEFAULT_BYTES.checked_div(read_bytes) {
        Some(whole) if whole > 0 => whole.to_string(),
        _ => "less than one".to_owned(),
    }
}

fn advice() -> String {
    let good = size(GOOD_BYTES);
    format!(
        "
On clients with Linux 5.4 or later, set read_ahead_kb to {good}, for good. In /etc/udev/rules.d/99-nfs.rules, one line:

{RULE}

then once: sudo udevadm control --reload
It holds for mounts made from then on; /sys/class/bdi/*/read_ahead_kb shows what is in force.

The first mount from a server fixes nconnect for all further ones from it (the same address): mounts that come later share
its connections, whatever their own nconnect says. To change it, unmount all of them first.
"
    )
}

#[cfg(test)]
mod tests {
    use control::clients::{NfsConnection, NfsTransfers};

    use super::*;

    fn clients(read_bytes: u64) -> Clients {
        let address: IpAddr = [10, 0, 0, 2].into();
        let connection = NfsConnection {
            client: (address, 700).into(),
            server: (address, 2049).into(),
            version: Some(4),
            minor_version: None,
            tls: None,
            security: Vec::new(),
            calls: 9,
            round_trip_us: None,
            in_flight: 0,
            reads: NfsTransfers { calls: 1, bytes: read_bytes, bytes_max: read_bytes },
            writes: NfsTransfers::default(),
            age_seconds: 0,
            idle_seconds: 0,
        };
        let client = NfsClient {
            vserver: None,
            address,
            mounts: Vec::new(),
            shares: Vec::new(),
            connections: vec![connection],
            sessions: Vec::new(),
            users: Vec::new(),
            lock_hosts: Vec::new(),
        };
        Clients { nfs_clients: vec![client], ..Clients::default() }
    }

    #[test]
    fn the_rule_is_that_of_the_clients_own_reads() {
        let text = render(&clients(1 << 20));
        assert!(text.contains("before Linux 5.4 it reads ahead 15 MiB (15 x 1 MiB)"), "{text}");
        assert!(text.contains("128 KiB, less than one of its reads"), "{text}");
        let text = render(&clients(64 << 10));
        assert!(text.contains("15 x 64 KiB") && text.contains("128 KiB, 2 of its reads"), "{text}");
        assert!(
            text.contains("ATTR{read_ahead_kb}=\"15360\"") && text.contains("unmount all of them"),
            "{text}"
        );
        assert_eq!(GOOD_BYTES, 15_360 << 10);
    }

    #[test]
    fn a_client_that_has_not_read_is_not_guessed_at() {
        let text = render(&clients(0));
        assert!(text.contains("it has read nothing yet") && !text.contains("15 x"), "{text}");
        assert_eq!(render(&Clients::default()), "no NFS client is connected\n");
    }
}

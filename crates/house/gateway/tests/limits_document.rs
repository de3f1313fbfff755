//! Compares the table of limits in `docs/security.md` with the limits of the code.

use std::collections::BTreeSet;
use std::time::Duration;

use anabranch_gateway::settings::Settings;
use nfs_proto::gss::contexts::ContextLimits;
use nfs_proto::gss::window::SEQUENCE_WINDOW;
use nfs_proto::v4::limits::HoldingLimits as ClientLimits;
use share::ShareTable;

const DOCUMENT: &str = include_str!("../../../../docs/security.md");
const HEAD: &str = "| what | how much | how the rest is refused |";

/// Rows whose limits are fractions of others, or are private to their part and tested there.
const NOT_COMPARED: [&str; 19] = [
    "packets of QUIC clients that are not met yet, on each shard",
    "data on the way of a QUIC connection",
    "calls of the server to NFSv3 clients",
    "connections to the port mapper (`portmap = \"serve\"`)",
    "connections of one address",
    "unidentified connections",
    "opens of a user, an SMB client or an NFS address on a share",
    "connections to the control address",
    "requests for `/healthz` that are being answered, and for `/metrics`",
    "sign-ins to the console",
    "failed sign-ins to the console",
    "lines of the log in memory, for the console",
    "servers that replicate a share; snapshots that are kept for one",
    "what such a server asks for at a time; how long it may read nothing of the answer",
    "recorded operations of one simulation",
    "log lines about one address and kind",
    "log lines that wait to be written",
    "names or SIDs that an SMB client looks up in one call; answers that are kept, of the name service and of the directory",
    "the wait for the names of users and groups",
];

/// The first two cells of each row.
fn rows() -> Vec<(&'static str, &'static str)> {
    let after = DOCUMENT.lines().skip_while(|line| *line != HEAD);
    let rows: Vec<_> = after
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            assert_eq!(cells.len(), 3, "{line}");
            (cells[0], cells[1])
        })
        .collect();
    assert!(!rows.is_empty(), "there is no table {HEAD}");
    rows
}

/// The numbers in a cell: bytes, milliseconds or counts. A number behind a slash is a divisor, and no limit.
fn numbers(cell: &str) -> Vec<u64> {
    let words: Vec<&str> = cell.split([' ', '(', ')']).filter(|word| !word.is_empty()).collect();
    let bare = |word: &str| word.trim_end_matches([';', ',']).replace(',', "");
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let Ok(number) = bare(word).parse::<f64>() else { continue };
        let unit = words.get(index + 1).map(|word| bare(word)).unwrap_or_default();
        let factor = match unit.as_str() {
            "KiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "s" => 1000.0,
            "min" => 60_000.0,
            _ => 1.0,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of a document")]
        found.push((number * factor).round() as u64);
    }
    found
}

fn count(limit: usize) -> u64 {
    u64::try_from(limit).unwrap_or(u64::MAX)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Limits on connections, frames and replies.
fn transport() -> Vec<(&'static str, Vec<u64>)> {
    let (smb, nfs) = (smb_server::Limits::default(), nfs_config());
    let general = net::Limits::default();
    assert_eq!(smb.connections_max, nfs.connections_max);
    let transfer = u64::from(nfs_server::TRANSFER_BYTES_MAX);
    let record = count(nfs_server::RECORD_BYTES_MAX);
    vec![
        ("connections of SMB (TCP and QUIC together), and of NFS", vec![count(smb.connections_max)]),
        ("an SMB connection without a logon", vec![milliseconds(general.greeting)]),
        ("an NFS connection without a session, silent", vec![milliseconds(nfs.silence)]),
        (
            "first frame of an SMB client that has not logged on",
            vec![count(smb_server::STRANGER_FRAME_BYTES_MAX)],
        ),
        (
            "the TLS handshake of an NFS client; the handshake of a QUIC client until it opens its stream",
            vec![milliseconds(general.handshake)],
        ),
        ("an SMB frame", vec![smb.io_bytes_max.into()]),
        ("an NFS record", vec![transfer, record - transfer, count(nfs_server::FRAGMENTS_MAX)]),
        (
            "partial frames of all unidentified connections, what their logons have sent so far beyond 4 KiB, and 64 KiB for \
             each of them over QUIC",
            vec![count(net::STRANGERS_BYTES_MAX), count(net::STRANGERS_OF_ORIGIN_BYTES_MAX)],
        ),
        (
            "replies that a client does not read, including those in preparation (reads from a disk, listings, extended \
             attributes, access control lists, directory changes)",
            vec![
                count(net::REPLIES_BYTES_MAX),
                count(net::SMALL_REPLIES_BYTES),
                count(net::SMALL_REPLY_BYTES_MAX),
                smb.io_bytes_max.into(),
            ],
        ),
        ("NFS calls in progress on a connection", vec![count(nfs_server::PENDING_CALLS_MAX)]),
        ("SMB requests of a connection that wait", vec![count(smb.pending_requests_max)]),
        ("SMB requests in one compound", vec![count(smb.compound_max)]),
    ]
}

/// Limits on what one client holds.
fn clients() -> Vec<(&'static str, Vec<u64>)> {
    let (smb, nfs, of_client) = (smb_server::Limits::default(), nfs_config(), ClientLimits::default());
    let (hosts, contexts) = (nfs_server::HostLimits::default(), ContextLimits::default());
    let logons = [smb.sessions_max, smb.sessions_per_connection_max, smb.logons_per_connection_max];
    let delays = [auth::brake::DELAY_FIRST, auth::brake::DELAY_MAX].map(milliseconds);
    let queue = milliseconds(auth::brake::LINE_MAX);
    vec![
        (
            "a token of a client that authenticates; a keytab",
            vec![count(krb5::TOKEN_BYTES_MAX), count(krb5::keytab::BYTES_MAX)],
        ),
        (
            "Kerberos tickets that were used, kept for 10 to 20 min against replays",
            vec![count(krb5::ReplayCache::CAPACITY)],
        ),
        (
            "security contexts of NFS users with tickets",
            vec![count(contexts.contexts_max), count(contexts.contexts_per_address)],
        ),
        ("calls of one such context, told apart by their numbers", vec![SEQUENCE_WINDOW.into()]),
        ("SMB sessions", logons.map(count).to_vec()),
        ("channels of a session", vec![Settings::new("".into()).max_channels.into()]),
        ("tree connects of a session", vec![count(smb.trees_per_session_max)]),
        (
            "SIDs whose quotas an SMB client asks for in one request; quotas in a reply",
            vec![count(smb_server::QUOTA_LIST_BYTES_MAX), count(smb_server::QUOTA_ROWS_MAX)],
        ),
        (
            "changes of quotas by SMB clients under way, of all shares; quotas in one, and in a share",
            [anabranch_gateway::QUOTA_CHANGES_MAX, share::QUOTAS_MAX, share::QUOTAS_MAX].map(count).to_vec(),
        ),
        ("failed logons", [&delays[..], &[u64::from(smb_server::FAILED_LOGONS_MAX), queue]].concat()),
        ("opens of an SMB session", vec![count(smb.opens_per_session_max)]),
        ("durable opens kept for disconnected SMB clients", vec![count(smb.disconnected_opens_max)]),
        ("persistent opens of all SMB clients", vec![count(smb.persistent_opens_max)]),
        ("NFSv4 clients", vec![count(nfs.clients.clients_max), count(nfs.clients.sessions_max)]),
        (
            "slots of an NFSv4 session, operations of a COMPOUND",
            vec![nfs.sessions.slots_max.into(), nfs.sessions.operations_max.into()],
        ),
        ("replies cached for all NFSv4 sessions", vec![nfs.sessions.all_kept_bytes_max]),
        ("opens of an NFSv4 client", vec![count(of_client.opens_max)]),
        ("open-owners and lock-owners of an NFSv4.0 client", vec![count(of_client.state_owners_max)]),
        ("sets of locks of an NFSv4 client", vec![count(of_client.lock_states_max)]),
        ("delegations of an NFSv4 client", vec![count(of_client.delegations_max)]),
        ("hosts with NFSv3 locks", vec![count(hosts.hosts_max)]),
        ("NFSv3 locks that are waited for", vec![count(hosts.waiting_max)]),
        (
            "lock-owners, share reservations of a host",
            vec![count(hosts.owners_max), count(hosts.reservations_max)],
        ),
        ("mounts in the list of MOUNT", vec![count(nfs_server::MOUNTS_MAX)]),
    ]
}

/// Limits on a share and its files.
fn shares() -> Vec<(&'static str, Vec<u64>)> {
    let (share, of_file) = (share::Settings::new("data"), share::FileLimits::default());
    let changes = [share::CHANGES_MAX, share::CHANGES_BYTES_MAX];
    let store = [share::STORE_THREADS_MAX, share::STORE_WAITING_MAX];
    let views = [share::VERSIONS_MAX, share::VIEWS_MAX, share::IDLE_VIEWS_MAX];
    let lists = [share::CLIENT_RULES_MAX, share::RIGHTS_MAX];
    vec![
        ("opens of a share", vec![count(share.opens_max)]),
        ("opens of a file", vec![count(of_file.reservations_max)]),
        ("byte-range locks of a file", vec![count(of_file.locks_max)]),
        ("caching grants of a file", vec![count(of_file.grants_max)]),
        ("watched directories of a share (CHANGE_NOTIFY)", vec![count(share.watches_max)]),
        ("changes that wait in a watch; in all watches of a share", changes.map(count).to_vec()),
        ("calls that wait for a storage", store.map(count).to_vec()),
        ("snapshots of a share that clients see; in use; kept open", views.map(count).to_vec()),
        ("entries of a client list, of a user list", lists.map(count).to_vec()),
        ("lines of the access log that wait for a sink", vec![count(access_log::WAITING_BYTES_MAX)]),
    ]
}

fn nfs_config() -> nfs_server::Config {
    let shares = ShareTable::new([]).unwrap_or_else(|e| panic!("{e:?}"));
    nfs_server::Config::new(shares, nfs_server::Squashing::default(), [0; 16], [0; 8])
}

#[test]
fn the_limits_are_those_that_are_printed() {
    let rows = rows();
    let known: Vec<_> = [transport(), clients(), shares()].concat();
    for (what, limits) in &known {
        let cells: Vec<_> = rows.iter().filter(|(name, _)| name == what).collect();
        assert_eq!(cells.len(), 1, "rows of {what}");
        assert_eq!(numbers(cells[0].1), *limits, "{what}: {}", cells[0].1);
    }
    let compared: BTreeSet<&str> = known.iter().map(|(what, _)| *what).chain(NOT_COMPARED).collect();
    let printed: BTreeSet<&str> = rows.iter().map(|(what, _)| *what).collect();
    assert_eq!(printed, compared, "each row is compared, or said not to be");
}

#[test]
fn numbers_of_a_cell_are_read_with_their_units() {
    assert_eq!(numbers("D/8 each, 65,536 at most"), [65_536]);
    assert_eq!(numbers("1 MiB and 8 KiB, 512 fragments"), [1 << 20, 8 << 10, 512]);
    assert_eq!(numbers("after 0.25 s to 2 s; 5 min"), [250, 2000, 300_000]);
    assert_eq!(numbers("`--max-channels` (4)"), [4]);
}

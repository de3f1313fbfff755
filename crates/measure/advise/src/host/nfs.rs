//! The kernel's NFS client: its settings, and its mounts with their connections and read-ahead.

use super::super::advice::{Source, Verdict, document};
use super::super::facts::{Facts, Mount as MountFacts};
use super::super::nfs::kernel;
use super::mounts::{Mount, Options, unescape};
use super::{Finding, Machine};
use load::result::Protocol;

/// Connections that the documents ask for, and the most that bring anything there (3.09, line 79).
const CONNECTIONS: u32 = 4;
/// Bytes that one read or write should be able to carry: as many as the kernel's client can.
const TRANSFER_BYTES: u64 = 1 << 20;
/// Requests under way on a connection of NFSv3, of which Azure's servers take 128.
const SLOTS: u64 = 128;

pub(super) fn examine(machine: &Machine, mounts: &[Mount]) -> Vec<Finding> {
    let statistics = statistics(&machine.text("proc/self/mountstats").unwrap_or_default());
    let mut findings = Vec::new();
    for mount in mounts.iter().filter(|mount| matches!(mount.kind.as_str(), "nfs" | "nfs4")) {
        let seen = statistics.iter().find(|seen| seen.directory == mount.directory);
        findings.push(connections(machine, mount, seen));
        findings.extend(transfer(mount));
        findings.extend(read_ahead(machine, mount));
        findings.extend(slots(machine, mount, seen));
    }
    findings
}

fn connections(machine: &Machine, mount: &Mount, seen: Option<&Seen>) -> Finding {
    let about = mount.directory.as_str();
    let shown = mount.options.number("nconnect").unwrap_or(1);
    // /proc/mounts shows what the client has; what was asked for stands in /etc/fstab, if anywhere.
    let asked = in_fstab(machine, about).and_then(|options| options.number("nconnect")).unwrap_or(shown);
    let has = seen.map_or(shown, |seen| seen.connections);
    let source = document("3.09", 79);
    if mount.options.value("proto").is_some_and(|proto| proto.starts_with("udp")) {
        let text = "NFS over UDP: no nconnect, and a lost packet costs a whole request";
        return Finding::new(about, Verdict::Red, Source::Manual("nfs(5), proto"), text)
            .mend("mount -t nfs -o proto=tcp ...");
    }
    if has < asked {
        let text = format!(
            "{has} of the {asked} connections that were asked for: the first mount of a server fixes nconnect for all"
        );
        Finding::new(about, Verdict::Red, document("3.14", 91), text)
            .mend(format!("umount all mounts of this server; mount -t nfs -o nconnect={asked} ..."))
    } else if has == 1 {
        let text = "one connection: work with much under way gets 2 to 4 times the reads from four";
        Finding::new(about, Verdict::Yellow, source, text)
            .mend(format!("mount -t nfs -o nconnect={CONNECTIONS} ..."))
    } else if has > CONNECTIONS {
        let text = format!(
            "{has} connections: more than {CONNECTIONS} bring nothing according to the documents, and may cost throughput"
        );
        Finding::new(about, Verdict::Yellow, source, text)
            .mend(format!("mount -t nfs -o nconnect={CONNECTIONS} ..."))
    } else {
        Finding::new(about, Verdict::Green, source, format!("{has} connections"))
    }
}

fn transfer(mount: &Mount) -> Option<Finding> {
    let smallest = ["rsize", "wsize"].iter().filter_map(|name| mount.options.number::<u64>(name)).min()?;
    let text =
        format!("reads or writes of {} KiB at most: large ones are cut into more requests", smallest >> 10);
    (smallest < TRANSFER_BYTES).then(|| {
        Finding::new(&mount.directory, Verdict::Yellow, Source::Manual("nfs(5), rsize and wsize"), text)
            .mend("mount -t nfs -o rsize=1048576,wsize=1048576 ...")
    })
}

/// R11, for one mount.
fn read_ahead(machine: &Machine, mount: &Mount) -> Option<Finding> {
    let (kib, version) =
        (machine.number(&format!("sys/class/bdi/{}/read_ahead_kb", mount.device))?, machine.kernel()?);
    let of_mount =
        MountFacts { directory: mount.directory.clone(), read_ahead_kib: Some(kib), ..MountFacts::default() };
    let facts = Facts {
        protocol: Some(Protocol::Nfs41),
        linux: Some(version),
        mounts: vec![of_mount],
        ..Facts::default()
    };
    let enough = || {
        Finding::new(&mount.directory, Verdict::Green, document("3.03", 30), format!("reads {kib} KiB ahead"))
    };
    Some(kernel(&facts).map_or_else(enough, |said| {
        let now = format!(
            "echo 15360 > /sys/class/bdi/{}/read_ahead_kb   # until it is mounted again",
            mount.device
        );
        Finding::of_advice(&mount.directory, said).mend(now)
    }))
}

/// R12: whether requests may have waited in the client for a slot.
fn slots(machine: &Machine, mount: &Mount, seen: Option<&Seen>) -> Option<Finding> {
    let about = mount.directory.as_str();
    let seen = seen?;
    let has_sessions = mount.kind == "nfs4" && mount.options.value("vers") != Some("4.0");
    if has_sessions {
        let slots = machine.number("sys/module/nfs/parameters/max_session_slots")?;
        let source = Source::Manual("Linux: nfs.max_session_slots; RFC 8881, section 2.10.6.1");
        let text = format!(
            "{} requests were under way on its connections, and a session of this client has {slots} slots",
            seen.under_way_max
        );
        // The connections need not have had theirs at one time.
        return Some(if seen.under_way_max >= slots {
            let line =
                "echo 'options nfs max_session_slots=180' > /etc/modprobe.d/nfs.conf   # then mount again";
            Finding::new(about, Verdict::Yellow, source, text).mend(line)
        } else {
            Finding::new(about, Verdict::Green, source, text)
        });
    }
    let slots = machine.number("proc/sys/sunrpc/tcp_max_slot_table_entries")?;
    let text = format!("at most {slots} requests under way on a connection");
    (slots < SLOTS).then(|| {
        Finding::new(about, Verdict::Yellow, Source::Manual("Linux: sunrpc.tcp_max_slot_table_entries"), text)
            .mend(format!("sysctl -w sunrpc.tcp_max_slot_table_entries={SLOTS}   # then mount again"))
    })
}

fn in_fstab(machine: &Machine, directory: &str) -> Option<Options> {
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (unescape(fields.get(1)?) == directory).then(|| Options::parse(fields.get(3).unwrap_or(&"")))
    };
    machine.text("etc/fstab")?.lines().filter(|line| !line.trim_start().starts_with('#')).find_map(of_line)
}

/// What /proc/self/mountstats tells of a mount.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Seen {
    directory: String,
    connections: u32,
    /// The most requests that were under way, over all connections.
    under_way_max: u64,
}

/// "device D mounted on DIR with fstype ..." begins a mount; "xprt: tcp ..." is one of its connections: port, binds, connects,
/// connect time, idle time, sends, receives, bad xids, requests, backlog, most slots, ... (xs_tcp_print_stats of the kernel).
fn statistics(text: &str) -> Vec<Seen> {
    const MOST_SLOTS: usize = 12;
    let mut all: Vec<Seen> = Vec::new();
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once(" mounted on ").filter(|_| line.starts_with("device ")) {
            let directory = rest.split_once(" with fstype ").map_or(rest, |(directory, _)| directory);
            all.push(Seen { directory: unescape(directory), ..Seen::default() });
        } else if let (Some(fields), Some(seen)) = (line.trim().strip_prefix("xprt:"), all.last_mut()) {
            seen.connections += 1;
            let most =
                fields.split_whitespace().nth(MOST_SLOTS - 1).and_then(|field| field.parse::<u64>().ok());
            seen.under_way_max += most.unwrap_or(0);
        }
    }
    all
}

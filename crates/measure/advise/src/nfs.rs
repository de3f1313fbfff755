//! NFS connections, queues and mounts: R7 to R12.

use super::advice::{Advice, Side, Source, Verdict, advice, counted, document};
use super::channels::{kib, measured_text};
use super::facts::{Effect, Facts, Profile};
use load::result::Protocol;

/// Operations under way from which several connections pay (document 3.18, line 179).
const DEEP: f64 = 16.0;
/// The deepest queue that brings anything (document 3.11, line 87).
const DEEPEST: f64 = 64.0;
/// Reads and writes up to here count as small (documents 3.16 and 1.21).
const SMALL_IO: f64 = 16.0 * 1024.0;
/// Connections that the documents ask for (document 3.09, line 79).
const CONNECTIONS: u32 = 4;
/// KiB of read-ahead that the documents ask for (document 3.03, line 30).
const READ_AHEAD_KIB: u64 = 15 * 1024;

/// R7: whether several connections suit the work: reads and writes, the documents do not speak of names and attributes there.
pub(super) fn connections_suit(facts: &Facts) -> Option<Advice> {
    let depth = facts.work.queue_depth.filter(|_| facts.is_nfs() && !facts.work.is_mostly_metadata())?;
    let threads = facts.work.threads.unwrap_or(1);
    let count = if facts.profile == Profile::AzureNetappFiles { 8 } else { CONNECTIONS };
    let (expected, text) = expected_of_connections(facts, depth, threads, count);
    let measured = facts.effect_of_connections(count);
    let verdict = measured.map_or(expected, Effect::verdict);
    let (source, text) = match measured {
        Some(effect) => (Source::Measured, measured_text("several connections", effect, expected, &text)),
        None => (document("3.18", if expected == Verdict::Green { 79 } else { 179 }), text),
    };
    let mut said = advice(7, verdict, source, text).figure(format!(
        "{}, {}",
        under_way(depth),
        counted(threads, "thread")
    ));
    said = said
        .figures(facts.work.io_bytes.map(|bytes| format!("{} an operation", kib(bytes))))
        .figures(measured);
    Some(if verdict == Verdict::Green {
        said.on(Side::Linux, format!("mount -t nfs -o nconnect={count} ..."))
    } else {
        said
    })
}

/// How many operations are under way, in words.
fn under_way(depth: f64) -> String {
    let things = if depth.round() == 1.0 { "operation" } else { "operations" };
    format!("{depth:.0} {things} under way")
}

fn expected_of_connections(facts: &Facts, depth: f64, threads: u32, count: u32) -> (Verdict, String) {
    let writes = facts.work.write_share.is_some_and(|share| share >= 0.5);
    let small = facts.work.io_bytes.is_none_or(|bytes| bytes <= SMALL_IO);
    if depth >= DEEP || threads > 1 {
        (
            Verdict::Green,
            format!(
                "much is under way at a time: nconnect={count} is expected to bring 2 to 4 times the reads and 3 times the large writes"
            ),
        )
    } else if writes {
        (Verdict::Red, "one thread with few writes under way: several connections cost latency".to_owned())
    } else if small {
        (
            Verdict::Red,
            "one thread with few small reads under way: several connections cost latency".to_owned(),
        )
    } else {
        (
            Verdict::Yellow,
            "one thread with few large reads under way: several connections make little difference"
                .to_owned(),
        )
    }
}

/// R8: more connections than pay.
pub(super) fn more_than_four(facts: &Facts) -> Option<Advice> {
    let connections = facts.path.connections.filter(|&n| facts.is_nfs() && n > CONNECTIONS)?;
    if facts.profile == Profile::AzureNetappFiles && connections <= 8 {
        return None;
    }
    let measured = facts.beyond(CONNECTIONS);
    let verdict = measured.map_or(Verdict::Yellow, |(_, verdict)| verdict);
    let (source, text) = match measured {
        Some((_, Verdict::Green)) => (Source::Measured, "more than 4 connections bring more than 4 here"),
        Some((_, Verdict::Yellow)) => {
            (Source::Measured, "more than 4 connections bring no sure gain over 4 here")
        }
        Some((_, Verdict::Red)) => {
            (Source::Measured, "more than 4 connections bring less than 4 or one here")
        }
        None => (
            document("3.09", 79),
            "more than 4 connections bring nothing according to the documents, and may cost throughput",
        ),
    };
    let said = advice(8, verdict, source, text).figure(format!("{connections} connections"));
    let said = said.figures(measured.map(|(effect, _)| effect));
    Some(if verdict == Verdict::Green {
        said
    } else {
        said.on(Side::Linux, "mount -t nfs -o nconnect=4 ...")
    })
}

/// R9: a queue that is too deep. It holds for SMB too.
pub(super) fn too_deep(facts: &Facts) -> Option<Advice> {
    let depth = facts.work.queue_depth.filter(|&depth| depth > DEEPEST)?;
    let text =
        "more than 64 operations under way add latency and no rate: use a smaller depth or fewer threads";
    Some(advice(9, Verdict::Yellow, document("3.11", 87), text).figure(under_way(depth)))
}

/// R10: a later mount whose nconnect is not taken.
pub(super) fn first_mount_wins(facts: &Facts) -> Option<Advice> {
    let (first, other) = facts.mounts.iter().enumerate().find_map(|(i, first)| {
        let differs = |m: &&super::facts::Mount| m.server == first.server && m.nconnect != first.nconnect;
        Some((first, facts.mounts.get(i + 1..)?.iter().find(differs)?))
    })?;
    let text = format!(
        "{} and {} are of one server: the first mount fixed nconnect for both",
        first.directory, other.directory
    );
    let said = advice(10, Verdict::Red, document("3.14", 91), text);
    let said = said.figure(format!(
        "{} asked for {}, {} for {}",
        first.directory, first.nconnect, other.directory, other.nconnect
    ));
    Some(said.on(
        Side::Linux,
        format!(
            "umount {0} {1}; mount both with nconnect={2}, or with another address of the server",
            first.directory,
            other.directory,
            first.nconnect.max(other.nconnect)
        ),
    ))
}

/// R11: what the kernel cannot do, or does too little of.
pub(super) fn kernel(facts: &Facts) -> Option<Advice> {
    let version = facts.linux.filter(|_| facts.is_nfs())?;
    let figure = format!("Linux {}.{}", version.0, version.1);
    if version < (5, 3) {
        let text = "this kernel has no nconnect: use 5.3 or later";
        return Some(advice(11, Verdict::Red, document("3.08", 62), text).figure(figure));
    }
    let short = |mount: &&super::facts::Mount| mount.read_ahead_kib.is_some_and(|kib| kib < READ_AHEAD_KIB);
    let mount = facts.mounts.iter().find(short).filter(|_| version >= (5, 4))?;
    let read_ahead = mount.read_ahead_kib.unwrap_or_default();
    let text = format!(
        "{} reads {read_ahead} KiB ahead (128 is the default from 5.4 on): sequential reads are slower than they could be",
        mount.directory
    );
    let said = advice(11, Verdict::Yellow, document("3.03", 30), text).figure(figure);
    let said = said.figure(format!("read_ahead_kb {read_ahead}"));
    Some(said.on(Side::Linux, READ_AHEAD_RULE))
}

/// Document 3.04, lines 34 to 43.
pub(super) const READ_AHEAD_RULE: &str = r#"printf '%s\n' 'SUBSYSTEM=="bdi", ACTION=="add", PROGRAM="/usr/bin/awk -v bdi=$kernel '"'"'BEGIN{ret=1} {if ($4 == bdi) {ret=0}} END{exit ret}'"'"' /proc/fs/nfsfs/volumes", ATTR{read_ahead_kb}="15360"' > /etc/udev/rules.d/99-nfs.rules && udevadm control --reload"#;

/// R12: as much under way as may be.
pub(super) fn slots_are_used_up(facts: &Facts) -> Option<Advice> {
    let slots = facts.slots.filter(|s| facts.is_nfs() && s.granted > 0 && s.most_in_use >= s.granted)?;
    let said = if facts.protocol == Some(Protocol::Nfs41) {
        let text = "all slots of the session were in use: requests waited in the client for one";
        advice(
            12,
            Verdict::Red,
            Source::Manual("Linux: nfs.max_session_slots; RFC 8881, section 2.10.6.1"),
            text,
        )
        .on(
            Side::Linux,
            "echo 'options nfs max_session_slots=180' > /etc/modprobe.d/nfs.conf   # then mount again",
        )
    } else {
        let text = "the slot table was full: requests waited in the client";
        advice(12, Verdict::Red, Source::Manual("Linux: sunrpc.tcp_max_slot_table_entries"), text)
            .on(Side::Linux, "sysctl -w sunrpc.tcp_max_slot_table_entries=128   # then mount again")
    };
    Some(said.figure(format!("{} of {} in use", slots.most_in_use, slots.granted)))
}

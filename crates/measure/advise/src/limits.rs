//! What holds the work back: R13 to R16, R18 and R20.

use super::advice::{Advice, Side, Source, Verdict, advice, document};
use super::facts::{Change, Effect, Facts, Limits, Profile};

/// What counts as having reached a limit.
const AT_LIMIT: f64 = 0.95;
/// From this part of metadata operations on, the documents' +60 % for them (1.33) makes 10 % and more of the whole:
/// 1 / (1 - m + m / 1.6) >= 1.1.
const METADATA_HEAVY: f64 = 0.25;
const MIB: f64 = 1024.0 * 1024.0;

/// R13: most of it is metadata.
pub(super) fn metadata_heavy(facts: &Facts) -> Option<Advice> {
    let share = facts.work.metadata_share?;
    let measured = facts.effect(|change| change == Change::MetadataCache);
    if share < METADATA_HEAVY {
        return None;
    }
    let verdict = measured.map_or(Verdict::Green, Effect::verdict);
    let source = if measured.is_some() { Source::Measured } else { document("1.33", 129) };
    let text =
        "much of the work is names and attributes: cache metadata, keep files open, put small files into one";
    let said = advice(13, verdict, source, text)
        .figure(format!("{:.0} % of the operations move no data", share * 100.0))
        .figures(measured);
    if verdict != Verdict::Green {
        return Some(said);
    }
    let said = said.on(Side::Server, "anabranch share set NAME --metadata-cache on");
    Some(if facts.is_nfs() { said.on(Side::Linux, "mount -t nfs -o actimeo=30 ...") } else { said })
}

/// R14: the client or its link is the limit.
pub(super) fn client_is_the_limit(facts: &Facts) -> Option<Advice> {
    let (reached, cap) = (facts.reached.bytes?, facts.limits.client_bytes?);
    let share_has_room = facts.limits.bytes.is_none_or(|limit| reached < AT_LIMIT * limit);
    // Reads may go beyond what a virtual machine of Azure is sold with (document 1.26).
    let applies = reached >= 0.9 * cap && share_has_room;
    applies.then(|| {
        let text =
            "the client's link is full and the share is not: use more clients, or one with a faster link";
        advice(14, Verdict::Yellow, document("1.09", 22), text)
            .figure(format!("{:.0} of {:.0} MiB/s of the client's link", reached / MIB, cap / MIB))
            .figures(facts.limits.bytes.map(|limit| format!("the share's limit is {:.0} MiB/s", limit / MIB)))
    })
}

/// R15: the share's plan holds operations back.
pub(super) fn throttled(facts: &Facts) -> Option<Advice> {
    let share = facts.reached.throttled_share.filter(|&share| share > 0.0)?;
    // One in a hundred is a burst that did not fit; more is a plan that does not.
    let verdict = if share > 0.01 { Verdict::Red } else { Verdict::Yellow };
    let said = advice(
        15,
        verdict,
        document("1.05", 19),
        "operations wait for the share's plan: provision more, or spread the work over shares",
    );
    let said = said
        .figure(format!("{:.1} % of the operations waited", share * 100.0))
        .figures(credits(&facts.limits));
    Some(said.on(Side::Server, "anabranch share set NAME --plan ..."))
}

/// The burst credits left, and for how long they will do.
fn credits(limits: &Limits) -> Option<String> {
    let left = limits.credits?;
    Some(match limits.credits_used.filter(|&used| used > 0.0) {
        Some(used) => format!("{left:.0} burst credits left, for {:.0} s at this rate", left / used),
        None => format!("{left:.0} burst credits left"),
    })
}

/// R16: one file is as fast as a file may be.
pub(super) fn one_file_is_the_limit(facts: &Facts) -> Option<Advice> {
    let azure = facts.profile == Profile::AzureFiles;
    let iops_limit = facts.limits.file_iops.or_else(|| azure.then_some(8_000.0));
    let bytes_limit = facts.limits.file_bytes.or_else(|| azure.then_some(1024.0 * MIB));
    let at = |reached: Option<f64>, limit: Option<f64>| {
        Some((reached?, limit?)).filter(|(reached, limit)| *reached >= AT_LIMIT * limit)
    };
    let iops =
        at(facts.reached.file_iops, iops_limit).map(|(r, l)| format!("{r:.0} of {l:.0} IOPS on one file"));
    let bytes = at(facts.reached.file_bytes, bytes_limit)
        .map(|(r, l)| format!("{:.0} of {:.0} MiB/s on one file", r / MIB, l / MIB));
    if iops.is_none() && bytes.is_none() {
        return None;
    }
    let text = "one file has reached the limit of a file: spread the data over several files";
    Some(advice(16, Verdict::Red, document("1.28", 125), text).figures(iops).figures(bytes))
}

/// R18: the time goes between client and server.
pub(super) fn not_the_server(facts: &Facts) -> Option<Advice> {
    let (whole, server) = (facts.latency.end_to_end_us?, facts.latency.server_us?);
    // At least twice, and more than a quick network takes by itself.
    let applies = whole >= 2.0 * server && whole - server >= 500.0;
    applies.then(|| {
        let text = "most of the time is spent between client and server, not in the server: look at the network, the distance and the client";
        advice(18, Verdict::Yellow, document("1.02", 16), text).figure(format!("{whole:.0} us end to end, {server:.0} us in the server"))
    })
}

/// R20: one run shows nothing.
pub(super) fn first_run_only(facts: &Facts) -> Option<Advice> {
    let runs = facts.runs.filter(|&runs| runs < 2)?;
    let text =
        "one measurement warms up and shows nothing: repeat it before anything is concluded from its figures";
    Some(advice(20, Verdict::Red, document("1.08", 21), text).figure(format!("{runs} measurements")))
}

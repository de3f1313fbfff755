//! The work of a client, in words.

use advise::Facts;
use live_advice::Work;
use load::result::Protocol;

use crate::print::{bytes, counted, latency};

/// What a client does, in words.
pub(super) fn figures(work: &Work, facts: &Facts) -> Vec<String> {
    let mut figures = vec![format!(
        "{:.0} calls/s over {}, {:.0} % of them about names and attributes, watched for {:.1} s",
        work.calls_per_second(),
        match work.protocol {
            Protocol::Smb => "SMB",
            Protocol::Nfs3 => "NFSv3",
            Protocol::Nfs41 => "NFSv4",
            Protocol::Directory => "nothing",
        },
        work.metadata_share() * 100.0,
        work.elapsed
    )];
    if let Some((size, depth)) = facts.work.io_bytes.zip(facts.work.queue_depth) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size in bytes")]
        let size = bytes(size as u64);
        let small = work.small_share().unwrap_or_default() * 100.0;
        let writes = facts.work.write_share.unwrap_or_default() * 100.0;
        figures.push(format!(
            "reads and writes of {size} on average, {small:.0} % of them at most 16 KiB, {writes:.0} % writes; {depth:.1} under way"
        ));
        let opens = counted(work.opens, "open");
        let opens = if work.opens > 0 { format!(" through {opens}") } else { String::new() };
        figures.push(format!("{}{opens} in the last ten seconds", counted(work.files, "file")));
    }
    if let Some((server, whole)) = facts.latency.server_us.zip(facts.latency.end_to_end_us) {
        figures.push(format!("{} in the server, {} end to end", latency(server / 1e6), latency(whole / 1e6)));
    }
    if let Some(connections) = facts.path.connections {
        let most = facts
            .path
            .connections_max
            .map_or_else(String::new, |most| format!(" of {most} that it could have"));
        let thing = if work.protocol == Protocol::Smb { "channel" } else { "connection" };
        let things = if connections == 1 { "" } else { "s" };
        figures.push(format!("{connections} {thing}{things}{most}"));
    }
    figures.extend(facts.security.signing.as_ref().map(|algorithm| format!("signed with {algorithm}")));
    figures.extend(facts.security.cipher.as_ref().map(|cipher| format!("encrypted with {cipher}")));
    figures
}

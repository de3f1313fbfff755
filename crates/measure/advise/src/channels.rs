//! SMB Multichannel: R1 to R6 and R21.

use super::advice::{Advice, Side, Source, Verdict, advice, counted, document};
use super::facts::{Effect, Facts, Profile};
use load::statistics::Conclusion;

/// Bytes of the average read or write from which several channels pay on one file (document 1.21, line 86).
const LARGE_IO: f64 = 16.0 * 1024.0;
/// As many channels as Azure Files takes (document 1.15, line 54).
const AZURE_CHANNELS: u32 = 4;

const TURN_ON: &str = "Set-SmbClientConfiguration -EnableMultiChannel $true";
const TURN_OFF: &str = "Set-SmbClientConfiguration -EnableMultiChannel $false";

/// R1: several threads, several files.
pub(super) fn many_threads_many_files(facts: &Facts) -> Option<Advice> {
    let (threads, files) = (facts.work.threads?, facts.work.files?);
    let applies = facts.is_smb() && threads > 1 && files > 1;
    applies.then(|| {
        let text = "several threads on several files: use Multichannel, 2 to 4 times the rate is expected where the network is the limit";
        worth_of_channels(facts, 1, Verdict::Green, document("1.20", 85), text).figure(format!("{}, {}", counted(threads, "thread"), counted(files, "file")))
    })
}

/// R2: several threads, one file.
pub(super) fn many_threads_one_file(facts: &Facts) -> Option<Advice> {
    let (threads, files, bytes) = (facts.work.threads?, facts.work.files?, facts.work.io_bytes?);
    if !facts.is_smb() || threads < 2 || files != 1 {
        return None;
    }
    let advice = if bytes > LARGE_IO {
        let text = "several threads on one file with large reads and writes: use Multichannel";
        worth_of_channels(facts, 2, Verdict::Green, document("1.21", 86), text)
    } else {
        let text = "small reads and writes on one file: Multichannel costs about 10 %; spread the work over several files, or turn it off";
        worth_of_channels(facts, 2, Verdict::Red, document("1.28", 124), text)
    };
    Some(advice.figure(format!("{threads} threads, 1 file, {} an operation", kib(bytes))))
}

/// R3: one thread, of reads and writes: the documents do not speak of names and attributes there.
pub(super) fn one_thread(facts: &Facts) -> Option<Advice> {
    let (threads, files) = (facts.work.threads?, facts.work.files?);
    if !facts.is_smb() || threads != 1 || facts.work.is_mostly_metadata() {
        return None;
    }
    let large = facts.work.io_bytes.is_some_and(|bytes| bytes > LARGE_IO);
    let advice = if files > 1 && large {
        worth_of_channels(
            facts,
            3,
            Verdict::Yellow,
            document("1.22", 87),
            "one thread on several files with large reads and writes: Multichannel helps a little at most",
        )
    } else {
        worth_of_channels(
            facts,
            3,
            Verdict::Red,
            document("1.22", 87),
            "one thread: Multichannel costs about 10 %; turn it off for this client, or give the work more threads",
        )
    };
    Some(advice.figure(format!("1 thread, {}", counted(files, "file"))))
}

/// Whether several channels pay, by a measurement where there is one.
fn worth_of_channels(facts: &Facts, rule: u8, expected: Verdict, source: Source, text: &str) -> Advice {
    let measured = facts.effect_of_connections(AZURE_CHANNELS);
    let verdict = measured.map_or(expected, Effect::verdict);
    let mut said = match measured {
        Some(effect) => {
            advice(rule, verdict, Source::Measured, measured_text("Multichannel", effect, expected, text))
                .figure(effect.to_string())
        }
        None => advice(rule, verdict, source, text),
    };
    match verdict {
        Verdict::Green => {
            said = said.on(Side::Windows, TURN_ON).on(Side::Linux, "mount -o multichannel,max_channels=4 ...")
        }
        Verdict::Red => {
            said = said.on(Side::Windows, TURN_OFF).on(Side::Linux, "mount -o nomultichannel ...")
        }
        Verdict::Yellow => {}
    }
    said
}

/// What a measurement says beside what the documents expect. `what` are the several connections.
pub(super) fn measured_text(what: &str, effect: &Effect, expected: Verdict, text: &str) -> String {
    let here = match effect.conclusion() {
        Conclusion::TooNoisy => {
            return format!("too noisy to tell the effect of {what} here; what the documents expect: {text}");
        }
        _ if effect.verdict() == expected => return text.to_owned(),
        Conclusion::Higher => format!("a gain from {what} here"),
        Conclusion::Lower => format!("a loss from {what} here: do without for such work"),
        Conclusion::NoEffect => format!("no measurable effect of {what} here"),
    };
    format!("{here}; the documents expect a different effect of such work ({text})")
}

/// R4: more channels than pay.
pub(super) fn more_than_four(facts: &Facts) -> Option<Advice> {
    let channels = facts.path.connections.filter(|&n| facts.is_smb() && n > AZURE_CHANNELS)?;
    let sequential_reads =
        facts.work.sequential == Some(true) && facts.work.write_share.is_some_and(|w| w < 0.5);
    let of_each = (AZURE_CHANNELS / u32::try_from(facts.path.interfaces.len()).unwrap_or(1).max(1)).max(1);
    let fewer = format!("Set-SmbClientConfiguration -ConnectionCountPerRssNetworkInterface {of_each}");
    let measured = facts.beyond(AZURE_CHANNELS);
    let said = match facts.profile {
        Profile::AzureFiles => {
            let text = "Azure Files takes 4 channels at most: have no more";
            advice(4, Verdict::Red, document("1.15", 54), text).on(Side::Windows, fewer)
        }
        _ if measured.is_some() => {
            let (effect, verdict) = measured?;
            let text = match verdict {
                Verdict::Green => "more than 4 channels bring more than 4 here",
                Verdict::Yellow => "more than 4 channels bring no sure gain over 4 here",
                Verdict::Red => "more than 4 channels bring less than 4 or one here",
            };
            let said = advice(4, verdict, Source::Measured, text).figure(effect.to_string());
            if verdict == Verdict::Red { said.on(Side::Windows, fewer) } else { said }
        }
        _ if sequential_reads => advice(
            4,
            Verdict::Green,
            document("2.07", 38),
            "sequential reads grow beyond 4 channels: 8 to 16 are worth having",
        ),
        _ => {
            let text = "4 channels are enough for random reads and writes; more make next to no difference";
            advice(4, Verdict::Yellow, document("2.04", 26), text).on(Side::Windows, fewer)
        }
    };
    Some(said.figure(counted(channels, "channel")))
}

/// R5: interfaces that cannot spread what they receive.
pub(super) fn no_receive_side_scaling(facts: &Facts) -> Option<Advice> {
    let path = &facts.path;
    let cannot = |i: &load::result::Interface| i.rss == Some(false) || i.receive_queues == Some(1);
    if !facts.is_smb() || path.interfaces.len() != 1 || !path.interfaces.iter().all(cannot) {
        return None;
    }
    let text = "the only interface has no RSS or one receive queue: a Windows client then opens one connection, and more would share one CPU";
    let name = path.interfaces.first().map(|i| i.name.clone()).unwrap_or_default();
    let said = advice(5, Verdict::Red, document("2.18", 130), text).figure(format!("interface {name}"));
    Some(
        said.on(Side::Windows, format!("Enable-NetAdapterRss -Name '{name}'"))
            .on(Side::Linux, format!("ethtool -L {name} combined 4")),
    )
}

/// R6: fewer channels than there could be.
pub(super) fn fewer_than_could_be(facts: &Facts) -> Option<Advice> {
    let (now, most) = (facts.path.connections?, facts.path.connections_max?);
    if !facts.is_smb() || now >= most {
        return None;
    }
    let why = match facts.path.why_fewer.as_slice() {
        [] => "Multichannel may be off on one side, the session older than the setting, the dialect below 3.0, or an address unreachable".to_owned(),
        reasons => reasons.join("; "),
    };
    let said = advice(
        6,
        Verdict::Red,
        document("1.19", 77),
        format!("the session has fewer channels than it could: {why}"),
    );
    let said = said.figure(format!("{now} of {most} channels"));
    Some(
        said.on(Side::Windows, "Get-SmbMultichannelConnection | fl")
            .on(Side::Server, "anabranch client explain"),
    )
}

/// R21: interfaces that one address of the server leaves unused.
pub(super) fn one_endpoint(facts: &Facts) -> Option<Advice> {
    let extra = facts.path.interfaces.len();
    let applies = facts.is_smb() && extra > 1 && facts.path.server_endpoints == Some(1);
    applies.then(|| {
        let text = "the server offers one address, so one of the client's interfaces is used: the others bring nothing";
        let said = advice(21, Verdict::Yellow, document("2.19", 138), text).figure(format!("{extra} interfaces, 1 address"));
        said.on(Side::Windows, "Get-SmbClientNetworkInterface")
    })
}

/// Bytes as KiB, for people.
pub(super) fn kib(bytes: f64) -> String {
    format!("{:.0} KiB", bytes / 1024.0)
}

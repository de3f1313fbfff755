//! What is said of a setting, and the commands that change it.

use load::statistics::{Conclusion, Estimate, Ratio};

use super::evidence::{Candidate, Evidence};
use super::setting::{SIGNING_BASE, Setting};
use super::{Action, Recommendation, Said};
use crate::advice::{Command, Side, Source, Verdict, counted};
use crate::nfs::READ_AHEAD_RULE;

/// Rows that are named where a change costs them.
const NAMED: usize = 1;
/// The cipher that stands beside signatures: it protects at least as well.
const SEALED: &str = "AES-128-GCM";
/// KiB of 15 reads of 256 KiB, which the family keeps under way.
const SHORT_READ_AHEAD_KIB: &str = "3840";
/// Channels that Windows makes by itself, and that this server admits by itself.
const CHANNELS_BY_DEFAULT: u32 = 4;

/// A recommendation from a measurement.
pub(super) fn of_evidence(evidence: &Evidence, server: Option<&str>) -> Recommendation {
    let setting = evidence.setting;
    let tried = evidence.candidates.iter().map(|candidate| candidate.tried(setting)).collect();
    let mut said = Recommendation {
        server: server.map(str::to_owned),
        setting,
        action: Action::Keep,
        value: None,
        text: String::new(),
        gain: None,
        tally: None,
        conflict: None,
        tried,
        figures: Vec::new(),
        source: Source::Measured,
        commands: Vec::new(),
        results: Vec::new(),
    };
    let Some(best) = evidence.best() else { return said };
    let conclusion = best.conclusion();
    said.tally = Some(best.tally());
    said.results = best.results();
    said.conflict = conflict(best, conclusion);
    match setting {
        Setting::SmbEncryption => {
            if conclusion == Conclusion::TooNoisy {
                said.action = Action::Undecided;
            }
            said.text = format!("Encryption with {}: {}", best.value, cost(conclusion, &best.ratio));
        }
        // Channels are there by default: where they cost, doing without is the change.
        Setting::SmbChannels if conclusion == Conclusion::Lower => {
            said.action = Action::Change;
            said.value = Some("1".to_owned());
            said.gain = Some(inverse(&best.ratio));
            said.text = format!(
                "Use one SMB channel for such work: several, which Windows makes by itself, cost {}",
                over(best)
            );
            said.commands = no_channels();
        }
        _ => {
            said.action = Action::of(conclusion);
            said.text = text(setting, best, conclusion);
            if conclusion == Conclusion::Higher {
                said.value = Some(best.value.clone());
                said.gain = Some(best.ratio);
                said.commands = commands(setting, &best.value);
            }
        }
    }
    said
}

/// A recommendation from the rules, for settings that were not measured.
pub(super) fn of_rules(said: &Said, server: Option<&str>) -> Recommendation {
    let setting = said.setting;
    let gravest = said.gravest();
    let (helped, cost) = (said.count(Verdict::Green), said.count(Verdict::Red));
    let is_expected_only = matches!(setting, Setting::SmbChannels | Setting::NfsConnections);
    let rows = said.advice.len();
    let action = match gravest.map(|advice| advice.verdict) {
        _ if is_expected_only || setting == Setting::MetadataCache => Action::Undecided,
        Some(Verdict::Red) => Action::Change,
        _ => Action::Keep,
    };
    let text = match gravest {
        _ if is_expected_only => format!(
            "Whether several {} help was not measured; the documents expect a gain in {helped} and a loss in {cost} of {}",
            setting.name(),
            rows_in_words(rows)
        ),
        Some(_) if setting == Setting::MetadataCache => {
            "What the share's metadata cache is worth was not measured; Anabranch has it on unless a share says otherwise".to_owned()
        }
        Some(advice) => sentence(&advice.text),
        None => String::new(),
    };
    let commands = match setting {
        Setting::SmbChannels => measure("smb-mc-multifile --target smb://... --connections 1,4"),
        Setting::NfsConnections => measure("nfs-nconnect --target nfs://... --connections 1,4"),
        Setting::MetadataCache => {
            measure("metadata --target ... --note metadata-cache=on    # and again with the cache off, =off")
        }
        _ => gravest.map(|advice| advice.commands.clone()).unwrap_or_default(),
    };
    let disagree = (helped > 0 && cost > 0 && !is_expected_only)
        .then(|| format!("the rules call it good in {helped} and bad in {cost} of {}", rows_in_words(rows)));
    Recommendation {
        server: server.map(str::to_owned),
        setting,
        action,
        value: None,
        text,
        gain: None,
        tally: None,
        conflict: disagree,
        tried: Vec::new(),
        figures: gravest.map(|advice| advice.figures.clone()).unwrap_or_default(),
        source: gravest.map_or(Source::Measured, |advice| advice.source.clone()),
        commands,
        results: said.results.clone(),
    }
}

fn measure(rest: &str) -> Vec<Command> {
    vec![Command { on: Side::Linux, line: format!("anabranch bench run {rest}") }]
}

/// What to do, and what the measurement says.
fn text(setting: Setting, best: &Candidate, conclusion: Conclusion) -> String {
    let value = &best.value;
    let what = match setting {
        Setting::SmbChannels => format!("{value} SMB channels instead of one"),
        Setting::NfsConnections => format!("{value} NFS connections (nconnect={value}) instead of one"),
        Setting::ReadAhead => {
            format!("a read-ahead of {} instead of 128 KiB", read_ahead(value))
        }
        Setting::SmbSigning if value == SEALED => {
            format!("encryption with {value} instead of signatures with {SIGNING_BASE}")
        }
        Setting::SmbSigning if value == "AES-128-GMAC" => {
            format!("signatures with {value} (Windows 11, Server 2022 and later) instead of {SIGNING_BASE}")
        }
        Setting::SmbSigning => format!("signatures with {value} instead of {SIGNING_BASE}"),
        Setting::MetadataCache => "the metadata cache of the share".to_owned(),
        Setting::QueueDepth => format!("{value} operations under way instead of 64"),
        _ => format!("{} {value}", setting.name()),
    };
    let over = over(best);
    match conclusion {
        Conclusion::Higher => format!("Use {what}: {over}"),
        Conclusion::Lower => format!("Do without {what}: {over}"),
        Conclusion::NoEffect => format!("Leave it: {what} has no measurable effect, {over}"),
        Conclusion::TooNoisy => format!("Too noisy to tell whether {what} helps: {over}"),
    }
}

/// The ratio over all rows with its interval: `1.42x over 24 rows (95 %: 1.30 to 1.55)`.
fn over(best: &Candidate) -> String {
    let interval = best
        .ratio
        .ratio
        .interval
        .map_or_else(String::new, |[low, high]| format!(" (95 %: {low:.2} to {high:.2})"));
    format!("{:.2}x over {}{interval}", best.ratio.ratio.median, rows_in_words(best.pairs.len()))
}

fn rows_in_words(rows: usize) -> String {
    counted(u32::try_from(rows).unwrap_or(u32::MAX), "row")
}

/// What is left of the rate with encryption.
fn cost(conclusion: Conclusion, ratio: &Ratio) -> String {
    let left = ratio.ratio.median;
    match conclusion {
        Conclusion::Higher => format!("costs nothing ({left:.2}x)"),
        Conclusion::NoEffect => "costs nothing that can be measured".to_owned(),
        Conclusion::TooNoisy => "too noisy to tell what it costs".to_owned(),
        Conclusion::Lower => format!("costs {:.0} % of the rate", (1.0 - left) * 100.0),
    }
}

/// Rows that say the opposite of all together.
fn conflict(best: &Candidate, conclusion: Conclusion) -> Option<String> {
    let tally = best.tally();
    let (count, opposite, verb) = match conclusion {
        Conclusion::Higher => (tally.lower, Conclusion::Lower, "costs"),
        Conclusion::Lower => (tally.higher, Conclusion::Higher, "helps"),
        Conclusion::NoEffect | Conclusion::TooNoisy if tally.higher > 0 && tally.lower > 0 => {
            let text = format!(
                "it helps {} and costs {} of {}: decide by the work that counts",
                tally.higher,
                tally.lower,
                rows_in_words(tally.rows)
            );
            return Some(text);
        }
        Conclusion::NoEffect | Conclusion::TooNoisy => return None,
    };
    let worst: Vec<String> = best
        .extreme(opposite)
        .into_iter()
        .take(NAMED)
        .map(|pair| format!("{} ({:.2}x)", pair.row, pair.ratio.ratio.median))
        .collect();
    (count > 0).then(|| {
        format!(
            "it {verb} {count} of {}, most {}; all rows together decide",
            rows_in_words(tally.rows),
            worst.join(", ")
        )
    })
}

/// The gain of going back.
fn inverse(ratio: &Ratio) -> Ratio {
    let Estimate { median, interval, repetitions } = ratio.ratio;
    Ratio::of(Estimate {
        median: 1.0 / median,
        interval: interval.map(|[low, high]| [1.0 / high, 1.0 / low]),
        repetitions,
    })
}

fn read_ahead(value: &str) -> &str {
    if value == "15xrsize" { "15 times rsize (3,840 KiB)" } else { "15 MiB" }
}

fn no_channels() -> Vec<Command> {
    vec![
        Command {
            on: Side::Windows,
            line: "Set-SmbClientConfiguration -EnableMultiChannel $false".to_owned(),
        },
        Command { on: Side::Linux, line: "mount -t cifs -o nomultichannel ...".to_owned() },
    ]
}

fn commands(setting: Setting, value: &str) -> Vec<Command> {
    let on = |on, line: String| Command { on, line };
    match setting {
        Setting::SmbChannels => {
            let mut all = vec![
                on(
                    Side::Windows,
                    format!(
                        "Set-SmbClientConfiguration -EnableMultiChannel $true -ConnectionCountPerRssNetworkInterface {value}"
                    ),
                ),
                on(Side::Linux, format!("mount -t cifs -o multichannel,max_channels={value} ...")),
            ];
            if value.parse::<u32>().is_ok_and(|channels| channels > CHANNELS_BY_DEFAULT) {
                all.push(on(Side::Server, format!("anabranch serve --max-channels {value} ...")));
            }
            all
        }
        Setting::NfsConnections => vec![on(Side::Linux, format!("mount -t nfs -o nconnect={value} ..."))],
        Setting::ReadAhead if value == "15MiB" => vec![on(Side::Linux, READ_AHEAD_RULE.to_owned())],
        Setting::ReadAhead => vec![on(Side::Linux, READ_AHEAD_RULE.replace("15360", SHORT_READ_AHEAD_KIB))],
        Setting::SmbSigning if value == SEALED => vec![
            on(Side::Linux, "mount -t cifs -o vers=3.1.1,seal ...".to_owned()),
            on(
                Side::Windows,
                "Set-SmbClientConfiguration -RequireEncryption $true   # Windows 11 24H2 and Server 2025"
                    .to_owned(),
            ),
            on(Side::Server, "anabranch serve --smb-encryption required ...".to_owned()),
        ],
        Setting::MetadataCache => {
            vec![on(Side::Server, "anabranch share set NAME --metadata-cache on".to_owned())]
        }
        _ => Vec::new(),
    }
}

/// With a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

//! The page of results and advice.

use serde_json::Value;

use super::{LINKS, Part, RATE};
use crate::bench::machine;
use crate::bench::program::number;
use crate::markdown::table;

/// A part that was measured, and the output of `anabranch advise` for its rows.
pub(super) struct Measured {
    pub(super) part: Part,
    pub(super) result: Value,
    pub(super) advice: Value,
}

const HEADS: [&str; 5] = ["", "1 connection: op/s (MB/s)", "4 connections", "ratio", "advice"];

impl Part {
    /// The heading, the subject of the measurement, and the rule of the advice.
    fn about(self) -> (&'static str, &'static str, u64) {
        match self {
            Self::Multifile => (
                "SMB Multichannel, several threads, ten files (1.20)",
                "The client is given one address and finds the others by FSCTL_QUERY_NETWORK_INTERFACE_INFO.",
                1,
            ),
            Self::Singlefile => ("SMB Multichannel, several threads, one file (1.21)", "As above.", 2),
            Self::SingleThread => ("SMB Multichannel, one thread (1.22)", "As above.", 3),
            Self::Trunks => (
                "NFSv4.1, connections over all links (3.07, 3.18)",
                "The client is given all addresses (`--address`): session trunking.",
                7,
            ),
            Self::Flows => {
                ("NFSv3, connections over one link, each limited (3.07, 3.18)", "nconnect: one address.", 7)
            }
            Self::SingleThreadNfs => ("NFSv4.1, one thread (3.18)", "Over all links.", 7),
        }
    }

    /// Whether a comparison is meaningful here. One operation at a time fits into the token buckets of `trunks` and
    /// `flows`; single-thread-nfs measures that with other buckets.
    fn shows(self, comparison: &Value) -> bool {
        let other = &comparison["other"];
        let single = other["threads"] == 1 && other["queue_depth"] == 1;
        !(single && matches!(self, Self::Trunks | Self::Flows))
    }
}

pub(super) fn page(measured: &[Measured]) -> Result<String, String> {
    let parts = measured.iter().map(section).collect::<Result<String, _>>()?;
    let Some(Measured { result, .. }) = measured.last() else {
        return Err("nothing was measured".to_owned());
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(format!(
        "{}{parts}\nMeasured on {} with {}, {}, on a machine with {}\n\
         processors shared by client and server; {} repetitions of {} s each, in turns.\n",
        introduction(),
        machine::day()?,
        text(&result["program"]),
        text(&result["environment"]["client"]["kernel"]),
        machine::processors(),
        result["method"]["repetitions"],
        result["method"]["seconds"],
    ))
}

fn introduction() -> String {
    format!(
        "# One connection and four, where links are the limit\n\n\
         Made by `cargo xtask bench links`: `anabranch bench run` and the server in two network namespaces of one machine. Only the limits are emulated,\n\
         with tc: {LINKS} links of {RATE} Mbit/s each, both ways (tbf), or one link on which each TCP connection has {RATE} Mbit/s (htb, a class for each),\n\
         as clouds limit a flow. The links have no further delay. After a rest, a token bucket passes at once as much as fits into the bucket, which no\n\
         real link does. The bucket holds 8 kB, or one packet of 300 bytes where one operation is under way. The bytes of an operation take {:.0} us or more,\n\
         so for this reason alone four links that rest in turns seem up to a tenth faster than one. Rates are medians; ratios are those of neighbouring\n\
         repetitions, with their 95 % interval. The advice is that of `anabranch advise` on each result; it follows the measurements here, and says\n\
         where the documents expect something else.\n",
        4096.0 * 8.0 / f64::from(RATE)
    )
}

fn section(measured: &Measured) -> Result<String, String> {
    let Measured { part, result, advice } = measured;
    let (heading, about, rule) = part.about();
    let (mut rows, mut texts) = (Vec::new(), Vec::new());
    for comparison in list(&result["comparisons"]).iter().filter(|comparison| part.shows(comparison)) {
        let other = &comparison["other"];
        let advised =
            advice_of(advice, &name(other), rule).ok_or_else(|| format!("no advice for {}", name(other)))?;
        let verdict = advised["verdict"].as_str().unwrap_or_default();
        let ratio = &comparison["rate"]["ratio"];
        let [median, low, high] =
            [&ratio["median"], &ratio["interval"][0], &ratio["interval"][1]].map(number);
        rows.push([
            work(other),
            figures(result, &comparison["base"]),
            figures(result, other),
            format!("{median:.2} ({low:.2} to {high:.2})"),
            verdict.to_owned(),
        ]);
        let text = format!("* R{rule}, {verdict}: {}", advised["text"].as_str().unwrap_or_default());
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    Ok(format!("\n## {heading}\n\n{about}\n\n{}\n\n{}\n", table(&HEADS, &rows), texts.join("\n")))
}

/// The advice of a rule about a row.
fn advice_of<'a>(advice: &'a Value, row: &str, rule: u64) -> Option<&'a Value> {
    let of_row = list(advice).iter().rev().find(|of| of["row"] == row)?;
    list(&of_row["advice"]).iter().find(|advice| advice["rule"] == rule)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

fn operation(key: &Value) -> String {
    let random = if key["random"] == true { "rand" } else { "" };
    let reads = key["mix"]["read-percent"] == 100;
    format!("{random}{}", if reads { "read" } else { "write" })
}

/// The name of a row, as advice uses it.
fn name(key: &Value) -> String {
    format!(
        "connections={} bs={} op={} files={} threads={} qd={}",
        key["connections"],
        size(count(&key["block_bytes"])).replace(' ', ""),
        operation(key),
        key["files"],
        key["threads"],
        key["queue_depth"],
    )
}

fn work(key: &Value) -> String {
    let files = if key["files"] == 1 { "1 file".to_owned() } else { format!("{} files", key["files"]) };
    let under_way = count(&key["threads"]) * count(&key["queue_depth"]);
    format!("{} {}, {files}, {under_way} under way", size(count(&key["block_bytes"])), operation(key))
}

/// Operations and megabytes a second of a row.
fn figures(result: &Value, key: &Value) -> String {
    let row = list(&result["rows"]).iter().rev().find(|row| name(&row["key"]) == name(key));
    let median = |of: &str| row.map_or(f64::NAN, |row| number(&row["measure"][of]["median"]));
    format!("{:.0} ({:.1})", median("rate"), median("throughput") / 1e6)
}

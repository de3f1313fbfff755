//! The section of a page.

use super::{MODE, Regime, Row, SecurityArguments};
use crate::bench::figures::median;
use crate::bench::fsload::{Column, Ratios, column};
use crate::bench::machine;
use crate::markdown::{reached, table};

const RATE_HEADS: [&str; 7] = [
    "",
    "plain, MiB/s",
    "signed, MiB/s",
    "signed / plain (least - greatest)",
    "encrypted, MiB/s",
    "encrypted / plain (least - greatest)",
    "goal",
];
const CPU_HEADS: [&str; 5] = [
    "CPU us per MiB, server + generator",
    "plain",
    "signed",
    "encrypted",
    "rate relative to plain if the server's core is the limit and only the cryptography is added",
];

pub(super) fn section(
    given: &SecurityArguments,
    regimes: &[Regime],
    costs: &[(String, f64)],
) -> Result<String, String> {
    let [gmac, seal, open] = ["gmac", "seal", "open"].map(|of| cost(costs, of));
    let tables = regimes.iter().filter(|regime| !regime.rows.is_empty()).map(|regime| {
        let rates: Vec<_> = regime.rows.iter().map(rate_cells).collect();
        let cpu: Vec<_> = regime.rows.iter().map(|row| cpu_cells(row, costs)).collect();
        format!("\n## {}\n\n{}\n\n{}\n", regime.name, table(&RATE_HEADS, &rates), table(&CPU_HEADS, &cpu))
    });
    Ok(format!(
        "# What signing and encryption cost\n\n\
         Made by `cargo xtask bench security`: one SMB 3.1.1 connection, plain, signed (AES-128-GMAC) and encrypted (AES-128-GCM); files on\n\
         tmpfs; {} interleaved runs of {} s. A ratio is the median of the ratios of neighbouring runs, with the smallest and the greatest\n\
         of them. The generator receives all data and checks every signature; the generator and the server have half of the processors each.\n\
         Where the time goes: [profiles.md](profiles.md).\n\n\
         * {}\n\
         * commit {}; congestion control cubic, or reno where cubic is not allowed\n\
         * the cryptography alone, us of a core per MiB (`fsload crypto`): GMAC {gmac:.0}, GCM sealing {seal:.0}, opening {open:.0}\n{}",
        given.runs,
        given.secs,
        machine::described()?,
        machine::commit()?,
        tables.collect::<String>(),
    ))
}

fn rate_cells(row: &Row) -> [String; 7] {
    let [plain, signed, encrypted] = &row.runs;
    let rate = |runs| format!("{:.0}", median(&column(runs, Column::Mib)));
    let [by_signed, by_encrypted] = [signed, encrypted].map(|runs| Ratios::of(runs, plain, Column::Mib));
    let goals = [&by_signed, &by_encrypted].into_iter().zip(&MODE[1..]);
    let goals = goals.map(|(found, (mode, _, least))| {
        format!("{mode} {} (>= {least:.2})", reached(found.median() >= *least))
    });
    [
        row.work.name.to_owned(),
        rate(plain),
        rate(signed),
        by_signed.shown(),
        rate(encrypted),
        by_encrypted.shown(),
        goals.collect::<Vec<_>>().join(", "),
    ]
}

/// The CPU cells of a row. The last is the part of the plain rate that a server could reach that is always busy in both
/// modes.
fn cpu_cells(row: &Row, costs: &[(String, f64)]) -> [String; 5] {
    let of_mib = |runs, which| median(&column(runs, which)) * row.work.blocks;
    let [plain, signed, encrypted] = row
        .runs
        .each_ref()
        .map(|runs| format!("{:.0} + {:.0}", of_mib(runs, Column::Cpu), of_mib(runs, Column::Client)));
    let alone = of_mib(&row.runs[0], Column::Cpu);
    let [most_signed, most_encrypted] = ["gmac", row.work.cipher].map(|of| alone / (alone + cost(costs, of)));
    [row.work.name.to_owned(), plain, signed, encrypted, format!("{most_signed:.2}, {most_encrypted:.2}")]
}

fn cost(costs: &[(String, f64)], of: &str) -> f64 {
    costs.iter().find(|(name, _)| name == of).map_or(f64::NAN, |(_, cost)| *cost)
}

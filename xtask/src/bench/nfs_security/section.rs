//! The section of the page.

use super::{MODES, Mode, NfsSecurityArguments, Round};
use crate::bench::figures::{interval, median};
use crate::bench::machine;
use crate::markdown::{reached, table};

const HEADS: [&str; 6] = [
    "64 KiB reads",
    "server CPU per read",
    "ratio to plain",
    "bare primitive",
    "additional CPU / primitive",
    "goal",
];
const BESIDE_HEADS: [&str; 4] =
    ["64 KiB reads", "server CPU per read", "NFS-Ganesha's", "NFS-Ganesha's / Anabranch's"];
/// The additional CPU may be at most so many times what the bare primitive needs.
const PRIMITIVE_RATIO_MAX: f64 = 1.25;
/// TLS may take so many times the CPU of plain reads.
const TLS_RATIO_MAX: f64 = 1.8;

pub(super) fn section(given: &NfsSecurityArguments, rounds: &[Round]) -> Result<String, String> {
    let rows: Vec<_> = MODES.iter().enumerate().map(|(number, mode)| cells(mode, number, rounds)).collect();
    Ok(format!(
        "# Kerberos and TLS over NFS\n\nMade by `cargo xtask bench nfs-security`: server CPU of 64 KiB reads over NFSv{}, \
         8 at a time over one connection, of a file\nin memory; {} interleaved rounds. The bare primitive is what the \
         cryptographic library alone needs for the same bytes, with\none call, in the same round: an HMAC, AES-256-CBC \
         with an HMAC, or AES-256-GCM in records of 16 KiB.\nWith `--ganesha`, NFS-Ganesha is \
         measured in turns with it, and a second table compares the two.\n\n{}\n\n{}{}",
        given.version,
        rounds.len(),
        table(&HEADS, &rows),
        beside(given, rounds),
        machine::measured("release build")?
    ))
}

/// The table of the modes that NFS-Ganesha has, too.
fn beside(given: &NfsSecurityArguments, rounds: &[Round]) -> String {
    if !given.ganesha {
        return String::new();
    }
    let modes = MODES.iter().enumerate().filter(|(_, mode)| !mode.is_tls());
    let rows: Vec<_> = modes.map(|(number, mode)| beside_cells(mode, number, rounds)).collect();
    format!(
        "The same reads of NFS-Ganesha (VFS), in turns with those above. It has no TLS.\n\n{}\n\n",
        table(&BESIDE_HEADS, &rows)
    )
}

fn beside_cells(mode: &Mode, number: usize, rounds: &[Round]) -> [String; 4] {
    let [ours, theirs]: [Vec<f64>; 2] =
        [rounds.iter().map(|r| r.cpu[number]).collect(), rounds.iter().map(|r| r.ganesha[number]).collect()];
    let ratios: Vec<_> = theirs.iter().zip(&ours).map(|(theirs, ours)| theirs / ours).collect();
    let time = |figures: &[f64]| format!("{:.1} us", median(figures));
    [mode.name.to_owned(), time(&ours), time(&theirs), with_interval(&ratios)]
}

fn cells(mode: &Mode, number: usize, rounds: &[Round]) -> [String; 6] {
    let cpu: Vec<_> = rounds.iter().map(|round| round.cpu[number]).collect();
    let to_plain: Vec<_> = rounds.iter().map(|round| round.cpu[number] / round.cpu[0]).collect();
    let primitive: Vec<_> = rounds.iter().filter_map(|round| primitive_of(mode, round)).collect();
    let additional: Vec<_> = rounds
        .iter()
        .filter_map(|round| Some((round.cpu[number] - round.cpu[0]) / primitive_of(mode, round)?))
        .collect();
    let is_tls = mode.is_tls();
    let goal = match median(&additional) {
        ratio if ratio.is_nan() => String::new(),
        ratio if is_tls => {
            let both = ratio <= PRIMITIVE_RATIO_MAX && median(&to_plain) <= TLS_RATIO_MAX;
            format!("at most {PRIMITIVE_RATIO_MAX}, and {TLS_RATIO_MAX} times plain: {}", reached(both))
        }
        ratio => format!("at most {PRIMITIVE_RATIO_MAX}: {}", reached(ratio <= PRIMITIVE_RATIO_MAX)),
    };
    let of_plain = if number == 0 { String::new() } else { with_interval(&to_plain) };
    let primitive =
        if primitive.is_empty() { String::new() } else { format!("{:.1} us", median(&primitive)) };
    let additional = if additional.is_empty() { String::new() } else { with_interval(&additional) };
    [mode.name.to_owned(), format!("{:.1} us", median(&cpu)), of_plain, primitive, additional, goal]
}

/// The time of the primitive that a mode is compared with.
fn primitive_of(mode: &Mode, round: &Round) -> Option<f64> {
    let wanted = mode.primitive?;
    round.primitives.iter().find(|(name, _)| name == wanted).map(|(_, time)| *time)
}

fn with_interval(figures: &[f64]) -> String {
    let (low, high) = interval(figures);
    format!("{:.2} ({low:.2} - {high:.2})", median(figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_additional_cpu_is_compared_with_the_primitive() {
        let mode = &MODES[2];
        let round = || {
            let mut cpu = [20.0; MODES.len()];
            cpu[2] = 60.0;
            Round {
                cpu,
                ganesha: [90.0; MODES.len()],
                primitives: vec![("checksum aes256-sha1".to_owned(), 32.0)],
            }
        };
        let [_, cpu, to_plain, primitive, additional, goal] = cells(mode, 2, &[round(), round()]);
        assert_eq!((cpu.as_str(), to_plain.as_str()), ("60.0 us", "3.00 (3.00 - 3.00)"));
        assert_eq!((primitive.as_str(), additional.as_str()), ("32.0 us", "1.25 (1.25 - 1.25)"));
        assert!(goal.starts_with("at most 1.25: reached"), "{goal}");
        assert_eq!(cells(&MODES[0], 0, &[round()])[2..], [const { String::new() }; 4]);
        let beside = beside_cells(mode, 2, &[round(), round()]);
        assert_eq!(beside[1..], ["60.0 us", "90.0 us", "1.50 (1.50 - 1.50)"]);
    }
}

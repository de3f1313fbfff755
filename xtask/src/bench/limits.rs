//! Checks that limits hold on the real server: SMB and NFS clients together on one share.

mod found;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use clap::Args;

use self::found::{Found, Row};
use super::figures::{column, ends, median, ratios, sorted};
use super::fsload::{Column, Fsload, Load};
use super::program::{self, json, number};
use super::rounds::order;
use super::server::{Server, Settings};
use super::{is_wanted, words};
use crate::command::Chore;
use crate::markdown::write_section;

/// A limit of a plan, and the load that exceeds it.
struct Limit {
    name: &'static str,
    plan: &'static str,
    smb: &'static str,
    nfs: &'static str,
    /// The column that is limited, its name, and its limit per second.
    column: Column,
    unit: &'static str,
    most: f64,
}

const fn limit(
    name: &'static str,
    plan: &'static str,
    works: [&'static str; 2],
    (column, unit): (Column, &'static str),
    most: f64,
) -> Limit {
    Limit { name, plan, smb: works[0], nfs: works[1], column, unit, most }
}

const OPERATIONS: (Column, &str) = (Column::Rate, "ops");
const BYTES: (Column, &str) = (Column::Mib, "MiB");
const REQUESTS: (Column, &str) = (Column::Requests, "requests");

const READS: &str = "op=randread bs=4k qd=16";
const LARGE_READS: &str = "op=randread bs=64k qd=16";
const LARGE_WRITES: &str = "op=randwrite bs=64k qd=16";
const LIMITS: [Limit; 7] = [
    limit("iops", "custom iops=1000", [GREEDY, "op=randread bs=4k qd=8"], OPERATIONS, 1000.0),
    limit("read", "custom read=20MiB/s", [LARGE_READS; 2], BYTES, 20.0),
    limit("write", "custom write=10MiB/s", [LARGE_WRITES; 2], BYTES, 10.0),
    limit("throughput", "custom throughput=20MiB/s", [LARGE_READS, LARGE_WRITES], BYTES, 20.0),
    limit("file", "custom file-iops=500", ["op=randread bs=4k qd=16 file=one"; 2], OPERATIONS, 500.0),
    limit("metadata", "custom metadata-iops=500", ["op=meta qd=16"; 2], REQUESTS, 500.0),
    limit("client", "custom client-iops=300", [READS; 2], OPERATIONS, 600.0),
];
/// The range in which a limit counts as kept and reached.
const HOLDS: RangeInclusive<f64> = 0.97..=1.02;
/// Parts are equal if the greater one is at most this many times the other.
const EQUAL: f64 = 1.1;

const GREEDY: &str = "op=randread bs=4k qd=32";
/// At most 200 operations per second: less than its part of the share's limit, and enough of them for a p99.
const LIGHT: &str = "op=randread bs=4k qd=1 think=5 file=light.dat";
/// A p99 is the worst that the machine does, so one pair of figures says little.
const LIGHT_ROUNDS: usize = 5;
/// Pairs of runs with and without counting.
const PAIRS: usize = 31;
const BASELINE: f64 = 500.0;

#[derive(Args)]
pub(super) struct LimitsArguments {
    /// Seconds of each measurement of a limit
    #[arg(long, default_value_t = 60.0)]
    secs: f64,
    /// Only rows whose name contains this, or one of several: `iops|credits|light|cost smb`
    #[arg(long, default_value = "")]
    only: String,
    /// Measure the rows of limits and credits at the same time, each on a server of its own
    #[arg(long)]
    at_once: bool,
    /// Write a section of its own into this page
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Keep what was found here: a run may be made in pieces, and the section has all of them
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,
}

pub(super) fn run(given: &LimitsArguments) -> Chore {
    let (anabranch, fsload) = (program::anabranch()?, Fsload::build()?);
    let run = Run { anabranch, fsload, secs: given.secs, found: Found::read(given.rows.clone())? };
    let limits = LIMITS.iter().filter(|limit| is_wanted(&given.only, limit.name)).map(Check::Limit);
    let credits = is_wanted(&given.only, "credits").then_some(Check::Credits);
    let checks: Vec<_> = limits.chain(credits).collect();
    if given.at_once {
        thread::scope(|scope| {
            let begun: Vec<_> = checks.iter().map(|check| scope.spawn(|| run.check(check))).collect();
            let ended =
                begun.into_iter().map(|check| check.join().map_err(|_| "a check panicked".to_owned())?);
            ended.collect::<Result<(), String>>()
        })?;
    } else {
        checks.iter().try_for_each(|check| run.check(check))?;
    }
    if is_wanted(&given.only, "light") {
        run.light()?;
    }
    for (protocol, label) in [("smb", "SMB"), ("nfs3", "NFSv3")] {
        if is_wanted(&given.only, &format!("cost {protocol}")) {
            run.cost(protocol, label)?;
        }
    }
    let (passed, failed) = run.found.counts();
    println!("{passed} passed, {failed} failed");
    if let Some(page) = &given.markdown {
        write_section(page, &run.found.section()?)?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

enum Check<'a> {
    Limit(&'a Limit),
    Credits,
}

/// The values that all checks of a run share.
struct Run {
    anabranch: PathBuf,
    fsload: Fsload,
    secs: f64,
    found: Found,
}

impl Run {
    fn server(&self, plan: &str, lines: &str, before: &str) -> Result<Server, String> {
        let basics = Settings::default().lines + "log = \"error\"\n";
        let settings = Settings {
            share: "bench",
            owner: 0,
            lines: basics + lines,
            share_lines: format!("plan = \"{plan}\"\n"),
            before: words(before),
            ..Settings::default()
        };
        Server::start(&self.anabranch, &settings)
    }

    fn load(&self, server: &Server, protocol: &str, work: &str, secs: f64) -> Result<Load, String> {
        self.load_behind("", server, protocol, work, secs)
    }

    /// Runs a load, with `before` in front of its command.
    fn load_behind(
        &self,
        before: &str,
        server: &Server,
        protocol: &str,
        work: &str,
        secs: f64,
    ) -> Result<Load, String> {
        let file = if work.contains("file=") { String::new() } else { format!("file={protocol}.dat") };
        let at = server.fsload(protocol, "bench");
        self.fsload.begin(before, &format!("{protocol} {at} {file} {work} size=4M secs={secs}"))
    }

    /// Makes the files of a client before anything is measured.
    fn prepare(&self, server: &Server, work: &[(&str, &str)]) -> Result<(), String> {
        work.iter()
            .try_for_each(|(protocol, work)| self.load(server, protocol, work, 0.1)?.figures().map(drop))
    }

    fn check(&self, check: &Check<'_>) -> Result<(), String> {
        match check {
            Check::Limit(limit) => self.limit(limit),
            Check::Credits => self.credits(),
        }
    }

    fn limit(&self, limit: &Limit) -> Result<(), String> {
        let Limit { name, plan, column, unit, most, .. } = limit;
        let server = self.server(plan, "", "")?;
        let work = [("smb", limit.smb), ("nfs3", limit.nfs)];
        self.prepare(&server, &work)?;
        let [smb, nfs] = work.map(|(protocol, work)| self.load(&server, protocol, work, self.secs));
        let (smb, nfs) = (smb?.figures()?.of(*column), nfs?.figures()?.of(*column));
        let reached = (smb + nfs) / most;
        self.found.add(Row {
            ok: HOLDS.contains(&reached) && smb.max(nfs) <= EQUAL * smb.min(nfs),
            name: format!("{name}: `{plan}`"),
            goal: "97 to 102 %, parts equal within 10 %".to_owned(),
            found: format!("{:.1} % of {most} {unit}/s; SMB {smb:.1}, NFS {nfs:.1}", 100.0 * reached),
            secs: self.secs,
        })
    }

    /// The latency of a light client alone on a share, and beside two clients that take all they can get.
    fn light(&self) -> Result<(), String> {
        let (plan, secs) = ("custom iops=1000", self.secs / 2.0);
        let server = self.server(plan, "", "")?;
        self.prepare(&server, &[("smb", GREEDY), ("nfs3", GREEDY), ("smb", LIGHT)])?;
        let (mut late, mut parts) = (Vec::new(), Vec::new());
        for _ in 0..LIGHT_ROUNDS {
            let alone = self.load(&server, "smb", LIGHT, secs)?.figures()?.of(Column::P99);
            let greedy = ["smb", "nfs3"].map(|protocol| self.load(&server, protocol, GREEDY, secs));
            let beside = self.load(&server, "smb", LIGHT, secs)?.figures()?.of(Column::P99);
            late.push([alone, beside]);
            let [smb, nfs] = greedy.map(|load| load?.figures().map(|figures| figures.of(Column::Rate)));
            parts.push([smb?, nfs?]);
        }
        let ratios = ratios(&late);
        let (ratio, (least, most)) = (median(&ratios), ends(&ratios));
        let [alone, beside] = [0, 1].map(|which| median(&column(&late, which)));
        let [smb, nfs] = [0, 1].map(|which| mean(&column(&parts, which)));
        self.found.add(Row {
            ok: ratio <= 3.0 && smb.max(nfs) <= EQUAL * smb.min(nfs),
            name: format!("a light client: `{plan}`"),
            goal: "p99 within 3 times that alone".to_owned(),
            found: format!(
                "{ratio:.2} times ({least:.2} to {most:.2}): {alone:.0} us alone, \
                 {beside:.0} us beside two greedy ones ({smb:.0} and {nfs:.0}/s)"
            ),
            secs,
        })
    }

    /// Compares the credits spent between two looks with the operations beyond the baseline in that time.
    fn credits(&self) -> Result<(), String> {
        let plan = format!("custom iops={BASELINE} burst-iops=1000 burst-credits=1000000");
        let server = self.server(&plan, "", "")?;
        self.prepare(&server, &[("smb", GREEDY), ("nfs3", GREEDY)])?;
        let clients = ["smb", "nfs3"].map(|protocol| self.load(&server, protocol, GREEDY, self.secs + 2.0));
        // Wait until nothing of the unused baseline is left.
        sleep(Duration::from_secs(2));
        let first = self.look(&server)?;
        sleep(Duration::from_secs_f64(self.secs));
        let second = self.look(&server)?;
        for client in clients {
            client?.figures()?;
        }
        let spent = first.credits - second.credits;
        let expected =
            second.calls - first.calls - BASELINE * second.at.duration_since(first.at).as_secs_f64();
        let off = (spent - expected).abs();
        // The operations under way shift the two looks by up to this many, and the times of the looks are not exact.
        let bound = f64::max(0.001 * expected, 40.0);
        self.found.add(Row {
            ok: off <= bound,
            name: format!("credits: `{plan}`"),
            goal: format!("exact to 0.1 %{}", if bound > 40.0 { "" } else { " (a short run: to 40)" }),
            found: format!(
                "{spent} spent, {expected:.0} operations beyond the baseline, {:.3} % off",
                100.0 * off / expected
            ),
            secs: self.secs,
        })
    }

    /// The burst credits that are left, and the number of answered calls.
    fn look(&self, server: &Server) -> Result<Look, String> {
        let before = Instant::now();
        let mut command = Command::new(&self.anabranch);
        command.args(["share", "show", "bench", "--json", "--state"]).arg(server.state());
        let shown = &json(&mut command)?["activity"];
        let at = before + before.elapsed() / 2;
        let calls = shown["apis"].as_array().into_iter().flatten();
        let calls = calls.map(|api| number(&api["calls"])).sum();
        Ok(Look { credits: number(&shown["burst_credits"]), calls, at })
    }

    /// Server CPU per 4 KiB operation on a share without a plan, with counting and without it, in pairs one after the
    /// other.
    ///
    /// Server and client have one processor each, so that neither moves and neither disturbs the other.
    fn cost(&self, protocol: &str, label: &str) -> Result<(), String> {
        let secs = f64::max(self.secs / 20.0, 1.0);
        let mut pairs = Vec::new();
        for round in 0..PAIRS {
            // Each pair uses new processes, so that other differences between two processes, such as their memory
            // addresses, change from pair to pair.
            let start = |lines| self.server("unlimited", lines, "taskset -c 0");
            let servers = [start("bench-accounting = false\n")?, start("")?];
            for server in &servers {
                self.prepare(server, &[(protocol, GREEDY)])?;
            }
            let mut pair = [f64::NAN; 2];
            for which in order::<2>(round) {
                let load = self.load_behind("taskset -c 1", &servers[which], protocol, GREEDY, secs)?;
                pair[which] = load.figures()?.of(Column::Cpu);
            }
            pairs.push(pair);
        }
        let ratios = sorted(&ratios(&pairs));
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let more = percent(median(&ratios));
        // 97 % of all such medians lie between these.
        let (low, high) = (percent(ratios[9]), percent(ratios[PAIRS - 10]));
        let [without, with] = [0, 1].map(|which| median(&column(&pairs, which)));
        self.found.add(Row {
            ok: more < 3.0,
            name: format!("CPU of a 4 KiB read, {label}"),
            goal: "counting costs less than 3 %".to_owned(),
            found: format!("{with:.2} us, {without:.2} us without: {more:+.1} % ({low:+.1} to {high:+.1} %)"),
            secs,
        })
    }
}

/// The activity of a share at one time.
struct Look {
    credits: f64,
    calls: f64,
    at: Instant,
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / u32::try_from(figures.len()).map_or(f64::NAN, f64::from)
}

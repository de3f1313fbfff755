//! `anabranch bench peers`: Anabranch, Samba and NFS-Ganesha on this machine, started for a measurement and measured in turns.

pub(super) mod all;
mod beside;

use compare::{Contest, Lineup, Measured, Wanted, over, save, section};
use load::bench::{Progress, went_wrong};
use load::result::Protocol;

use super::arguments::{BenchPeers, Beside, PeerName};
use super::{PROGRAM, extent, known_family, progress, show, stopping};
use crate::print::print;
use crate::problem::{Cause, Problem, Result};

/// Carries out the command.
///
/// # Errors
/// The command line is wrong, a server cannot be started, or something went wrong while it was measured.
pub(super) fn run(arguments: &BenchPeers) -> Result<()> {
    let family = known_family(&arguments.family)?;
    let over = over(family, &protocols(&arguments.beside));
    if over.is_empty() {
        let what = format!("{} is not measured over any of the protocols of --over", family.name);
        return Err(Problem::new(
            Cause::Settings,
            what,
            "`anabranch bench families` lists the protocols of each family.",
        ));
    }
    let extent = extent(&arguments.how_long);
    let stop = stopping::flag()?;
    let bar = progress::Bar::new();
    bar.show(&Progress { now: "starting servers", done: 0, all: 0, seconds_left: 0.0 });
    let lineup = Lineup::start(&wanted(&arguments.beside)?, &over)?;
    let contest = Contest { family, over, extent, selection: Some(arguments.rows.selection()) };
    let measured = contest.measure(&lineup, PROGRAM, stop, &mut |progress| bar.show(&progress))?;
    bar.show(&Progress { now: "ending servers", done: 0, all: 0, seconds_left: 0.0 });
    drop(lineup);
    bar.end();
    if let Some(directory) = &arguments.out {
        save(directory, &measured)?;
    }
    print(&beside::render(&measured))?;
    verdict(&measured)?;
    arguments.markdown.as_ref().map_or(Ok(()), |document| Ok(section::write(document, &measured)?))
}

/// The protocols that are asked for.
fn protocols(beside: &Beside) -> Vec<Protocol> {
    beside.over.iter().map(|over| over.protocol()).collect()
}

/// The servers that are asked for: Anabranch is this program.
fn wanted(beside: &Beside) -> Result<Wanted> {
    let program = std::env::current_exe()
        .map_err(|e| Problem::new(Cause::Serving, format!("this program's file is not known: {e}"), ""))?;
    Ok(Wanted {
        program,
        samba: beside.peers.contains(&PeerName::Samba),
        ganesha: beside.peers.contains(&PeerName::Ganesha),
        directory: beside.directory.clone(),
    })
}

/// Something went wrong: what, and where.
fn verdict(measured: &[Measured]) -> Result<()> {
    let wrong = measured.iter().filter(|measured| went_wrong(&measured.result));
    let lines: Vec<String> = wrong
        .flat_map(|Measured { server, result }| {
            let of = format!("{} on {server} over {}", result.family, result.environment.protocol.name());
            result.problems.iter().map(move |problem| format!("{of}: {}", show::problem(problem)))
        })
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    Err(Problem::new(Cause::Measuring, lines.join("\n  "), "The other measurements are kept."))
}

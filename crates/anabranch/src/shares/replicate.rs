//! `anabranch share replicate`: a share that is like one on another server.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use control::Administration as _;
use control::replications::{
    Destination, Destinations, NewReplication, Replication, ReplicationAction, ReplicationChange,
};
use control_client::path_part;
use schedule::Utc;

use super::path;
use crate::administrator::{Administrator, Intent};
use crate::cli::ShareReplicate;
use crate::print::{bytes, counted, json, print};
use crate::problem::{Cause, Problem, Result};
use crate::table;

/// How often the server is asked whether a transfer is over.
const ASKED: Duration = Duration::from_millis(100);

/// Carries out the command.
///
/// # Errors
/// It is refused, the server cannot be asked, or the transfer that was waited for has failed.
pub(super) fn run(given: &ShareReplicate) -> Result<()> {
    let administrator = Administrator::find(&given.asking, Intent::Look)?;
    let of = Of { administrator, name: &given.name, path: format!("{}/replication", path(&given.name)) };
    if given.destinations {
        return of.destinations(given);
    }
    if let Some(destination) = &given.forget {
        return of.forget(destination, given);
    }
    let told = match given {
        ShareReplicate { from: Some(from), .. } => of.begin(&new(from, given)?)?,
        ShareReplicate { now: true, .. } => of.bring_up_to_date()?,
        ShareReplicate { r#break: true, .. } => of.order(ReplicationAction::Break)?,
        ShareReplicate { resync: true, .. } => of.order(ReplicationAction::Resync)?,
        ShareReplicate { stop: true, .. } => of.end()?,
        _ => of.look()?,
    };
    let text = if given.stop {
        format!("The share {} is no replica of {} any more.\n", given.name, told.from)
    } else {
        render(&given.name, &told)
    };
    print(&if given.asking.json { json(&told)? } else { text })
}

fn new(from: &str, given: &ShareReplicate) -> Result<NewReplication> {
    let read_given = |file: &Option<std::path::PathBuf>| file.as_deref().map(read).transpose();
    Ok(NewReplication {
        from: from.to_owned(),
        token: last_line(&read_given(&given.token_file)?.unwrap_or_default()),
        certificate: read_given(&given.certificate_file)?.unwrap_or_default(),
        every_seconds: given.every,
        bandwidth: given.bandwidth,
        reverse: given.reverse,
    })
}

/// The token, also in what `anabranch token create` prints.
fn last_line(text: &str) -> String {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file)
        .map_err(|e| Problem::new(Cause::Settings, format!("cannot read {}: {e}", file.display()), ""))
}

struct Of<'a> {
    administrator: Administrator,
    name: &'a str,
    path: String,
}

impl Of<'_> {
    fn look(&self) -> Result<Replication> {
        self.administrator.call(("GET", &self.path), None::<&()>, |here| here.replication(self.name))
    }

    fn begin(&self, new: &NewReplication) -> Result<Replication> {
        let begin = |here: &gateway::Administration| here.begin_replication(self.name, new.clone());
        self.administrator.call(("POST", &self.path), Some(new), begin)
    }

    fn order(&self, action: ReplicationAction) -> Result<Replication> {
        let change = ReplicationChange { action };
        let order = |here: &gateway::Administration| here.change_replication(self.name, action);
        self.administrator.call(("PATCH", &self.path), Some(&change), order)
    }

    fn end(&self) -> Result<Replication> {
        self.administrator.call(("DELETE", &self.path), None::<&()>, |here| here.end_replication(self.name))
    }

    /// Waits for a transfer that begins after this call, or for the one that goes on and its successor.
    fn bring_up_to_date(&self) -> Result<Replication> {
        let mut before = self.look()?;
        while before.transferring {
            std::thread::sleep(ASKED);
            before = self.look()?;
        }
        self.order(ReplicationAction::Now)?;
        loop {
            let told = self.look()?;
            if told.transfers > before.transfers {
                return Ok(told);
            }
            if told.state == "broken" {
                let what = format!("the replica {} was broken off meanwhile", self.name);
                return Err(Problem::new(Cause::Refused, what, "--resync makes it a replica again."));
            }
            if told.failures > before.failures {
                let why = told.problem.unwrap_or_default();
                let advice = "It is tried again by itself. Clients see what was complete before.";
                let what = format!("the replica {} is not brought up to date: {why}", self.name);
                return Err(Problem::new(Cause::Refused, what, advice));
            }
            std::thread::sleep(ASKED);
        }
    }

    fn destinations(&self, given: &ShareReplicate) -> Result<()> {
        let call = format!("{}/destinations", path(self.name));
        let told =
            self.administrator.call(("GET", &call), None::<&()>, |here| here.destinations(self.name))?;
        print(&if given.asking.json { json(&told)? } else { render_destinations(&told) })
    }

    fn forget(&self, destination: &str, given: &ShareReplicate) -> Result<()> {
        let call = format!("{}/destinations/{}", path(self.name), path_part(destination));
        let gone: Destination = self
            .administrator
            .call(("DELETE", &call), None::<&()>, |here| here.remove_destination(self.name, destination))?;
        let text = format!("The destination {} of the share {} is forgotten.\n", gone.id, self.name);
        print(&if given.asking.json { json(&gone)? } else { text })
    }
}

fn time(secs: i64) -> String {
    Utc::from_secs(secs).to_string()
}

/// How old a state is, in words.
pub(super) fn age(as_of: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let secs = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(as_of).max(0);
    match secs {
        0..=119 => format!("{secs} s old"),
        120..=7199 => format!("{} min old", secs / 60),
        7200..=172_799 => format!("{} h old", secs / 3600),
        _ => format!("{} d old", secs / 86_400),
    }
}

pub(super) fn render(name: &str, told: &Replication) -> String {
    let mut text = match told.state.as_str() {
        "broken" => {
            format!("{name} was a replica of {}, and is broken off: clients can write to it.\n", told.from)
        }
        "resync" => format!("{name} becomes a replica of {}.\n", told.from),
        _ => format!("{name} is a replica of {}.\n", told.from),
    };
    let _ = writeln!(
        text,
        "  state      {}{}",
        told.state,
        if told.transferring { ", transferring" } else { "" }
    );
    let as_of = match told.as_of {
        Some(as_of) => format!("{} ({})", time(as_of), age(as_of)),
        None => "nothing was transferred yet".to_owned(),
    };
    let _ = writeln!(text, "  as of      {as_of}");
    let _ = writeln!(text, "  every      {} s", told.every_seconds);
    if let Some(bandwidth) = told.bandwidth {
        let _ = writeln!(text, "  bandwidth  {}/s", bytes(bandwidth));
    }
    let figures = format!(
        "{} and {} of {}",
        counted(told.files, "file"),
        bytes(told.bytes),
        if told.transferring { "the present transfer" } else { "the last transfer" }
    );
    let _ = writeln!(text, "  taken over {figures}");
    if let Some(problem) = &told.problem {
        let _ = writeln!(text, "  problem    {problem}");
    }
    text
}

fn render_destinations(told: &Destinations) -> String {
    let none = || "-".to_owned();
    let row = |one: &Destination| {
        [
            one.id.clone(),
            one.completed.clone().unwrap_or_else(none),
            one.pending.clone().unwrap_or_else(none),
            time(i64::try_from(one.seen).unwrap_or(i64::MAX)),
        ]
    };
    table::render(
        ["DESTINATION", "HAS", "GETS", "SEEN"],
        &told.destinations.iter().map(row).collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_in_what_its_maker_prints() {
        for text in ["abc", "abc\n", "Created the token a (replicate). It is shown only this once:\nabc\n\n"]
        {
            assert_eq!(last_line(text), "abc");
        }
        assert_eq!(last_line("\n"), "");
    }

    #[test]
    fn what_a_replica_is_like_is_told() {
        let told = Replication {
            from: "https://files:8443/office".to_owned(),
            state: "mirrored".to_owned(),
            every_seconds: 600,
            ..Replication::default()
        };
        let text = render("copy", &told);
        assert!(text.starts_with("copy is a replica of https://files:8443/office.\n  state      mirrored\n"));
        assert!(text.contains("  as of      nothing was transferred yet\n"), "{text}");
        let told = Replication {
            state: "broken".to_owned(),
            as_of: Some(1_795_780_598),
            problem: Some("no way".to_owned()),
            ..told
        };
        let text = render("copy", &told);
        assert!(
            text.contains("clients can write to it.\n  state      broken\n  as of      2026-11-27T"),
            "{text}"
        );
        assert!(text.ends_with("  problem    no way\n"), "{text}");
    }
}

//! Advice on what a client of the server that runs does, by the server's own account of it.

use std::time::Duration;

use advise::{Advice, Facts, Profile, advise};
use live_advice::{Look, Work, look, of_work, works};
use serde::Serialize;

use super::arguments::Advise;
use super::figures::figures;
use super::{apply, show};
use crate::control_access;
use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};

/// The advice on one kind of work: what one client does in one share over one protocol.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Judged {
    pub(crate) client: String,
    pub(crate) share: String,
    pub(crate) facts: Facts,
    /// What it does, in words.
    pub(crate) figures: Vec<String>,
    pub(crate) advice: Vec<Advice>,
}

pub(super) fn run(command: &Advise, client: &str, profile: Profile) -> Result<()> {
    let access = control_access::find(&command.asking.state(), command.asking.control)?;
    let before = look(&access, client)?;
    std::thread::sleep(Duration::from_secs(command.seconds));
    let after = look(&access, client)?;
    let judged = judge(&before, &after, command.share.as_deref(), profile);
    if judged.is_empty() {
        let of_share =
            command.share.as_ref().map_or_else(String::new, |share| format!(" in the share {share}"));
        let what = format!("{client} has done nothing{of_share} for {} s", command.seconds);
        return Err(Problem::new(
            Cause::Refused,
            what,
            "Ask again while the client works, or observe it for longer: --seconds N.",
        ));
    }
    if command.apply {
        return apply::on_client(command, &access, client, &judged);
    }
    print(&if command.asking.json { json(&judged)? } else { render(&judged) })
}

/// What the rules have to say of everything that was done between two looks.
pub(crate) fn judge(before: &Look, after: &Look, share: Option<&str>, profile: Profile) -> Vec<Judged> {
    let judge = |work: &Work| {
        let facts = Facts { profile, ..of_work(work, before, after) };
        Judged {
            client: work.client.clone(),
            share: work.share.clone(),
            figures: figures(work, &facts),
            advice: of_share(advise(&facts), &work.share),
            facts,
        }
    };
    let is_meant = |work: &&Work| share.is_none_or(|share| share.eq_ignore_ascii_case(&work.share));
    works(before, after).iter().filter(is_meant).map(judge).collect()
}

/// The commands with the name of the share that they are about.
fn of_share(mut advice: Vec<Advice>, share: &str) -> Vec<Advice> {
    for command in advice.iter_mut().flat_map(|piece| &mut piece.commands) {
        command.line = command.line.replace("share set NAME ", &format!("share set {share} "));
    }
    advice
}

pub(super) fn render(judged: &[Judged]) -> String {
    let mut text = String::new();
    for of in judged {
        text.push_str(&format!("client {} in the share {}\n", of.client, of.share));
        for figure in &of.figures {
            text.push_str(&format!("  {figure}\n"));
        }
        show::advise(&mut text, &of.advice);
        text.push('\n');
    }
    text
}

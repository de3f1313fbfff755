//! Advice, for people.

use std::fmt::Write as _;

use advise::host::Finding;
use advise::{Action, Advice, Command, Judged, Recommendation};
use live_advice::TrialOutcome;

pub(super) fn render(judged: &[Judged]) -> String {
    let mut text = String::new();
    for Judged { row, advice } in judged {
        let _ = writeln!(text, "{row}");
        advise(&mut text, advice);
        text.push('\n');
    }
    text
}

/// The advice on one thing.
pub(super) fn advise(text: &mut String, all: &[Advice]) {
    if all.is_empty() {
        text.push_str(
            "  nothing to say: no rule has all the facts that it needs, or all is as it should be\n",
        );
    }
    for advice in all {
        let _ = writeln!(text, "  {:<6}  R{:<2}  {}", advice.verdict, advice.rule, advice.text);
        for figure in &advice.figures {
            let _ = writeln!(text, "               {figure}");
        }
        let _ = writeln!(text, "               source: {}", advice.source);
        commands(text, &advice.commands);
    }
}

fn commands(text: &mut String, commands: &[Command]) {
    for command in commands {
        let _ = writeln!(text, "               on {:<8} {}", command.on, command.line);
    }
}

/// What is to be done, by server and best first.
pub(super) fn ranked(all: &[Recommendation]) -> String {
    let mut text = String::new();
    let mut server: Option<Option<&str>> = None;
    for of in all {
        if server != Some(of.server.as_deref()) {
            server = Some(of.server.as_deref());
            let _ = writeln!(text, "{}", of.server.as_deref().unwrap_or("the server"));
        }
        recommendation(&mut text, of);
    }
    if all.is_empty() {
        text.push_str("nothing to say: no rule has all the facts that it needs, or all is as it should be\n");
    }
    text
}

fn recommendation(text: &mut String, of: &Recommendation) {
    let action = match of.action {
        Action::Change => "change",
        Action::Undecided => "undecided",
        Action::Keep => "keep",
    };
    let _ = writeln!(text, "  {action:<9}  {}: {}", of.setting.name(), of.text);
    let mut line = |words: &str| {
        let _ = writeln!(text, "             {words}");
    };
    if let Some([low, _]) = of.gain.and_then(|gain| gain.ratio.interval) {
        line(&format!("at least {low:.2}x"));
    }
    if let Some(tally) = of.tally {
        line(&format!(
            "{} faster, {} slower, {} without measurable effect, {} too noisy to tell",
            tally.higher, tally.lower, tally.no_effect, tally.too_noisy
        ));
    }
    if let Some(conflict) = &of.conflict {
        line(&format!("but {conflict}"));
    }
    of.figures.iter().for_each(|figure| line(figure));
    line(&format!("source: {}, {}", of.source, of.results.join(", ")));
    for command in &of.commands {
        line(&format!("on {:<8} {}", command.on, command.line));
    }
}

/// What was found on a machine.
pub(super) fn findings(findings: &[Finding]) -> String {
    let mut text = String::new();
    let mut about = "";
    for finding in findings {
        if finding.about != about {
            about = &finding.about;
            let _ = writeln!(text, "{about}");
        }
        let _ = writeln!(text, "  {:<6}       {}", finding.verdict, finding.text);
        let _ = writeln!(text, "               source: {}", finding.source);
        for command in &finding.commands {
            let _ = writeln!(text, "               {}", command.line);
        }
    }
    text
}

/// What came of a trial.
pub(super) fn trial(outcome: &TrialOutcome) -> String {
    let mut text = format!("R{}  {} on the share {}\n", outcome.rule, outcome.change, outcome.share);
    for (name, rate) in [("before", &outcome.before), ("after", &outcome.after)] {
        let rate = rate.as_ref().map_or_else(
            || "nothing was done".to_owned(),
            |rate| {
                let interval = rate
                    .interval
                    .map_or_else(String::new, |[low, high]| format!("  (95 %: {low:.0} to {high:.0})"));
                format!("{:.0} operations/s{interval}", rate.median)
            },
        );
        let _ = writeln!(text, "  {name:<7} {rate}");
    }
    let effect = outcome.ratio.map_or_else(|| "too noisy to tell".to_owned(), |ratio| ratio.to_string());
    let then = if outcome.kept { "kept" } else { "reverted" };
    let _ = writeln!(text, "  effect  {effect}: {then}");
    if outcome.kept {
        let _ = writeln!(text, "  The same by hand: {}", outcome.command);
    }
    text
}

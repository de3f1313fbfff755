//! What the control address of a server shows of the program around it: the log, and advice.

use std::path::PathBuf;
use std::time::Duration;

use advise::{Advice, Profile, Verdict};
use control::program::{AdvicePiece, Advices, AdvisedChange, Log, LogLine, Program, WorkAdvice};
use control::{Refusal, RefusalKind};
use live_advice::{Change, Look, change, look};

use crate::advise::live::{Judged, judge};
use crate::control_access;
use crate::problem::{Cause, Problem};

/// The program around a server with this state directory.
#[derive(Debug)]
pub(crate) struct Around {
    pub(crate) state: PathBuf,
}

impl Program for Around {
    fn lost_log_lines(&self) -> u64 {
        logging::lost_lines()
    }

    fn log(&self, after: u64) -> Log {
        let line = |line: logging::RecentLine| LogLine { number: line.number, text: line.text };
        Log {
            lines: logging::recent_lines(after).into_iter().map(line).collect(),
            lost: logging::lost_lines(),
        }
    }

    fn advise(&self, client: &str, seconds: u64) -> Result<Advices, Refusal> {
        let access = control_access::find(&self.state, None).map_err(|e| refusal(&e.into()))?;
        let look = || look(&access, client).map_err(|e| refusal(&e.into()));
        let before = look()?;
        std::thread::sleep(Duration::from_secs(seconds));
        let after = look()?;
        let judged = judge(&before, &after, None, Profile::default());
        if judged.is_empty() {
            let what = format!("{client} has done nothing for {seconds} s");
            return Err(Refusal::new(RefusalKind::NotFound, what, "Ask again while the client works."));
        }
        let shares: control::shares::Shares =
            control_client::get(&access, "/v1/shares").map_err(|e| refusal(&e.into()))?;
        Ok(Advices { works: judged.iter().map(|of| told(of, &shares, &before, &after)).collect() })
    }
}

fn refusal(problem: &Problem) -> Refusal {
    let kind = match problem.cause {
        Cause::Refused => RefusalKind::NotFound,
        _ => RefusalKind::Failed,
    };
    Refusal::new(kind, problem.what.as_str(), problem.advice.as_str())
}

fn told(of: &Judged, shares: &control::shares::Shares, before: &Look, after: &Look) -> WorkAdvice {
    let share = shares.shares.iter().find(|share| share.name == of.share && share.declared_in.is_none());
    let activity = |look: &Look| look.shares.shares.iter().find(|share| share.name == of.share).cloned();
    let change = share.and_then(|share| change(&of.advice, share, &activity(before)?, &activity(after)?));
    WorkAdvice {
        client: of.client.clone(),
        share: of.share.clone(),
        figures: of.figures.clone(),
        advice: of.advice.iter().map(piece).collect(),
        change: change.map(|Change { rule, what, forth, back, command }| AdvisedChange {
            rule,
            what,
            forth,
            back,
            command,
        }),
    }
}

fn piece(advice: &Advice) -> AdvicePiece {
    AdvicePiece {
        rule: advice.rule,
        verdict: match advice.verdict {
            Verdict::Green => "green",
            Verdict::Yellow => "yellow",
            Verdict::Red => "red",
        }
        .to_owned(),
        text: advice.text.clone(),
        figures: advice.figures.clone(),
        commands: advice.commands.iter().map(|command| command.line.clone()).collect(),
    }
}

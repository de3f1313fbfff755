//! A machine, client or server, held against what the documents ask for.
//!
//! All that is known of it is read below one root directory ([`Machine`]), so that a captured tree is as good as the machine.

mod interrupts;
mod machine;
mod mounts;
mod network;
mod nfs;
mod processor;
mod smb;

pub use machine::Machine;

use serde::Serialize;

use super::advice::{Advice, Command, Side, Source, Verdict};

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What it is about, such as `eth0` or `/mnt/data`.
    pub about: String,
    /// Green: as it should be; yellow: it may cost something, or depends; red: it costs something.
    pub verdict: Verdict,
    /// In a line: what was found, and what follows.
    pub text: String,
    /// Who says so.
    pub source: Source,
    /// The commands that mend it.
    pub commands: Vec<Command>,
}

impl Finding {
    fn new(about: &str, verdict: Verdict, source: Source, text: impl Into<String>) -> Self {
        Self { about: about.to_owned(), verdict, text: text.into(), source, commands: Vec::new() }
    }

    /// The command that mends it, on this machine.
    fn mend(mut self, line: impl Into<String>) -> Self {
        self.commands.push(Command { on: Side::Linux, line: line.into() });
        self
    }

    /// What a rule says of one of the mounts.
    fn of_advice(about: &str, advice: Advice) -> Self {
        let Advice { verdict, text, source, commands, .. } = advice;
        Self { about: about.to_owned(), verdict, text, source, commands }
    }
}

/// Looks at the whole machine. What it does not have is not spoken of.
#[must_use]
pub fn examine(machine: &Machine) -> Vec<Finding> {
    let mounts = mounts::mounts(machine);
    let mut findings = processor::examine(machine);
    findings.extend(network::examine(machine));
    findings.extend(smb::examine(machine, &mounts));
    findings.extend(nfs::examine(machine, &mounts));
    findings
}

#[cfg(test)]
mod tests;

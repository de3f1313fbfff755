//! One piece of advice, and where it comes from.

use std::fmt;

use serde::{Deserialize, Serialize};

use load::statistics::Conclusion;

use super::documents::title;
use super::facts::Effect;

/// One piece of advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The rule behind it, 1 to 21: R1 to R21.
    pub rule: u8,
    /// What it says of the thing that it is about.
    pub verdict: Verdict,
    /// In a line: what to do, or what is as it should be.
    pub text: String,
    /// The figures that lead to it.
    pub figures: Vec<String>,
    /// Who says so.
    pub source: Source,
    /// The commands that change it, one for each side where it can be changed.
    pub commands: Vec<Command>,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Good, or worth having.
    Green,
    /// Makes no difference, or depends.
    Yellow,
    /// Costs something, or should be changed.
    Red,
}

/// Who says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A statement of one of the five documents.
    Document(Statement),
    /// A measurement on this very path.
    Measured,
    /// The specification of the protocol, or the client's own documentation.
    Manual(&'static str),
}

/// A statement of one of the documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// Its number, such as `1.21`: the first part is the document's.
    pub id: &'static str,
    /// The line of the document that it stands in.
    pub line: u32,
}

/// A command that changes something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    /// Where it is typed.
    pub on: Side,
    /// It, whole.
    pub line: String,
}

/// Where a command is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// A Windows client, in PowerShell as administrator.
    Windows,
    /// A Linux client, as root.
    Linux,
    /// The server, when it is Anabranch.
    Server,
}

/// A number of things: `1 channel`, `2 channels`.
#[must_use]
pub fn counted(count: u32, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document(statement) => statement.fmt(f),
            Self::Measured => f.write_str("measured here"),
            Self::Manual(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.section() {
            Some(section) => write!(f, "{}, \"{}\" ({})", title(self.id), section.heading, self.id),
            None => write!(f, "{} ({})", title(self.id), self.id),
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Windows => "Windows",
            Self::Linux => "Linux",
            Self::Server => "server",
        })
    }
}

impl Effect {
    /// What may be concluded from it.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        Conclusion::of(Some([self.low, self.high]))
    }

    /// Green where it surely helps, red where it surely hurts, yellow where there is no effect or the measurement cannot tell.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.conclusion() {
            Conclusion::Higher => Verdict::Green,
            Conclusion::Lower => Verdict::Red,
            Conclusion::NoEffect | Conclusion::TooNoisy => Verdict::Yellow,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "measured: {:.2} times the rate ({:.2} - {:.2})", self.ratio, self.low, self.high)?;
        match self.conclusion() {
            Conclusion::NoEffect => f.write_str(", no measurable effect"),
            Conclusion::TooNoisy => f.write_str(", too noisy to tell"),
            Conclusion::Higher | Conclusion::Lower => Ok(()),
        }
    }
}

/// Advice begins: a rule, its verdict, who says so, and the line.
pub(super) fn advice(rule: u8, verdict: Verdict, source: Source, text: impl Into<String>) -> Advice {
    Advice { rule, verdict, text: text.into(), figures: Vec::new(), source, commands: Vec::new() }
}

/// A statement of the documents.
pub(super) fn document(id: &'static str, line: u32) -> Source {
    Source::Document(Statement { id, line })
}

impl Advice {
    pub(super) fn figure(mut self, figure: impl Into<String>) -> Self {
        self.figures.push(figure.into());
        self
    }

    /// A figure that may not be known.
    pub(super) fn figures(mut self, figure: Option<impl ToString>) -> Self {
        self.figures.extend(figure.map(|f| f.to_string()));
        self
    }

    pub(super) fn on(mut self, on: Side, line: impl Into<String>) -> Self {
        self.commands.push(Command { on, line: line.into() });
        self
    }
}

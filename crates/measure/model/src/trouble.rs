//! Why a model cannot be built.

use crate::construction::Ability;

/// Why a model cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The program does not run as root.
    #[error("network namespaces with limits need root")]
    NotRoot,
    /// A program is missing.
    #[error("{program} cannot be started: {why}")]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// The package of Debian that has it.
        package: &'static str,
        /// Why.
        why: String,
    },
    /// This machine makes no namespaces.
    #[error("this machine makes no namespaces: {0}")]
    NoNamespaces(String),
    /// The kernel, or what it lets this program do, lacks what the model needs.
    #[error("this kernel lacks {}: {tool} says {said:?}", .ability.text())]
    Lacks {
        /// What it lacks.
        ability: Ability,
        /// The program that found out.
        tool: &'static str,
        /// What it said.
        said: String,
    },
    /// The links carry nothing.
    #[error("the links of the model cannot be calibrated: {0}")]
    Calibrating(String),
    /// A forwarder of the model cannot be had.
    #[error("the forwarder of {machine} cannot be started: {why}")]
    Forwarder {
        /// The machine at the end of its link.
        machine: String,
        /// Why.
        why: String,
    },
    /// The server cannot be had.
    #[error("{what}")]
    Server {
        /// What was wrong.
        what: String,
        /// What to do about it, or what the server said.
        advice: String,
    },
    /// There is no client of this name.
    #[error("the model has no client {0}")]
    NoClient(String),
}

impl Trouble {
    pub(crate) fn no_program(program: &'static str, package: &'static str, error: &std::io::Error) -> Self {
        Self::NoProgram { program, package, why: error.to_string() }
    }
}

//! Load from several processes, also on several machines: one coordinates, the others are workers.
//!
//! A worker is a client of its own: it makes its own folder with its own files, as each of the documents' virtual machines does
//! (2.12), and checks what it reads by itself. The coordinator says what to do ([`message`]) and merges what was counted: counts and
//! bins are added, percentiles are made from the merged bins. All make their connections first and begin when the coordinator says
//! so; no clock is compared with that of another machine.
//!
//! Messages go over TCP, encrypted under a token that both have ([`seal`]), or over the standard input and output of a command such
//! as `ssh`, which protects them itself.

mod channel;
mod coordinator;
mod listen;
mod message;
mod seal;
mod session;

pub(crate) use coordinator::Coordinator;
pub use listen::serve_listener;
pub use seal::{NoToken, Token};
pub use session::serve_standard_streams;

/// Where the workers of a run are.
#[derive(Debug, Clone)]
pub struct Workers {
    /// Each of them.
    pub places: Vec<WorkerPlace>,
    /// What workers that listen have in common with the coordinator.
    pub token: Option<Token>,
}

/// Where a worker is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerPlace {
    /// It listens at HOST:PORT.
    Listening(String),
    /// A command that becomes one, which speaks over its standard input and output.
    Command {
        /// What it is called in messages.
        name: String,
        /// The program and its arguments.
        command: Vec<String>,
    },
}

impl std::fmt::Display for WorkerPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listening(name) | Self::Command { name, .. } => f.write_str(name),
        }
    }
}

//! Which server a command asks, and in which form it prints the answer.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::state_directory;

/// How a command asks the server that runs.
#[derive(Debug, Args)]
pub(crate) struct Asking {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The server's state directory [default: $ANABRANCH_STATE, else /var/lib/anabranch]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// The server's control address [default: read from the state directory]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) control: Option<SocketAddr>,
}

impl Asking {
    /// The state directory.
    pub(crate) fn state(&self) -> PathBuf {
        state_directory::given(self.state.clone()).unwrap_or_else(|| state_directory::DEFAULT.into())
    }

    /// Whether somebody has named it.
    pub(crate) fn is_state_given(&self) -> bool {
        state_directory::given(self.state.clone()).is_some()
    }
}

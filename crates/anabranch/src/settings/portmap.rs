//! `portmap`: how clients of NFSv3 find the server.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How clients of NFSv3 find the server, and whether they can lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PortmapGiven {
    /// They do not: a mount names the port, and locks hold on its client only.
    Off,
    /// As `register` if a rpcbind runs on this machine, otherwise as `serve`.
    On,
    /// By the rpcbind of this machine.
    Register,
    /// By this server, which answers port 111 itself.
    Serve,
}

impl PortmapGiven {
    pub(super) fn whole(self) -> gateway::settings::Portmap {
        use gateway::settings::Portmap;
        match self {
            Self::Off => Portmap::Off,
            Self::On => Portmap::On,
            Self::Register => Portmap::Register,
            Self::Serve => Portmap::Serve,
        }
    }
}

//! The command line of `anabranch cluster` and `anabranch vserver`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::VserverShareCommand;
use super::redundancy::ClusterPools;
use crate::asking::Asking;

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Make a cluster in the pool of the configuration, once, and take the first place in it
    Init(Asking),
    /// Make data pools of Ceph that give redundancy classes to shares, with the key of an administrator of Ceph
    Pools(ClusterPools),
    /// Show the cluster: its gateways, which of them are there, and their vservers
    Status(Asking),
    /// Have this gateway take its place in the cluster; one that was drained may serve vservers again
    Join(Asking),
    /// Take this gateway out of the cluster, or another one that is not there any more
    Leave {
        /// The gateway [default: the one that is asked]
        gateway: Option<String>,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum VserverCommand {
    /// Make a vserver: a server with addresses and shares of its own, which any gateway of the cluster can serve
    Create(VserverCreate),
    /// List the vservers, and which gateways serve them
    List(Asking),
    /// Have another gateway serve a vserver: clients wait for less than a second
    Move {
        /// The vserver
        name: String,
        /// The gateway
        gateway: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Move all vservers of a gateway to others, before it is upgraded or taken away; none comes to it until it joins again
    Drain {
        /// The gateway [default: the one that is asked]
        gateway: Option<String>,
        #[command(flatten)]
        asking: Asking,
    },
    /// Give a vserver a keytab, with which it accepts tickets wherever it is served; or take it away
    Keytab {
        /// The vserver
        name: String,
        /// The keytab, which only its owner may read; it is kept in the cluster, in place of the one that is there
        #[arg(required_unless_present = "remove", conflicts_with = "remove")]
        file: Option<PathBuf>,
        /// Take the keytab away: the vserver accepts tickets with that of the gateway that serves it
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        asking: Asking,
    },
    /// The shares of vservers: they come, change, move and go while the vservers are served
    #[command(subcommand)]
    Share(Box<VserverShareCommand>),
    /// End a vserver; its directories stay
    Remove {
        /// The vserver
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Args)]
pub(crate) struct VserverCreate {
    /// Its name, which SMB clients see: at most 15 small letters, digits and hyphens
    pub(crate) name: String,
    /// An address by which clients find it, and the interface of each gateway that can have it; several times for several. Without an
    /// interface, one that each gateway has
    #[arg(long, value_name = "ADDRESS[%INTERFACE[/PREFIX]]", required = true)]
    pub(crate) address: Vec<String>,
    /// A share and its directory, which is in CephFS: cephfs:/PATH; several times for several
    #[arg(long, value_name = "NAME=cephfs:/PATH", required = true)]
    pub(crate) share: Vec<String>,
    /// The gateway that is to serve it [default: the one that is asked]
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<String>,
    /// The port of SMB, or off
    #[arg(long, value_name = "PORT|off", default_value = "445", value_parser = port)]
    pub(crate) smb: PortGiven,
    /// The port of NFS, or off
    #[arg(long, value_name = "PORT|off", default_value = "2049", value_parser = port)]
    pub(crate) nfs: PortGiven,
    /// The plan of its shares
    #[arg(long, value_name = "PLAN", default_value = "")]
    pub(crate) plan: String,
    /// Nobody may change its shares
    #[arg(long)]
    pub(crate) read_only: bool,
    /// SMB clients of its shares get no handles that survive the death of a gateway
    #[arg(long)]
    pub(crate) no_continuous_availability: bool,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

/// A port; None: off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortGiven(pub(crate) Option<u16>);

fn port(text: &str) -> Result<PortGiven, String> {
    if text == "off" {
        return Ok(PortGiven(None));
    }
    match text.parse() {
        Ok(port) if port > 0 => Ok(PortGiven(Some(port))),
        _ => Err("expected a port, such as 445, or off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_be_off() {
        assert_eq!(port("off"), Ok(PortGiven(None)));
        assert_eq!(port("2049"), Ok(PortGiven(Some(2049))));
        assert!(port("0").is_err() && port("65536").is_err() && port("").is_err());
    }
}

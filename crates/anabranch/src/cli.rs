//! The command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::settings::Given;

/// One share, many channels: serves directories over SMB 3.1.1 and NFSv3 at the same time.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 110, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str =
    "Exit status: 0 ended by a signal as asked, 1 failed while serving, 2 command line or configuration,
3 state directory, 4 address or port, 5 directory of a share, 6 the running server cannot be asked.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve ./anabranch-demo on unprivileged ports and say how to mount it
    Demo(Demo),
    /// Serve shares
    Serve(Box<Serve>),
    /// See who is connected to the server that runs on this machine
    #[command(subcommand)]
    Client(ClientCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// List the SMB sessions with their channels, and the NFS clients with their connections
    List(Asking),
    /// Say why a client has fewer channels or connections than it could, and what to do
    Explain(Asking),
}

/// How a command asks the server that runs.
#[derive(Debug, Args)]
pub(crate) struct Asking {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The server's state directory [default: /var/lib/anabranch]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// The server's control address [default: what the server has written into the state directory]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) control: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The address to listen on; 0.0.0.0 lets other machines in (NFS asks for no password)
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A TOML file with the names of the flags below as keys; flags go before it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) given: Given,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_fixed_form_is_understood() {
        let line = "anabranch serve --share a=/x --share b=/y --user u:p --smb 127.0.0.1:1 --nfs 127.0.0.1:2 \
                    --control 127.0.0.1:3 --state /s --smb-signing required --smb-encryption off --max-channels 2 \
                    --smb-interface 10.0.0.1 --smb-interface 10.0.0.2";
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Serve(serve) = cli.command else { panic!("not serve") };
        assert_eq!((serve.given.share.len(), serve.given.smb_interface.len()), (2, 2));
    }
}

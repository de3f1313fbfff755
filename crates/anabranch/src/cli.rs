//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::advise::Advise;
use crate::asking::Asking;
use crate::bench::BenchCommand;
use crate::report::ReportCommand;
use crate::rules_given::RulesGiven;
use crate::settings::Given;
use crate::state_directory;

/// One share, many channels: serves directories over SMB 3.1.1 and NFSv3 at the same time.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 110, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str =
    "Exit status: 0 ended by a signal as asked, 1 failed while serving, 2 command line or configuration,
3 state directory, 4 address or port, 5 directory of a share, 6 the running server cannot be asked,
7 what was asked for is refused, 8 something went wrong while it was measured.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve ./anabranch-demo on unprivileged ports and say how to mount it
    Demo(Demo),
    /// Serve shares
    Serve(Box<Serve>),
    /// See who is connected to the server that runs on this machine
    #[command(subcommand)]
    Client(ClientCommand),
    /// Make, change and remove shares, on the server that runs or in the state directory that it will use
    #[command(subcommand)]
    Share(ShareCommand),
    /// Add, change and remove the users of SMB, on the server that runs or in the state directory that it will use
    #[command(subcommand)]
    User(UserCommand),
    /// Make and withdraw tokens for the control address: who may ask it, and for what
    #[command(subcommand)]
    Token(TokenCommand),
    /// Check, copy and restore the state database of a server
    #[command(subcommand)]
    State(StateCommand),
    /// Make load on any SMB or NFS server, or on a directory, and measure it
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Say what a measurement means and what to do about it: what pays, what does not, and the command that changes it
    Advise(Advise),
    /// Hold results of measurements against what the documents say: one HTML page, Markdown or JSON
    Report(ReportCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// List the SMB sessions with their channels, and the NFS clients with their connections
    List(Asking),
    /// Say why a client has fewer channels or connections than it could, and what to do
    Explain(Asking),
    /// Print what to set on NFS clients for sequential reads, with what each client reads now
    Hint(Asking),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ShareCommand {
    /// Make a share and serve it, over SMB and NFS at once
    Create(ShareCreate),
    /// List the shares: those of the configuration and those made by command
    List(Asking),
    /// Show one share: its plan, what is used of it, what waited and why, what its calls cost
    Show {
        /// The share
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Change a share that was made by command, while clients work
    Set(ShareSet),
    /// Serve a share that was made by command no more; its directory stays as it is
    Remove {
        /// The share
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Watch what is going on in the shares
    Top(ShareTop),
    /// Record what clients ask a share for, into a file
    Record(ShareRecord),
    /// Say what a plan would have done to a recorded trace: what would have waited, how long, and when the credits run out
    Simulate(ShareSimulate),
}

#[derive(Debug, Args)]
pub(crate) struct ShareCreate {
    /// The name: clients see \\SERVER\NAME and SERVER:/NAME
    pub(crate) name: String,
    /// The directory that it serves, from / on
    pub(crate) directory: String,
    /// Nothing can be changed through it
    #[arg(long)]
    pub(crate) read_only: bool,
    /// SMB clients without an account are let in, as nobody
    #[arg(long)]
    pub(crate) guest: bool,
    /// Listings show only what their reader may read
    #[arg(long)]
    pub(crate) access_based_enumeration: bool,
    /// SMB clients get handles that outlive a restart of the server
    #[arg(long)]
    pub(crate) continuous_availability: bool,
    /// SMB messages about it are encrypted
    #[arg(long)]
    pub(crate) encrypted: bool,
    /// The superuser of an NFS client makes device nodes, also where there is a list of clients
    #[arg(long)]
    pub(crate) devices: bool,
    /// Likewise it sets the set-user-id and set-group-id bits of files
    #[arg(long)]
    pub(crate) set_id: bool,
    /// NFS clients come from privileged ports
    #[arg(long)]
    pub(crate) secure_port: bool,
    /// Clients that list the shares are not told of it
    #[arg(long)]
    pub(crate) hidden: bool,
    /// What clients that list the shares are told of it
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) comment: String,
    #[command(flatten)]
    pub(crate) rules: RulesGiven,
    /// Whether what was read of names and directories is kept [default: on]
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) metadata_cache: Option<bool>,
    /// What is provisioned, for example "azure-files-v2-ssd capacity=1TiB iops=5000" [default: unlimited]
    #[arg(long)]
    pub(crate) plan: Option<String>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct ShareSet {
    /// The share
    pub(crate) name: String,
    /// Whether nothing can be changed through it
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) read_only: Option<bool>,
    /// Whether SMB clients without an account are let in, as nobody
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) guest: Option<bool>,
    /// Whether listings show only what their reader may read
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) access_based_enumeration: Option<bool>,
    /// Whether SMB clients get handles that outlive a restart of the server
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) continuous_availability: Option<bool>,
    /// Whether SMB messages about it are encrypted
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) encrypted: Option<bool>,
    /// Whether the superuser of an NFS client makes device nodes, also where there is a list of clients
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) devices: Option<bool>,
    /// Whether it sets the set-user-id and set-group-id bits of files, likewise
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) set_id: Option<bool>,
    /// Whether NFS clients must come from privileged ports
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) secure_port: Option<bool>,
    /// Whether clients that list the shares are not told of it
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) hidden: Option<bool>,
    /// What clients that list the shares are told of it
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    #[command(flatten)]
    pub(crate) rules: RulesGiven,
    /// Whether what was read of names and directories is kept
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) metadata_cache: Option<bool>,
    /// What is provisioned; `unlimited` takes all limits away
    #[arg(long)]
    pub(crate) plan: Option<String>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

/// `on` or `off`, and what people write for them.
fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" | "yes" => Ok(true),
        "off" | "false" | "no" => Ok(false),
        _ => Err("it is on or off (or true, false, yes, no)".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct ShareTop {
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) interval: u64,
    /// Looks after which it ends [default: in a terminal none, elsewhere one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct ShareRecord {
    /// The share
    pub(crate) name: String,
    /// The file, which must not be there yet
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// For how long
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// Operations after which it ends before its time: each takes about 60 bytes
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    pub(crate) operations_max: u64,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct ShareSimulate {
    /// A file that was recorded
    pub(crate) trace: PathBuf,
    /// The plan, for example "azure-files-v1 capacity=1TiB"
    #[arg(long)]
    pub(crate) plan: String,
    /// Burst credits at first [default: as many as there can be]
    #[arg(long, value_name = "N")]
    pub(crate) credits: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Add a user; the password is asked for, or read from standard input
    Add(UserAdd),
    /// List the users: those of the configuration and those added by command
    List(Asking),
    /// Change a user who was added by command
    Set(UserSet),
    /// Remove a user who was added by command, and end the user's sessions
    Remove {
        /// The user
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Args)]
pub(crate) struct UserAdd {
    /// The name
    pub(crate) name: String,
    /// Who it is to the files [default: the user of this machine of the same name]
    #[arg(long)]
    pub(crate) uid: Option<u32>,
    /// The group of what the user makes
    #[arg(long)]
    pub(crate) gid: Option<u32>,
    /// Further groups
    #[arg(long, value_name = "GID", value_delimiter = ',')]
    pub(crate) groups: Option<Vec<u32>>,
    /// The user cannot log on yet
    #[arg(long)]
    pub(crate) disabled: bool,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct UserSet {
    /// The name
    pub(crate) name: String,
    /// Ask for a new password, or read it from standard input
    #[arg(long)]
    pub(crate) password: bool,
    /// Who it is to the files, from the next logon on
    #[arg(long)]
    pub(crate) uid: Option<u32>,
    /// The group of what the user makes
    #[arg(long)]
    pub(crate) gid: Option<u32>,
    /// Further groups, all of them
    #[arg(long, value_name = "GID", value_delimiter = ',')]
    pub(crate) groups: Option<Vec<u32>>,
    /// The user cannot log on any more, and the user's sessions end
    #[arg(long, conflicts_with = "enable")]
    pub(crate) disable: bool,
    /// The user can log on again
    #[arg(long)]
    pub(crate) enable: bool,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it, this once
    Create(TokenCreate),
    /// List the tokens that were made: their names and scopes
    List(Asking),
    /// Withdraw a token: from now on it is not taken
    Remove {
        /// The token
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreate {
    /// The name, to know the token by
    pub(crate) name: String,
    /// What its bearer may do
    #[arg(long, value_enum, default_value = "read")]
    pub(crate) scope: ScopeGiven,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

/// What the bearer of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeGiven {
    /// Look: clients, shares, users, what is going on, metrics of clients
    Read,
    /// The same, and make, change, remove and record shares
    Shares,
    /// Everything, users and tokens too
    All,
}

impl From<ScopeGiven> for control::tokens::Scope {
    fn from(given: ScopeGiven) -> Self {
        match given {
            ScopeGiven::Read => Self::Read,
            ScopeGiven::Shares => Self::Shares,
            ScopeGiven::All => Self::All,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// Say whether the state database is sound, and what is in it; nothing is changed
    Check(StatePlace),
    /// Copy the state database into a file, while a server runs or not
    Backup {
        /// The file, which must not be there yet; it holds keys and password hashes
        file: PathBuf,
        #[command(flatten)]
        place: StatePlace,
    },
    /// Put a copy in the place of the state database, which is kept beside it; no server may run
    Restore {
        /// The copy [default: the last good one, which servers keep in the state directory]
        file: Option<PathBuf>,
        #[command(flatten)]
        place: StatePlace,
    },
}

/// Where a state database is.
#[derive(Debug, Args)]
pub(crate) struct StatePlace {
    /// The state directory [default: that of the variable ANABRANCH_STATE, else /var/lib/anabranch]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

impl StatePlace {
    /// The state directory.
    pub(crate) fn directory(&self) -> PathBuf {
        state_directory::given(self.state.clone()).unwrap_or_else(|| state_directory::DEFAULT.into())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The address to listen on; 0.0.0.0 lets other machines in (NFS asks for no password)
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// The port of SMB [default: 10445, or the next that is free]
    #[arg(long, value_name = "PORT")]
    pub(crate) smb: Option<u16>,
    /// The port of NFS [default: 12049, or the next that is free]
    #[arg(long, value_name = "PORT")]
    pub(crate) nfs: Option<u16>,
    /// The port of health, metrics and the API, on 127.0.0.1 [default: 18080, or the next that is free]
    #[arg(long, value_name = "PORT")]
    pub(crate) control: Option<u16>,
    /// The state directory, which has the password, too [default: anabranch-demo/state]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
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
mod documents;

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

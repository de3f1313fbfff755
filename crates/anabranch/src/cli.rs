//! The command line.

mod cluster;
mod deleted_shares;
mod pools;
mod quotas;
mod redundancy;
mod replicate;
mod restore;
mod share_terms;
mod snapshots;
mod users;
mod vserver_shares;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::advise::Advise;
use crate::asking::Asking;
use crate::bench::BenchCommand;
use crate::check::Check;
use crate::import::ImportCommand;
use crate::report::ReportCommand;
use crate::settings::Given;
use crate::state_directory;

pub(crate) use self::cluster::{ClusterCommand, VserverCommand, VserverCreate};
pub(crate) use self::deleted_shares::{SharePurge, ShareUndelete};
pub(crate) use self::pools::{InPool, PoolCommand};
pub(crate) use self::quotas::{QuotaCommand, QuotaSet};
pub(crate) use self::redundancy::{ClusterPools, StorageGiven};
pub(crate) use self::replicate::ShareReplicate;
pub(crate) use self::restore::ShareRestore;
use self::share_terms::parse_switch;
pub(crate) use self::share_terms::{ShareTerms, ShareTermsChange};
pub(crate) use self::snapshots::{PolicyCommand, PolicyRules, SnapshotCommand, SnapshotCreate};
pub(crate) use self::users::{OfCluster, UserAdd, UserCommand, UserList, UserSet};
pub(crate) use self::vserver_shares::VserverShareCommand;

/// A file server: serves directories over SMB 3.1.1 and over NFS v3, v4.1 and v4.2 at the same time.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 110, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str =
    "Exit status: 0 success, or ended by a signal; 1 failure while serving; 2 command line or configuration;
3 state directory; 4 address or port; 5 directory of a share; 6 the running server cannot be reached;
7 the request was refused; 8 a measurement failed.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve ./anabranch-demo on unprivileged ports and show how to mount it
    Demo(Demo),
    /// Serve shares
    Serve(Box<Serve>),
    /// Check a configuration file: list all errors and warnings, and the effective configuration; changes nothing
    Check(Check),
    /// Show the configuration of a running server, or of a file
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Have the running server read its configuration again, while clients work
    Reload(Asking),
    /// Show the clients of the server on this machine
    #[command(subcommand)]
    Client(ClientCommand),
    /// Create, change and remove shares of a running server, or in the state directory of a stopped one
    #[command(subcommand)]
    Share(Box<ShareCommand>),
    /// List, take, protect and remove snapshots of the shares of a running server
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Create, show and remove policies, which take snapshots of shares and keep some of them
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// List the pools, in which the server makes the directories of shares
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Make, show, join and leave a cluster of gateways, which serve vservers in CephFS
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Make, list, move and remove vservers, which the gateways of a cluster pass on to each other
    #[command(subcommand)]
    Vserver(VserverCommand),
    /// Set, list, check, show and remove quotas of users, groups and directories
    #[command(subcommand)]
    Quota(QuotaCommand),
    /// Show what is going on: health, clients, and each share with its use, its plan and what waits
    Status(Asking),
    /// List and close the files that clients have open
    #[command(subcommand)]
    File(FileCommand),
    /// List the byte ranges that clients have locked
    #[command(subcommand)]
    Lock(LockCommand),
    /// Add, change and remove SMB users of a running server, or in the state directory of a stopped one
    #[command(subcommand)]
    User(UserCommand),
    /// Create and revoke tokens for the API on the control address
    #[command(subcommand)]
    Token(TokenCommand),
    /// Import and show the Kerberos keys of a server, and test its users
    #[command(subcommand)]
    Domain(DomainCommand),
    /// Check, back up and restore the state database of a server
    #[command(subcommand)]
    State(StateCommand),
    /// Make a configuration from that of Samba or of the kernel's NFS server
    #[command(subcommand)]
    Import(ImportCommand),
    /// Generate load on any SMB or NFS server, or on a directory, and measure it
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Explain a measurement: which settings would help, which would not, and the commands that change them
    Advise(Advise),
    /// Compare results with the statements of the vendors' documents, as an HTML page, Markdown or JSON
    Report(ReportCommand),
    /// Print the completions of a shell: `source <(anabranch completions bash)`
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of all commands into a new folder, for packages
    #[command(hide = true)]
    ManualPages {
        /// The folder
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the configuration in effect, with defaults and where each value is from
    Show(ConfigShow),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigShow {
    /// A configuration file [default: the configuration of the running server]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["state", "control"])]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// List SMB sessions with their channels, and NFS clients with their connections
    List(Asking),
    /// Explain why a client has fewer channels or connections than it could have, and what to do
    Explain(Asking),
    /// Recommend read-ahead settings for NFS clients, with what each client reads now
    Hint(Asking),
    /// End a client's sessions and connections, its opens and its locks. The client may connect again
    Disconnect {
        /// The client's address, or an SMB session such as 0x1a
        client: String,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FileCommand {
    /// List the open files: who has them open, with what access, and what the client may cache. NFSv3 has no opens
    List(HoldingList),
    /// Close an open file. Data that its client has not sent yet is lost
    Close {
        /// The ID of the open file, as in the list
        id: String,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    /// List the locked byte ranges, with the files and their clients
    List(HoldingList),
}

#[derive(Debug, Args)]
pub(crate) struct HoldingList {
    /// Only entries of this share
    #[arg(long, value_name = "NAME")]
    pub(crate) share: Option<String>,
    /// Only entries of the client at this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) client: Option<IpAddr>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ShareCommand {
    /// Create a share and serve it
    Create(ShareCreate),
    /// List the shares of the configuration and those created by command
    List {
        /// List the removed shares that can be brought back
        #[arg(long)]
        deleted: bool,
        #[command(flatten)]
        asking: Asking,
    },
    /// Show one share: its plan, its usage, which operations waited and why, and what its calls cost
    Show {
        /// The share
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Change a share that was created by command, while clients use it
    Set(ShareSet),
    /// Remove a share that was created by command; its directory and files are kept, and `anabranch share undelete` brings it back
    Remove {
        /// The share
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    Undelete(ShareUndelete),
    Purge(SharePurge),
    /// Make a share what it was when a snapshot was taken: its clients lose what they have open, and what the share holds now becomes
    /// a snapshot
    Revert {
        /// The share
        name: String,
        /// The name of the snapshot, as in `anabranch snapshot list`
        #[arg(long, value_name = "SNAPSHOT")]
        to: String,
        #[command(flatten)]
        asking: Asking,
    },
    Restore(ShareRestore),
    /// List the alarms about clients that work in a share as ransomware does, or end one
    Alarms {
        /// The share
        name: String,
        /// End the alarm with this number: its client is no longer slowed, and what it has done is forgotten
        #[arg(long, value_name = "NUMBER")]
        end: Option<u64>,
        #[command(flatten)]
        asking: Asking,
    },
    Replicate(Box<ShareReplicate>),
    /// List the named streams of a share that lead nowhere: streams of no file, and files whose streams are missing
    Check {
        /// The share
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Show the activity of the shares
    Top(ShareTop),
    /// Record the operations of a share's clients into a file
    Record(ShareRecord),
    /// Simulate a plan with a recorded trace: which operations would have waited, how long, and when the credits would have run out
    Simulate(ShareSimulate),
}

#[derive(Debug, Args)]
pub(crate) struct ShareCreate {
    /// The name of the share; clients see \\SERVER\NAME and SERVER:/NAME
    pub(crate) name: String,
    /// The directory to serve, as an absolute path
    #[arg(required_unless_present = "pool", conflicts_with = "pool")]
    pub(crate) directory: Option<String>,
    #[command(flatten)]
    pub(crate) in_pool: InPool,
    #[command(flatten)]
    pub(crate) terms: ShareTerms,
    /// Give SMB clients persistent handles, which survive a restart of the server
    #[arg(long)]
    pub(crate) continuous_availability: bool,
    /// Create the directory for the members of a system group, who may do everything in it, and admit only them
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["read", "write", "elevated", "admin", "default_role", "guest", "control"])]
    pub(crate) for_group: Option<String>,
    /// Cache names, attributes and directories [default: on]
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) metadata_cache: Option<bool>,
    #[command(flatten)]
    pub(crate) storage: StorageGiven,
    /// The policy that takes snapshots of the share [default: none]
    #[arg(long, value_name = "POLICY", default_value = "", hide_default_value = true)]
    pub(crate) snapshot_policy: String,
    /// Keep deleted files in .recycle, for example "on keep=30d exclude=*.tmp" [default: off]
    #[arg(long, value_name = "off|on...", default_value = "", hide_default_value = true)]
    pub(crate) recycle_bin: String,
    /// When to raise an alarm about a client that works as ransomware does, and what to do then, for example
    /// "on snapshot=7d slow" [default: on]
    #[arg(long, value_name = "off|on...", default_value = "", hide_default_value = true)]
    pub(crate) ransomware_alarm: String,
    /// Make the directory, of what this share held at a snapshot: a copy that can be changed. With the snapshot's name or its time
    #[arg(long, value_name = "SHARE@SNAPSHOT", conflicts_with = "for_group")]
    pub(crate) from: Option<String>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct ShareSet {
    /// The share
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) terms: ShareTermsChange,
    /// Cache names, attributes and directories
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) metadata_cache: Option<bool>,
    /// The storage medium of a directory of this machine, which is stated and not checked: ssd or hdd; "" removes it
    #[arg(long, value_name = "ssd|hdd")]
    pub(crate) tier: Option<String>,
    /// What a share of a pool may hold: not less than it holds
    #[arg(long, value_name = "1TiB", value_parser = pools::parse_size)]
    pub(crate) size: Option<u64>,
    /// The policy that takes snapshots of the share; "" removes it
    #[arg(long, value_name = "POLICY")]
    pub(crate) snapshot_policy: Option<String>,
    /// Keep deleted files in .recycle, for example "on keep=30d exclude=*.tmp"
    #[arg(long, value_name = "off|on...")]
    pub(crate) recycle_bin: Option<String>,
    /// When to raise an alarm about a client that works as ransomware does, and what to do then, for example
    /// "on snapshot=7d slow"
    #[arg(long, value_name = "off|on...")]
    pub(crate) ransomware_alarm: Option<String>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct ShareTop {
    /// Seconds between updates
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) interval: u64,
    /// The number of updates [default: unlimited in a terminal, otherwise 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Show the clients instead of their operations
    #[arg(long)]
    pub(crate) clients: bool,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct ShareRecord {
    /// The share
    pub(crate) name: String,
    /// The file, which must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The duration, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// The maximum number of operations to record, of about 60 bytes each
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    pub(crate) operations_max: u64,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct ShareSimulate {
    /// A file written by `share record`
    pub(crate) trace: PathBuf,
    /// The plan, for example "azure-files-v1 capacity=1TiB"
    #[arg(long)]
    pub(crate) plan: String,
    /// Burst credits at the start [default: the maximum]
    #[arg(long, value_name = "N")]
    pub(crate) credits: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it cannot be shown again
    Create(TokenCreate),
    /// List the tokens with their scopes
    List(Asking),
    /// Revoke a token
    Remove {
        /// The token
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreate {
    /// The name of the token
    pub(crate) name: String,
    /// What the token allows
    #[arg(long, value_enum, default_value = "read")]
    pub(crate) scope: ScopeGiven,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

/// What the bearer of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeGiven {
    /// Read clients, shares, users, activity and per-client metrics
    Read,
    /// As `read`, and create, change, remove and record shares
    Shares,
    /// Only to read all that is in any share, to replicate it
    Replicate,
    /// Everything, including users and tokens
    All,
}

impl From<ScopeGiven> for control::tokens::Scope {
    fn from(given: ScopeGiven) -> Self {
        match given {
            ScopeGiven::Read => Self::Read,
            ScopeGiven::Shares => Self::Shares,
            ScopeGiven::Replicate => Self::Replicate,
            ScopeGiven::All => Self::All,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// Check the state database and list its contents; changes nothing
    Check(StatePlace),
    /// Copy the state database into a file; the server may be running
    Backup {
        /// The file, which must not exist; it will contain keys and password hashes
        file: PathBuf,
        #[command(flatten)]
        place: StatePlace,
    },
    /// Replace the state database with a copy and keep the old one beside it; the server must be stopped
    Restore {
        /// The copy [default: the last good one in the state directory]
        file: Option<PathBuf>,
        #[command(flatten)]
        place: StatePlace,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DomainCommand {
    /// Copy a keytab into the state directory: the keys with which the server accepts tickets
    Import {
        /// The keytab, with AES keys for cifs/NAME of each name by which clients connect
        #[arg(long, value_name = "FILE")]
        keytab: PathBuf,
        #[command(flatten)]
        place: StatePlace,
    },
    /// Show what a keytab holds, names of this machine without a key, how much the clocks differ, and who is asked for users
    Status(DomainStatus),
    /// Show what a user becomes here (SID, groups, uid, role in each share), and by which rule
    Test {
        /// The account (alice), the user of a domain (alice@EXAMPLE.ORG, 'EXAMPLE\\alice'), or a SID
        user: String,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DomainStatus {
    /// The keytab [default: that of the server that runs, else the one that was imported into the state directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) keytab: Option<PathBuf>,
    /// The KDC or domain controller whose clock is compared [default: the realm's name in lower case]
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) kdc: Option<String>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

/// Where a state database is.
#[derive(Debug, Args)]
pub(crate) struct StatePlace {
    /// The state directory [default: $ANABRANCH_STATE, else /var/lib/anabranch]
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
    /// The address to listen on; 0.0.0.0 admits other machines (NFS asks for no password)
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// The SMB port [default: 10445, or the next free one]
    #[arg(long, value_name = "PORT")]
    pub(crate) smb: Option<u16>,
    /// The NFS port [default: 12049, or the next free one]
    #[arg(long, value_name = "PORT")]
    pub(crate) nfs: Option<u16>,
    /// The port of health, metrics and the API, on 127.0.0.1 [default: 18080, or the next free one]
    #[arg(long, value_name = "PORT")]
    pub(crate) control: Option<u16>,
    /// The state directory, which also holds the password [default: anabranch-demo/state]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A TOML file whose keys are the names of the flags below; a flag overrides its key
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// With `ntlm` off: start although accounts of which there is an NT hash alone lose it; set their passwords afterwards
    #[arg(long)]
    pub(crate) force: bool,
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

//! The command line of `anabranch advise`.

use std::path::PathBuf;
use std::str::FromStr;

use advise::Profile;
use clap::{Args, Subcommand, ValueEnum};
use load::target::Target;

use crate::asking::Asking;

/// What to advise on: a result, facts, a client of the server that runs, a target that is measured, or this machine.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Advise {
    #[command(subcommand)]
    pub(super) command: Option<AdviseCommand>,
    /// A result of `anabranch bench ... --out FILE`, a directory of results, or a target: smb://USER@HOST/SHARE (password in ANABRANCH_PASSWORD) or nfs://HOST/PATH
    #[arg(required_unless_present_any = ["facts", "client"], value_name = "RESULT|DIRECTORY|TARGET")]
    pub(super) subject: Option<Subject>,
    /// A JSON file of facts in place of a result (fields: docs/advice.md)
    #[arg(long, value_name = "FILE", conflicts_with = "subject")]
    pub(super) facts: Option<PathBuf>,
    /// A client of the running server: its address, ClientGuid, session, user, or NFSv4 client name
    #[arg(long, value_name = "NAME|ADDRESS", conflicts_with_all = ["subject", "facts"])]
    pub(super) client: Option<String>,
    /// Only this share of the client
    #[arg(long, value_name = "NAME", requires = "client")]
    pub(super) share: Option<String>,
    /// How long to observe the client, in seconds
    #[arg(long, value_name = "SECONDS", requires = "client", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(super) seconds: u64,
    /// Measure the target for half a minute, in a folder that is removed afterwards, and base the advice on that
    #[arg(long, requires = "subject")]
    pub(super) measure: bool,
    /// With a result or a target: also what the rules say of each kind of work
    #[arg(long, requires = "subject")]
    pub(super) rows: bool,
    /// Try the advised changes of the share of the server on this machine one after the other: measure with and without each, and
    /// keep the first that clearly helps
    #[arg(long, conflicts_with = "facts")]
    pub(super) apply: bool,
    /// The service that the server belongs to
    #[arg(long, value_enum, default_value_t = SoldAs::Other)]
    pub(super) profile: SoldAs,
    #[command(flatten)]
    pub(super) asking: Asking,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum AdviseCommand {
    /// Compare this machine, as client or server, with the recommendations of the vendors' documents
    Host {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What the first word names.
#[derive(Debug, Clone)]
pub(crate) enum Subject {
    Result(PathBuf),
    Target(Target),
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.contains("://") {
            return Ok(Self::Result(text.into()));
        }
        let target: Target = text.parse().map_err(|e| format!("{e}"))?;
        Ok(Self::Target(target))
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SoldAs {
    AzureFiles,
    AzureNetappFiles,
    Other,
}

impl From<SoldAs> for Profile {
    fn from(sold_as: SoldAs) -> Self {
        match sold_as {
            SoldAs::AzureFiles => Self::AzureFiles,
            SoldAs::AzureNetappFiles => Self::AzureNetappFiles,
            SoldAs::Other => Self::Other,
        }
    }
}

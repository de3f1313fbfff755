//! The command line of `anabranch quota`.

use clap::{Args, Subcommand};

use crate::asking::Asking;

#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    /// Set a quota of a share; one that is there already is replaced
    Set(QuotaSet),
    /// List the quotas of a share, and who holds how much
    List {
        /// The share
        share: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Have all files of a share counted again, because local programs have changed some
    Check {
        /// The share
        share: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Show one quota of a share
    Show {
        /// The share
        share: String,
        /// Whose quota, as in the list
        subject: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Remove a quota of a share
    Remove {
        /// The share
        share: String,
        /// Whose quota, as in the list
        subject: String,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Args)]
pub(crate) struct QuotaSet {
    /// The share
    pub(crate) share: String,
    /// Whose quota: a directory (/projects), a user (anna, 1000, AD\anna), a group (@staff), each user (*), each group (@*)
    #[arg(value_name = "/DIRECTORY|USER|@GROUP|*|@*")]
    pub(crate) subject: String,
    /// More than this may be held for the grace [default: none]
    #[arg(long, value_name = "8GiB")]
    pub(crate) soft: Option<String>,
    /// More than this is never held [default: none]
    #[arg(long, value_name = "10GiB")]
    pub(crate) hard: Option<String>,
    /// How long more than the soft limit may be held [default: 7d]
    #[arg(long, value_name = "12h|14d")]
    pub(crate) grace: Option<String>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

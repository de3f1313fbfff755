//! The command lines of `anabranch share undelete` and `anabranch share purge`.

use clap::Args;

use crate::asking::Asking;

/// Bring a share back that was removed, as it was: its directory, its plan, its rights and its quotas
#[derive(Debug, Args)]
pub(crate) struct ShareUndelete {
    /// The name that the share had
    pub(crate) name: String,
    /// The name that it gets [default: the one that it had]
    #[arg(long = "as", value_name = "NEW")]
    pub(crate) new_name: Option<String>,
    /// The directory that the server made in a pool was restored from a backup, and is that of the share from now on
    #[arg(long)]
    pub(crate) restored: bool,
    /// Which one, if several deleted shares had the name: its ID, as in `anabranch share list --deleted`
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<u32>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

/// End the time in which a removed share can be brought back; its directory is removed if the server made it in a pool, and otherwise
/// kept
#[derive(Debug, Args)]
pub(crate) struct SharePurge {
    /// The name that the share had
    pub(crate) name: String,
    /// Which one, if several deleted shares had the name: its ID, as in `anabranch share list --deleted`
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<u32>,
    /// Keep the directory that the server made in a pool, with its files
    #[arg(long)]
    pub(crate) keep_files: bool,
    /// Do not ask for the name again
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

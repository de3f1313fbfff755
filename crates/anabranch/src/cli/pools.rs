//! The command line of `anabranch pool`, and what of `anabranch share create` concerns pools.

use clap::{Args, Subcommand};

use crate::asking::Asking;

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// List the pools of the configuration: their shares, the sizes of these together, and the room of the file systems
    List(Asking),
}

/// A number of bytes and its unit.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    limits::parse_size(text).ok_or_else(|| format!("{text:?} is no size, such as 512MiB or 1TiB"))
}

/// The directory of a share that the server makes.
#[derive(Debug, Args)]
pub(crate) struct InPool {
    /// Have the directory made in this pool of the configuration; it goes with the share when that is purged
    #[arg(long, value_name = "POOL", requires = "size", conflicts_with_all = ["for_group", "from"])]
    pub(crate) pool: Option<String>,
    /// What a share of a pool may hold
    #[arg(long, value_name = "1TiB", requires = "pool")]
    pub(crate) size: Option<String>,
    /// To whom the directory in the pool belongs: names or numbers of this machine [default: root]
    #[arg(long, value_name = "USER[:GROUP]", requires = "pool")]
    pub(crate) owner: Option<String>,
}

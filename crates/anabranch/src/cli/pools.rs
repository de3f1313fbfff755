//! The command line of `anabranch pool`.

use clap::Subcommand;

use crate::asking::Asking;

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// List the pools of the configuration: their shares, the sizes of these together, and the room of the file systems
    List(Asking),
}

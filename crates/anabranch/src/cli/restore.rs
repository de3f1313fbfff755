//! The command line of `anabranch share restore`.

use clap::Args;

use crate::asking::Asking;

/// Restore a file or a directory of a share from a snapshot, while clients use the share. What is large goes on in the server if this
/// command is interrupted, and after a restart of the server
#[derive(Debug, Args)]
pub(crate) struct ShareRestore {
    /// The share
    pub(crate) name: String,
    /// The file or directory, as a path from the root of the share; / is all of it
    #[arg(required_unless_present_any = ["status", "cancel"])]
    pub(crate) path: Option<String>,
    /// The snapshot: its name or its time, as in `anabranch snapshot list`
    #[arg(long, value_name = "SNAPSHOT|TIME", required_unless_present_any = ["status", "cancel"])]
    pub(crate) from: Option<String>,
    /// Where to restore it, as a path from the root of the share [default: the same path]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["status", "cancel"])]
    pub(crate) to: Option<String>,
    /// Have files take the place of those that are there; a directory is merged with the one that is there
    #[arg(long, conflicts_with_all = ["status", "cancel"])]
    pub(crate) replace: bool,
    /// Do not wait for the end
    #[arg(long, conflicts_with_all = ["status", "cancel"])]
    pub(crate) background: bool,
    /// Show how far the restore of the share is, or what became of the last
    #[arg(long, conflicts_with_all = ["path", "from", "cancel"])]
    pub(crate) status: bool,
    /// Have the restore of the share stop; what was restored stays
    #[arg(long, conflicts_with_all = ["path", "from"])]
    pub(crate) cancel: bool,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

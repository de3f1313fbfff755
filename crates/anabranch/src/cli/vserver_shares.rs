//! The command line of `anabranch vserver share`.

use clap::{Args, Subcommand};

use super::{ShareTerms, ShareTermsChange};
use crate::asking::Asking;

#[derive(Debug, Subcommand)]
pub(crate) enum VserverShareCommand {
    /// Add a share to a vserver and serve it; clients of other shares notice nothing
    Add(VserverShareAdd),
    /// Change a share of a vserver, while clients use it
    Set(VserverShareSet),
    /// Remove a share from a vserver; its directory and files are kept
    Remove {
        /// The vserver
        vserver: String,
        /// The share
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Move a share to another vserver: its clients connect there, and keep nothing that they had open
    Move {
        /// The share
        name: String,
        /// The vserver that has it
        from: String,
        /// The vserver to which it moves
        to: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// List the shares of a vserver, or of all
    List {
        /// The vserver [default: all]
        vserver: Option<String>,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Args)]
pub(crate) struct VserverShareAdd {
    /// The vserver
    pub(crate) vserver: String,
    /// The name of the share, which no other share of the vserver has
    pub(crate) name: String,
    /// The directory to serve, which is in CephFS: cephfs:/PATH
    pub(crate) directory: String,
    #[command(flatten)]
    pub(crate) terms: ShareTerms,
    /// Give SMB clients no handles that survive the death of a gateway
    #[arg(long)]
    pub(crate) no_continuous_availability: bool,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct VserverShareSet {
    /// The vserver
    pub(crate) vserver: String,
    /// The share
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) terms: ShareTermsChange,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

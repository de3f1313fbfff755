//! `anabranch user`: accounts.

use clap::{Args, Subcommand};

use crate::asking::Asking;

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Add a user; prompts for the password, or reads it from standard input
    Add(UserAdd),
    /// List the users: those of the configuration and those added by command
    List(UserList),
    /// Change a user that was added by command
    Set(UserSet),
    /// Remove a user who was added by command, and end the user's sessions
    Remove {
        /// The user
        name: String,
        #[command(flatten)]
        of: OfCluster,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Args)]
pub(crate) struct UserList {
    #[command(flatten)]
    pub(crate) of: OfCluster,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

/// Whose users are meant.
#[derive(Debug, Args)]
pub(crate) struct OfCluster {
    /// The users of the cluster, who may log on to all its vservers, in place of those of this server
    #[arg(long = "cluster")]
    pub(crate) is_meant: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UserAdd {
    /// The name
    pub(crate) name: String,
    /// The user ID for file access [default: that of the system user of the same name]
    #[arg(long)]
    pub(crate) uid: Option<u32>,
    /// The primary group ID
    #[arg(long)]
    pub(crate) gid: Option<u32>,
    /// Supplementary group IDs
    #[arg(long, value_name = "GID", value_delimiter = ',')]
    pub(crate) groups: Option<Vec<u32>>,
    /// Create the user disabled: it cannot log on
    #[arg(long)]
    pub(crate) disabled: bool,
    #[command(flatten)]
    pub(crate) of: OfCluster,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Args)]
pub(crate) struct UserSet {
    /// The name
    pub(crate) name: String,
    /// Prompt for a new password, or read it from standard input
    #[arg(long)]
    pub(crate) password: bool,
    /// The user ID for file access, from the next logon on
    #[arg(long)]
    pub(crate) uid: Option<u32>,
    /// The primary group ID
    #[arg(long)]
    pub(crate) gid: Option<u32>,
    /// Supplementary group IDs, which replace the present ones
    #[arg(long, value_name = "GID", value_delimiter = ',')]
    pub(crate) groups: Option<Vec<u32>>,
    /// Disable the user and end its sessions
    #[arg(long, conflicts_with = "enable")]
    pub(crate) disable: bool,
    /// Enable the user again
    #[arg(long)]
    pub(crate) enable: bool,
    #[command(flatten)]
    pub(crate) of: OfCluster,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

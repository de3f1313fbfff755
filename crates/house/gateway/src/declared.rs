//! What the configuration declares.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use auth::{Account, same_name};

use crate::settings::{COMMAND_LINE, ShareSettings, same_share_name};

/// What the configuration declares.
#[derive(Debug, Default, Clone)]
pub(crate) struct Declared {
    /// The shares; their names are different ones.
    pub(crate) shares: Vec<DeclaredShare>,
    /// Where: a file, or the command line.
    pub(crate) shares_in: String,
    /// Those who may log on, with their passwords.
    pub(crate) accounts: Vec<Account>,
    /// Likewise.
    pub(crate) accounts_in: String,
    /// Nothing is carried in the clear, by no share.
    pub(crate) encryption_required: bool,
    /// For measurements: how much slower the metadata of all shares is.
    pub(crate) metadata_latency: Option<Duration>,
    /// Likewise: what calls cost is not counted.
    pub(crate) is_uncounted: bool,
}

/// A share that the configuration declares.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeclaredShare {
    /// As it is declared.
    pub(crate) given: ShareSettings,
    /// Absolute.
    pub(crate) directory: PathBuf,
    /// Its storage did not answer when the directory was looked for: it may be another one, by a symbolic link.
    pub(crate) is_unseen: bool,
}

/// Why shares that should be served are not, by folded name.
pub(crate) type Idle = HashMap<String, String>;

impl Declared {
    /// The share of this name.
    pub(crate) fn share(&self, name: &str) -> Option<&DeclaredShare> {
        self.shares.iter().find(|share| same_share_name(&share.given.name, name))
    }

    /// The account of this name.
    pub(crate) fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| same_name(&account.name, name))
    }

    /// What to do where something is to be changed that is declared in this place.
    pub(crate) fn advice(&self, place: &str) -> String {
        if place == COMMAND_LINE {
            return format!("Change it there, and start the server again ({place}).");
        }
        format!("Change it there, and send the server SIGHUP, which reads it again ({place}).")
    }
}

//! What a gateway serves, and how: settings that are whole.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use limits::Plan;
use share::{Rules, Squash, Terms};
use smb_server::{GivenInterface, Protection};

use crate::control_tls::CertificateFiles;

/// Where what no file declares is declared, for people.
pub const COMMAND_LINE: &str = "the command line of the server";

/// Settings of a gateway.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names unique without regard to case. Further ones may have been made by command.
    pub shares: Vec<ShareSettings>,
    /// Where the shares are declared, for people: a file, or [`COMMAND_LINE`].
    pub shares_in: String,
    /// Names unique without regard to case. Further ones may have been added by command.
    pub users: Vec<UserSettings>,
    /// Where the users are declared, likewise.
    pub users_in: String,
    /// Names and addresses that the control address answers to, beside localhost and the address that is asked.
    pub control_names: Vec<String>,
    /// None: on loopback nothing, elsewhere a certificate of the server's own.
    pub control_certificate: Option<CertificateFiles>,
    /// The state directory: that of this gateway alone.
    pub state: PathBuf,
    /// Signing of SMB messages.
    pub smb_signing: Protection,
    /// Encryption of SMB messages.
    pub smb_encryption: Protection,
    /// Channels of one SMB session at most, 1 to 32; 1: no multichannel.
    pub max_channels: u32,
    /// Connections of one address at most, for SMB and for NFS each; None: the rule of `net`.
    pub connections_per_address: Option<usize>,
    /// Empty: the machine's addresses on which SMB listens.
    pub smb_interfaces: Vec<GivenInterface>,
    /// Which users of NFS clients are taken for nobody.
    pub nfs_squash: Squash,
    /// How long an NFSv4 client keeps its files and locks without a word.
    pub nfs_lease: Duration,
    /// Who an NFS user is taken for when squashed: uid and gid; None: nobody.
    pub nfs_anonymous: Option<(u32, u32)>,
    /// For measurements: how much slower the metadata of all shares is.
    pub bench_metadata_latency: Option<Duration>,
    /// Whether what calls cost is counted.
    pub bench_accounting: bool,
}

/// A share that is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareSettings {
    /// One that [`check_share_name`] takes.
    pub name: String,
    /// What it serves; relative to the directory in which the process is.
    pub directory: PathBuf,
    /// On what terms clients use it.
    pub terms: Terms,
    /// Who may use it.
    pub rules: Rules,
    /// What clients that list the shares are told of it.
    pub comment: String,
    /// What is provisioned for it.
    pub plan: Plan,
    /// Whether what was read of names and directories is kept.
    pub metadata_cache: bool,
}

/// A user who is declared.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserSettings {
    /// One that [`check_user_name`] takes.
    pub name: String,
    /// None: the one that the state database holds.
    pub password: Option<String>,
    /// None: that of the user of this machine of the same name.
    pub uid: Option<u32>,
    /// None: that of the user of this machine, else the uid.
    pub gid: Option<u32>,
    /// None: those of the user of this machine.
    pub groups: Option<Vec<u32>>,
}

impl fmt::Debug for UserSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Settings {
    /// The defaults, with this state directory: no shares and no users but those that were made by command; signing required,
    /// encryption offered, 4 channels, NFS with its superuser squashed and a lease of 90 s.
    pub fn new(state: PathBuf) -> Self {
        Self {
            shares: Vec::new(),
            shares_in: COMMAND_LINE.to_owned(),
            users: Vec::new(),
            users_in: COMMAND_LINE.to_owned(),
            control_names: Vec::new(),
            control_certificate: None,
            state,
            smb_signing: Protection::Required,
            smb_encryption: Protection::Enabled,
            max_channels: 4,
            connections_per_address: None,
            smb_interfaces: Vec::new(),
            nfs_squash: Squash::Root,
            nfs_lease: Duration::from_secs(90),
            nfs_anonymous: None,
            bench_metadata_latency: None,
            bench_accounting: true,
        }
    }

    /// Whether no share may be served in the clear.
    pub fn encryption_required(&self) -> bool {
        self.smb_encryption == Protection::Required
    }
}

impl ShareSettings {
    /// A share that everybody who can log on, and every NFS client, may use.
    pub fn new(name: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            directory: directory.into(),
            terms: Terms::empty(),
            rules: Rules::default(),
            comment: String::new(),
            plan: Plan::Unlimited,
            metadata_cache: true,
        }
    }
}

/// Characters that neither SMB nor a mount command can have in the name of a share.
const SHARE_NAME_FORBIDDEN: &str = "\"\\/[]:|<>+=;,*?";
/// Names that clients or the server use for something else, in lower case. [MS-SRVS] 3.1.4.7: "pipe" or
/// "mailslot".
const SHARE_NAMES_RESERVED: [&str; 6] = ["ipc$", "admin$", "global", "homes", "pipe", "mailslot"];
/// Longest name of a share, in bytes.
const SHARE_NAME_MAX: usize = 80;

/// Whether SMB and NFS can carry this name of a share. [MS-FSCC] 2.1.6
///
/// # Errors
/// Why they cannot, in words.
pub fn check_share_name(name: &str) -> Result<(), String> {
    check_name("share", name, SHARE_NAME_FORBIDDEN, SHARE_NAME_MAX)?;
    if SHARE_NAMES_RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the name {name} is reserved"));
    }
    Ok(())
}

/// Whether two names of shares are the same one.
pub fn same_share_name(one: &str, other: &str) -> bool {
    share::folded_name(one) == share::folded_name(other)
}

/// Characters that a name of an account cannot have.
const USER_NAME_FORBIDDEN: &str = "\"\\/[]:;|=,+*?<>@%";
/// What the system takes for no user or group at all (chown(2)).
const NO_ID: u32 = u32::MAX;
/// Longest name of an account, in bytes.
const USER_NAME_MAX: usize = 64;

/// Whether this can be the name of an account.
///
/// # Errors
/// Why it cannot, in words.
pub fn check_user_name(name: &str) -> Result<(), String> {
    check_name("user", name, USER_NAME_FORBIDDEN, USER_NAME_MAX)
}

/// Whether these can be a user and groups.
///
/// # Errors
/// One of them is nobody's number.
pub fn check_ids(name: &str, mut ids: impl Iterator<Item = u32>) -> Result<(), String> {
    if ids.any(|id| id == NO_ID) {
        Err(format!("{NO_ID} is nobody's number: the user {name} cannot have it"))
    } else {
        Ok(())
    }
}

fn check_name(what: &str, name: &str, forbidden: &str, max: usize) -> Result<(), String> {
    if name.is_empty() {
        return Err(format!("the name of the {what} is empty"));
    }
    if name.len() > max {
        return Err(format!("the name of the {what} is longer than {max} bytes"));
    }
    if let Some(bad) = name.chars().find(|c| c.is_control() || forbidden.contains(*c)) {
        return Err(format!("the name of the {what} cannot have the character {bad:?}"));
    }
    if name.trim() != name || name == "." || name == ".." {
        return Err(format!("{name:?} cannot be the name of a {what}"));
    }
    Ok(())
}

//! The complete settings of a gateway.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use limits::{Media, Plan};
pub use nfs_server::GroupsBy;
use schedule::Policy;
use share::{QuotaRule, RansomwareRule, RecycleBin, Rules, Squash, Terms};
use smb_server::{ChannelBinding, GivenInterface, Ntlm, Protection};
pub use storage_ceph::Place as CephPlace;

use crate::admins::Admin;
use crate::control_tls::CertificateFiles;
use crate::kerberos::KerberosSettings;
use crate::retention::Retention;

/// The place of declarations that are not in a file, in messages.
pub const COMMAND_LINE: &str = "the command line of the server";

/// A gateway of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Its name, which no other gateway of the cluster has.
    pub gateway: String,
    /// The pool in which the gateways agree.
    pub pool: String,
}

/// Settings of a gateway.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The declared shares. Their names are unique regardless of case. More shares may have been created by command.
    pub shares: Vec<ShareSettings>,
    /// The place where the shares are declared, in messages: a file, or [`COMMAND_LINE`].
    pub shares_in: String,
    /// The shares that are declared in other places, as names and places.
    pub shares_elsewhere: Vec<(String, String)>,
    /// The shares that other servers have. Their names are unique regardless of case, and none is that of a declared share.
    pub moved: Vec<MovedShare>,
    /// The declared snapshot policies. Their names are unique regardless of case. More may have been created by command.
    pub policies: Vec<PolicySettings>,
    /// The place where the policies are declared, in messages.
    pub policies_in: String,
    /// The declared pools. Their names are unique regardless of case.
    pub pools: Vec<PoolSettings>,
    /// The place where the pools are declared, in messages.
    pub pools_in: String,
    /// The declared users. Their names are unique regardless of case. More users may have been added by command.
    pub users: Vec<UserSettings>,
    /// The place where the users are declared, in messages.
    pub users_in: String,
    /// The users that are declared in other places, as names and places.
    pub users_elsewhere: Vec<(String, String)>,
    /// Where the file system is in which shares may lie whose directories are written `cephfs:/PATH`.
    pub ceph: CephPlace,
    /// Which gateway of which cluster it is. None: none.
    pub cluster: Option<ClusterSettings>,
    /// Names and addresses that the control address answers to, besides localhost and the address in the request.
    pub control_names: Vec<String>,
    /// The users and groups who may use the control address with the passwords of their accounts.
    pub admins: Vec<Admin>,
    /// The certificate of the control address. None: no TLS on loopback, elsewhere a certificate that the server makes.
    pub control_certificate: Option<CertificateFiles>,
    /// The state directory, which only this gateway uses.
    pub state: PathBuf,
    /// Signing of SMB messages.
    pub smb_signing: Protection,
    /// Encryption of SMB messages.
    pub smb_encryption: Protection,
    /// Whether SMB messages over QUIC must be encrypted wherever SMB messages must be. If not, clients may rely on QUIC's
    /// encryption.
    pub smb_encryption_over_quic: bool,
    /// Whether logons over QUIC must be bound to their connection.
    pub smb_channel_binding: ChannelBinding,
    /// The most channels of one SMB session, 1 to 32; 1: no multichannel.
    pub max_channels: u32,
    /// The most connections of one address, for SMB and for NFS each; None: the rule of `net`.
    pub connections_per_address: Option<usize>,
    /// The addresses for further channels. Empty: the machine's addresses on which SMB listens.
    pub smb_interfaces: Vec<GivenInterface>,
    /// How users log on with Kerberos tickets.
    pub kerberos: KerberosSettings,
    /// Whether SMB clients may use NTLM. If not, no NT hash of a password is kept.
    pub ntlm: Ntlm,
    /// Whether accounts of which there is an NT hash alone may be left without a password when NTLM is off. Otherwise the
    /// gateway does not start.
    pub drop_passwords: bool,
    /// For how long a share that is removed by command can be brought back.
    pub deleted_share_retention: Retention,
    /// The users of NFS clients who are treated as nobody.
    pub nfs_squash: Squash,
    /// Who says in which groups the users of NFS clients are.
    pub nfs_groups: GroupsBy,
    /// How long an NFSv4 client may be silent before it loses its files and locks.
    pub nfs_lease: Duration,
    /// Whether NFS clients may or must use TLS. It shows `control_certificate`.
    pub nfs_tls: NfsTls,
    /// The certificates (PEM) of the authorities that certify NFS clients. None: clients are not asked for certificates.
    pub nfs_client_ca: Option<PathBuf>,
    /// Whether clients of NFSv3 find this server by themselves, and lock.
    pub portmap: Portmap,
    /// The uid and gid of squashed NFS users; None: nobody.
    pub nfs_anonymous: Option<(u32, u32)>,
    /// The protocols by which the server announces itself in its networks.
    pub discovery: discovery::Protocols,
    /// The access log.
    pub access_log: access_log::Settings,
    /// For measurements: how much slower the metadata of all shares is.
    pub bench_metadata_latency: Option<Duration>,
    /// Whether the cost of calls is counted.
    pub bench_accounting: bool,
}

/// Encryption of all shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Encryption {
    /// Whether all shares refuse unencrypted traffic.
    pub is_required: bool,
    /// Whether NFS can encrypt.
    pub is_in_nfs: bool,
    /// Whether NFS clients are asked for certificates.
    pub asks_for_certificates: bool,
}

/// TLS of NFS clients (RFC 9289).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NfsTls {
    /// There is none.
    #[default]
    Off,
    /// The client decides.
    Offered,
    /// Clients without it are refused.
    Required,
    /// Clients without it, and without a certificate, are refused.
    Mutual,
}

/// How clients of NFSv3 find the programs of this server, and whether they can lock. They need to find NLM for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Portmap {
    /// They are told the port, and lock for themselves only.
    #[default]
    Off,
    /// The programs are registered with the rpcbind of the machine.
    Register,
    /// The server answers port 111 itself.
    Serve,
    /// As [`Portmap::Register`] where a rpcbind runs, otherwise as [`Portmap::Serve`].
    On,
}

/// A share that another server has, under the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedShare {
    /// Its name.
    pub name: String,
    /// The addresses of the other server, each with its port for NFS.
    pub addresses: Vec<SocketAddr>,
}

/// A declared share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareSettings {
    /// A name that [`check_share_name`] accepts.
    pub name: String,
    /// The directory that is served, relative to the current directory of the process; or `cephfs:/PATH`.
    pub directory: PathBuf,
    /// The terms on which clients use the share.
    pub terms: Terms,
    /// The users and clients that may use the share.
    pub rules: Rules,
    /// The comment for clients that list the shares.
    pub comment: String,
    /// The plan of the share.
    pub plan: Plan,
    /// The storage medium for which the plan must be, and that is stated of a directory of this machine. None: any.
    pub tier: Option<Media>,
    /// Whether the metadata cache is on.
    pub metadata_cache: bool,
    /// Names that [`check_reserved_name`] accepts, and that do not exist for clients, besides those that are known to
    /// have a special meaning to the file system.
    pub reserved_names: Vec<String>,
    /// The name of one of the declared snapshot policies; empty: none.
    pub snapshot_policy: String,
    /// The recycle bin of the share.
    pub recycle_bin: Option<RecycleBin>,
    /// When the ransomware alarm of the share is raised.
    pub ransomware_alarm: Option<RansomwareRule>,
    /// The quotas of the share, at most [`share::QUOTAS_MAX`].
    pub quotas: Vec<QuotaRule>,
}

/// A declared pool: a directory in which the server makes the directories of shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettings {
    /// A name that [`check_pool_name`] accepts.
    pub name: String,
    /// The directory: absolute.
    pub directory: PathBuf,
    /// Whether its shares may be larger together than its file system.
    pub overcommits: bool,
}

/// A declared snapshot policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySettings {
    /// When snapshots are taken, and how many are kept.
    pub policy: Policy,
    /// What runs before and after each snapshot.
    pub hooks: Hooks,
}

/// Programs that run before and after each snapshot of a policy. They run as the server does, so only the configuration has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks {
    /// A program and its arguments, before; empty: none.
    pub before: Vec<String>,
    /// The same after it, also if it failed.
    pub after: Vec<String>,
    /// How long each may take, 1 s to [`HOOK_TIME_MAX`].
    pub time: Duration,
}

/// The longest time of a hook.
pub const HOOK_TIME_MAX: Duration = Duration::from_secs(3600);

impl Default for Hooks {
    fn default() -> Self {
        Self { before: Vec::new(), after: Vec::new(), time: Duration::from_secs(60) }
    }
}

/// A declared user.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserSettings {
    /// A name that [`check_user_name`] accepts.
    pub name: String,
    /// None: the password whose hash is in `nt_hash`, otherwise the one in the state database.
    pub password: Option<String>,
    /// The NT hash of the password. It is as good as the password, so it is never logged or shown.
    pub nt_hash: Option<[u8; 16]>,
    /// None: the uid of the user of this machine with the same name.
    pub uid: Option<u32>,
    /// None: the gid of the user of this machine, otherwise the uid.
    pub gid: Option<u32>,
    /// None: the groups of the user of this machine.
    pub groups: Option<Vec<u32>>,
}

impl fmt::Debug for UserSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Settings {
    /// The defaults, with this state directory: no declared shares or users; signing required, encryption offered, 4
    /// channels, NFS with its superuser squashed and a lease time of 90 s.
    pub fn new(state: PathBuf) -> Self {
        Self {
            shares: Vec::new(),
            shares_in: COMMAND_LINE.to_owned(),
            shares_elsewhere: Vec::new(),
            moved: Vec::new(),
            policies: Vec::new(),
            policies_in: COMMAND_LINE.to_owned(),
            pools: Vec::new(),
            pools_in: COMMAND_LINE.to_owned(),
            users: Vec::new(),
            users_in: COMMAND_LINE.to_owned(),
            users_elsewhere: Vec::new(),
            ceph: CephPlace::default(),
            cluster: None,
            control_names: Vec::new(),
            admins: Vec::new(),
            control_certificate: None,
            state,
            smb_signing: Protection::Required,
            smb_encryption: Protection::Enabled,
            smb_encryption_over_quic: true,
            smb_channel_binding: ChannelBinding::Accepted,
            max_channels: 4,
            connections_per_address: None,
            smb_interfaces: Vec::new(),
            kerberos: KerberosSettings::default(),
            ntlm: Ntlm::On,
            drop_passwords: false,
            deleted_share_retention: Retention::default(),
            nfs_squash: Squash::Root,
            nfs_groups: GroupsBy::Client,
            nfs_lease: Duration::from_secs(90),
            nfs_tls: NfsTls::Off,
            nfs_client_ca: None,
            portmap: Portmap::Off,
            nfs_anonymous: None,
            discovery: discovery::Protocols::default(),
            access_log: access_log::Settings::default(),
            bench_metadata_latency: None,
            bench_accounting: true,
        }
    }

    /// Whether all shares refuse unencrypted traffic.
    pub fn encryption_required(&self) -> bool {
        self.smb_encryption == Protection::Required
    }

    /// What of encryption concerns all shares.
    pub fn encryption(&self) -> Encryption {
        let is_required = self.encryption_required();
        let is_in_nfs = self.nfs_tls != NfsTls::Off;
        let asks_for_certificates = is_in_nfs && self.nfs_client_ca.is_some();
        Encryption { is_required, is_in_nfs, asks_for_certificates }
    }
}

impl ShareSettings {
    /// A share that every user who can log on, and every NFS client, may use.
    pub fn new(name: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            directory: directory.into(),
            terms: Terms::empty(),
            rules: Rules::default(),
            comment: String::new(),
            plan: Plan::Unlimited,
            metadata_cache: true,
            reserved_names: Vec::new(),
            tier: None,
            snapshot_policy: String::new(),
            recycle_bin: None,
            ransomware_alarm: Some(RansomwareRule::default()),
            quotas: Vec::new(),
        }
    }
}

/// Characters that are not allowed in the name of a share, because SMB or a mount command cannot carry them.
const SHARE_NAME_FORBIDDEN: &str = "\"\\/[]:|<>+=;,*?";
/// Names that clients or the server use for other purposes, in lower case. [MS-SRVS] 3.1.4.7: "pipe" or "mailslot".
const SHARE_NAMES_RESERVED: [&str; 5] = ["ipc$", "admin$", "global", "pipe", "mailslot"];
/// The longest name of a share, in bytes.
const SHARE_NAME_MAX: usize = 80;

/// Checks that SMB and NFS can carry this name of a share. [MS-FSCC] 2.1.6
///
/// # Errors
/// The reason why they cannot, in words.
pub fn check_share_name(name: &str) -> Result<(), String> {
    check_name("share", name, SHARE_NAME_FORBIDDEN, SHARE_NAME_MAX)?;
    if SHARE_NAMES_RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the name {name} is reserved"));
    }
    Ok(())
}

/// Whether two names denote the same share.
pub fn same_share_name(one: &str, other: &str) -> bool {
    share::folded_name(one) == share::folded_name(other)
}

/// The longest name of a pool, in bytes.
const POOL_NAME_MAX: usize = 64;

/// Checks that this can be the name of a pool.
///
/// # Errors
/// The reason why it cannot, in words.
pub fn check_pool_name(name: &str) -> Result<(), String> {
    check_name("pool", name, SHARE_NAME_FORBIDDEN, POOL_NAME_MAX)
}

/// The last part of a directory of which SMB clients see the subdirectory of their user.
const OF_USER: &str = "{user}";

/// A share's directory as it is written: `DIRECTORY`, or `DIRECTORY/{user}` for [`Terms::HOMES`].
///
/// # Errors
/// `{user}` is in another place. The reason in words.
pub fn split_directory(written: &Path) -> Result<(PathBuf, Terms), String> {
    let (directory, terms) = match (written.file_name(), written.parent()) {
        (Some(name), Some(parent)) if name == OF_USER => (parent, Terms::HOMES),
        _ => (written, Terms::empty()),
    };
    let text = directory.to_string_lossy();
    if text.contains(OF_USER) || text.is_empty() && terms.contains(Terms::HOMES) {
        return Err(format!("{OF_USER} can only be the last part of a directory, as in /srv/home/{OF_USER}"));
    }
    Ok((directory.to_owned(), terms))
}

/// A share's directory as it is written.
#[must_use]
pub fn written_directory(directory: &Path, terms: Terms) -> PathBuf {
    if terms.contains(Terms::HOMES) { directory.join(OF_USER) } else { directory.to_owned() }
}

/// Characters that are not allowed in the name of an account.
const USER_NAME_FORBIDDEN: &str = "\"\\/[]:;|=,+*?<>@%";
/// The number that stands for no user or group (chown(2)).
const NO_ID: u32 = u32::MAX;
/// The longest name of an account, in bytes.
const USER_NAME_MAX: usize = 64;

/// Checks that this can be the name of an account.
///
/// # Errors
/// The reason why it cannot, in words.
pub fn check_user_name(name: &str) -> Result<(), String> {
    check_name("user", name, USER_NAME_FORBIDDEN, USER_NAME_MAX)
}

/// Checks that these can be the ids of a user and of groups.
///
/// # Errors
/// An id stands for no user or group.
pub fn check_ids(name: &str, mut ids: impl Iterator<Item = u32>) -> Result<(), String> {
    if ids.any(|id| id == NO_ID) {
        Err(format!("{NO_ID} is nobody's number: the user {name} cannot have it"))
    } else {
        Ok(())
    }
}

/// Checks that this can be the name of an object in a directory.
///
/// # Errors
/// The reason why it cannot, in words.
pub fn check_reserved_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(format!("{name:?} in reserved-names cannot be the name of a file"));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_may_end_in_the_user() {
        let split = |text: &str| split_directory(Path::new(text));
        assert_eq!(split("/srv/data"), Ok(("/srv/data".into(), Terms::empty())));
        assert_eq!(split("/srv/home/{user}"), Ok(("/srv/home".into(), Terms::HOMES)));
        assert_eq!(split("/srv/home/{user}/"), Ok(("/srv/home".into(), Terms::HOMES)));
        assert_eq!(written_directory(Path::new("/srv/home"), Terms::HOMES), Path::new("/srv/home/{user}"));
        assert_eq!(written_directory(Path::new("/srv"), Terms::empty()), Path::new("/srv"));
        for bad in ["/srv/{user}/data", "/srv/of-{user}", "{user}", "/srv/{user}/{user}"] {
            assert!(split(bad).unwrap_err().contains("last part"), "{bad}");
        }
    }
}

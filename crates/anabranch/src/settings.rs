//! The settings, as given by flags or by a file, and as they are used.

mod access_log;
mod admin;
mod ceph;
mod choices;
mod cluster;
mod consistent;
mod deleted_shares;
mod interface;
mod kerberos;
mod keys;
mod listen;
mod moved;
mod password_file;
mod policy;
mod pool;
mod portmap;
mod restart;
mod share;
mod two_machines;
mod user;
mod values;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::service_address::ServiceAddress;
use ::share::Terms;
use clap::Args;
use gateway::control_tls::CertificateFiles;
use gateway::settings::{COMMAND_LINE, ShareSettings};
use serde::{Deserialize, Serialize};

use crate::control_name::ControlName;
use crate::place::{self, Mistake, Places, Section, Wrong};
use crate::problem::Result;
use crate::state_directory;

pub(crate) use self::access_log::AccessLogGiven;
pub(crate) use self::admin::AdminGiven;
pub(crate) use self::ceph::CephGiven;
pub(crate) use self::choices::{
    ChannelBindingGiven, DiscoveryGiven, LogFormat, NfsGroupsGiven, NfsTlsGiven, NtlmGiven, Requirement,
    Squash,
};
pub(crate) use self::cluster::ClusterGiven;
pub(crate) use self::deleted_shares::DeletedSharesGiven;
pub(crate) use self::interface::InterfaceGiven;
pub(crate) use self::kerberos::KerberosGiven;
pub(crate) use self::keys::{CLIENT_KEYS, Key, POLICY_KEYS, POOL_KEYS, SERVER_KEYS, SHARE_KEYS, USER_KEYS};
pub(crate) use self::listen::ListenGiven;
pub(crate) use self::moved::MovedGiven;
pub(crate) use self::password_file::PasswordFileGiven;
pub(crate) use self::policy::{PolicyGiven, PolicyTable};
pub(crate) use self::pool::{PoolGiven, PoolTable, write_overcommit};
pub(crate) use self::portmap::PortmapGiven;
pub(crate) use self::share::{ClientTable, ShareGiven, ShareTable, check_client};
pub(crate) use self::two_machines::TwoMachinesGiven;
pub(crate) use self::user::{UserGiven, UserTable};

/// What was given: every setting may be absent. The flags and the keys of the file are this one list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Given {
    /// Where it is from.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) from: From,
    /// A share and its directory; clients see \\SERVER\NAME and SERVER:/NAME
    #[arg(long, value_name = "NAME=DIR")]
    #[serde(skip)]
    pub(crate) share: Vec<ShareGiven>,
    /// A share that has moved to another server, the addresses of that server, and its port for NFS if that is not 2049: clients that
    /// understand it go there
    #[arg(long, value_name = "NAME=ADDR[:PORT][,...]")]
    pub(crate) moved_share: Vec<MovedGiven>,
    /// Only the file has snapshot policies.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) snapshot_policy: Vec<PolicyGiven>,
    /// Only the file has pools.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) pool: Vec<PoolGiven>,
    /// A share whose SMB clients get persistent handles, which survive a restart of the server
    #[arg(long, value_name = "NAME")]
    pub(crate) continuous_availability: Vec<String>,
    /// An SMB user; UID and GID are the owner of the files it creates [default: those of the system user of that name]
    #[arg(long, value_name = "NAME[=UID[:GID]]:PASSWORD")]
    #[serde(skip)]
    pub(crate) user: Vec<UserGiven>,
    /// A file whose first line is the user's password, readable by its owner only; - for standard input
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) password_file: Vec<PasswordFileGiven>,
    /// An address on which SMB listens, several times for several; `off` disables SMB [default: 0.0.0.0:445]
    #[arg(long, value_name = "ADDR:PORT|off")]
    #[serde(deserialize_with = "listen::one_or_several")]
    pub(crate) smb: Vec<ListenGiven>,
    /// An address (UDP) on which SMB over QUIC listens, with the certificate of the control address; several times for several
    /// [default: none]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) smb_quic: Vec<SocketAddr>,
    /// An address on which NFS and MOUNT listen, several times for several; `off` disables NFS [default: 0.0.0.0:2049]
    #[arg(long, value_name = "ADDR:PORT|off")]
    #[serde(deserialize_with = "listen::one_or_several")]
    pub(crate) nfs: Vec<ListenGiven>,
    /// The address of health, metrics and the API (HTTP) [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) control: Option<SocketAddr>,
    /// A further host name or address in requests to the control address (localhost and the address itself are always accepted)
    #[arg(long, value_name = "NAME")]
    pub(crate) control_name: Vec<ControlName>,
    /// A user or a group (@NAME) that may use the control address with the password of the account, and after a colon what for
    /// [default: all]
    #[arg(long, value_name = "NAME|@GROUP|SID[:read|shares|all]")]
    pub(crate) admins: Vec<AdminGiven>,
    /// The certificate of the control address (PEM); without it, an address other than loopback gets a self-signed one
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "values::path")]
    pub(crate) control_certificate: Option<PathBuf>,
    /// The private key of that certificate (PEM), readable by its owner only
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "values::path")]
    pub(crate) control_key: Option<PathBuf>,
    /// The state directory [default: $ANABRANCH_STATE, else /var/lib/anabranch]
    #[arg(long, value_name = "DIR")]
    #[serde(serialize_with = "values::path")]
    pub(crate) state: Option<PathBuf>,
    /// Signing of SMB messages. Guests have no key and stay unsigned, even with `required`. Signing adds 10 to 20 % server CPU per
    /// byte and costs no throughput at 10 Gbit/s [default: required]
    #[arg(long, value_enum)]
    pub(crate) smb_signing: Option<Requirement>,
    /// Encryption of SMB messages [default: enabled]
    #[arg(long, value_enum)]
    pub(crate) smb_encryption: Option<Requirement>,
    /// Whether SMB clients may use NTLM; without it they need Kerberos, and no NT hash of a password is kept [default: on]
    #[arg(long, value_enum)]
    pub(crate) ntlm: Option<NtlmGiven>,
    /// Whether SMB messages over QUIC are encrypted wherever encryption is required, although QUIC encrypts; if not, clients that ask
    /// for it may rely on QUIC [default: true]
    #[arg(long, value_name = "true|false")]
    pub(crate) smb_encryption_over_quic: Option<bool>,
    /// Whether logons over QUIC must be bound to their connection, so that nobody in between can pass them on [default: accepted]
    #[arg(long, value_enum)]
    pub(crate) smb_channel_binding: Option<ChannelBindingGiven>,
    /// The maximum number of channels of an SMB session; 1 disables Multichannel [default: 4]
    #[arg(long, value_name = "N")]
    pub(crate) max_channels: Option<u32>,
    /// The maximum number of connections of one client address, for SMB and for NFS separately; raise it for networks behind address
    /// translation and for benchmarks [default: no limit until three quarters of all are in use, then one quarter]
    #[arg(long, value_name = "N")]
    pub(crate) connections_per_address: Option<NonZeroU32>,
    /// An address that is announced to Multichannel clients, with its speed in bits per second and whether it supports RSS
    /// [default: as the system reports the addresses on which SMB listens]
    #[arg(long, value_name = "ADDR[;speed=BITS][;rss]")]
    pub(crate) smb_interface: Vec<InterfaceGiven>,
    /// TLS of NFS clients, with the certificate of the control address [default: off]
    #[arg(long, value_enum)]
    pub(crate) nfs_tls: Option<NfsTlsGiven>,
    /// The authorities (PEM) whose certificates NFS clients may show, and must with `--nfs-tls mutual`
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "values::path")]
    pub(crate) nfs_client_ca: Option<PathBuf>,
    /// Which users of NFS clients are mapped to nobody [default: root]
    #[arg(long, value_enum)]
    pub(crate) nfs_squash: Option<Squash>,
    /// Who says in which groups the users of NFS clients are: the client, or this machine [default: client]
    #[arg(long, value_enum)]
    pub(crate) nfs_groups: Option<NfsGroupsGiven>,
    /// Whether clients of NFSv3 find this server by themselves, and can lock: registered with the rpcbind of this machine, or by
    /// answering port 111 itself [default: off]
    #[arg(long, value_enum)]
    pub(crate) portmap: Option<PortmapGiven>,
    /// Each call of a store that reads or changes names and attributes takes so much longer: to measure what is kept
    #[arg(long, value_name = "MICROSECONDS", hide = true)]
    pub(crate) bench_metadata_latency: Option<u64>,
    /// Whether what calls cost is counted: to measure what the counting costs
    #[arg(long, value_name = "true|false", hide = true)]
    pub(crate) bench_accounting: Option<bool>,
    /// The NFSv4 lease time, and the grace period after a restart, in seconds
    /// [default: 90]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) nfs_lease: Option<u32>,
    /// The format of the log on standard error [default: text]
    #[arg(long, value_enum)]
    pub(crate) log_format: Option<LogFormat>,
    /// The log level, or a filter such as info,smb_server=debug [default: info]
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// How the server announces itself to clients in its networks: to Windows, to macOS and Linux; several times for both
    #[arg(long, value_enum)]
    pub(crate) discovery: Vec<DiscoveryGiven>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) deleted_shares: DeletedSharesGiven,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) ceph: CephGiven,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) cluster: ClusterGiven,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) two_machines: TwoMachinesGiven,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) kerberos: KerberosGiven,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) access_log: AccessLogGiven,
}

/// Where settings are from. What is in no file is from the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct From {
    /// The file of the shares and that of the users.
    pub(crate) shares: Option<PathBuf>,
    pub(crate) users: Option<PathBuf>,
    /// Files with passwords that others than their owner may read.
    pub(crate) exposed: Vec<PathBuf>,
    /// The files, the one that was named first.
    pub(crate) files: Vec<PathBuf>,
    /// Where the keys stand.
    pub(crate) places: Places,
    /// What is wrong in the files.
    pub(crate) mistakes: Vec<Mistake>,
}

impl From {
    /// Says in the log what is wrong with the files.
    pub(crate) fn warn(&self) {
        for file in &self.exposed {
            let (what, advice) = exposed(file);
            tracing::warn!("{what}: {advice}");
        }
    }
}

/// What is wrong with a file with passwords that others may read, and what to do.
pub(crate) fn exposed(file: &Path) -> (String, String) {
    let file = file.display();
    (
        format!("users other than its owner may read {file}, which contains passwords"),
        format!("chmod 600 {file}, or keep them in files of their own (password-file)"),
    )
}

/// What becomes of two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// The second one counts only if the first one is empty.
    Replace,
    /// They add up.
    Add,
}

/// The list that becomes of a list here and a list there.
fn list_of<T>(lists: Lists, here: Vec<T>, there: Vec<T>) -> Vec<T> {
    match lists {
        Lists::Replace if !here.is_empty() => here,
        Lists::Replace | Lists::Add => here.into_iter().chain(there).collect(),
    }
}

impl Given {
    /// Where it is from when these flags go before a file.
    fn sources_over(&self, file: From) -> From {
        let mut from = file;
        if !self.share.is_empty() {
            from.shares = None;
            from.places.retain(|section| !matches!(section, Section::Share(_)));
        }
        if !self.user.is_empty() {
            from.users = None;
            from.places.retain(|section| !matches!(section, Section::User(_)));
        }
        for key in self.keys_given() {
            from.places.remove(&Section::Server, &key);
        }
        from
    }

    /// What is given here, and where nothing is, what is given there. A list here takes the place of
    /// the list there.
    pub(crate) fn over(self, file: Self) -> Self {
        let from = self.sources_over(file.from.clone());
        Self { from, ..self.combined(file, Lists::Replace) }
    }

    /// What is given here, and where nothing is, what is given there, without where it is from.
    pub(crate) fn combined(self, file: Self, lists: Lists) -> Self {
        let from = From::default();
        Self {
            from,
            share: list_of(lists, self.share, file.share),
            moved_share: list_of(lists, self.moved_share, file.moved_share),
            snapshot_policy: list_of(lists, self.snapshot_policy, file.snapshot_policy),
            pool: list_of(lists, self.pool, file.pool),
            user: list_of(lists, self.user, file.user),
            password_file: list_of(lists, self.password_file, file.password_file),
            continuous_availability: list_of(
                lists,
                self.continuous_availability,
                file.continuous_availability,
            ),
            smb: list_of(lists, self.smb, file.smb),
            smb_quic: list_of(lists, self.smb_quic, file.smb_quic),
            nfs: list_of(lists, self.nfs, file.nfs),
            control: self.control.or(file.control),
            control_name: list_of(lists, self.control_name, file.control_name),
            admins: list_of(lists, self.admins, file.admins),
            control_certificate: self.control_certificate.or(file.control_certificate),
            control_key: self.control_key.or(file.control_key),
            state: self.state.or(file.state),
            smb_signing: self.smb_signing.or(file.smb_signing),
            smb_encryption: self.smb_encryption.or(file.smb_encryption),
            ntlm: self.ntlm.or(file.ntlm),
            smb_encryption_over_quic: self.smb_encryption_over_quic.or(file.smb_encryption_over_quic),
            smb_channel_binding: self.smb_channel_binding.or(file.smb_channel_binding),
            max_channels: self.max_channels.or(file.max_channels),
            connections_per_address: self.connections_per_address.or(file.connections_per_address),
            smb_interface: list_of(lists, self.smb_interface, file.smb_interface),
            nfs_tls: self.nfs_tls.or(file.nfs_tls),
            nfs_client_ca: self.nfs_client_ca.or(file.nfs_client_ca),
            nfs_squash: self.nfs_squash.or(file.nfs_squash),
            nfs_groups: self.nfs_groups.or(file.nfs_groups),
            portmap: self.portmap.or(file.portmap),
            bench_metadata_latency: self.bench_metadata_latency.or(file.bench_metadata_latency),
            bench_accounting: self.bench_accounting.or(file.bench_accounting),
            nfs_lease: self.nfs_lease.or(file.nfs_lease),
            log_format: self.log_format.or(file.log_format),
            log: self.log.or(file.log),
            discovery: list_of(lists, self.discovery, file.discovery),
            deleted_shares: self.deleted_shares.or(file.deleted_shares),
            ceph: self.ceph.combined(file.ceph),
            cluster: self.cluster.combined(file.cluster),
            two_machines: self.two_machines.combined(file.two_machines, lists),
            kerberos: self.kerberos.or(file.kerberos),
            access_log: self.access_log.or(file.access_log),
        }
    }
}

impl Given {
    /// The addresses at which SMB and NFS listen; none: they are off.
    fn listen_at(&self, wrong: &mut Vec<Wrong>) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let mut listen = |key: &'static str, given: &[ListenGiven], port| {
            let default = SocketAddr::from(([0, 0, 0, 0], port));
            listen::addresses(given, default).unwrap_or_else(|(what, advice)| {
                wrong.push(Wrong::new(Section::Server, key, format!("{key}: {what}"), advice));
                vec![default]
            })
        };
        let (smb, nfs) = (listen("smb", &self.smb, 445), listen("nfs", &self.nfs, 2049));
        // A gateway of a cluster may serve vservers alone.
        if smb.is_empty() && self.smb_quic.is_empty() && nfs.is_empty() && !self.cluster.is_given() {
            let advice = "Give one of them an address: --smb ADDR:PORT or --nfs ADDR:PORT";
            wrong.push(Wrong::new(Section::Server, "smb", "both SMB and NFS are off", advice));
        }
        (smb, nfs)
    }
}

/// Settings that are whole.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// What is served, and how.
    pub(crate) gateway: gateway::settings::Settings,
    /// Whether somebody has named the state directory.
    pub(crate) is_state_given: bool,
    /// Whether the server waits until no other one has the state directory.
    pub(crate) waits_for_state: bool,
    /// The addresses that this machine has while the server serves.
    pub(crate) service_addresses: Vec<ServiceAddress>,
    /// The addresses at which SMB, SMB over QUIC and NFS listen; none: not served. One of them is.
    pub(crate) smb: Vec<SocketAddr>,
    pub(crate) smb_quic: Vec<SocketAddr>,
    pub(crate) nfs: Vec<SocketAddr>,
    pub(crate) control: SocketAddr,
}

impl Settings {
    /// Fills in the defaults.
    ///
    /// # Errors
    /// What is wrong in the files, and settings that contradict each other.
    pub(crate) fn new(given: Given) -> Result<Self> {
        let (settings, mistakes) = Self::look(given, Vec::new());
        place::problem(mistakes).map_or(Ok(settings), Err)
    }

    /// The settings as far as they are right, and all that is wrong with them: `wrong`, what is wrong in the files, and
    /// what is wrong with the values together.
    pub(crate) fn look(given: Given, mut wrong: Vec<Wrong>) -> (Self, Vec<Mistake>) {
        let mut mistakes = given.from.mistakes.clone();
        let places = given.from.places.clone();
        given.check(&mut wrong);
        let settings = Self::assemble(given, &mut wrong);
        mistakes.extend(wrong.into_iter().map(|wrong| wrong.at(&places)));
        mistakes.sort();
        mistakes.dedup();
        (settings, mistakes)
    }

    fn assemble(given: Given, wrong: &mut Vec<Wrong>) -> Self {
        let place = |file: Option<PathBuf>| match file {
            Some(file) => file.display().to_string(),
            None => COMMAND_LINE.to_owned(),
        };
        let (smb, nfs) = given.listen_at(wrong);
        let state = state_directory::given(given.state);
        let default = gateway::settings::Settings::new(
            state.clone().unwrap_or_else(|| PathBuf::from(state_directory::DEFAULT)),
        );
        let files = given.control_certificate.zip(given.control_key);
        let places = &given.from.places;
        let shares = given.share.iter().map(|share| (share.0.name.clone(), Section::share(&share.0.name)));
        let users = given.user.iter().map(|user| (user.name.clone(), Section::user(&user.name)));
        let gateway = gateway::settings::Settings {
            shares_elsewhere: elsewhere(places, shares, given.from.shares.as_deref()),
            users_elsewhere: elsewhere(places, users, given.from.users.as_deref()),
            moved: given.moved_share.into_iter().map(|MovedGiven(moved)| moved).collect(),
            policies: given.snapshot_policy.into_iter().map(|PolicyGiven(policy)| policy).collect(),
            policies_in: place(given.from.files.first().cloned()),
            pools: given.pool.into_iter().map(|PoolGiven(pool)| pool).collect(),
            pools_in: place(given.from.files.first().cloned()),
            shares_in: place(given.from.shares),
            users_in: place(given.from.users),
            shares: with_availability(given.share, &given.continuous_availability, wrong),
            users: given.user.into_iter().map(UserGiven::whole).collect(),
            control_certificate: files.map(|(certificate, key)| CertificateFiles { certificate, key }),
            control_names: given.control_name.into_iter().map(|ControlName(name)| name).collect(),
            admins: given.admins.into_iter().map(|AdminGiven(admin)| admin).collect(),
            smb_signing: given.smb_signing.map_or(default.smb_signing, Requirement::protection),
            smb_encryption: given.smb_encryption.map_or(default.smb_encryption, Requirement::protection),
            ntlm: given.ntlm.map_or(default.ntlm, NtlmGiven::whole),
            smb_encryption_over_quic: given
                .smb_encryption_over_quic
                .unwrap_or(default.smb_encryption_over_quic),
            smb_channel_binding: given
                .smb_channel_binding
                .map_or(default.smb_channel_binding, ChannelBindingGiven::whole),
            max_channels: given.max_channels.unwrap_or(default.max_channels),
            connections_per_address: given
                .connections_per_address
                .map(|max| usize::try_from(max.get()).unwrap_or(usize::MAX)),
            smb_interfaces: given.smb_interface.into_iter().map(InterfaceGiven::whole).collect(),
            nfs_tls: given.nfs_tls.map_or(default.nfs_tls, NfsTlsGiven::whole),
            nfs_client_ca: given.nfs_client_ca,
            deleted_share_retention: given.deleted_shares.whole(),
            nfs_squash: given.nfs_squash.map_or(default.nfs_squash, Squash::whole),
            nfs_groups: given.nfs_groups.map_or(default.nfs_groups, NfsGroupsGiven::whole),
            portmap: given.portmap.map_or(default.portmap, PortmapGiven::whole),
            nfs_lease: given.nfs_lease.map_or(default.nfs_lease, of_seconds),
            discovery: DiscoveryGiven::whole(&given.discovery),
            ceph: given.ceph.whole(),
            cluster: given.cluster.whole(),
            kerberos: given.kerberos.whole(),
            access_log: given.access_log.whole(),
            bench_metadata_latency: given.bench_metadata_latency.map(Duration::from_micros),
            bench_accounting: given.bench_accounting.unwrap_or(default.bench_accounting),
            ..default
        };
        Self {
            gateway,
            is_state_given: state.is_some(),
            waits_for_state: given.two_machines.waits(),
            service_addresses: given.two_machines.addresses(),
            smb,
            smb_quic: given.smb_quic,
            nfs,
            control: given.control.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080))),
        }
    }
}

/// The names of sections that are in another file than the first one, with that file.
fn elsewhere<T: FromIterator<(String, String)>>(
    places: &Places,
    names: impl Iterator<Item = (String, Section)>,
    first: Option<&Path>,
) -> T {
    let place = |(name, section)| {
        let file = &places.of(&section, Places::WHOLE)?.file;
        (Some(&**file) != first).then(|| (name, file.display().to_string()))
    };
    names.filter_map(place).collect()
}

fn of_seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

/// Marks the shares that are named as continuously available.
fn with_availability(
    shares: Vec<ShareGiven>,
    names: &[String],
    wrong: &mut Vec<Wrong>,
) -> Vec<ShareSettings> {
    let mut shares: Vec<ShareSettings> = shares.into_iter().map(|ShareGiven(share)| share).collect();
    for name in names {
        let named = shares.iter_mut().find(|share| share.name.to_lowercase() == name.to_lowercase());
        match named {
            Some(share) => share.terms |= Terms::CONTINUOUSLY_AVAILABLE,
            None => wrong.push(Wrong::new(
                Section::Server,
                "continuous-availability",
                format!("there is no share {name} to be continuously available"),
                "Name a share that --share or the file declares.",
            )),
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use gateway::settings::NfsTls;
    use smb_server::Protection;

    use super::*;
    use crate::problem::Cause;

    fn share(text: &str) -> std::result::Result<ShareGiven, String> {
        text.parse()
    }

    #[test]
    fn a_password_is_never_shown() {
        let given = Given { user: vec!["anna:hush-hush".parse().unwrap()], ..Given::default() };
        assert!(!format!("{given:?}").contains("hush"));
    }

    #[test]
    fn an_encrypted_share_needs_encryption() {
        let mut encrypted = share("a=/x").unwrap();
        encrypted.0.terms = Terms::ENCRYPTED;
        let with = |smb_encryption| {
            let given = Given { share: vec![encrypted.clone()], smb_encryption, ..Given::default() };
            Settings::new(given).map(|settings| settings.gateway.smb_encryption)
        };
        assert_eq!(with(None).unwrap(), Protection::Enabled);
        assert!(with(Some(Requirement::Off)).unwrap_err().what.contains("the share a is encrypted"));
    }

    #[test]
    fn nfs_over_tls_has_a_certificate_and_where_clients_need_one_authorities() {
        let with = |tls, certificate: Option<&str>, authorities: Option<&str>| {
            let given = Given {
                nfs_tls: tls,
                nfs_client_ca: authorities.map(Into::into),
                control_certificate: certificate.map(Into::into),
                control_key: certificate.map(Into::into),
                ..Given::default()
            };
            Settings::new(given).map(|settings| settings.gateway.nfs_tls).map_err(|problem| problem.what)
        };
        let (mutual, offered) = (Some(NfsTlsGiven::Mutual), Some(NfsTlsGiven::Offered));
        assert_eq!(with(None, None, None), Ok(NfsTls::Off));
        assert_eq!(with(offered, Some("c.pem"), None), Ok(NfsTls::Offered));
        assert_eq!(with(mutual, Some("c.pem"), Some("ca.pem")), Ok(NfsTls::Mutual));
        assert!(with(offered, None, None).unwrap_err().contains("no certificate"));
        assert!(with(mutual, Some("c.pem"), None).unwrap_err().contains("mutual"));
        assert_eq!(with(None, Some("c.pem"), Some("ca.pem")), Ok(NfsTls::Off));
    }

    #[test]
    fn smb_over_quic_has_a_certificate_and_addresses_that_differ() {
        let with = |at: &[&str], certificate: Option<&str>| {
            let given = Given {
                smb: vec![ListenGiven::Off],
                nfs: vec![ListenGiven::Off],
                smb_quic: at.iter().map(|at| at.parse().unwrap()).collect(),
                control_certificate: certificate.map(Into::into),
                control_key: certificate.map(Into::into),
                ..Given::default()
            };
            Settings::new(given).map(|settings| settings.smb_quic.len()).map_err(|problem| problem.what)
        };
        let certificate = Some("c.pem");
        assert!(with(&[], certificate).unwrap_err().contains("both SMB and NFS are off"));
        assert!(with(&["[::]:443"], None).unwrap_err().contains("no certificate"));
        if gateway::HAS_QUIC {
            assert_eq!(with(&["0.0.0.0:443", "[::]:443"], certificate), Ok(2));
            assert_eq!(with(&["[::1]:0", "[::1]:0"], certificate), Ok(2), "any free ports");
        } else {
            assert!(with(&["[::]:443"], certificate).unwrap_err().contains("without QUIC"));
        }
        assert!(with(&["[::]:443", "[::]:443"], certificate).unwrap_err().contains("given twice"));
    }

    #[test]
    fn names_are_unique_without_regard_to_case() {
        let given = Given { share: vec![share("a=/x").unwrap(), share("A=/y").unwrap()], ..Given::default() };
        assert_eq!(Settings::new(given).unwrap_err().cause, Cause::Settings);
    }

    #[test]
    fn a_session_has_one_to_thirty_two_channels() {
        let lease = |nfs_lease| {
            let given = Given {
                share: vec![share("here=/x").unwrap()],
                nfs_lease: Some(nfs_lease),
                ..Given::default()
            };
            Settings::new(given).map(|settings| settings.gateway.nfs_lease)
        };
        assert!(lease(9).is_err() && lease(3601).is_err());
        assert_eq!(lease(10).unwrap(), Duration::from_secs(10));
        let with = |max_channels| {
            let given = Given {
                share: vec![share("a=/x").unwrap()],
                max_channels: Some(max_channels),
                ..Given::default()
            };
            Settings::new(given).map(|settings| settings.gateway.max_channels)
        };
        assert_eq!((with(1).unwrap(), with(32).unwrap()), (1, 32));
        assert!(with(0).is_err() && with(33).is_err());
    }

    #[test]
    fn one_protocol_may_be_off() {
        let with = |smb: &str, nfs: &str| {
            let list = |text: &str| text.parse().into_iter().collect();
            let given = Given { smb: list(smb), nfs: list(nfs), ..Given::default() };
            let port = |at: &[SocketAddr]| at.first().map(SocketAddr::port);
            Settings::new(given).map(|settings| (port(&settings.smb), port(&settings.nfs)))
        };
        assert_eq!(with("", "").unwrap(), (Some(445), Some(2049)));
        assert_eq!(with("off", "").unwrap(), (None, Some(2049)));
        assert_eq!(with("", "off").unwrap(), (Some(445), None));
        assert_eq!(with("off", "off").unwrap_err().cause, Cause::Settings);
    }

    #[test]
    fn a_share_that_is_named_is_continuously_available() {
        let shares = vec![share("a=/x").unwrap(), share("b=/y").unwrap()];
        let given =
            Given { share: shares, continuous_availability: vec!["B".to_owned()], ..Given::default() };
        let settings = Settings::new(given.clone()).unwrap();
        let available: Vec<_> = settings.gateway.shares.iter().map(|share| share.terms).collect();
        assert_eq!(available, [Terms::empty(), Terms::CONTINUOUSLY_AVAILABLE]);
        let given = Given { continuous_availability: vec!["c".to_owned()], ..given };
        assert_eq!(Settings::new(given).unwrap_err().cause, Cause::Settings);
    }

    #[test]
    fn what_is_given_here_goes_before_what_is_given_there() {
        let here =
            Given { share: vec![share("here=/x").unwrap()], max_channels: Some(2), ..Given::default() };
        let there = Given {
            share: vec![share("there=/y").unwrap()],
            max_channels: Some(3),
            nfs_squash: Some(Squash::All),
            ..Given::default()
        };
        let both = here.over(there);
        assert_eq!(both.share.len(), 1);
        assert_eq!(both.share[0].0.name, "here");
        assert_eq!((both.max_channels, both.nfs_squash), (Some(2), Some(Squash::All)));
    }
}

//! The settings, as given by flags or by a file, and as they are used.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use limits::Plan;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use share::Terms;

use crate::control_name::ControlName;
use crate::problem::{Cause, Problem, Result};

/// Where the state is, unless told otherwise.
pub(crate) const STATE_DIRECTORY: &str = "/var/lib/anabranch";

/// What was given: every setting may be absent. The flags and the keys of the file are this one list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Given {
    /// The files that the shares and the users are from.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) from: From,
    /// A share and the directory that it serves; clients see \\SERVER\NAME and SERVER:/NAME
    #[arg(long, value_name = "NAME=DIR")]
    pub(crate) share: Vec<ShareGiven>,
    /// A share that gives SMB clients handles which outlive a restart of this server (continuous availability)
    #[arg(long, value_name = "NAME")]
    pub(crate) continuous_availability: Vec<String>,
    /// An account for SMB
    #[arg(long, value_name = "NAME:PASSWORD")]
    pub(crate) user: Vec<UserGiven>,
    /// Where SMB listens [default: 0.0.0.0:445]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) smb: Option<SocketAddr>,
    /// Where NFS and MOUNT listen [default: 0.0.0.0:2049]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) nfs: Option<SocketAddr>,
    /// Where health, metrics and the API are served over HTTP [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) control: Option<SocketAddr>,
    /// A name or address that the control address answers to, beside localhost and the address that is asked
    #[arg(long, value_name = "NAME")]
    pub(crate) control_name: Vec<ControlName>,
    /// The directory of the state database [default: /var/lib/anabranch]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Signing of SMB messages [default: enabled]
    #[arg(long, value_enum)]
    pub(crate) smb_signing: Option<Requirement>,
    /// Encryption of SMB messages [default: enabled]
    #[arg(long, value_enum)]
    pub(crate) smb_encryption: Option<Requirement>,
    /// Channels of one SMB session at most; 1 switches multichannel off [default: 4]
    #[arg(long, value_name = "N")]
    pub(crate) max_channels: Option<u32>,
    /// An address that clients are told of for further channels, its speed in bits per second, and whether several to it
    /// are of use [default: what the system says of the addresses on which SMB listens]
    #[arg(long, value_name = "ADDR[;speed=BITS][;rss]")]
    pub(crate) smb_interface: Vec<InterfaceGiven>,
    /// Which users of NFS clients are taken for nobody [default: root]
    #[arg(long, value_enum)]
    pub(crate) nfs_squash: Option<Squash>,
    /// Each call of a store that reads or changes names and attributes takes so much longer: to measure what is kept
    #[arg(long, value_name = "MICROSECONDS", hide = true)]
    pub(crate) bench_metadata_latency: Option<u64>,
    /// Whether what calls cost is counted: to measure what the counting costs
    #[arg(long, value_name = "true|false", hide = true)]
    pub(crate) bench_accounting: Option<bool>,
    /// Seconds that an NFSv4 client keeps its files and locks without a word, and may reclaim them after a restart
    /// [default: 90]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) nfs_lease: Option<u32>,
    /// The form of the log on standard error [default: text]
    #[arg(long, value_enum)]
    pub(crate) log_format: Option<LogFormat>,
    /// What is logged: a level, or a filter such as info,smb=debug [default: info]
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

/// Where lists are from: files; None: the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct From {
    pub(crate) shares: Option<PathBuf>,
    pub(crate) users: Option<PathBuf>,
}

/// How strongly something is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Requirement {
    /// Not offered.
    Off,
    /// Offered; the client decides.
    Enabled,
    /// Clients that will not are refused.
    Required,
}

/// Which users of NFS clients are taken for nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Squash {
    /// None: the root user of a client is root here.
    None,
    /// The root user.
    Root,
    /// Every user.
    All,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    /// A line for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `NAME=DIR`, or a table in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShareGiven {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    /// On what terms clients use it.
    pub(crate) terms: Terms,
    /// What is provisioned for it.
    pub(crate) plan: Plan,
    /// Whether what was read of names and directories is kept.
    pub(crate) metadata_cache: bool,
}

/// `NAME:PASSWORD`, or a table in the file.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UserGiven {
    pub(crate) name: String,
    /// None: the one that the state database holds.
    pub(crate) password: Option<String>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    /// None: those of the user of this machine.
    pub(crate) groups: Option<Vec<u32>>,
}

impl fmt::Debug for UserGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserGiven").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Characters that neither SMB nor a mount command can have in the name of a share.
const SHARE_NAME_FORBIDDEN: &str = "\"\\/[]:|<>+=;,*?";
/// Names that clients or the server use for something else, in lower case. [MS-SRVS] 3.1.4.7: "pipe" or
/// "mailslot".
const SHARE_NAMES_RESERVED: [&str; 6] = ["ipc$", "admin$", "global", "homes", "pipe", "mailslot"];
/// Longest name of a share, in bytes.
const SHARE_NAME_MAX: usize = 80;
/// Characters that a name of an account cannot have.
const USER_NAME_FORBIDDEN: &str = "\"\\/[]:;|=,+*?<>@%";
/// Most channels of a session.
const MAX_CHANNELS: u32 = 32;
/// Seconds of an NFSv4 client's lease.
const NFS_LEASE_MIN: u32 = 10;
const NFS_LEASE_MAX: u32 = 3600;
/// Longest name of an account, in bytes.
const USER_NAME_MAX: usize = 64;

fn check_name(what: &str, name: &str, forbidden: &str, max: usize) -> std::result::Result<(), String> {
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

/// Whether SMB and NFS can carry this name of a share. [MS-FSCC] 2.1.6
pub(crate) fn check_share_name(name: &str) -> std::result::Result<(), String> {
    check_name("share", name, SHARE_NAME_FORBIDDEN, SHARE_NAME_MAX)?;
    if SHARE_NAMES_RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the name {name} is reserved"));
    }
    Ok(())
}

/// Whether two names of shares are the same one.
pub(crate) fn same_share_name(one: &str, other: &str) -> bool {
    share::folded_name(one) == share::folded_name(other)
}

/// Whether this can be the name of an account.
pub(crate) fn check_user_name(name: &str) -> std::result::Result<(), String> {
    check_name("user", name, USER_NAME_FORBIDDEN, USER_NAME_MAX)
}

impl ShareGiven {
    fn new(table: ShareTable) -> std::result::Result<Self, String> {
        check_share_name(&table.name)?;
        if table.directory.as_os_str().is_empty() {
            return Err(format!("the directory of the share {} is empty", table.name));
        }
        let mut terms = Terms::empty();
        terms.set(Terms::READ_ONLY, table.read_only);
        terms.set(Terms::GUESTS, table.guest);
        terms.set(Terms::CONTINUOUSLY_AVAILABLE, table.continuous_availability);
        terms.set(Terms::ACCESS_BASED_ENUMERATION, table.access_based_enumeration);
        terms.set(Terms::ENCRYPTED, table.encrypted);
        let plan = table.plan.as_deref().map_or(Ok(Plan::Unlimited), str::parse);
        let plan =
            plan.map_err(|e: limits::PlanError| format!("the plan of the share {}: {e}", table.name))?;
        let metadata_cache = table.metadata_cache;
        Ok(Self { name: table.name, directory: table.directory, terms, plan, metadata_cache })
    }
}

impl FromStr for ShareGiven {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, directory) =
            text.split_once('=').ok_or_else(|| "expected NAME=DIR, for example data=/srv/data".to_owned())?;
        let (name, directory) = (name.to_owned(), directory.into());
        Self::new(ShareTable { name, directory, metadata_cache: true, ..ShareTable::default() })
    }
}

impl UserGiven {
    fn new(table: UserTable) -> std::result::Result<Self, String> {
        check_user_name(&table.name)?;
        if table.password.as_deref() == Some("") {
            return Err(format!("the password of {} is empty", table.name));
        }
        Ok(Self {
            name: table.name,
            password: table.password,
            uid: table.uid,
            gid: table.gid,
            groups: table.groups,
        })
    }
}

impl FromStr for UserGiven {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, password) = text.split_once(':').ok_or_else(|| "expected NAME:PASSWORD".to_owned())?;
        Self::new(UserTable {
            name: name.to_owned(),
            password: Some(password.to_owned()),
            uid: None,
            gid: None,
            groups: None,
        })
    }
}

/// `ADDR[;speed=BITS][;rss]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct InterfaceGiven {
    pub(crate) address: IpAddr,
    /// In bits per second; None: what the system says.
    pub(crate) link_speed: Option<u64>,
    /// Whether several channels to it are of use; else what the system says.
    pub(crate) rss: bool,
}

impl FromStr for InterfaceGiven {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut parts = text.split(';').map(str::trim);
        let address = parts.next().unwrap_or_default();
        let address: IpAddr = address.parse().map_err(|_| {
            format!(
                "{address:?} is no address: expected one such as 10.0.0.1, or 10.0.0.1;speed=10000000000;rss"
            )
        })?;
        if address.is_unspecified() || address.is_multicast() {
            return Err(format!("nobody can connect to {address}"));
        }
        let mut given = Self { address, link_speed: None, rss: false };
        for part in parts {
            match part.split_once('=') {
                None if part == "rss" => given.rss = true,
                Some(("speed", bits)) => given.link_speed = Some(parse_speed(bits)?),
                _ => return Err(format!("{part:?} is neither speed=BITS nor rss")),
            }
        }
        Ok(given)
    }
}

impl TryFrom<String> for InterfaceGiven {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

fn parse_speed(bits: &str) -> std::result::Result<u64, String> {
    let wrong = || format!("{bits:?} is no speed in bits per second, such as 10000000000");
    bits.parse().ok().filter(|bits| *bits > 0).ok_or_else(wrong)
}

/// The keys of `[[share]]`.
pub(crate) const SHARE_KEYS: [&str; 9] = [
    "name",
    "directory",
    "read-only",
    "guest",
    "continuous-availability",
    "access-based-enumeration",
    "metadata-cache",
    "encrypted",
    "plan",
];
/// The keys of `[[user]]`.
pub(crate) const USER_KEYS: [&str; 5] = ["name", "password", "uid", "gid", "groups"];

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ShareTable {
    name: String,
    directory: PathBuf,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    guest: bool,
    #[serde(default)]
    continuous_availability: bool,
    #[serde(default)]
    access_based_enumeration: bool,
    #[serde(default)]
    encrypted: bool,
    plan: Option<String>,
    #[serde(default = "yes")]
    metadata_cache: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct UserTable {
    name: String,
    password: Option<String>,
    uid: Option<u32>,
    gid: Option<u32>,
    groups: Option<Vec<u32>>,
}

fn yes() -> bool {
    true
}

struct ShareVisitor;

impl<'de> Visitor<'de> for ShareVisitor {
    type Value = ShareGiven;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"NAME=DIR\" or a table with name and directory")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<ShareGiven, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<ShareGiven, A::Error> {
        let table = ShareTable::deserialize(MapAccessDeserializer::new(map))?;
        ShareGiven::new(table).map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ShareGiven {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(ShareVisitor)
    }
}

struct UserVisitor;

impl<'de> Visitor<'de> for UserVisitor {
    type Value = UserGiven;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"NAME:PASSWORD\" or a table with name and password")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<UserGiven, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<UserGiven, A::Error> {
        let table = UserTable::deserialize(MapAccessDeserializer::new(map))?;
        UserGiven::new(table).map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for UserGiven {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(UserVisitor)
    }
}

impl Given {
    /// What is given here, and where nothing is, what is given there. A list here takes the place of
    /// the list there.
    pub(crate) fn over(self, file: Self) -> Self {
        fn list<T>(here: Vec<T>, there: Vec<T>) -> Vec<T> {
            if here.is_empty() { there } else { here }
        }
        let from = From {
            shares: if self.share.is_empty() { file.from.shares } else { self.from.shares },
            users: if self.user.is_empty() { file.from.users } else { self.from.users },
        };
        Self {
            from,
            share: list(self.share, file.share),
            user: list(self.user, file.user),
            continuous_availability: list(self.continuous_availability, file.continuous_availability),
            smb: self.smb.or(file.smb),
            nfs: self.nfs.or(file.nfs),
            control: self.control.or(file.control),
            control_name: list(self.control_name, file.control_name),
            state: self.state.or(file.state),
            smb_signing: self.smb_signing.or(file.smb_signing),
            smb_encryption: self.smb_encryption.or(file.smb_encryption),
            max_channels: self.max_channels.or(file.max_channels),
            smb_interface: list(self.smb_interface, file.smb_interface),
            nfs_squash: self.nfs_squash.or(file.nfs_squash),
            bench_metadata_latency: self.bench_metadata_latency.or(file.bench_metadata_latency),
            bench_accounting: self.bench_accounting.or(file.bench_accounting),
            nfs_lease: self.nfs_lease.or(file.nfs_lease),
            log_format: self.log_format.or(file.log_format),
            log: self.log.or(file.log),
        }
    }
}

/// Settings that are whole.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Names unique without regard to case. Further ones may have been made by command.
    pub(crate) shares: Vec<ShareGiven>,
    /// Where the shares and users are declared, for people.
    pub(crate) shares_in: String,
    pub(crate) users_in: String,
    /// Names unique without regard to case.
    pub(crate) users: Vec<UserGiven>,
    pub(crate) smb: SocketAddr,
    pub(crate) nfs: SocketAddr,
    pub(crate) control: SocketAddr,
    pub(crate) control_names: Vec<String>,
    pub(crate) state: PathBuf,
    pub(crate) smb_signing: Requirement,
    pub(crate) smb_encryption: Requirement,
    /// 1 to 32.
    pub(crate) max_channels: u32,
    /// Empty: the machine's addresses on which SMB listens.
    pub(crate) smb_interfaces: Vec<InterfaceGiven>,
    pub(crate) nfs_squash: Squash,
    pub(crate) nfs_lease: Duration,
    /// Who an NFS user is taken for when squashed: uid and gid; None: nobody.
    pub(crate) nfs_anonymous: Option<(u32, u32)>,
    pub(crate) bench_metadata_latency: Option<Duration>,
    pub(crate) bench_accounting: bool,
}

fn first_twice<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(name.to_lowercase()))
}

/// Marks the shares that are named as continuously available.
fn with_availability(mut shares: Vec<ShareGiven>, names: &[String]) -> Result<Vec<ShareGiven>> {
    for name in names {
        let named = shares.iter_mut().find(|share| share.name.to_lowercase() == name.to_lowercase());
        let share = named.ok_or_else(|| {
            Problem::new(
                Cause::Settings,
                format!("there is no share {name} to be continuously available"),
                "Name one that --share or the file gives.",
            )
        })?;
        share.terms |= Terms::CONTINUOUSLY_AVAILABLE;
    }
    Ok(shares)
}

impl Settings {
    /// Fills in the defaults.
    ///
    /// # Errors
    /// Nothing to serve, or settings that contradict each other.
    pub(crate) fn new(given: Given) -> Result<Self> {
        let wrong = |what: String, advice: &str| Err(Problem::new(Cause::Settings, what, advice));
        if let Some(name) = first_twice(given.share.iter().map(|s| s.name.as_str())) {
            return wrong(
                format!("two shares have the name {name}"),
                "Names are compared without regard to case.",
            );
        }
        if let Some(name) = first_twice(given.user.iter().map(|u| u.name.as_str())) {
            return wrong(
                format!("two users have the name {name}"),
                "Names are compared without regard to case.",
            );
        }
        let max_channels = given.max_channels.unwrap_or(4);
        if !(1..=MAX_CHANNELS).contains(&max_channels) {
            return wrong(
                format!("max-channels is {max_channels}"),
                "It can be from 1, which switches multichannel off, to 32.",
            );
        }
        let nfs_lease = given.nfs_lease.unwrap_or(90);
        if !(NFS_LEASE_MIN..=NFS_LEASE_MAX).contains(&nfs_lease) {
            return wrong(
                format!("nfs-lease is {nfs_lease}"),
                "It can be from 10 to 3600 seconds: clients renew it several times in that time.",
            );
        }
        let any = |port| SocketAddr::from(([0, 0, 0, 0], port));
        let place = |file: Option<PathBuf>| match file {
            Some(file) => file.display().to_string(),
            None => "the command line of the server".to_owned(),
        };
        Ok(Self {
            shares_in: place(given.from.shares),
            users_in: place(given.from.users),
            shares: with_availability(given.share, &given.continuous_availability)?,
            users: given.user,
            smb: given.smb.unwrap_or_else(|| any(445)),
            nfs: given.nfs.unwrap_or_else(|| any(2049)),
            control: given.control.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080))),
            control_names: given.control_name.into_iter().map(|ControlName(name)| name).collect(),
            state: given.state.unwrap_or_else(|| PathBuf::from(STATE_DIRECTORY)),
            smb_signing: given.smb_signing.unwrap_or(Requirement::Enabled),
            smb_encryption: given.smb_encryption.unwrap_or(Requirement::Enabled),
            max_channels,
            smb_interfaces: given.smb_interface,
            nfs_squash: given.nfs_squash.unwrap_or(Squash::Root),
            nfs_lease: Duration::from_secs(nfs_lease.into()),
            nfs_anonymous: None,
            bench_metadata_latency: given.bench_metadata_latency.map(Duration::from_micros),
            bench_accounting: given.bench_accounting.unwrap_or(true),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> std::result::Result<ShareGiven, String> {
        text.parse()
    }

    #[test]
    fn a_share_is_a_name_and_a_directory() {
        let s = share("data=/srv/a=b").unwrap();
        assert_eq!((s.name.as_str(), s.directory.to_str()), ("data", Some("/srv/a=b")));
        for bad in [
            "data",
            "=/srv",
            "data=",
            "a/b=/srv",
            "a\\b=/srv",
            "IPC$=/srv",
            " a=/srv",
            "..=/srv",
            "a\u{7}=/srv",
        ] {
            assert!(share(bad).is_err(), "{bad:?}");
        }
        assert!(share(&format!("{}=/srv", "n".repeat(80))).is_ok());
        assert!(share(&format!("{}=/srv", "n".repeat(81))).is_err());
    }

    #[test]
    fn a_user_is_a_name_and_a_password_which_may_have_colons() {
        let u: UserGiven = "anna:a:b@c".parse().unwrap();
        assert_eq!((u.name.as_str(), u.password.as_deref()), ("anna", Some("a:b@c")));
        for bad in ["anna", ":secret", "anna:", "an\\na:secret", "anna@home:secret"] {
            assert!(bad.parse::<UserGiven>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_interface_is_an_address_with_its_speed_and_rss() {
        let given =
            |text: &str| text.parse::<InterfaceGiven>().map(|i| (i.address.to_string(), i.link_speed, i.rss));
        assert_eq!(given("10.0.0.1"), Ok(("10.0.0.1".to_owned(), None, false)));
        assert_eq!(given("2001:db8::1;rss"), Ok(("2001:db8::1".to_owned(), None, true)));
        assert_eq!(
            given("10.0.0.1; speed=25000000000; rss"),
            Ok(("10.0.0.1".to_owned(), Some(25_000_000_000), true))
        );
        for (bad, why) in [
            ("", "no address"),
            ("eth0", "no address"),
            ("10.0.0.1:445", "no address"),
            ("0.0.0.0", "nobody can connect"),
            ("10.0.0.1;speed=", "no speed"),
            ("10.0.0.1;speed=0", "no speed"),
            ("10.0.0.1;speed=10G", "no speed"),
            ("10.0.0.1;fast", "neither speed=BITS nor rss"),
            ("10.0.0.1;", "neither speed=BITS nor rss"),
        ] {
            let error = given(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let given = Given { user: vec!["anna:hush-hush".parse().unwrap()], ..Given::default() };
        assert!(!format!("{given:?}").contains("hush"));
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
            Settings::new(given).map(|settings| settings.nfs_lease)
        };
        assert!(lease(9).is_err() && lease(3601).is_err());
        assert_eq!(lease(10).unwrap(), Duration::from_secs(10));
        let with = |max_channels| {
            let given = Given {
                share: vec![share("a=/x").unwrap()],
                max_channels: Some(max_channels),
                ..Given::default()
            };
            Settings::new(given).map(|settings| settings.max_channels)
        };
        assert_eq!((with(1).unwrap(), with(32).unwrap()), (1, 32));
        assert!(with(0).is_err() && with(33).is_err());
    }

    #[test]
    fn a_share_that_is_named_is_continuously_available() {
        let shares = vec![share("a=/x").unwrap(), share("b=/y").unwrap()];
        let given =
            Given { share: shares, continuous_availability: vec!["B".to_owned()], ..Given::default() };
        let settings = Settings::new(given.clone()).unwrap();
        let available: Vec<_> = settings.shares.iter().map(|share| share.terms).collect();
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
        assert_eq!(both.share[0].name, "here");
        assert_eq!((both.max_channels, both.nfs_squash), (Some(2), Some(Squash::All)));
    }
}

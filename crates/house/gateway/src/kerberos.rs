//! The keys with which the server accepts Kerberos tickets: in a file that is configured, or in the state directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acl::Sid;
use auth::{Mapping, Numbering};
use directory::Directory;
use krb5::Acceptor;
use krb5::keytab::{BYTES_MAX, Keytab};
use rustix::process::geteuid;
use share::{AUTORID_LEN, Domains, Formula, Right, Slice};
use smb_server::KerberosKeys;
use state::State;
use zeroize::Zeroizing;

use crate::accounts::AccountBook;
use crate::directory_numbers::{self, DirectoryNumbers};
pub use crate::directory_numbers::{DirectorySettings, check_server};
use crate::names::domain_names;
pub use crate::numbers::NssNames;
use crate::numbers::NssNumbers;
use crate::problem::{Cause, Problem, Result, serving};
use crate::settings::Settings;

/// The keytab in the state directory. It is no part of the state database, so that no copy of that has it.
const STORED: &str = "kerberos.keytab";
/// The permission bits with which other users could read or change a keytab.
const OF_OTHERS: u32 = 0o066;
/// The first components of the names that an SMB server has.
pub(crate) const SERVICES: [&str; 2] = ["cifs", "host"];
/// Those that an NFS server has.
const NFS_SERVICES: [&str; 2] = ["nfs", "host"];

/// The longest realm, in bytes: that of a name in DNS.
const REALM_BYTES_MAX: usize = 255;

/// How users and groups of domains get numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IdMapping {
    /// A base plus the RID, for one domain.
    #[default]
    Rid,
    /// A slice for each domain, in the order in which they were configured first; the state database remembers it.
    Autorid,
    /// As SSSD does with `ldap_id_mapping = true` and its defaults.
    Sss,
    /// Those of the machine's name service.
    Nss,
    /// `uidNumber` and `gidNumber` of the domain's directory (RFC 2307).
    Rfc2307,
}

impl IdMapping {
    /// As the configuration calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rid => "rid",
            Self::Autorid => "autorid",
            Self::Sss => "sss",
            Self::Nss => "nss",
            Self::Rfc2307 => "rfc2307",
        }
    }
}

/// How users log on with tickets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KerberosSettings {
    /// The keys of this server; None: those that were imported into the state directory, if any.
    pub keytab: Option<PathBuf>,
    /// The uid and the gids of a domain's users are this number plus the last part of their SIDs.
    pub id_base: u32,
    /// Which numbers the users and groups of a domain have.
    pub id_mapping: IdMapping,
    /// How the name service calls the users of a domain, where it has the numbers.
    pub nss_names: NssNames,
    /// Where the directory of the domain is, if it may be asked for numbers or names.
    pub directory: DirectorySettings,
    /// The SIDs of the domains that are known beforehand; empty: the domain of the keytab, whichever it is.
    pub domains: Vec<Sid>,
    /// Other domains whose SIDs in a ticket count, those of groups there. The user's own domain is always trusted.
    pub trusted_domains: Vec<Sid>,
    /// Realms whose principals are the accounts of the same name.
    pub account_realms: Vec<String>,
    /// The realm in which the accounts of this server have their keys; None: as the state directory has it.
    pub realm: Option<String>,
}

impl Default for KerberosSettings {
    fn default() -> Self {
        Self {
            keytab: None,
            id_base: 1_000_000,
            id_mapping: IdMapping::Rid,
            nss_names: NssNames::Netbios,
            directory: DirectorySettings::default(),
            domains: Vec::new(),
            trusted_domains: Vec::new(),
            account_realms: Vec::new(),
            realm: None,
        }
    }
}

impl KerberosSettings {
    /// Whether users and groups have the same numbers by other settings.
    pub(crate) fn numbers_as(&self, other: &Self) -> bool {
        let of = |settings: &Self| {
            let Self { id_base, id_mapping, nss_names, directory, domains, .. } = settings.clone();
            (id_base, id_mapping, nss_names, directory, domains)
        };
        of(self) == of(other)
    }
}

/// Checks that somebody can look up the users and groups of domains in the list of a share.
///
/// # Errors
/// One has a name for which nobody can be asked.
pub(crate) fn check_names(share: &str, rights: &[Right], settings: &KerberosSettings) -> Result<()> {
    if settings.directory.server.is_some() || settings.id_mapping == IdMapping::Nss {
        return Ok(());
    }
    let Some(name) = domain_names(rights).next() else { return Ok(()) };
    Err(Problem::new(
        Cause::Settings,
        format!("the share {share}: nobody can be asked who {name} is"),
        "Name the directory of the domain (domain-ldap-server, docs/kerberos.md), or write a user as anna@EXAMPLE.ORG and a group as its \
         SID. A member of the domain tells the SID: `wbinfo --name-to-sid GROUP`, `Get-ADGroup GROUP` in PowerShell, or `rpcclient DC -U \
         USER -c 'lookupnames GROUP'`.",
    ))
}

/// Checks that this can be the realm of a server's accounts. RFC 4120 6.1: no `/`, `:` or NUL in the style of domains.
///
/// # Errors
/// The reason why it cannot, in words.
pub fn check_realm(realm: &str) -> std::result::Result<(), String> {
    let is_good = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
    if realm.is_empty() || realm.len() > REALM_BYTES_MAX || !realm.chars().all(is_good) {
        return Err(format!(
            "{realm:?} cannot be a realm: expected up to {REALM_BYTES_MAX} upper-case letters, digits, dots, hyphens and underscores, such as \"FILES.EXAMPLE.ORG\""
        ));
    }
    Ok(())
}

/// The file that holds the imported keytab of this state directory.
#[must_use]
pub fn stored_in(state: &Path) -> PathBuf {
    state.join(STORED)
}

/// Copies a keytab into the state directory, in place of the one that is there.
///
/// # Errors
/// The file is no keytab, or the copy cannot be written.
pub fn import(state: &Path, file: &Path) -> Result<Keytab> {
    let bytes = contents(file).map_err(|e| unreadable(file, &e))?;
    let keytab = parse(file, &bytes)?;
    let stored = stored_in(state);
    write(&stored, &bytes).map_err(|e| {
        let what = format!("cannot write {}: {e}", stored.display());
        Problem::new(Cause::State, what, "Name the state directory of the server: --state DIR")
    })?;
    Ok(keytab)
}

/// Reads a keytab.
///
/// # Errors
/// It cannot be read, other users may read it, or it is none.
pub fn read(file: &Path) -> Result<Keytab> {
    read_whole(file).map(|(keytab, _)| keytab)
}

/// Reads a keytab, and what is in the file.
///
/// # Errors
/// The same.
pub fn read_whole(file: &Path) -> Result<(Keytab, Zeroizing<Vec<u8>>)> {
    let mode = fs::metadata(file).map_err(|e| unreadable(file, &e))?.mode();
    if mode & OF_OTHERS != 0 {
        return Err(Problem::new(
            Cause::Settings,
            format!("others may read or change the keytab {} (mode {:o})", file.display(), mode & 0o777),
            format!(
                "Who has these keys can log on as anybody. Restrict it to the server's user: chmod 600 {}",
                file.display()
            ),
        ));
    }
    let bytes = Zeroizing::new(contents(file).map_err(|e| unreadable(file, &e))?);
    Ok((parse(file, &bytes)?, bytes))
}

/// What becomes of users with tickets, for those who ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tickets {
    /// The settings.
    pub(crate) settings: KerberosSettings,
    /// The numbers; None: nobody has decided yet.
    pub(crate) numbers: Option<DomainNumbers>,
    /// Whether tickets are accepted: there are keys.
    pub(crate) are_accepted: bool,
}

impl Tickets {
    /// What a server with these settings makes of tickets.
    pub(crate) fn of(settings: &KerberosSettings, numbers: DomainNumbers, keys: Option<&Acceptor>) -> Self {
        Self { settings: settings.clone(), numbers: Some(numbers), are_accepted: keys.is_some() }
    }

    /// The number of a user or group of a domain, if it follows from the SID.
    pub(crate) fn id_of(&self, sid: &Sid) -> Option<u32> {
        match &self.numbers.as_ref()?.numbering {
            Numbering::Formula(domains) => domains.id_of(sid),
            Numbering::Asked { .. } => None,
        }
    }

    /// The directory of the domain, if there is one that may be asked.
    pub(crate) fn directory(&self) -> Option<Arc<Directory>> {
        self.numbers.as_ref()?.directory.clone()
    }

    /// Whether somebody must be asked for numbers.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.numbers.as_ref().is_some_and(|numbers| matches!(numbers.numbering, Numbering::Asked { .. }))
    }

    /// Whether the users of a domain have numbers.
    pub(crate) fn has_domain(&self, domain: &Sid) -> bool {
        self.numbers.as_ref().is_some_and(|numbers| numbers.numbering.has(domain))
    }
}

/// The numbers of the users and groups of domains, and whether it is known beforehand which domains there are.
#[derive(Debug, Clone)]
pub(crate) struct DomainNumbers {
    pub(crate) numbering: Numbering,
    /// The directory of the domain, if there is one that may be asked.
    pub(crate) directory: Option<Arc<Directory>>,
    is_known: bool,
}

impl DomainNumbers {
    /// As the settings say. The state database has the order of the domains.
    ///
    /// # Errors
    /// Two domains would have the same numbers, or the database cannot be used.
    pub(crate) fn new(settings: &KerberosSettings, state: &State, accounts: &AccountBook) -> Result<Self> {
        let formula = match settings.id_mapping {
            IdMapping::Rid => Some(Formula::Rid { base: settings.id_base }),
            IdMapping::Sss => Some(Formula::Sss),
            IdMapping::Autorid => None,
            IdMapping::Nss => return Self::of_name_service(settings, accounts),
            IdMapping::Rfc2307 => return Self::of_directory(settings, accounts),
        };
        let slice = |domain: &Sid| match formula {
            Some(formula) => Ok(formula.slice(domain)),
            None => autorid(settings.id_base, domain, state),
        };
        let is_known = !settings.domains.is_empty();
        let domains = match formula {
            Some(formula) if !is_known => Domains::of_any(formula),
            _ => {
                let known = settings.domains.iter().map(|domain| Ok((*domain, slice(domain)?)));
                Domains::of(known.collect::<Result<_>>()?).map_err(|overlap| {
                    let advice = "Choose another domain-id-mapping: with rid, there can be one domain; with autorid, several.";
                    Problem::new(Cause::Settings, overlap.to_string(), advice)
                })?
            }
        };
        let directory = directory_for_names(settings)?;
        Ok(Self { numbering: Numbering::Formula(Arc::new(domains)), directory, is_known })
    }

    /// The same as before if the settings are the same: what others were asked for is not asked again.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn again(
        settings: &KerberosSettings,
        before: &Tickets,
        state: &State,
        accounts: &AccountBook,
    ) -> Result<Self> {
        match &before.numbers {
            Some(numbers) if before.settings.numbers_as(settings) => Ok(numbers.clone()),
            _ => Self::new(settings, state, accounts),
        }
    }

    fn of_directory(settings: &KerberosSettings, accounts: &AccountBook) -> Result<Self> {
        let directory = Arc::new(Directory::new(directory_numbers::settings(settings)?));
        let (acquaintances, tally) = (&accounts.acquaintances, &accounts.lookups.directory_numbers);
        let source = DirectoryNumbers::start(Arc::clone(&directory), Arc::clone(acquaintances), tally);
        let source = source.map_err(serving("cannot start a thread for the numbers of domains"))?;
        let numbering = Numbering::Asked { source: Arc::new(source), domains: settings.domains.clone() };
        Ok(Self { numbering, directory: Some(directory), is_known: false })
    }

    fn of_name_service(settings: &KerberosSettings, accounts: &AccountBook) -> Result<Self> {
        let source = NssNumbers::start(settings.nss_names, &accounts.lookups.numbers);
        let source = source.map_err(serving("cannot start a thread for the numbers of domains"))?;
        let numbering = Numbering::Asked { source: Arc::new(source), domains: settings.domains.clone() };
        Ok(Self { numbering, directory: directory_for_names(settings)?, is_known: false })
    }

    /// Whether it is known beforehand which domains there are, so that numbers lead back to SIDs.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }
}

/// The directory of the domain, if the settings name one: it knows the names of users and groups, although it does not give the numbers.
fn directory_for_names(settings: &KerberosSettings) -> Result<Option<Arc<Directory>>> {
    let is_named = settings.directory != DirectorySettings::default();
    is_named.then(|| Ok(Arc::new(Directory::new(directory_numbers::settings(settings)?)))).transpose()
}

/// The slice of a domain in the order in which domains came.
fn autorid(base: u32, domain: &Sid, state: &State) -> Result<Slice> {
    let place = state.domain_slice(domain)?;
    let first = place.checked_mul(AUTORID_LEN).and_then(|offset| base.checked_add(offset));
    let first = first.ok_or_else(|| {
        let what = format!("there are no more numbers for the domain {domain}: it is the number {place}");
        Problem::new(Cause::Settings, what, "Choose a lower domain-id-base.")
    })?;
    Ok(Slice { first, len: AUTORID_LEN })
}

/// The keys that the settings and the state directory give; None: there are none, and Kerberos is not offered.
///
/// # Errors
/// A keytab cannot be used.
pub(crate) fn keys(settings: &Settings) -> Result<Option<Acceptor>> {
    let stored = stored_in(&settings.state);
    let file = match &settings.kerberos.keytab {
        Some(file) => file,
        None if stored.exists() => &stored,
        None => return Ok(None),
    };
    let keytab = read(file)?;
    let (entries, skipped) = (keytab.entries().len(), keytab.skipped());
    tracing::info!(keytab = %file.display(), entries, skipped, "Kerberos tickets are accepted");
    Ok(Some(acceptor(keytab)))
}

/// Accepts the tickets of SMB clients with these keys.
pub(crate) fn acceptor(keytab: Keytab) -> Acceptor {
    let services = SERVICES.map(str::to_owned).to_vec();
    Acceptor::new(keytab, krb5::Settings { services, ..krb5::Settings::default() })
}

/// Whom servers make of the users of tickets.
pub(crate) fn mapping(settings: &KerberosSettings, numbering: &Numbering) -> Mapping {
    Mapping {
        numbering: numbering.clone(),
        account_realms: settings.account_realms.clone(),
        trusted: settings.trusted_domains.clone(),
    }
}

/// These keys for an SMB server of this process.
pub(crate) fn smb_keys(acceptor: &Acceptor, mapping: &Mapping) -> KerberosKeys {
    KerberosKeys {
        acceptor: acceptor.for_services(SERVICES.map(str::to_owned).to_vec()),
        mapping: mapping.clone(),
    }
}

/// The same keys for an NFS server of this process.
pub(crate) fn nfs_keys(
    acceptor: &Acceptor,
    mapping: &Mapping,
    accounts: &Arc<AccountBook>,
) -> nfs_server::KerberosKeys {
    nfs_server::KerberosKeys {
        acceptor: acceptor.for_services(NFS_SERVICES.map(str::to_owned).to_vec()),
        mapping: mapping.clone(),
        accounts: Arc::clone(accounts) as _,
    }
}

fn contents(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One more than a keytab may have, so that it is found to be too large.
    let limit = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(file: &Path, bytes: &[u8]) -> Result<Keytab> {
    Keytab::parse(bytes).map_err(|e| {
        let what = format!("{} cannot be used: {e}", file.display());
        Problem::new(
            Cause::Settings,
            what,
            "Make a keytab with adcli, net ads, samba-tool, ktpass or kadmin.",
        )
    })
}

fn unreadable(file: &Path, error: &io::Error) -> Problem {
    let what = format!("cannot read the keytab {}: {error}", file.display());
    Problem::new(Cause::Settings, what, "It must be a file that this user may read.")
}

/// Writes a file that only its owner may read: completely, or not at all. Its owner is that of the directory, so that a server
/// with a user of its own may read what root has imported.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = file.with_extension("new");
    if let Err(e) = fs::remove_file(&new)
        && e.kind() != io::ErrorKind::NotFound
    {
        return Err(e);
    }
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    if geteuid().is_root()
        && let Some(directory) = file.parent()
    {
        let owner = fs::metadata(directory)?;
        fchown(&open, Some(owner.uid()), Some(owner.gid()))?;
    }
    open.write_all(bytes)?;
    open.sync_all()?;
    fs::rename(&new, file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn a_file_that_is_no_keytab_is_not_imported() {
        let directory = tempfile::tempdir().unwrap();
        let (state, file) = (directory.path().join("state"), directory.path().join("file"));
        fs::create_dir(&state).unwrap();
        for (bytes, why) in [
            (b"hello".to_vec(), "not a keytab"),
            (vec![5, 2], "no AES key"),
            (vec![5; (1 << 20) + 1], "larger than 1 MiB"),
        ] {
            fs::write(&file, bytes).unwrap();
            let problem = import(&state, &file).unwrap_err();
            assert!(problem.what.contains(why), "{problem}");
            assert!(!stored_in(&state).exists());
        }
        assert!(import(&state, Path::new("/nowhere")).unwrap_err().what.contains("/nowhere"));
    }

    #[test]
    fn an_imported_keytab_is_for_the_owner_of_the_state_directory_alone() {
        let recorded =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rules/krb5/testdata/recorded/samba.keytab");
        let state = tempfile::tempdir().unwrap();
        if geteuid().is_root() {
            chown(state.path(), Some(4711), Some(4712)).unwrap();
        }
        let owner = fs::metadata(state.path()).unwrap();
        for _ in 0..2 {
            import(state.path(), &recorded).unwrap();
            let stored = fs::metadata(stored_in(state.path())).unwrap();
            assert_eq!((stored.uid(), stored.gid()), (owner.uid(), owner.gid()));
            assert_eq!(stored.mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_keytab_that_others_may_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("keytab");
        fs::write(&file, [5, 2]).unwrap();
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let problem = read(&file).unwrap_err();
            assert!(problem.advice.contains("chmod 600"), "{problem}");
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(read(&file).unwrap_err().what.contains("no AES key"));
    }

    #[test]
    fn without_a_keytab_there_is_no_kerberos() {
        let directory = tempfile::tempdir().unwrap();
        assert!(keys(&Settings::new(directory.path().to_owned())).unwrap().is_none());
    }

    #[test]
    fn domains_have_numbers_as_the_mode_says() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        let sid = |text: &str| text.parse::<Sid>().unwrap();
        let (one, two) = (sid("S-1-5-21-1-2-3"), sid("S-1-5-21-1-2-4"));
        let numbers = |id_mapping, domains: &[Sid]| {
            let domains = domains.to_vec();
            DomainNumbers::new(
                &KerberosSettings { id_mapping, domains, ..KerberosSettings::default() },
                &state,
                &AccountBook::default(),
            )
        };
        let domains = |numbers: &DomainNumbers| match &numbers.numbering {
            Numbering::Formula(domains) => Arc::clone(domains),
            Numbering::Asked { .. } => panic!("nobody has to be asked"),
        };
        let of = |numbers: &DomainNumbers, domain: Sid| domains(numbers).id_of(&domain.member(1104).unwrap());
        // rid: whichever domain the keytab has, or the one that is named
        let any = numbers(IdMapping::Rid, &[]).unwrap();
        assert_eq!((of(&any, one), of(&any, two), any.is_known()), (Some(1_001_104), Some(1_001_104), false));
        let named = numbers(IdMapping::Rid, &[one]).unwrap();
        assert_eq!((of(&named, one), of(&named, two)), (Some(1_001_104), None));
        assert_eq!(domains(&named).sid_of(1_001_104), one.member(1104));
        assert!(named.is_known());
        let problem = numbers(IdMapping::Rid, &[one, two]).unwrap_err();
        assert!(problem.what.contains("S-1-5-21-1-2-4") && problem.advice.contains("autorid"), "{problem}");
        // autorid: in the order in which they came, whatever the order is now
        let none = numbers(IdMapping::Autorid, &[]).unwrap();
        assert_eq!((of(&none, one), none.is_known()), (None, false));
        assert_eq!(of(&numbers(IdMapping::Autorid, &[two]).unwrap(), two), Some(1_001_104));
        let both = numbers(IdMapping::Autorid, &[one, two]).unwrap();
        assert_eq!((of(&both, one), of(&both, two)), (Some(1_101_104), Some(1_001_104)));
        // sss: by the domain alone
        let sss = numbers(IdMapping::Sss, &[one, two]).unwrap();
        assert_eq!(of(&sss, one), Some(686_201_104));
        assert_eq!(numbers(IdMapping::Sss, &[one, one]).unwrap_err().cause, Cause::Settings);
    }

    #[test]
    fn a_realm_has_the_style_of_a_domain() {
        for good in ["FILES", "FILES.EXAMPLE.ORG", "NAS_1-A"] {
            assert_eq!(check_realm(good), Ok(()));
        }
        let long = "A".repeat(256);
        for bad in ["", "files", "A/B", "A@B", "A B", "\u{c4}", &*long] {
            assert!(check_realm(bad).is_err(), "{bad:?}");
        }
    }
}

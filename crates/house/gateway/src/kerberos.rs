//! The keys with which the server accepts Kerberos tickets: in a file that is configured, or in the state directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use krb5::keytab::{BYTES_MAX, Keytab};
use rustix::process::geteuid;
use smb_server::KerberosKeys;

use crate::accounts::AccountBook;
use crate::problem::{Cause, Problem, Result};
use crate::settings::Settings;

/// The keytab in the state directory. It is no part of the state database, so that no copy of that has it.
const STORED: &str = "kerberos.keytab";
/// The permission bits with which other users could read or change a keytab.
const OF_OTHERS: u32 = 0o066;
/// The first components of the names that an SMB server has.
const SERVICES: [&str; 2] = ["cifs", "host"];
/// Those that an NFS server has.
const NFS_SERVICES: [&str; 2] = ["nfs", "host"];

/// The longest realm, in bytes: that of a name in DNS.
const REALM_BYTES_MAX: usize = 255;

/// How users log on with tickets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KerberosSettings {
    /// The keys of this server; None: those that were imported into the state directory, if any.
    pub keytab: Option<PathBuf>,
    /// The uid and the gids of a domain's users are this number plus the last part of their SIDs.
    pub id_base: u32,
    /// Realms whose principals are the accounts of the same name.
    pub account_realms: Vec<String>,
    /// The realm in which the accounts of this server have their keys; None: as the state directory has it.
    pub realm: Option<String>,
}

impl Default for KerberosSettings {
    fn default() -> Self {
        Self { keytab: None, id_base: 1_000_000, account_realms: Vec::new(), realm: None }
    }
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
    let bytes = contents(file).map_err(|e| unreadable(file, &e))?;
    parse(file, &bytes)
}

/// The keys that the settings and the state directory give; None: there are none, and Kerberos is not offered.
///
/// # Errors
/// A keytab cannot be used.
pub(crate) fn keys(settings: &Settings) -> Result<Option<KerberosKeys>> {
    let KerberosSettings { keytab, id_base, account_realms, realm: _ } = &settings.kerberos;
    let stored = stored_in(&settings.state);
    let file = match keytab {
        Some(file) => file,
        None if stored.exists() => &stored,
        None => return Ok(None),
    };
    let keytab = read(file)?;
    let (entries, skipped) = (keytab.entries().len(), keytab.skipped());
    tracing::info!(keytab = %file.display(), entries, skipped, "Kerberos tickets are accepted");
    let services = SERVICES.map(str::to_owned).to_vec();
    let acceptor = krb5::Acceptor::new(keytab, krb5::Settings { services, ..krb5::Settings::default() });
    let mapping = auth::Mapping { id_base: *id_base, account_realms: account_realms.clone() };
    Ok(Some(KerberosKeys { acceptor, mapping }))
}

/// The same keys for the NFS server.
pub(crate) fn nfs_keys(keys: &KerberosKeys, accounts: &Arc<AccountBook>) -> nfs_server::KerberosKeys {
    nfs_server::KerberosKeys {
        acceptor: keys.acceptor.for_services(NFS_SERVICES.map(str::to_owned).to_vec()),
        mapping: keys.mapping.clone(),
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

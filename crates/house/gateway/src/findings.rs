//! What a gateway would refuse, or warn of, with these settings. Nothing is opened for writing, created or changed, and no
//! running gateway is asked.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use auth::{Ntlm, same_name};
use rustix::process::geteuid;
use share::Terms;
use state::{State, UserRecord, image};

use crate::apart::Apart;
use crate::kerberos::IdMapping;
use crate::opening::NO_ANSWER;
use crate::problem::Problem;
use crate::settings::{PoolSettings, Settings, ShareSettings, UserSettings};
use crate::{
    accounts, cephfs, control_tls, directories, directory_numbers, identities, in_time, kerberos, nfs_tls,
    opening, pools, without_ntlm,
};

/// What a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A setting of the server, by its name in the configuration file.
    Server(&'static str),
    /// A setting of the share of this name.
    Share(String, &'static str),
    /// A setting of the pool of this name.
    Pool(String, &'static str),
    /// A setting of the user of this name.
    User(String, &'static str),
}

/// Something that a gateway would refuse or warn of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub subject: Subject,
    /// Whether the gateway would refuse to start.
    pub is_error: bool,
    /// What was found.
    pub what: String,
    /// What to do about it; may be empty.
    pub advice: String,
}

/// All that would be refused or warned of. What only another user may look at, such as the directories of a server that
/// runs as root, is at most a warning. This takes as long as the storages of the shares take to answer, and 10 s at most
/// for one that does not.
pub fn findings(settings: &Settings) -> Vec<Finding> {
    let mut findings = Findings::default();
    findings.of_state(&settings.state);
    findings.of_certificate(settings);
    findings.of_client_authorities(settings);
    findings.of_keytab(settings);
    findings.of_directories(settings);
    findings.of_protocols(settings);
    findings.of_users(settings);
    findings.of_ntlm(settings);
    findings.of_domain(settings);
    findings.0
}

#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

/// The users and passwords in the state database, as far as they can be known.
enum Stored {
    /// There is no database yet.
    Nothing,
    State(Box<State>),
    /// This user may not read it, or it cannot be read now.
    Unknown,
}

impl Findings {
    fn add(&mut self, is_error: bool, subject: Subject, problem: Problem) {
        let Problem { what, advice, .. } = problem;
        self.0.push(Finding { subject, is_error, what, advice });
    }

    fn warn(&mut self, subject: Subject, what: impl Into<String>, advice: impl Into<String>) {
        self.0.push(Finding { subject, is_error: false, what: what.into(), advice: advice.into() });
    }

    /// Adds a problem with a file or directory. If the reason may be that this user has fewer rights than the server, it
    /// is a warning.
    fn add_of_path(&mut self, subject: Subject, path: &Path, problem: Problem) {
        if geteuid().is_root() || !is_of_permission(path) {
            return self.add(true, subject, problem);
        }
        self.warn(subject, problem.what, "The server may have other rights if it runs as another user.");
    }

    fn of_state(&mut self, directory: &Path) {
        let subject = || Subject::Server("state");
        match fs::metadata(directory) {
            Err(e) if e.kind() == ErrorKind::NotFound => {} // the server makes it
            _ => {
                if let Err(error) = state::directory::check(directory) {
                    let is_mine = geteuid().is_root() || is_owned(directory);
                    self.add(is_mine, subject(), error.into());
                }
            }
        }
    }

    fn of_certificate(&mut self, settings: &Settings) {
        let Some(files) = &settings.control_certificate else { return };
        let problem = match control_tls::check(files) {
            Ok(expires) => {
                let left = expires.map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
                if let Some(warning) = left.and_then(control::certificate_warning) {
                    let advice = "Renew it: a running server shows the new one within seconds.";
                    self.warn(Subject::Server("control-certificate"), warning, advice);
                }
                return;
            }
            Err(problem) => problem,
        };
        let unreadable =
            [&files.certificate, &files.key].into_iter().find(|file| fs::File::open(file).is_err());
        let file = unreadable.unwrap_or(&files.certificate);
        self.add_of_path(Subject::Server("control-certificate"), file, problem);
    }

    fn of_client_authorities(&mut self, settings: &Settings) {
        if let (Some(file), Err(problem)) = (&settings.nfs_client_ca, nfs_tls::client_verifier(settings)) {
            self.add_of_path(Subject::Server("nfs-client-ca"), file, problem);
        }
    }

    fn of_keytab(&mut self, settings: &Settings) {
        let stored = kerberos::stored_in(&settings.state);
        let stored = stored.exists().then_some(stored);
        let Some(file) = settings.kerberos.keytab.as_ref().or(stored.as_ref()) else { return };
        if let Err(problem) = kerberos::read(file) {
            self.add_of_path(Subject::Server("keytab"), file, problem);
        }
    }

    /// The directories of the shares: they are there, may be used, and are apart.
    fn of_directories(&mut self, settings: &Settings) {
        if settings.shares.is_empty() && settings.moved.is_empty() && !state::exists(&settings.state) {
            let advice = "Declare one: [[share]] with name and directory, or --share NAME=DIR";
            let what = "there is no share to serve".to_owned();
            let finding = Finding {
                subject: Subject::Server("share"),
                is_error: true,
                what,
                advice: advice.to_owned(),
            };
            self.0.push(finding);
        }
        let is_in_cephfs = |share: &ShareSettings| cephfs::path_of(&share.directory).is_some();
        if settings.shares.iter().any(is_in_cephfs)
            && let Err(problem) = cephfs::check(&settings.ceph)
        {
            self.add_of_path(Subject::Server("ceph-config"), &settings.ceph.configuration, problem);
        }
        let check = |given: ShareSettings| directories::check(&given.name, &given.directory, given.terms);
        let found = in_time::answers(settings.shares.clone(), check);
        let mut apart = Apart::from_state(&settings.state);
        for (share, found) in settings.shares.iter().zip(found) {
            let subject = || Subject::Share(share.name.clone(), "directory");
            match found {
                None => self.warn(subject(), format!("the share {}: {NO_ANSWER}", share.name), ""),
                Some(Err(problem)) => {
                    self.add_of_path(subject(), &share.directory, problem);
                    apart.take_unseen(&share.name, &share.directory);
                }
                Some(Ok(directory)) => {
                    if let Err(problem) = apart.check(&share.name, &directory) {
                        self.add(true, subject(), problem);
                    }
                    apart.take(&share.name, &directory);
                }
            }
        }
        self.of_pools(&settings.pools, &mut apart);
    }

    /// The pools: they are apart from all else, and can be used. One that cannot does not keep a gateway from serving the rest.
    fn of_pools(&mut self, pools: &[PoolSettings], apart: &mut Apart) {
        for (name, problem) in pools::overlaps(pools, apart) {
            self.add(true, Subject::Pool(name, "directory"), problem);
        }
        for PoolSettings { name, directory, .. } in pools {
            if let Err(problem) = pools::open(name, directory, &Arc::default()) {
                self.add(false, Subject::Pool(name.clone(), "directory"), problem);
            }
        }
    }

    /// What clients of a protocol would miss.
    fn of_protocols(&mut self, settings: &Settings) {
        let required = settings.encryption_required();
        for share in &settings.shares {
            let name = &share.name;
            let encrypted = required || share.terms.contains(Terms::ENCRYPTED);
            let withheld = opening::withheld(share.terms, share.rules.protocols, settings.encryption());
            if let Some(why) = withheld {
                self.warn(
                    Subject::Share(name.clone(), "encrypted"),
                    format!("the share {name} {why}"),
                    "Give the share protocols = [\"smb\"] if it is not meant for NFS.",
                );
            }
            if let Some(why) = opening::uncertified(&share.rules, settings.encryption()) {
                let advice = "Or name the clients by their addresses.";
                self.warn(
                    Subject::Share(name.clone(), "client"),
                    format!("the client list of {name} {why}"),
                    advice,
                );
            }
            if encrypted && share.terms.contains(Terms::GUESTS) {
                self.warn(
                    Subject::Share(name.clone(), "guest"),
                    format!(
                        "the share {name} admits no guest: guests have no key to encrypt with, as is required"
                    ),
                    "Remove `guest`, or the requirement to encrypt.",
                );
            }
        }
    }

    fn of_users(&mut self, settings: &Settings) {
        let stored = Stored::of(&settings.state);
        let added = stored.added_users();
        let has_guests = settings.shares.iter().any(|share| share.terms.contains(Terms::GUESTS));
        if settings.users.is_empty() && added.is_empty() && !has_guests && !matches!(stored, Stored::Unknown)
        {
            let what = "there is no user: nobody can log on over SMB";
            self.warn(Subject::Server("user"), what, "Declare one: [[user]], or `anabranch user add`.");
        }
        if matches!(stored, Stored::Unknown) && settings.users.iter().any(|user| user.password.is_none()) {
            let what = format!(
                "the state database in {} cannot be read: whether it has the passwords of all users is not known",
                settings.state.display()
            );
            self.warn(Subject::Server("state"), what, "Check as the user of the server.");
        }
        for user in &settings.users {
            let record = added.iter().find(|record| same_name(&record.name, &user.name));
            self.of_identity(user, record);
            if user.password.is_none() && record.is_none() && !stored.has_password(&user.name) {
                let subject = Subject::User(user.name.clone(), "password");
                self.add(true, subject, accounts::no_password(&user.name));
            }
        }
    }

    fn of_ntlm(&mut self, settings: &Settings) {
        let has_keys = settings.kerberos.keytab.is_some() || kerberos::stored_in(&settings.state).exists();
        for warning in without_ntlm::warnings(settings, has_keys) {
            self.warn(Subject::Server("ntlm"), warning, "");
        }
        let Stored::State(state) = Stored::of(&settings.state) else { return };
        if settings.ntlm == Ntlm::On || settings.drop_passwords {
            return;
        }
        let names = without_ntlm::left_without(settings, &state).unwrap_or_default();
        if let Some(problem) = without_ntlm::refused(&names) {
            self.add(true, Subject::Server("ntlm"), problem);
        }
    }

    fn of_domain(&mut self, settings: &Settings) {
        if settings.kerberos.id_mapping == IdMapping::Rfc2307
            && let Err(problem) = directory_numbers::settings(&settings.kerberos)
        {
            self.add(true, Subject::Server("domain-id-mapping"), problem);
        }
    }

    fn of_identity(&mut self, user: &UserSettings, record: Option<&UserRecord>) {
        let subject = Subject::User(user.name.clone(), "uid");
        match identities::of_root(user, record) {
            Err(why) => self.add(geteuid().is_root(), subject, accounts::stands_for_nobody(&user.name, &why)),
            Ok(identity) if identity.is_superuser() => {
                let what = format!("the account {} acts as root in the shares, as its uid says", user.name);
                self.warn(subject, what, "Give the account the uid of a user.");
            }
            Ok(_) => {}
        }
    }
}

impl Stored {
    fn of(directory: &Path) -> Self {
        let bytes = match image::read(&state::file(directory)) {
            Ok(bytes) => bytes,
            Err(e) if is_missing(&e) => return Self::Nothing,
            Err(_) => return Self::Unknown,
        };
        let sound = image::checked(bytes).and_then(image::database);
        sound.map_or(Self::Unknown, |database| Self::State(Box::new(State::in_memory(database))))
    }

    fn added_users(&self) -> Vec<UserRecord> {
        match self {
            Self::State(state) => state.added_users().unwrap_or_default(),
            Self::Nothing | Self::Unknown => Vec::new(),
        }
    }

    /// Whether it has the password of a user, as far as that is known.
    fn has_password(&self, name: &str) -> bool {
        match self {
            Self::State(state) => !matches!(state.account(name), Ok(None)),
            Self::Nothing => false,
            Self::Unknown => true,
        }
    }
}

fn is_missing(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Whether a path is there, as far as this user may look: then this user lacks a permission.
fn is_of_permission(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(found) => {
            found.is_dir() || fs::File::open(path).is_err_and(|e| e.kind() == ErrorKind::PermissionDenied)
        }
        Err(e) => e.kind() == ErrorKind::PermissionDenied,
    }
}

fn is_owned(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).is_ok_and(|found| found.uid() == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, uid: Option<u32>, password: Option<&str>) -> UserSettings {
        let password = password.map(str::to_owned);
        UserSettings { name: name.to_owned(), uid, password, ..UserSettings::default() }
    }

    #[test]
    fn a_machine_that_cannot_ask_a_ceph_cluster_is_found() {
        let here = tempfile::tempdir().unwrap();
        let ceph =
            crate::settings::CephPlace { configuration: here.path().join("none"), ..Default::default() };
        let of = |directory: &str| Settings {
            shares: vec![ShareSettings::new("data", directory)],
            ceph: ceph.clone(),
            ..Settings::new(here.path().join("state"))
        };
        let told = |settings: &Settings| {
            let found = findings(settings);
            found.into_iter().find(|found| found.subject == Subject::Server("ceph-config"))
        };
        let told_of_cephfs = told(&of("cephfs:/data")).unwrap();
        assert!(
            told_of_cephfs.is_error
                && told_of_cephfs.what.starts_with("shares in CephFS cannot be served: Ceph's c")
        );
        assert!(!told_of_cephfs.advice.is_empty());
        assert_eq!(told(&of("/")).map(|found| found.what), None);
    }

    #[test]
    fn everything_is_found_at_once_and_nothing_is_created() {
        let here = tempfile::tempdir().unwrap();
        let state = here.path().join("state");
        let data = here.path().join("data");
        fs::create_dir(&data).unwrap();
        let share = |name: &str, directory: &Path| ShareSettings::new(name, directory);
        let encrypted = ShareSettings {
            terms: Terms::ENCRYPTED | Terms::GUESTS,
            ..share("more", &here.path().join("more"))
        };
        fs::create_dir(here.path().join("more")).unwrap();
        let mut certified = share("certified", &here.path().join("certified"));
        certified.rules.clients = vec!["cert:*.lab.test".parse().unwrap()];
        fs::create_dir(here.path().join("certified")).unwrap();
        let settings = Settings {
            shares: vec![
                share("data", &data),
                share("same", &data),
                share("gone", &here.path().join("gone")),
                encrypted,
                certified,
                share("around", here.path()),
            ],
            users: vec![
                user("anna", Some(1000), Some("hush-hush")),
                user("otto", Some(1001), None),
                user("root", Some(0), Some("hush-hush")),
            ],
            ..Settings::new(state.clone())
        };
        let found = findings(&settings);
        let has = |is_error: bool, subject: Subject, word: &str| {
            found
                .iter()
                .any(|one| one.is_error == is_error && one.subject == subject && one.what.contains(word))
        };
        let of_share = |name: &str, key| Subject::Share(name.to_owned(), key);
        assert!(has(true, of_share("same", "directory"), "is served already"), "{found:#?}");
        assert!(has(true, of_share("gone", "directory"), "does not exist"), "{found:#?}");
        assert!(has(true, of_share("around", "directory"), "holds the state directory"), "{found:#?}");
        assert!(has(false, of_share("more", "encrypted"), "krb5p alone"), "{found:#?}");
        assert!(has(false, of_share("more", "guest"), "admits no guest"), "{found:#?}");
        assert!(has(true, Subject::User("otto".to_owned(), "password"), "no password"), "{found:#?}");
        assert!(has(false, Subject::User("root".to_owned(), "uid"), "acts as root"), "{found:#?}");
        assert!(has(false, of_share("certified", "client"), "admit nobody"), "{found:#?}");
        assert_eq!(found.len(), 8, "{found:#?}");
        assert!(!state.exists());
        assert!(!format!("{found:?}").contains("hush"));
    }

    #[test]
    fn what_can_be_served_has_no_findings() {
        let here = tempfile::tempdir().unwrap();
        fs::create_dir(here.path().join("data")).unwrap();
        let settings = Settings {
            shares: vec![ShareSettings::new("data", here.path().join("data"))],
            users: vec![user("anna", Some(1000), Some("hush-hush"))],
            ..Settings::new(here.path().join("state"))
        };
        assert_eq!(findings(&settings), []);
        let nothing = Settings { shares: Vec::new(), ..settings };
        assert_eq!(findings(&nothing).len(), 1);
    }
}

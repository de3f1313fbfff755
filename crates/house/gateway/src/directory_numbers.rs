//! The numbers of users and groups of a domain by the word of its directory: `uidNumber` and `gidNumber` (RFC 2307), by their SIDs.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use acl::Sid;
use auth::{Ids, NumberSource, Numbers, Unnumbered};
use directory::{Directory, Entry};

use crate::acquaintances::Acquaintances;
use crate::asked::Asked;
use crate::kerberos::KerberosSettings;
use crate::lookups::Tally;
use crate::name_service::NameAnswer;
use crate::numbers::heard;
use crate::problem::{Cause, Problem, Result};

/// The most groups of a user that have numbers: as many as Windows gives a user (MaxTokenSize and LSA allow 1,015 SIDs).
const GROUPS_MAX: usize = 1015;

/// Where the directory of the domain is, as it was configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirectorySettings {
    /// See [`directory::Settings`].
    pub server: Option<String>,
    /// See there.
    pub base: Option<String>,
    /// See there.
    pub account: Option<String>,
    /// See there.
    pub password_file: Option<std::path::PathBuf>,
    /// See there.
    pub authorities: Option<std::path::PathBuf>,
}

/// Checks that this can be the name of a server, with or without a port.
///
/// # Errors
/// The reason why it cannot, in words.
pub fn check_server(server: &str) -> std::result::Result<(), String> {
    let (name, port) = server.rsplit_once(':').map_or((server, "636"), |(name, port)| (name, port));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let is_good = !name.is_empty() && name.len() <= 253 && name.chars().all(is_name);
    if !is_good || !port.parse::<u16>().is_ok_and(|port| port != 0) {
        return Err(format!(
            "{server:?} is not the name of a server: expected one as in its certificate, with a port if that is not 636, such as \"dc1.ad.example.org\"; it is always asked over LDAPS"
        ));
    }
    Ok(())
}

/// The directory that the settings name.
///
/// # Errors
/// A setting is missing.
pub(crate) fn settings(settings: &KerberosSettings) -> Result<directory::Settings> {
    let DirectorySettings { server, base, account, password_file, authorities } = settings.directory.clone();
    let missing = |key: &str| {
        let what = format!("the directory of the domain cannot be asked without {key}");
        Problem::new(
            Cause::Settings,
            what,
            "docs/kerberos.md says which settings of the directory there are.",
        )
    };
    Ok(directory::Settings {
        server: server.ok_or_else(|| missing("domain-ldap-server, the domain controller that is asked"))?,
        base,
        account: account.ok_or_else(|| missing("domain-ldap-account, the account that asks"))?,
        password_file: password_file
            .ok_or_else(|| missing("domain-ldap-password-file, with the password of domain-ldap-account"))?,
        authorities: authorities
            .ok_or_else(|| missing("domain-ldap-ca, the authorities that vouch for the domain controller"))?,
    })
}

/// A user and the groups of the user's domain by a ticket. Other groups are another question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    user: Sid,
    primary_group: Sid,
    groups: Arc<[Sid]>,
}

impl Question {
    fn of(user: Sid, primary_group: Sid, groups: &[Sid]) -> Self {
        let domain = |sid: &Sid| sid.in_domain().map(|(domain, _)| domain);
        let own = domain(&user);
        let mut groups: Vec<Sid> =
            groups.iter().chain([&primary_group]).filter(|sid| domain(sid) == own).copied().collect();
        groups.sort_unstable();
        groups.dedup();
        groups.truncate(GROUPS_MAX);
        Self { user, primary_group, groups: groups.into() }
    }

    /// The numbers by these entries; None: the user or the user's first group has none. The first group is that of the user's entry, as on
    /// Unix, or else the primary group of the domain.
    fn answer(&self, entries: &[Entry]) -> Option<Ids> {
        let entry = |sid: &Sid| entries.iter().find(|entry| entry.sid == *sid);
        let user = entry(&self.user)?;
        let of_group = |sid: &Sid| entry(sid)?.gid;
        let gid = user.gid.or_else(|| of_group(&self.primary_group))?;
        Some(Ids { uid: user.uid?, gid, groups: self.groups.iter().filter_map(of_group).collect() })
    }
}

/// See the module. Threads of its own ask, and the answers are kept for a while.
#[derive(Debug)]
pub(crate) struct DirectoryNumbers {
    asked: Arc<Asked<Question, Ids>>,
}

impl DirectoryNumbers {
    /// Starts the threads, which end with this value.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(
        directory: Arc<Directory>,
        acquaintances: Arc<Acquaintances>,
        tally: &Arc<Tally>,
    ) -> io::Result<Self> {
        let ask = move |question: &Question| ask(&directory, &acquaintances, question);
        Ok(Self { asked: Asked::start("domain numbers", Arc::new(ask), tally)? })
    }

    fn of(&self, question: Question) -> Numbers {
        heard(self.asked.ask(question, Instant::now()))
    }
}

impl NumberSource for DirectoryNumbers {
    fn numbers_of(&self, user: &Unnumbered) -> Numbers {
        let logon = user.logon();
        self.of(Question::of(logon.sid, logon.primary_group, logon.groups()))
    }
}

fn ask(directory: &Directory, acquaintances: &Acquaintances, question: &Question) -> NameAnswer<Ids> {
    let sids: Vec<Sid> = question.groups.iter().copied().chain([question.user]).collect();
    match directory.entries(&sids) {
        Ok(entries) => {
            let of_group =
                |entry: &Entry| Some((entry.sid, entry.gid?)).filter(|(sid, _)| *sid != question.user);
            acquaintances.saw_groups(entries.iter().filter_map(of_group));
            question.answer(&entries).map_or(NameAnswer::Unknown, NameAnswer::Known)
        }
        Err(error) => NameAnswer::Unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::path::Path;

    use auth::Reason;

    use super::*;
    use crate::asked::PATIENCE;
    use crate::lookups::Lookups;

    fn sid(rid: u32) -> Sid {
        format!("S-1-5-21-1-2-3-{rid}").parse().unwrap()
    }

    fn entry(rid: u32, uid: Option<u32>, gid: Option<u32>) -> Entry {
        Entry { sid: sid(rid), dn: format!("CN={rid}"), uid, gid }
    }

    #[test]
    fn a_user_has_the_numbers_of_its_entry_and_of_its_groups() {
        let foreign = "S-1-5-21-9-9-9-1500".parse().unwrap();
        let question = Question::of(sid(1104), sid(513), &[sid(1201), sid(1200), foreign, sid(1201)]);
        assert_eq!(*question.groups, [sid(513), sid(1200), sid(1201)], "each group of the domain once");
        let groups =
            [entry(513, None, Some(10_000)), entry(1200, None, Some(11_000)), entry(1201, None, None)];
        let of = |uid, gid| {
            let entries: Vec<_> = groups.iter().cloned().chain([entry(1104, uid, gid)]).collect();
            question.answer(&entries)
        };
        let ids = |gid| Some(Ids { uid: 10_001, gid, groups: vec![10_000, 11_000] });
        assert_eq!(of(Some(10_001), Some(10_007)), ids(10_007));
        assert_eq!(of(Some(10_001), None), ids(10_000), "the primary group of the domain");
        assert_eq!((of(None, Some(10_000)), question.answer(&groups)), (None, None));
        assert_eq!(question.answer(&[entry(1104, Some(10_001), None)]), None, "no first group");
    }

    #[test]
    fn the_groups_of_a_question_are_bounded() {
        let groups: Vec<Sid> = (2000..4000).map(sid).collect();
        assert_eq!(Question::of(sid(1104), sid(513), &groups).groups.len(), GROUPS_MAX);
    }

    #[test]
    fn what_is_missing_is_named() {
        let whole = DirectorySettings {
            server: Some("dc1.ad.test".to_owned()),
            base: None,
            account: Some("reader@AD.TEST".to_owned()),
            password_file: Some("/password".into()),
            authorities: Some("/ca.pem".into()),
        };
        let of = |directory| settings(&KerberosSettings { directory, ..KerberosSettings::default() });
        assert!(of(whole.clone()).is_ok());
        for (key, without) in [
            ("domain-ldap-server", DirectorySettings { server: None, ..whole.clone() }),
            ("domain-ldap-account", DirectorySettings { account: None, ..whole.clone() }),
            ("domain-ldap-password-file", DirectorySettings { password_file: None, ..whole.clone() }),
            ("domain-ldap-ca", DirectorySettings { authorities: None, ..whole.clone() }),
        ] {
            assert!(of(without).unwrap_err().what.contains(key), "{key}");
        }
    }

    #[test]
    fn a_server_has_a_name_and_perhaps_a_port() {
        for good in ["dc1", "dc1.ad.test", "dc1.ad.test:3269", "10.0.0.1"] {
            assert_eq!(check_server(good), Ok(()));
        }
        for bad in
            ["", "ldap://dc1", "ldaps://dc1", "dc1/x", "a@dc1", "dc1:", "dc1:0", "dc1:65536", "d c", ":636"]
        {
            assert!(check_server(bad).is_err(), "{bad:?}");
        }
    }

    /// A directory that accepts connections and says nothing.
    #[test]
    fn a_directory_that_is_silent_holds_up_a_logon_for_a_while_only() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let file = here.path().join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            file
        };
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let settings = |port: u16, authorities: &Path| directory::Settings {
            server: format!("localhost:{port}"),
            base: None,
            account: "reader".to_owned(),
            password_file: file("password", "hush"),
            authorities: authorities.to_owned(),
        };
        let ca = file("ca.pem", &certified.cert.pem());
        let port = listener.local_addr().unwrap().port();
        let directory = Arc::new(Directory::new(settings(port, &ca)));
        let lookups = Lookups::default();
        let source = DirectoryNumbers::start(directory, Arc::default(), &lookups.directory_numbers).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let begun = Instant::now();
        let question = Question::of(sid(1104), sid(513), &[]);
        let answer = runtime.block_on(async { source.of(question).await });
        assert_eq!(answer, Err(Reason::NumbersUnavailable));
        assert!(begun.elapsed() >= PATIENCE);
        let told = lookups.at(Instant::now()).remove(0);
        assert_eq!((told.timed_out, told.found, told.held.map(|held| held.fresh)), (1, 0, Some(0)));
    }
}

//! The directory of a domain, asked over LDAPS: which numbers its users and groups have (`uidNumber`, `gidNumber`; RFC 2307), by their SIDs,
//! which SIDs, by their names, and which names, by their SIDs.
//!
//! Each question waits for the network, so none may be asked on a thread that serves clients. There is no LDAP without TLS here, the
//! certificate of the directory is checked against authorities that the administrator names, and referrals to other directories are not
//! followed.

mod domain;
mod entry;
mod link;
mod named;
mod secret;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use acl::Sid;
use parking_lot::Mutex;

use crate::domain::Domain;
pub use crate::entry::Entry;
use crate::entry::{filter, filter_by_name};
use crate::link::Link;
pub use crate::named::{Kind, Named};
use crate::named::{filter_of_account, filter_of_principal};

/// How long one step of a conversation with the directory may take: to connect, to bind, or to search.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);
/// After a directory could not be asked, how long it is not asked again: who waits for an answer then need not wait in vain.
const REST: Duration = Duration::from_secs(3);
/// The most SIDs in one search. A directory returns at least 1,000 entries (MaxPageSize of Active Directory).
const SIDS_PER_SEARCH: usize = 100;
/// The connections that are kept while nobody asks.
const LINKS_KEPT: usize = 2;

/// Where the directory is, and as whom it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of the directory's server, as its certificate has it, with a port if that is not 636.
    pub server: String,
    /// The entry below which users and groups are; None: the one that the directory names (defaultNamingContext).
    pub base: Option<String>,
    /// The name of the account that asks: a DN, or with Active Directory `NAME@REALM` or `DOMAIN\NAME`.
    pub account: String,
    /// The file whose first line is the password of the account; only its owner may read it.
    pub password_file: PathBuf,
    /// The authorities that vouch for the certificate of the directory (PEM).
    pub authorities: PathBuf,
}

/// Why a directory could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Error {
    /// What failed, and why.
    pub what: String,
    /// What to do.
    pub advice: &'static str,
    /// Whether the directory has said so itself: other questions may be answered.
    pub(crate) is_answer: bool,
}

/// A directory that may be asked by several threads.
#[derive(Debug)]
pub struct Directory {
    settings: Settings,
    /// Connections that nobody uses now. Not held while the directory is asked.
    free: Mutex<Vec<Link>>,
    /// When the directory could not be asked last, and why; None: since then it has answered.
    trouble: Mutex<Option<(Instant, Error)>>,
}

impl Directory {
    /// A directory, which is not asked yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, free: Mutex::default(), trouble: Mutex::default() }
    }

    /// The name of the server, for people.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.settings.server
    }

    /// The users and groups with these SIDs, as far as the directory has them, in no order. Waits for the network, for some seconds at most
    /// if the directory is silent.
    ///
    /// # Errors
    /// The directory cannot be reached, or does not answer.
    pub fn entries(&self, sids: &[Sid]) -> Result<Vec<Entry>, Error> {
        self.asked(|link| search(link, sids))
    }

    /// The user or group of this name in this domain (its NetBIOS name or its DNS name); `is_group`: no user. Waits like [`Self::entries`].
    ///
    /// # Errors
    /// The directory cannot be reached, or does not answer; or it is that of another domain.
    pub fn by_name(&self, domain: &str, name: &str, is_group: bool) -> Result<Option<Entry>, Error> {
        let (own, found) =
            self.asked(|link| Ok((link.domain()?, link.search(&filter_by_name(name, is_group))?)))?;
        if own.is_called(domain) {
            let mut found = found.into_iter();
            // Of several, none is meant.
            return Ok(found.next().filter(|_| found.next().is_none()));
        }
        let (server, Domain { netbios, dns }) = (&self.settings.server, own);
        Err(Error {
            what: format!(
                "the directory at {server} is that of the domain {netbios} ({dns}), not of {domain}"
            ),
            advice: "write users and groups of other domains by their SIDs",
            is_answer: true,
        })
    }

    /// What the user or group with this SID is called. Waits like [`Self::entries`].
    ///
    /// # Errors
    /// The directory cannot be reached, or does not answer.
    pub fn name_of(&self, sid: &Sid) -> Result<Option<Named>, Error> {
        self.asked(|link| link.named(&filter(&[*sid])))
    }

    /// The user or group with this name: `alice` with the name of a domain (its NetBIOS name or its DNS name), or without any;
    /// `alice@ad.lab.test` by the name of the account and the DNS name, or by the name of the user (userPrincipalName). None: there is no
    /// such name, or the directory is that of another domain. Waits like [`Self::entries`].
    ///
    /// # Errors
    /// The directory cannot be reached, or does not answer.
    pub fn named(&self, domain: Option<&str>, name: &str) -> Result<Option<Named>, Error> {
        self.asked(|link| {
            let own = link.domain()?;
            let filter = match (domain, name.rsplit_once('@')) {
                (Some(domain), _) if !own.is_called(domain) => return Ok(None),
                (None, Some((account, of))) if own.is_called(of) => {
                    format!("(|{}{})", filter_of_account(account), filter_of_principal(name))
                }
                (None, Some(_)) => filter_of_principal(name),
                (Some(_), _) | (None, None) => filter_of_account(name),
            };
            link.named(&filter)
        })
    }

    fn asked<T>(&self, question: impl Fn(&mut Link) -> Result<T, Error>) -> Result<T, Error> {
        if let Some((at, error)) = &*self.trouble.lock()
            && at.elapsed() < REST
        {
            return Err(error.clone());
        }
        let found = self.ask(question);
        let now = Instant::now();
        let trouble = found.as_ref().err().filter(|error| !error.is_answer);
        let before = std::mem::replace(&mut *self.trouble.lock(), trouble.map(|e| (now, e.clone())));
        self.tell(before.map(|(_, error)| error), trouble);
        found
    }

    /// Says in the log when the directory begins or ends to be a problem.
    fn tell(&self, before: Option<Error>, now: Option<&Error>) {
        match (before, now) {
            (None, Some(error)) => tracing::warn!("{error}: {}", error.advice),
            (Some(before), Some(error)) if before != *error => tracing::warn!("{error}: {}", error.advice),
            (Some(_), None) => tracing::info!("the directory at {} answers again", self.settings.server),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    fn ask<T>(&self, question: impl Fn(&mut Link) -> Result<T, Error>) -> Result<T, Error> {
        let kept = self.free.lock().pop();
        // The directory may have closed a connection that was not used for some time.
        if let Some(mut link) = kept
            && let Ok(found) = question(&mut link)
        {
            self.keep(link);
            return Ok(found);
        }
        let mut link = Link::open(&self.settings)?;
        let found = question(&mut link)?;
        self.keep(link);
        Ok(found)
    }

    fn keep(&self, link: Link) {
        let mut free = self.free.lock();
        if free.len() < LINKS_KEPT {
            free.push(link);
        }
    }
}

fn search(link: &mut Link, sids: &[Sid]) -> Result<Vec<Entry>, Error> {
    let mut found = Vec::new();
    for some in sids.chunks(SIDS_PER_SEARCH) {
        found.extend(link.search(&filter(some))?);
    }
    Ok(found)
}

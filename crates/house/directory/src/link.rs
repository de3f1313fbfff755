//! One connection to a directory, on which an account has bound itself.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ldap3::{
    LdapConn, LdapConnSettings, LdapError, LdapResult, ResultEntry, Scope, SearchEntry, SearchResult,
    ldap_escape,
};
use rustls::ClientConfig;

use crate::domain::Domain;
use crate::entry::{ATTRIBUTES, Entry};
use crate::named::{NAME_ATTRIBUTES, Named};
use crate::secret::{authorities, password};
use crate::{Error, STEP_TIMEOUT, Settings};

/// The root of a directory tells which directory it is. RFC 4512 5.1.
const ROOT: (&str, Scope) = ("", Scope::Base);
/// Where a domain controller has its domain. [MS-ADTS] 3.1.1.3.2.
const DEFAULT_CONTEXT: &str = "defaultNamingContext";

/// invalidCredentials, RFC 4511 appendix A.
const INVALID_CREDENTIALS: u32 = 49;

/// A connection.
pub(crate) struct Link {
    connection: LdapConn,
    server: String,
    base: String,
    /// None: it has not been asked for yet.
    domain: Option<Domain>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("server", &self.server).field("base", &self.base).finish_non_exhaustive()
    }
}

impl Link {
    /// Connects, and binds the account.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        let Settings { server, base, account, password_file, authorities } = settings;
        let secret = password(password_file)?;
        let config = LdapConnSettings::new().set_conn_timeout(STEP_TIMEOUT).set_config(tls(authorities)?);
        let url = format!("ldaps://{server}");
        let mut connection = LdapConn::with_settings(config, &url).map_err(|e| unreachable(server, &e))?;
        let bound = connection.with_timeout(STEP_TIMEOUT).simple_bind(account, &secret);
        check(bound.map_err(|e| silent(server, &e))?, server, account)?;
        let base = match base {
            Some(base) => base.clone(),
            None => naming_context(&mut connection, server)?,
        };
        Ok(Self { connection, server: server.clone(), base, domain: None })
    }

    /// The domain whose directory this is, by its cross-reference. [MS-ADTS] 6.1.1.2.1.1.4.
    pub(crate) fn domain(&mut self) -> Result<Domain, Error> {
        const CONFIGURATION: &str = "configurationNamingContext";
        const NAMES: [&str; 2] = ["nETBIOSName", "dnsRoot"];
        if let Some(domain) = &self.domain {
            return Ok(domain.clone());
        }
        let Self { connection, server, .. } = self;
        let nameless = || Error {
            what: format!("the directory at {server} does not say what its domain is called"),
            advice: "write users and groups of the domain by their SIDs",
            is_answer: true,
        };
        let root = search(connection, server, ROOT, "(objectClass=*)", &[DEFAULT_CONTEXT, CONFIGURATION])?;
        let context = |name| value(&root, name).ok_or_else(nameless);
        let base = format!("CN=Partitions,{}", context(CONFIGURATION)?);
        let filter = format!("(nCName={})", ldap_escape(context(DEFAULT_CONTEXT)?));
        let found = search(connection, server, (&base, Scope::OneLevel), &filter, &NAMES)?;
        let [netbios, dns] = NAMES.map(|name| value(&found, name));
        let domain = Domain { netbios: netbios.ok_or_else(nameless)?, dns: dns.ok_or_else(nameless)? };
        Ok(self.domain.insert(domain).clone())
    }

    /// The users and groups that a filter finds.
    pub(crate) fn search(&mut self, filter: &str) -> Result<Vec<Entry>, Error> {
        Ok(self.below_base(filter, &ATTRIBUTES)?.into_iter().filter_map(Entry::of).collect())
    }

    /// The same with their names. Of several, none is meant.
    pub(crate) fn named(&mut self, filter: &str) -> Result<Option<Named>, Error> {
        let domain = self.domain()?;
        match &*self.below_base(filter, &NAME_ATTRIBUTES)? {
            [found] => Ok(Named::of(found, &domain)),
            _ => Ok(None),
        }
    }

    fn below_base(&mut self, filter: &str, attributes: &[&str]) -> Result<Vec<SearchEntry>, Error> {
        search(&mut self.connection, &self.server, (&self.base, Scope::Subtree), filter, attributes)
    }
}

/// One search. Referrals to other directories are left out, and not followed.
fn search(
    connection: &mut LdapConn,
    server: &str,
    (base, scope): (&str, Scope),
    filter: &str,
    attributes: &[&str],
) -> Result<Vec<SearchEntry>, Error> {
    let found = connection.with_timeout(STEP_TIMEOUT).search(base, scope, filter, attributes);
    let SearchResult(entries, result) = found.map_err(|e| silent(server, &e))?;
    if result.rc != 0 {
        return Err(Error {
            what: format!("the directory at {server} refuses a search below {base:?}: {}", told(&result)),
            advice: "the account must be allowed to read objectSid, uidNumber and gidNumber there",
            is_answer: true,
        });
    }
    let is_entry = |entry: &ResultEntry| !entry.is_ref() && !entry.is_intermediate();
    // The library gives up on an entry that breaks the protocol.
    let read = || entries.into_iter().filter(is_entry).map(SearchEntry::construct).collect();
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| Error {
        what: format!("the directory at {server} sends what is no entry"),
        advice: "it must be a directory that speaks LDAP",
        is_answer: false,
    })
}

/// The entry below which a domain controller has everything.
fn naming_context(connection: &mut LdapConn, server: &str) -> Result<String, Error> {
    let root = search(connection, server, ROOT, "(objectClass=*)", &[DEFAULT_CONTEXT])?;
    value(&root, DEFAULT_CONTEXT).ok_or_else(|| Error {
        what: format!("the directory at {server} has no {DEFAULT_CONTEXT}"),
        advice: "name the entry below which users and groups are: domain-ldap-base",
        is_answer: false,
    })
}

/// The first value that any of these entries has.
fn value(entries: &[SearchEntry], name: &str) -> Option<String> {
    entries.iter().find_map(|entry| entry.attrs.get(name)?.first().cloned())
}

fn tls(file: &std::path::Path) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder =
        builder.map_err(|e| Error { what: format!("cannot use TLS: {e}"), advice: "", is_answer: false })?;
    Ok(Arc::new(builder.with_root_certificates(authorities(file)?).with_no_client_auth()))
}

fn check(result: LdapResult, server: &str, account: &str) -> Result<(), Error> {
    match result.rc {
        0 => Ok(()),
        INVALID_CREDENTIALS => Err(Error {
            what: format!("the directory at {server} does not accept the password of {account:?}"),
            advice: "check domain-ldap-account and the file domain-ldap-password-file",
            is_answer: false,
        }),
        _ => Err(Error {
            what: format!("the directory at {server} refuses {account:?}: {}", told(&result)),
            advice: "check domain-ldap-account",
            is_answer: false,
        }),
    }
}

/// What a directory says of a refusal, in one line.
fn told(result: &LdapResult) -> String {
    let text: String = result.text.chars().filter(|c| !c.is_control()).take(200).collect();
    format!("result {} {text}", result.rc)
}

fn unreachable(server: &str, error: &LdapError) -> Error {
    let text = error.to_string();
    let advice = if text.contains("certificate") {
        "domain-ldap-server must be a name in its certificate, and domain-ldap-ca the file of those who signed that"
    } else {
        "see whether it runs, and whether this machine reaches it"
    };
    Error { what: format!("cannot connect to the directory at {server}: {text}"), advice, is_answer: false }
}

fn silent(server: &str, error: &LdapError) -> Error {
    Error {
        what: format!("the directory at {server} does not answer: {error}"),
        advice: "see whether it runs, and whether this machine reaches it",
        is_answer: false,
    }
}

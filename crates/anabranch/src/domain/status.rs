//! `anabranch domain status`: what the keytab holds, which names of this machine have no key, how much the clocks differ, and what the server
//! that runs says of the numbers of users of domains, and of those who are asked for users.

mod server;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use control::domain::Domain;
use gateway::{kdc_clock, kerberos};
use krb5::keytab::{Entry, Keytab};
use serde::Serialize;

use super::left_out;
use crate::cli::DomainStatus;
use crate::print::{harmless, json, print};
use crate::problem::{Cause, Problem, Result};
use crate::table::render;

/// What clients of SMB and of NFS ask tickets for.
const SERVICES: [&str; 2] = ["cifs", "nfs"];

/// What is found.
#[derive(Debug, Serialize)]
struct Status {
    #[serde(flatten)]
    keys: Option<OfKeytab>,
    /// None: no server runs, or it does not say.
    server: Option<Domain>,
    /// Why a server that runs does not say.
    server_problem: Option<String>,
}

/// What the keytab says.
#[derive(Debug, Serialize)]
struct OfKeytab {
    keytab: String,
    keys: Vec<Key>,
    /// Keys of other encryption types than AES, which are not used.
    left_out: usize,
    names: Vec<Name>,
    clock: Clock,
}

/// A key.
#[derive(Debug, Serialize)]
struct Key {
    principal: String,
    kvno: u32,
    encryption: &'static str,
}

/// A name by which clients may connect, and for which service there is a key.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Name {
    name: String,
    smb: bool,
    nfs: bool,
}

/// How the clocks compare.
#[derive(Debug, Serialize)]
struct Clock {
    kdc: String,
    /// By how many seconds this machine's clock is ahead; none if the KDC does not say.
    seconds_ahead: Option<i64>,
    /// Why the KDC does not say.
    problem: Option<String>,
}

/// # Errors
/// There is neither a keytab nor a server, or the keytab cannot be read.
pub(super) fn run(asked: &DomainStatus) -> Result<()> {
    let (server, server_problem) = match server::ask(&asked.asking) {
        Ok(server) => (server, None),
        Err(problem) => (None, Some(problem.what)),
    };
    let keytab = file(asked, server.as_ref())?.map(|file| Ok::<_, Problem>((kerberos::read(&file)?, file)));
    let keytab = keytab.transpose()?;
    let keys = keytab.as_ref().map(|(keytab, file)| of_keytab(keytab, file.display().to_string(), asked));
    let status = Status { keys, server, server_problem };
    let text = || text(&status, keytab.as_ref().map(|(keytab, _)| keytab));
    print(&if asked.asking.json { json(&status)? } else { text() })
}

/// The keytab; None: the server that runs has none.
///
/// # Errors
/// There is none, and no server runs.
fn file(asked: &DomainStatus, server: Option<&Domain>) -> Result<Option<PathBuf>> {
    let named = server.and_then(|server| server.keytab.as_ref()).map(PathBuf::from);
    if let Some(file) = asked.keytab.clone().or(named) {
        return Ok(Some(file));
    }
    let state = asked.asking.state();
    let stored = kerberos::stored_in(&state);
    if stored.exists() {
        return Ok(Some(stored));
    }
    if server.is_some() {
        return Ok(None);
    }
    let what = format!("{} has no keytab", state.display());
    let advice =
        "Import one: anabranch domain import --keytab FILE. If the configuration names one: --keytab FILE";
    Err(Problem::new(Cause::Refused, what, advice))
}

fn of_keytab(keytab: &Keytab, file: String, asked: &DomainStatus) -> OfKeytab {
    let realm = keytab.entries().first().map_or("", |entry| entry.principal().realm());
    OfKeytab {
        keytab: file,
        keys: keytab.entries().iter().map(key).collect(),
        left_out: keytab.skipped(),
        names: names(&own_names(&host_name(), realm), keytab),
        clock: clock(asked.kdc.as_deref(), realm),
    }
}

fn key(entry: &Entry) -> Key {
    let principal = entry.principal().to_string();
    Key { principal, kvno: entry.kvno(), encryption: entry.enctype().name() }
}

/// The name by which this machine calls itself; empty if it is not known.
fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

/// The names by which clients of a domain reach a machine: its own, the first part of it, and that part in the domain of the realm.
fn own_names(host: &str, realm: &str) -> Vec<String> {
    let short = host.split('.').next().unwrap_or(host);
    if short.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<String> = Vec::new();
    for name in [short, &format!("{short}.{realm}"), host] {
        let name = name.to_ascii_lowercase();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// For which service these names have keys.
fn names(own: &[String], keytab: &Keytab) -> Vec<Name> {
    let has = |service: &str, name: &str| {
        let wanted = format!("{service}/{name}");
        keytab.entries().iter().any(|entry| entry.principal().name().eq_ignore_ascii_case(&wanted))
    };
    let [smb, nfs] = SERVICES;
    let of = |name: &String| Name { name: name.clone(), smb: has(smb, name), nfs: has(nfs, name) };
    own.iter().map(of).collect()
}

fn clock(given: Option<&str>, realm: &str) -> Clock {
    let kdc = given.map_or_else(|| realm.to_ascii_lowercase(), str::to_owned);
    match kdc_clock::seconds_ahead(&kdc, realm) {
        Ok(ahead) => Clock { kdc, seconds_ahead: Some(ahead), problem: None },
        Err(error) => Clock { kdc, seconds_ahead: None, problem: Some(error.to_string()) },
    }
}

fn text(status: &Status, keytab: Option<&Keytab>) -> String {
    let mut text = match &status.keys {
        Some(keys) => format!("keytab     {}\nclock      {}\n", harmless(&keys.keytab), told(&keys.clock)),
        None => {
            "keytab     none: no tickets are accepted. To import one: anabranch domain import --keytab FILE\n"
                .to_owned()
        }
    };
    text += &server::numbers(status.server.as_ref(), status.server_problem.as_deref());
    if let (Some(keys), Some(keytab)) = (&status.keys, keytab) {
        text += &of_keys(keys, keytab);
    }
    text += &status.server.as_ref().map(server::text).unwrap_or_default();
    text
}

fn of_keys(keys: &OfKeytab, keytab: &Keytab) -> String {
    let row = |key: &Key| [harmless(&key.principal), key.kvno.to_string(), key.encryption.to_owned()];
    let rows: Vec<_> = keys.keys.iter().map(row).collect();
    let mut text = format!("\n{}{}", render(["PRINCIPAL", "KVNO", "ENCRYPTION"], &rows), left_out(keytab));
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let rows: Vec<_> =
        keys.names.iter().map(|name| [name.name.clone(), yes(name.smb), yes(name.nfs)]).collect();
    let _ = write!(text, "\n{}", render(["NAME OF THIS MACHINE", "KEY FOR SMB", "KEY FOR NFS"], &rows));
    if keys.names.iter().any(|name| !name.smb || !name.nfs) {
        text += "Clients that use a name without a key get no ticket for it. To add one: setspn -S cifs/NAME ACCOUNT (nfs/NAME for\n\
                 NFS) or adcli update --service-name, then export the keytab again.\n";
    }
    text
}

fn told(clock: &Clock) -> String {
    let Clock { kdc, seconds_ahead, problem } = clock;
    let kdc = harmless(kdc);
    let Some(ahead) = seconds_ahead else {
        let problem = harmless(problem.as_deref().unwrap_or_default());
        return format!("not compared: the KDC {kdc} does not answer ({problem}); name one: --kdc HOST");
    };
    let words = match ahead {
        0 => return format!("the same as that of {kdc}"),
        1.. => "ahead of",
        _ => "behind",
    };
    let by = ahead.unsigned_abs();
    let advice = if by >= kdc_clock::NOTABLE.as_secs() {
        ": set it (chronyc, timedatectl); from 300 s on, tickets are refused"
    } else {
        ""
    };
    format!("{by} s {words} that of {kdc}{advice}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_machine_has_a_short_name_and_one_in_the_domain() {
        let names = |host| own_names(host, "AD.LAB.TEST");
        assert_eq!(names("NAS"), ["nas", "nas.ad.lab.test"]);
        assert_eq!(names("nas.ad.lab.test"), ["nas", "nas.ad.lab.test"]);
        assert_eq!(names("nas.example.org"), ["nas", "nas.ad.lab.test", "nas.example.org"]);
        assert!(names("").is_empty());
    }

    #[test]
    fn a_name_without_a_key_is_told() {
        let recorded =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../rules/krb5/testdata/recorded/samba.keytab");
        let keytab = Keytab::parse(&fs::read(recorded).unwrap()).unwrap();
        let of = |name: &str| names(&[name.to_owned()], &keytab).remove(0);
        let first =
            keytab.entries().iter().find_map(|entry| entry.principal().name().split_once('/')).unwrap();
        assert!(of(&first.1.to_uppercase()).smb, "{first:?}");
        assert_eq!(of("nobody"), Name { name: "nobody".to_owned(), smb: false, nfs: false });
    }

    #[test]
    fn a_difference_of_a_minute_is_a_reason_to_act() {
        let clock = |seconds_ahead, problem: Option<&str>| {
            told(&Clock { kdc: "dc1".to_owned(), seconds_ahead, problem: problem.map(str::to_owned) })
        };
        assert_eq!(clock(Some(0), None), "the same as that of dc1");
        assert_eq!(clock(Some(-59), None), "59 s behind that of dc1");
        assert!(clock(Some(60), None).starts_with("60 s ahead of that of dc1: set it"));
        assert!(clock(None, Some("timed out")).contains("--kdc HOST"));
    }
}

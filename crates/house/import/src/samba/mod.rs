//! smb.conf(5) becomes a configuration.

mod hosts;
mod lines;
mod parameter;
mod parse;
mod rights;
mod server;
mod share;
mod value;
mod vfs;

use crate::accounts::{self, Account, same_name};
use crate::draft::{AccountLines, Draft, Imported};
use crate::note::{Grade, Note, Notes};
use crate::{Error, Machine, Reader};

use parse::Parser;
pub use parse::{Configuration, Section, Setting};
use share::Context;

/// Why a section is skipped.
const PRINTING: &str = "there is no printing: the section is left out";

/// A configuration of Samba, and what is known besides.
#[derive(Clone, Copy)]
pub struct Samba<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// The name and the text of a file with accounts, in the format of smbpasswd(5).
    pub users: Option<(&'a str, &'a str)>,
    /// Reads included files.
    pub reader: &'a dyn Reader,
    /// The machine that the result is for.
    pub machine: &'a dyn Machine,
}

impl std::fmt::Debug for Samba<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Samba").field("file", &self.file).finish_non_exhaustive()
    }
}

/// The sections and parameters, as Samba reads them.
///
/// # Errors
/// Samba does not load the file.
pub fn read(
    file: &str,
    text: &str,
    reader: &dyn Reader,
    machine: &dyn Machine,
) -> Result<Configuration, Error> {
    let mut parser = Parser::new(file, reader, machine);
    parser.file(file, text, 0)?;
    Ok(parser.configuration)
}

/// The configuration for this server.
///
/// # Errors
/// Samba does not load the file, or reads another one instead.
pub fn samba(given: &Samba<'_>) -> Result<Imported, Error> {
    let mut parser = Parser::new(given.file, given.reader, given.machine);
    parser.file(given.file, given.text, 0)?;
    let Parser { configuration, mut notes, .. } = parser;
    let accounts = given.users.map(|(file, text)| accounts::read(file, text, &mut notes));
    let is_skipped = skip_printers(&configuration, &mut notes);
    note_lines(&configuration, &is_skipped, &mut notes);
    let mut draft = Draft { head: head(given, &configuration), ..Draft::default() };
    draft.settings = server::settings(&configuration.global, &mut notes);
    draft.accounts = written(accounts.clone().unwrap_or_default(), given.machine, &mut notes, given.users);
    let names: Vec<String> = draft
        .accounts
        .iter()
        .filter(|lines| lines.account.closed.is_none())
        .map(|lines| lines.account.name.clone())
        .collect();
    let context = Context {
        global: &configuration.global,
        accounts: accounts.as_ref().map(|_| names.as_slice()),
        host_name: given.machine.host_name(),
        owner: None,
    };
    for section in configuration.sections.iter().filter(|section| !is_skipped(section)) {
        if is_named(section, HOMES) {
            homes(section, &configuration, &context, given.machine, &mut draft, &mut notes);
        } else {
            draft.shares.push(share::share(section, &section.name, None, &context, &mut notes));
        }
    }
    Ok(draft.finish(notes))
}

/// The section that stands for a share of each user. smb.conf(5), "Special sections".
const HOMES: &str = "homes";

fn is_named(section: &Section, name: &str) -> bool {
    section.name.trim().eq_ignore_ascii_case(name)
}

fn head(given: &Samba<'_>, configuration: &Configuration) -> Vec<String> {
    let mut files = configuration.files.clone();
    files.extend(given.users.map(|(file, _)| file.to_owned()));
    let from = format!("Made by `anabranch import samba` from {}.", files.join(", "));
    let always = [
        from.as_str(),
        "Shares that are written as comments are not served: each says why. Remove the # of its lines when that is settled.",
        "Permissions of shares that were set from Windows are not in smb.conf: `sharesec --view-all` shows them.",
    ];
    let with_users = [
        "Hours, computers and dates that limit an account are not carried over: `pdbedit -L -v` shows them.",
        "An nt-hash is as good as the password: only the owner of this file may read it.",
    ];
    let with_users = with_users.into_iter().filter(|_| given.users.is_some());
    always.into_iter().chain(with_users).map(str::to_owned).collect()
}

/// Sections of printers are left out as a whole.
fn skip_printers(configuration: &Configuration, notes: &mut Notes) -> impl Fn(&Section) -> bool + use<> {
    let is_printer = |section: &Section| {
        is_named(section, "printers") || is_named(section, "print$") || section.is_on("printable", false)
    };
    for section in configuration.sections.iter().filter(|section| is_printer(section)) {
        notes.add(Note {
            grade: Grade::NoCounterpart,
            place: section.place.clone(),
            section: section.name.clone(),
            parameter: String::new(),
            value: String::new(),
            why: PRINTING.to_owned(),
        });
    }
    is_printer
}

/// Notes the parameters that no share and no setting carries over.
fn note_lines(configuration: &Configuration, is_skipped: &impl Fn(&Section) -> bool, notes: &mut Notes) {
    let skipped: Vec<&str> = configuration
        .sections
        .iter()
        .filter(|section| is_skipped(section))
        .map(|section| section.name.as_str())
        .collect();
    for (section, name, setting) in &configuration.lines {
        if skipped.contains(&section.as_str()) {
            continue;
        }
        let again = configuration.lines.iter().rev().find(|(s, n, _)| s == section && n == name);
        let again =
            again.filter(|(_, n, later)| later.place != setting.place && n != "copy" && n != "include");
        let fate = match again {
            Some((_, _, later)) => Some((Grade::NotNeeded, format!("{} sets it again", later.place))),
            None => parameter::fate(name, &setting.value).map(|(grade, why)| (grade, why.to_owned())),
        };
        let Some((grade, why)) = fate else { continue };
        notes.add(Note {
            grade,
            place: setting.place.clone(),
            section: section.clone(),
            parameter: setting.written.clone(),
            value: setting.value.clone(),
            why,
        });
    }
}

/// How the accounts are written: a user of this machine with the same uid also gives its groups.
fn written(
    accounts: Vec<Account>,
    machine: &dyn Machine,
    notes: &mut Notes,
    users: Option<(&str, &str)>,
) -> Vec<AccountLines> {
    let mut lines = Vec::new();
    for mut account in accounts {
        let here = machine.user(&account.name).map(|(uid, _)| uid);
        let (uid, remark) = match (account.uid, here) {
            (Some(uid), Some(here)) if uid == here => {
                (None, format!("The Unix user of this name (uid {uid})."))
            }
            (Some(uid), Some(here)) => (
                Some(uid),
                format!("Here the Unix user of this name has the uid {here}: check whose the files are."),
            ),
            (Some(uid), None) => {
                (Some(uid), "No Unix user here has this name: add gid and groups if needed.".to_owned())
            }
            (None, Some(0)) => {
                account.closed = account.closed.or(Some("it acts as root on every share"));
                (None, String::new())
            }
            (None, Some(here)) => (None, format!("The Unix user of this name (uid {here}).")),
            (None, None) => {
                account.closed = account.closed.or(Some("no Unix user has its name, and it has no uid"));
                (None, String::new())
            }
        };
        if let (Some(why), Some((file, text))) = (account.closed, users) {
            let is_it =
                |line: &&str| line.split(':').next().is_some_and(|name| same_name(name, &account.name));
            let index = text.lines().position(|line| is_it(&line)).unwrap_or_default();
            notes.add(Note {
                grade: Grade::ChangesAccess,
                place: crate::Place { file: file.to_owned(), line: index.saturating_add(1) },
                section: String::new(),
                parameter: account.name.clone(),
                value: String::new(),
                why: format!("{why}: the account is written as a comment"),
            });
        }
        lines.push(AccountLines { account, uid, remark });
    }
    lines
}

/// `[homes]`: one share, if the homes are in one directory and have the names of their users; otherwise one share for each
/// account, for its owner only.
fn homes(
    section: &Section,
    configuration: &Configuration,
    context: &Context<'_>,
    machine: &dyn Machine,
    draft: &mut Draft,
    notes: &mut Notes,
) {
    let path = section.value("path").map(value::string).unwrap_or_default();
    // "the existing sections are scanned. If a match is found, it is used."
    let has_section = |name: &str| configuration.sections.iter().any(|other| is_named(other, name));
    let names = context.accounts.unwrap_or_default().iter().filter(|name| !has_section(name));
    let all: Vec<(&String, Option<String>)> =
        names.map(|name| (name, machine.user(name).map(|(_, home)| home))).collect();
    let template = match path {
        "" => parent_of(&all).map(|parent| format!("{parent}/%U")),
        _ if ["%S", "%u", "%U"].iter().any(|user| path.ends_with(user)) => Some(path.to_owned()),
        _ => None,
    };
    let mut note = |why: &str| {
        notes.add(Note {
            grade: Grade::ChangesAccess,
            place: section.place.clone(),
            section: section.name.clone(),
            parameter: String::new(),
            value: String::new(),
            why: why.to_owned(),
        });
    };
    if template.is_some() {
        if path.is_empty() && section.value("valid users").is_none() {
            note("each user can use the directory of their own name only");
        }
        draft.shares.push(share::share(section, HOMES, template, context, notes));
        return;
    }
    if context.accounts.is_none() {
        note("the homes are not known: with --users, those of the accounts are looked up");
        return;
    }
    note(
        "each account has a share of its own, which lists of shares leave out; without valid users, only its owner may use it",
    );
    for (name, home) in all {
        let context = Context {
            global: context.global,
            accounts: context.accounts,
            host_name: context.host_name.clone(),
            owner: Some(name),
        };
        let mut share = share::share(section, name, home, &context, notes);
        share.hidden = true;
        draft.shares.push(share);
    }
}

/// The directory of all homes that are known, if each has the name of its user there.
fn parent_of(homes: &[(&String, Option<String>)]) -> Option<String> {
    let known = homes.iter().filter_map(|(name, home)| Some((*name, home.as_deref()?)));
    let mut parents = known.map(|(name, home)| home.strip_suffix(name.as_str())?.strip_suffix('/'));
    let first = parents.next()??;
    parents.all(|parent| parent == Some(first)).then(|| first.to_owned())
}

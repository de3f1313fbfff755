//! `anabranch domain`: the Kerberos keys of this server.

use std::path::Path;

use gateway::kerberos;
use krb5::keytab::{Entry, Keytab};

use crate::cli::DomainCommand;
use crate::print::{counted, harmless, print};
use crate::problem::{Cause, Problem, Result};
use crate::table::render;

/// Carries out the command.
///
/// # Errors
/// A keytab cannot be read or stored.
pub(crate) fn run(command: &DomainCommand) -> Result<()> {
    match command {
        DomainCommand::Import { keytab, place } => import(&place.directory(), keytab),
        DomainCommand::Status(place) => status(&place.directory()),
    }
}

fn import(state: &Path, file: &Path) -> Result<()> {
    state::directory::prepare(state)?;
    let keytab = kerberos::import(state, file)?;
    let stored = kerberos::stored_in(state);
    let mut text = format!(
        "{} of {} were imported into {}.\n",
        counted(keytab.entries().len(), "key"),
        file.display(),
        stored.display()
    );
    text += &left_out(&keytab);
    text += "A running server uses them after `anabranch reload`.\n";
    print(&text)
}

fn status(state: &Path) -> Result<()> {
    let stored = kerberos::stored_in(state);
    if !stored.exists() {
        let what = format!("{} has no keytab", state.display());
        return Err(Problem::new(Cause::Refused, what, "Import one: anabranch domain import --keytab FILE"));
    }
    let keytab = kerberos::read(&stored)?;
    let row = |entry: &Entry| {
        let principal = harmless(&entry.principal().to_string());
        [principal, entry.kvno().to_string(), entry.enctype().name().to_owned()]
    };
    let rows: Vec<[String; 3]> = keytab.entries().iter().map(row).collect();
    let table = render(["PRINCIPAL", "KVNO", "ENCRYPTION"], &rows);
    print(&format!("keytab     {}\n\n{table}{}", stored.display(), left_out(&keytab)))
}

/// What is said of keys that are not used.
fn left_out(keytab: &Keytab) -> String {
    match keytab.skipped() {
        0 => String::new(),
        skipped => format!("Left out: {} of other encryption types than AES.\n", counted(skipped, "key")),
    }
}

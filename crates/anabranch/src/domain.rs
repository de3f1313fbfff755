//! `anabranch domain`: the Kerberos keys of this server, and what becomes of its users.

mod status;
mod test;

use std::path::Path;

use gateway::kerberos;
use krb5::keytab::Keytab;

use crate::cli::DomainCommand;
use crate::print::{counted, print};
use crate::problem::Result;

/// Carries out the command.
///
/// # Errors
/// A keytab cannot be read or stored, or the server cannot be asked.
pub(crate) fn run(command: &DomainCommand) -> Result<()> {
    match command {
        DomainCommand::Import { keytab, place } => import(&place.directory(), keytab),
        DomainCommand::Status(asked) => status::run(asked),
        DomainCommand::Test { user, asking } => test::run(user, asking),
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

/// What is said of keys that are not used.
pub(crate) fn left_out(keytab: &Keytab) -> String {
    match keytab.skipped() {
        0 => String::new(),
        skipped => format!("Left out: {} of other encryption types than AES.\n", counted(skipped, "key")),
    }
}

//! `anabranch import`: the configuration of another server becomes one for this server.

mod input;
mod show;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use import::{Imported, Samba};

use crate::problem::{Cause, Problem, Result};
use crate::settings::Settings;
use crate::{config, log, print};

use input::{Files, ThisMachine};

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Make a configuration from one of Samba (smb.conf) and its accounts
    Samba(ImportSamba),
    /// Make a configuration from that of the kernel's NFS server (/etc/exports)
    Exports(ImportExports),
}

#[derive(Debug, Args)]
pub(crate) struct ImportSamba {
    /// The configuration of Samba, for example /etc/samba/smb.conf
    pub(crate) file: PathBuf,
    /// The accounts with their hashes, as `pdbedit -L -w` prints them; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) users: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) to: Destination,
}

#[derive(Debug, Args)]
pub(crate) struct ImportExports {
    /// Files in the format of exports(5); of a directory, the files *.exports
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) to: Destination,
}

/// Where the result goes.
#[derive(Debug, Args)]
pub(crate) struct Destination {
    /// The configuration to write, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Carries out the command.
///
/// # Errors
/// A file cannot be read or understood, or the result cannot be written.
pub(crate) fn run(command: &ImportCommand) -> Result<()> {
    match command {
        ImportCommand::Samba(given) => {
            given.to.check()?;
            let text = input::text(&given.file)?;
            let users = given.users.as_deref().map(input::users).transpose()?;
            let file = given.file.display().to_string();
            let users = users.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
            let samba =
                Samba { file: &file, text: &text, users, reader: &Files, machine: &ThisMachine::look() };
            given.to.write(&import::samba(&samba)?)
        }
        ImportCommand::Exports(given) => {
            given.to.check()?;
            let texts = input::exports(&given.files)?;
            let files: Vec<_> = texts.iter().map(|(name, text)| import::File { name, text }).collect();
            given.to.write(&import::exports(&files)?)
        }
    }
}

impl From<import::Error> for Problem {
    fn from(error: import::Error) -> Self {
        Self::new(Cause::Settings, error.to_string(), error.advice)
    }
}

impl Destination {
    /// Refuses a file that exists, before anything else happens.
    fn check(&self) -> Result<()> {
        match &self.out {
            Some(out) if fs::symlink_metadata(out).is_ok() => Err(exists(out)),
            _ => Ok(()),
        }
    }

    /// Writes the configuration and says what is not in it.
    fn write(&self, imported: &Imported) -> Result<()> {
        check_configuration(&imported.text)?;
        let Some(out) = &self.out else {
            if self.json {
                return print::print(&print::json(&show::Told {
                    out: None,
                    configuration: Some(&imported.text),
                    imported,
                })?);
            }
            print::print(&imported.text)?;
            log::say(std::io::stderr(), &show::told(None, imported));
            return Ok(());
        };
        create(out, &imported.text)?;
        print::print(&if self.json {
            print::json(&show::Told { out: Some(out), configuration: None, imported })?
        } else {
            show::told(Some(out), imported)
        })
    }
}

/// The server must understand what was made.
fn check_configuration(text: &str) -> Result<()> {
    Settings::new(config::parse(Path::new("the configuration that was made"), text)).map(drop)
}

fn exists(out: &Path) -> Problem {
    let advice = "It was not changed. Name another file with --out, or move this one away.";
    Problem::new(Cause::Refused, format!("{} exists", out.display()), advice)
}

/// Creates the file, which only its owner may read: it may hold hashes, which are as good as passwords.
fn create(out: &Path, text: &str) -> Result<()> {
    let trouble = |e: &std::io::Error| match e.kind() {
        ErrorKind::AlreadyExists => exists(out),
        _ => Problem::new(Cause::Refused, format!("cannot write {}: {e}", out.display()), ""),
    };
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(out).map_err(|e| trouble(&e))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|e| {
        // Half a configuration is none.
        let _ = fs::remove_file(out);
        trouble(&e)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMBA: &[&str] = &[
        "[global]\n",
        "[homes]\n",
        "[data]\n",
        "[DATA ]\n",
        "[ d \u{fc} ]\n",
        "[a/b]\n",
        "[pipe]\n",
        "[x,y]\n",
        "path = /srv/a\n",
        "path = /srv/%S/x\n",
        "path = \"/q q\"\n",
        "read only = no\n",
        "guest ok = yes\n",
        "valid users = anna @staff\n",
        "valid users = \"a b\" x:y +a+b c\\d\n",
        "invalid users = otto\n",
        "write list = zoe, @a,b\n",
        "read list = anna\n",
        "hosts allow = 10. EXCEPT 10.1.\n",
        "hosts allow = fe80::1%eth0 a_b.c host 1.2.3 [::1]/128 ::ffff:1.2.3.4\n",
        "hostname lookups = yes\n",
        "hosts deny = ALL\n",
        "hosts deny = 10.0.0.0/8\n",
        "veto files = /a/b c/..//./x\"y/\n",
        "comment = caf\u{e9} \"x\" \\ %S\n",
        "interfaces = lo 10.0.0.5;speed=0 fe80::1/64 \"10.0.0.6;speed=99999999999999999999\"\n",
        "interfaces = \"10.0.0.5;speed=1000,capability=RSS\" \"::1;speed=5\"\n",
        "bind interfaces only = yes\n",
        "smb ports = 0 99999 139 446\n",
        "server smb encrypt = required\n",
        "server smb encrypt = off\n",
        "server signing = mandatory\n",
        "server multi channel support = no\n",
        "root directory = /jail\n",
    ];
    const EXPORTS: &[&str] = &[
        "/srv/a ",
        "/srv/\u{fc} ",
        "\"/x y\" ",
        "/ ",
        "/p|q ",
        "host_a(rw) ",
        "10.0.0.0/8(ro) ",
        "fe80::1(rw) ",
        "::/0(rw) ",
        "*(rw) ",
        "1.2.3(rw) ",
        "a..b(rw) ",
        "\n",
        "@n(ro) ",
    ];
    const USERS: &[&str] =
        &["anna:1000", "otto:4294967294", "zo\u{e9}:5", "a b:7", "ANNA:1", "x.y:4294967295", "root:0"];

    fn some(words: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
        prop::collection::vec(prop::sample::select(words), 0..25)
    }

    proptest! {
        #[test]
        fn what_is_made_is_understood(samba in some(SAMBA), users in some(USERS), exports in some(EXPORTS)) {
            let text = samba.concat();
            let account = |name: &&str| format!("{name}:{}:{}:[U ]:LCT-0:\n", "X".repeat(32), "A".repeat(32));
            let users: String = users.iter().map(account).collect();
            let machine = ThisMachine::look();
            let samba = Samba { file: "f", text: &text, users: Some(("u", &users)), reader: &Files, machine: &machine };
            if let Ok(imported) = import::samba(&samba) {
                prop_assert_eq!(check_configuration(&imported.text), Ok(()), "{}", text);
            }
            let text = exports.concat();
            if let Ok(imported) = import::exports(&[import::File { name: "e", text: &text }]) {
                prop_assert_eq!(check_configuration(&imported.text), Ok(()), "{}", text);
            }
        }
    }
}

//! Where the settings are from: the command line, and the file, which is read again when the server is told to.

use std::path::PathBuf;

use crate::place::Mistake;
use crate::problem::Result;
use crate::settings::{Given, PasswordFileGiven, Settings};
use crate::{config, password};

/// The command line and the file.
#[derive(Debug)]
pub(crate) struct Sources {
    flags: Given,
    file: Option<PathBuf>,
    /// What the server was started with.
    started_with: Given,
    /// The password that standard input had: it has it once.
    typed: Option<String>,
    /// Whether accounts may lose their only password ([`gateway::settings::Settings::drop_passwords`]).
    pub(crate) drop_passwords: bool,
}

impl Sources {
    pub(crate) fn new(flags: Given, file: Option<PathBuf>) -> Self {
        let mut sources =
            Self { flags, file, started_with: Given::default(), typed: None, drop_passwords: false };
        sources.started_with = sources.given();
        sources
    }

    /// What the server was started with.
    pub(crate) fn started_with(&self) -> &Given {
        &self.started_with
    }

    /// The server starts with this instead, because it has not begun to serve yet.
    pub(crate) fn start_with(&mut self, given: Given) {
        self.started_with = given;
    }

    /// What is given now: flags go before the file. What is wrong with the file is in it, too.
    pub(crate) fn given(&self) -> Given {
        match &self.file {
            Some(file) => self.flags.clone().over(config::read(file)),
            None => self.flags.clone(),
        }
    }

    /// The settings that this comes to.
    ///
    /// # Errors
    /// All that is wrong: in the file, with passwords, and with settings that contradict each other.
    pub(crate) fn settings(&mut self, given: Given) -> std::result::Result<Settings, Vec<Mistake>> {
        let (mut settings, mistakes) = look(given, |given| self.password(given));
        settings.gateway.drop_passwords = self.drop_passwords;
        if mistakes.is_empty() { Ok(settings) } else { Err(mistakes) }
    }

    fn password(&mut self, given: &PasswordFileGiven) -> Result<String> {
        if given.file.is_some() {
            return password::of_file(given);
        }
        if self.typed.is_none() {
            self.typed = Some(password::of_file(given)?);
        }
        Ok(self.typed.clone().unwrap_or_default())
    }
}

/// The settings that what is given comes to, as far as they are right, and all that is wrong with them. `read` returns
/// the password of a file.
pub(crate) fn look(
    given: Given,
    read: impl FnMut(&PasswordFileGiven) -> Result<String>,
) -> (Settings, Vec<Mistake>) {
    let mut wrong = Vec::new();
    let given = given.with_passwords(read, &mut wrong);
    Settings::look(given, wrong)
}

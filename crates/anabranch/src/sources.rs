//! Where the settings are from: the command line, and the file, which is read again when the server is told to.

use std::path::PathBuf;

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
}

impl Sources {
    /// # Errors
    /// The file cannot be used.
    pub(crate) fn new(flags: Given, file: Option<PathBuf>) -> Result<Self> {
        let mut sources = Self { flags, file, started_with: Given::default(), typed: None };
        sources.started_with = sources.given()?;
        Ok(sources)
    }

    /// What the server was started with.
    pub(crate) fn started_with(&self) -> &Given {
        &self.started_with
    }

    /// What is given now: flags go before the file.
    ///
    /// # Errors
    /// The file cannot be used.
    pub(crate) fn given(&self) -> Result<Given> {
        match &self.file {
            Some(file) => Ok(self.flags.clone().over(config::read(file)?)),
            None => Ok(self.flags.clone()),
        }
    }

    /// The settings that this comes to.
    ///
    /// # Errors
    /// A password cannot be read, or settings contradict each other.
    pub(crate) fn settings(&mut self, given: Given) -> Result<Settings> {
        let from_input = given.password_file.iter().find(|password| password.file.is_none());
        if let (Some(from_input), None) = (from_input, &self.typed) {
            self.typed = Some(password::of_file(from_input)?);
        }
        let read = |given: &PasswordFileGiven| match (&given.file, &self.typed) {
            (None, Some(typed)) => Ok(typed.clone()),
            _ => password::of_file(given),
        };
        Settings::new(given.with_passwords(read)?)
    }
}

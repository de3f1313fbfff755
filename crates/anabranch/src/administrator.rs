//! Who carries out a command: the server that runs, or where none does, this program in the state directory.

use std::time::Duration;

use control::Refusal;
use gateway::Administration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use state::State;

use crate::asking::Asking;
use crate::control_access::Access;
use crate::problem::{Cause, Problem, Result};
use crate::{control_access, log, state_directory};

/// Who carries out a command.
#[derive(Debug)]
pub(crate) enum Administrator {
    /// The server that runs.
    Server(Access),
    /// This program: no server has the state directory.
    Here(Box<Administration>),
}

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// It only looks.
    Look,
    /// It changes something; the state directory may be made for it.
    Change,
}

/// The server that runs; None: none does.
///
/// # Errors
/// It cannot be asked, or this user may not use it.
pub(crate) fn server(asking: &Asking) -> Result<Option<Access>> {
    let directory = asking.state();
    if asking.control.is_none() && !control_access::is_published(&directory) {
        return Ok(None);
    }
    let access = control_access::find(&directory, asking.control)?;
    let runs = asking.control.is_some() || control_client::answers(&access)?;
    Ok(runs.then_some(access))
}

impl Administrator {
    /// The one who has the state directory.
    ///
    /// # Errors
    /// A server has it but cannot be asked, or this user may not use it.
    pub(crate) fn find(asking: &Asking, intent: Intent) -> Result<Self> {
        if let Some(access) = server(asking)? {
            return Ok(Self::Server(access));
        }
        let directory = asking.state();
        if intent == Intent::Look && !state::exists(&directory) {
            return Err(Problem::new(
                Cause::Asking,
                format!(
                    "no server is running with the state directory {}, and none ever has",
                    directory.display()
                ),
                "Start a server, or pass the state directory of a running one: --state DIR",
            ));
        }
        if !asking.is_state_given() {
            state_directory::confirm_default()?;
        }
        let state = State::open_unless_in_use(&directory)?.map_err(|holder| {
            let directory = directory.display();
            Problem::new(
                Cause::Asking,
                format!("a server uses the state directory {directory}, but does not answer; it is starting, stopping or stuck: {holder}"),
                "Try again, or pass its control address: --control ADDR:PORT",
            )
        })?;
        if intent == Intent::Change {
            let said = format!(
                "no server is running: the change is stored in {} for the next start\n",
                directory.display()
            );
            log::say(std::io::stderr(), &said);
        }
        Ok(Self::Here(Box::new(Administration::of_state(state))))
    }

    /// Has a call of the API carried out: asked for, or done `here`.
    ///
    /// # Errors
    /// It is refused, or the server cannot be asked.
    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        (method, path): (&str, &str),
        body: Option<&impl Serialize>,
        here: impl FnOnce(&Administration) -> std::result::Result<T, Refusal>,
    ) -> Result<T> {
        self.carry_out(here, |access| control_client::call(access, method, path, body))
    }

    /// The same of a call for whose answer it waits that long.
    ///
    /// # Errors
    /// It is refused, or the server cannot be asked.
    pub(crate) fn call_within<T: DeserializeOwned>(
        &self,
        patience: Duration,
        (method, path): (&str, &str),
        body: Option<&impl Serialize>,
        here: impl FnOnce(&Administration) -> std::result::Result<T, Refusal>,
    ) -> Result<T> {
        self.carry_out(here, |access| control_client::call_within(patience, access, method, path, body))
    }

    fn carry_out<T>(
        &self,
        here: impl FnOnce(&Administration) -> std::result::Result<T, Refusal>,
        ask: impl FnOnce(&Access) -> control_client::Result<T>,
    ) -> Result<T> {
        match self {
            Self::Server(access) => Ok(ask(access)?),
            Self::Here(administration) => here(administration)
                .map_err(|refusal| Problem::new(Cause::Refused, refusal.what, refusal.advice)),
        }
    }
}

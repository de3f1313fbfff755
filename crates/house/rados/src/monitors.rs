//! The monitors of a cluster: what they tell of its data pools, and how these are made.

use std::ffi::CString;
use std::fmt;
use std::path::Path;

use rustix::io::Errno;
use state::Error;

use crate::connection::Connection;
use crate::new_pools::{Command, NewPool};
use crate::placement::{Placement, Printed};

/// A connection to the monitors. It ends when this is dropped. Each command takes ten seconds at most.
pub struct Monitors {
    connection: Connection,
    user: String,
}

impl fmt::Debug for Monitors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitors").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Monitors {
    /// Connects to the cluster of a configuration file, as a user such as `client.anabranch`.
    ///
    /// # Errors
    /// Ceph's library, the configuration file, the key or the monitors are not there: each with what to do about it.
    pub fn connect(configuration: &Path, user: &str) -> Result<Self, Error> {
        let connection = Connection::new(configuration, user, "mon 'allow r'")?;
        Ok(Self { connection, user: user.to_owned() })
    }

    /// How a file system keeps data; None: the default one of the cluster.
    ///
    /// # Errors
    /// There is no such file system, the user may not read this, or the monitors do not answer.
    pub fn placement(&self, file_system: Option<&str>) -> Result<Placement, Error> {
        let file_systems = self.read(&Command::new("fs dump"))?;
        let pools = self.read(&Command::new("osd pool ls").with("detail", "detail"))?;
        let rules = self.read(&Command::new("osd crush rule dump"))?;
        let tree = self.read(&Command::new("osd crush tree"))?;
        let printed = Printed { file_systems: &file_systems, pools: &pools, rules: &rules, tree: &tree };
        Placement::read(printed, file_system)
    }

    /// Makes a data pool.
    ///
    /// # Errors
    /// The user may not do this: the advice has the commands for who may. The monitors refuse it, or do not answer.
    pub fn make(&self, new: &NewPool) -> Result<(), Error> {
        for (at, command) in new.commands.iter().enumerate() {
            self.ask(command).map_err(|(error, said)| {
                let left = new.commands.get(at..).unwrap_or_default();
                let left: Vec<_> = left.iter().map(|command| format!("\n      {command}")).collect();
                let advice = format!("With the key of an administrator:{}", left.concat());
                let what = match error {
                    Errno::ACCESS | Errno::PERM => {
                        format!("the user {} of Ceph may not make pools", self.user)
                    }
                    _ => format!("the Ceph cluster does not do `{command}`: {error}: {said}"),
                };
                Error::new(what, advice)
            })?;
        }
        Ok(())
    }

    fn read(&self, command: &Command) -> Result<Vec<u8>, Error> {
        self.ask(command).map_err(|(error, said)| match error {
            Errno::ACCESS | Errno::PERM => Error::new(
                format!("the user {} of Ceph may not read `{command}`", self.user),
                format!("Look what it may do: ceph auth get {}; it needs mon 'allow r'", self.user),
            ),
            Errno::TIMEDOUT => Error::new("the monitors of the Ceph cluster do not answer", "Try: ceph -s"),
            _ => Error::new(format!("the Ceph cluster: {command}: {error}: {said}"), "Try: ceph -s"),
        })
    }

    fn ask(&self, command: &Command) -> Result<Vec<u8>, (Errno, String)> {
        let json = CString::new(command.json()).map_err(|e| (Errno::INVAL, e.to_string()))?;
        self.connection.command(&json)
    }
}

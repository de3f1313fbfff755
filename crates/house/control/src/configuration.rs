//! The configuration of a server, in the form of the API: `/v1/configuration`.

use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::administration::Refusal;

/// A configuration with its defaults. It never contains a password.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// The files that it is from, the one that was named first; none: it is from the command line alone.
    pub files: Vec<String>,
    /// The settings of the server.
    pub settings: Vec<Setting>,
    /// The declared shares.
    pub shares: Vec<Section>,
    /// The declared users.
    pub users: Vec<Section>,
    /// The declared snapshot policies.
    #[serde(default)]
    pub snapshot_policies: Vec<Section>,
    /// The declared pools.
    #[serde(default)]
    pub pools: Vec<Section>,
    /// What became of the attempts to read it again; None: it is not that of a running server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload: Option<Reload>,
}

/// A share, a user, a snapshot policy or a pool of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// The name of the share, user, policy or pool.
    pub name: String,
    /// All its settings.
    pub settings: Vec<Setting>,
}

/// A setting, and where its value is from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The key of the configuration file.
    pub key: String,
    /// The value in the form of the configuration file. Null: there is none, or it is a password.
    pub value: Value,
    /// Where the value is from.
    pub source: Source,
    /// The file, for [`Source::File`].
    pub file: Option<String>,
    /// The line of the file; the first one is 1.
    pub line: Option<u64>,
    /// The variable, for [`Source::Environment`].
    pub variable: Option<String>,
}

/// Where a value is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Nobody has given it.
    Default,
    /// A line of a configuration file.
    File,
    /// A flag.
    CommandLine,
    /// A variable of the environment.
    Environment,
    /// The users and groups of the machine.
    System,
    /// The state database.
    State,
}

/// Something that is wrong with a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationMistake {
    /// The file; None: the mistake is on the command line, or concerns no line.
    pub file: Option<String>,
    /// The line of the file; the first one is 1.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub advice: String,
}

/// The attempts to read the configuration of a running server again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reload {
    /// The attempts that succeeded since the server started.
    pub succeeded: u64,
    /// The attempts that failed, and changed nothing.
    pub failed: u64,
    /// Whether the last attempt succeeded; true if there was none.
    pub last_succeeded: bool,
    /// When the last attempt ended, in seconds of the Unix epoch; None: there was none.
    pub last: Option<u64>,
    /// When the configuration in effect was read, in seconds of the Unix epoch.
    pub read: u64,
    /// What was wrong with the configuration at the last attempt; none if that succeeded.
    pub mistakes: Vec<ConfigurationMistake>,
    /// The changed settings that take effect at the next start.
    pub at_next_start: Vec<String>,
}

/// The attempts to read the configuration again, behind a lock.
#[derive(Debug)]
pub struct Reloads(Mutex<Reload>);

impl Reloads {
    /// No attempt yet. The configuration in effect was read `now`.
    #[must_use]
    pub fn new(now: SystemTime) -> Self {
        Self(Mutex::new(Reload { last_succeeded: true, read: seconds(now), ..Reload::default() }))
    }

    /// An attempt succeeded; these settings take effect at the next start.
    pub fn succeed(&self, now: SystemTime, at_next_start: Vec<String>) {
        let mut reload = self.0.lock();
        reload.succeeded += 1;
        (reload.last_succeeded, reload.last, reload.read) = (true, Some(seconds(now)), seconds(now));
        (reload.mistakes, reload.at_next_start) = (Vec::new(), at_next_start);
    }

    /// An attempt failed.
    pub fn fail(&self, now: SystemTime, mistakes: Vec<ConfigurationMistake>) {
        let mut reload = self.0.lock();
        reload.failed += 1;
        (reload.last_succeeded, reload.last, reload.mistakes) = (false, Some(seconds(now)), mistakes);
    }

    /// What became of them.
    pub fn status(&self) -> Reload {
        self.0.lock().clone()
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Knows the configuration of a running server, and reads it again.
pub trait Configured: Debug + Send + Sync {
    /// The configuration in effect.
    fn configuration(&self) -> Configuration;
    /// Reads the configuration again, and uses it.
    ///
    /// # Errors
    /// Something is wrong with it. The server goes on with the one before.
    fn reload(&self) -> Result<Reload, Refusal>;
    /// What became of the attempts to read it again.
    fn reloads(&self) -> Reload;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_failure_leaves_the_time_of_the_configuration_in_effect() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let reloads = Reloads::new(at(10));
        assert_eq!(reloads.status(), Reload { last_succeeded: true, read: 10, ..Reload::default() });
        let mistake = ConfigurationMistake { line: Some(3), ..ConfigurationMistake::default() };
        reloads.fail(at(20), vec![mistake.clone()]);
        let failed =
            Reload { failed: 1, last: Some(20), read: 10, mistakes: vec![mistake], ..Reload::default() };
        assert_eq!(reloads.status(), failed);
        reloads.succeed(at(30), vec!["smb".to_owned()]);
        let succeeded = Reload {
            succeeded: 1,
            failed: 1,
            last_succeeded: true,
            last: Some(30),
            read: 30,
            mistakes: Vec::new(),
            at_next_start: vec!["smb".to_owned()],
        };
        assert_eq!(reloads.status(), succeeded);
    }
}

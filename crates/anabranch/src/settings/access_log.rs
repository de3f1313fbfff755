//! The settings of the access log.

use std::path::{Path, PathBuf};

use access_log::{FileSettings, Kind, Kinds, Outcomes, Settings, User, Users};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::values;

/// The size of a file before it is renamed, in MiB, and how many renamed files are kept, where nothing is given.
const MIB: u32 = 100;
const KEPT: u32 = 10;
/// The most renamed files.
const KEPT_MAX: u32 = 1000;

/// What was given of the access log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct AccessLogGiven {
    /// A file for the access log: one JSON line for each operation
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "values::path")]
    access_log_file: Option<PathBuf>,
    /// The size in MiB before which the file is renamed to FILE.1; 0: it is never renamed [default: 100]
    #[arg(long, value_name = "MIB")]
    access_log_mib: Option<u32>,
    /// How many renamed files are kept [default: 10]
    #[arg(long, value_name = "N")]
    access_log_files: Option<u32>,
    /// The socket of a syslog daemon that gets the access log, usually /dev/log
    #[arg(long, value_name = "SOCKET")]
    #[serde(serialize_with = "values::path")]
    access_log_syslog: Option<PathBuf>,
    /// The socket of systemd's journal that gets the access log, usually /run/systemd/journal/socket
    #[arg(long, value_name = "SOCKET")]
    #[serde(serialize_with = "values::path")]
    access_log_journal: Option<PathBuf>,
    /// A kind of operation in the access log, several times for several: logon, logoff, mount, open, create, delete, rename,
    /// permission, read, write, administration [default: all but read and write]
    #[arg(long, value_name = "KIND")]
    access_log_kinds: Vec<KindGiven>,
    /// Which operations are in the access log, by their outcome [default: all]
    #[arg(long, value_enum)]
    access_log_outcomes: Option<OutcomesGiven>,
    /// A user whose operations are in the access log, by name or uid, several times for several [default: all users]
    #[arg(long, value_name = "USER")]
    access_log_users: Vec<UserNamed>,
    /// A user whose operations are not in the access log, by name or uid, several times for several
    #[arg(long, value_name = "USER")]
    access_log_except_users: Vec<UserNamed>,
}

/// A kind of operation, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KindGiven(Kind);

/// A user, by name or uid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserNamed(User);

/// Which operations, by their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OutcomesGiven {
    /// All.
    All,
    /// Those that were refused, and those that have failed.
    Failures,
}

impl std::str::FromStr for KindGiven {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Kind::ALL.map(Kind::name).join(", ");
        text.parse().map(Self).map_err(|unknown| format!("{unknown}: expected {}", names()))
    }
}

impl std::str::FromStr for UserNamed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("expected the name of a user, or a uid".to_owned());
        }
        Ok(Self(User::from(text)))
    }
}

impl Serialize for UserNamed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'d> Deserialize<'d> for UserNamed {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for KindGiven {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.name())
    }
}

impl<'d> Deserialize<'d> for KindGiven {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl AccessLogGiven {
    /// What is given here, and where nothing is, what is given there.
    pub(super) fn or(self, there: Self) -> Self {
        Self {
            access_log_file: self.access_log_file.or(there.access_log_file),
            access_log_mib: self.access_log_mib.or(there.access_log_mib),
            access_log_files: self.access_log_files.or(there.access_log_files),
            access_log_syslog: self.access_log_syslog.or(there.access_log_syslog),
            access_log_journal: self.access_log_journal.or(there.access_log_journal),
            access_log_kinds: given(self.access_log_kinds, there.access_log_kinds),
            access_log_outcomes: self.access_log_outcomes.or(there.access_log_outcomes),
            access_log_users: given(self.access_log_users, there.access_log_users),
            access_log_except_users: given(self.access_log_except_users, there.access_log_except_users),
        }
    }

    /// What is wrong with the values: the keys, what, and what to do.
    pub(super) fn check(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut wrong = Vec::new();
        if let Some(kept) = self.access_log_files.filter(|kept| !(1..=KEPT_MAX).contains(kept)) {
            let advice =
                "Give a number from 1 to 1000, or access-log-mib = 0 if another program renames the file.";
            wrong.push(("access-log-files", format!("access-log-files is {kept}"), advice));
        }
        let paths = [
            ("access-log-file", &self.access_log_file),
            ("access-log-syslog", &self.access_log_syslog),
            ("access-log-journal", &self.access_log_journal),
        ];
        for (key, path) in paths.into_iter().filter_map(|(key, path)| Some((key, path.as_deref()?))) {
            if !Path::is_absolute(path) {
                let what = format!("{key}: {} is no absolute path", path.display());
                wrong.push((key, what, "Give a path that begins with a slash."));
            }
        }
        wrong
    }

    pub(super) fn whole(self) -> Settings {
        let default = Settings::default();
        let kinds: Kinds = self.access_log_kinds.iter().map(|kind| kind.0).collect();
        let mib = self.access_log_mib.unwrap_or(MIB);
        let file = |path| FileSettings {
            path,
            bytes_max: (mib > 0).then(|| u64::from(mib) << 20),
            kept: self.access_log_files.unwrap_or(KEPT),
        };
        Settings {
            kinds: if self.access_log_kinds.is_empty() { default.kinds } else { kinds },
            outcomes: match self.access_log_outcomes {
                None | Some(OutcomesGiven::All) => Outcomes::All,
                Some(OutcomesGiven::Failures) => Outcomes::Failures,
            },
            users: Users { only: users(self.access_log_users), except: users(self.access_log_except_users) },
            file: self.access_log_file.map(file),
            syslog: self.access_log_syslog,
            journal: self.access_log_journal,
        }
    }
}

/// A list, and where it is empty, the other.
fn given<T>(list: Vec<T>, other: Vec<T>) -> Vec<T> {
    if list.is_empty() { other } else { list }
}

fn users(named: Vec<UserNamed>) -> Vec<User> {
    named.into_iter().map(|UserNamed(user)| user).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_cannot_be_are_told() {
        let given = AccessLogGiven {
            access_log_file: Some("access.json".into()),
            access_log_files: Some(0),
            ..AccessLogGiven::default()
        };
        let keys: Vec<_> = given.check().into_iter().map(|(key, ..)| key).collect();
        assert_eq!(keys, ["access-log-files", "access-log-file"]);
        let unknown = "reads".parse::<KindGiven>().unwrap_err();
        assert!(unknown.contains("\"reads\"") && unknown.contains("permission"), "{unknown}");
        assert!(" ".parse::<UserNamed>().is_err());
        assert_eq!("1000".parse(), Ok(UserNamed(User::Uid(1000))));
    }

    #[test]
    fn a_file_of_no_size_is_never_renamed() {
        let file = |access_log_mib| {
            let access_log_file = Some("/var/log/anabranch/access.json".into());
            AccessLogGiven { access_log_file, access_log_mib, ..AccessLogGiven::default() }
                .whole()
                .file
                .unwrap()
        };
        assert_eq!((file(None).bytes_max, file(None).kept), (Some(100 << 20), 10));
        assert_eq!(file(Some(0)).bytes_max, None);
    }
}

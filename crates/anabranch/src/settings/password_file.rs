//! Passwords in files: `--password-file NAME=FILE`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use auth::same_name;
use gateway::settings::check_user_name;
use serde::{Deserialize, Serialize};

use super::{Given, UserGiven};
use crate::place::{Section, Wrong};
use crate::problem::Result;

/// `NAME=FILE`: the password of a user is the first line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct PasswordFileGiven {
    pub(crate) name: String,
    /// None: standard input.
    pub(crate) file: Option<PathBuf>,
}

impl fmt::Display for PasswordFileGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}={}", self.name, file.display()),
            None => write!(f, "{}=-", self.name),
        }
    }
}

impl From<PasswordFileGiven> for String {
    fn from(given: PasswordFileGiven) -> Self {
        given.to_string()
    }
}

impl FromStr for PasswordFileGiven {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, file) = text.split_once('=').ok_or_else(|| {
            "expected NAME=FILE, for example anna=/etc/anabranch/anna.password; - is standard input"
                .to_owned()
        })?;
        check_user_name(name)?;
        if file.is_empty() {
            return Err(format!("the file with the password of {name} has no name"));
        }
        Ok(Self { name: name.to_owned(), file: (file != "-").then(|| file.into()) })
    }
}

impl TryFrom<String> for PasswordFileGiven {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl Given {
    /// Gives the users the passwords that `read` finds in their files. Who has a file only is a user, too. Adds what is
    /// wrong: a file that cannot be read, a user with two passwords.
    pub(crate) fn with_passwords(
        mut self,
        mut read: impl FnMut(&PasswordFileGiven) -> Result<String>,
        wrong: &mut Vec<Wrong>,
    ) -> Self {
        let files = self.password_file.clone();
        let mut add = |what: String, advice: String| {
            wrong.push(Wrong::new(Section::Server, "password-file", what, advice));
        };
        if files.iter().filter(|given| given.file.is_none()).count() > 1 {
            add(
                "standard input is to have the passwords of several users".to_owned(),
                "It has one: give the others files, --password-file NAME=FILE".to_owned(),
            );
            return self;
        }
        for given in &files {
            if !self.user.iter().any(|user| same_name(&user.name, &given.name)) {
                self.user.push(UserGiven::named(&given.name));
            }
            let password = match read(given) {
                Ok(password) => password,
                Err(problem) => {
                    add(problem.what, problem.advice);
                    continue;
                }
            };
            for user in self.user.iter_mut().filter(|user| same_name(&user.name, &given.name)) {
                if !user.take_password(password.clone()) {
                    add(
                        format!("the user {} has a password and a file with one", user.name),
                        format!("Leave one out, for example --user {}=UID", user.name),
                    );
                }
            }
        }
        self
    }
}

impl UserGiven {
    /// The password is one from a file; in `NAME=UID:NUMBER` the number is then the gid. Returns false if the user has a
    /// password already.
    fn take_password(&mut self, password: String) -> bool {
        if let Some(gid) = self.gid_or_password.take() {
            (self.gid, self.password) = (Some(gid), None);
        }
        if self.has_secret() {
            return false;
        }
        self.password = Some(password);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(users: &[&str], files: &[&str]) -> std::result::Result<Vec<UserGiven>, Wrong> {
        let given = Given {
            user: users.iter().map(|user| user.parse().unwrap()).collect(),
            password_file: files.iter().map(|file| file.parse().unwrap()).collect(),
            ..Given::default()
        };
        let mut wrong = Vec::new();
        let given = given.with_passwords(|given| Ok(format!("of {}", given.name)), &mut wrong);
        wrong.into_iter().next().map_or(Ok(given.user), Err)
    }

    #[test]
    fn a_file_has_the_password_of_a_user() {
        let users = with(&["otto:pw", "anna=1000"], &["Anna=/x", "zoe=-"]).unwrap();
        let told: Vec<_> = users.iter().map(|u| (&*u.name, u.password.as_deref(), u.uid)).collect();
        let expected = [
            ("otto", Some("pw"), None),
            ("anna", Some("of Anna"), Some(1000)),
            ("zoe", Some("of zoe"), None),
        ];
        assert_eq!(told, expected);
        let anna = with(&["anna=1000:100"], &["anna=/x"]).unwrap().remove(0);
        assert_eq!((anna.uid, anna.gid, anna.password.as_deref()), (Some(1000), Some(100), Some("of anna")));
    }

    #[test]
    fn two_passwords_of_one_user_are_refused() {
        for (users, files) in [
            (&["anna:pw"][..], &["anna=/x"][..]),
            (&["anna=1000:pw"], &["anna=/x"]),
            (&["anna=1000:100:pw"], &["ANNA=/x"]),
            (&[], &["anna=/x", "anna=/y"]),
        ] {
            assert!(with(users, files).unwrap_err().what.contains("a password and a file"), "{users:?}");
        }
        assert!(with(&[], &["anna=-", "zoe=-"]).unwrap_err().what.contains("standard input"));
    }

    #[test]
    fn a_file_needs_a_name_and_a_user() {
        for bad in ["anna", "anna=", "=/x", "an@na=/x"] {
            assert!(bad.parse::<PasswordFileGiven>().is_err(), "{bad}");
        }
    }
}

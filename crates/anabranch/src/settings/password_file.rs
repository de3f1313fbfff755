//! Passwords in files: `--password-file NAME=FILE`.

use std::path::PathBuf;
use std::str::FromStr;

use auth::same_name;
use gateway::settings::check_user_name;
use serde::Deserialize;

use super::{Given, UserGiven};
use crate::problem::{Cause, Problem, Result};

/// `NAME=FILE`: the password of a user is the first line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct PasswordFileGiven {
    pub(crate) name: String,
    /// None: standard input.
    pub(crate) file: Option<PathBuf>,
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
    /// Gives the users the passwords that `read` finds in their files. Who has a file only is a user, too.
    ///
    /// # Errors
    /// A file cannot be read, or a user has two passwords.
    pub(crate) fn with_passwords(
        mut self,
        read: impl Fn(&PasswordFileGiven) -> Result<String>,
    ) -> Result<Self> {
        let files = std::mem::take(&mut self.password_file);
        if files.iter().filter(|given| given.file.is_none()).count() > 1 {
            return Err(Problem::new(
                Cause::Settings,
                "standard input is to have the passwords of several users",
                "It has one: give the others files, --password-file NAME=FILE",
            ));
        }
        for given in &files {
            if !self.user.iter().any(|user| same_name(&user.name, &given.name)) {
                self.user.push(UserGiven::named(&given.name));
            }
            let mut users = self.user.iter_mut().filter(|user| same_name(&user.name, &given.name));
            users.try_for_each(|user| user.take_password(read(given)?))?;
        }
        Ok(self)
    }
}

impl UserGiven {
    /// The password is one from a file; in `NAME=UID:NUMBER` the number is then the gid.
    fn take_password(&mut self, password: String) -> Result<()> {
        if let Some(gid) = self.gid_or_password.take() {
            (self.gid, self.password) = (Some(gid), None);
        }
        if self.has_secret() {
            return Err(Problem::new(
                Cause::Settings,
                format!("the user {} has a password and a file with one", self.name),
                format!("Leave one out, for example --user {}=UID", self.name),
            ));
        }
        self.password = Some(password);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(users: &[&str], files: &[&str]) -> Result<Vec<UserGiven>> {
        let given = Given {
            user: users.iter().map(|user| user.parse().unwrap()).collect(),
            password_file: files.iter().map(|file| file.parse().unwrap()).collect(),
            ..Given::default()
        };
        given.with_passwords(|given| Ok(format!("of {}", given.name))).map(|given| given.user)
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

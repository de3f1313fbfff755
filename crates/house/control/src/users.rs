//! The users in the form of the API: `/v1/users`. Passwords are accepted and never shown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// All users, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    /// The users of the configuration, and those added by command.
    pub users: Vec<User>,
}

/// One user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The name.
    pub name: String,
    /// Where the configuration declares the user; none for a user added by command.
    pub declared_in: Option<String>,
    /// Whether the user may not log on.
    pub disabled: bool,
    /// The user of this machine whose rights the user has.
    pub uid: u32,
    /// The group of objects that the user creates.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
    /// The SID by which access lists of SMB clients name the user; none before a server has had the account.
    pub sid: Option<String>,
    /// Whether there are AES keys of the password for Kerberos. There are none of a password that an earlier version stored,
    /// or that is declared by its NT hash, until it is set again.
    pub aes_keys: bool,
}

/// A password in a request. It is never logged.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// A user to be added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// The name.
    pub name: String,
    /// The password.
    pub password: Password,
    /// The user of this machine; by default the one with the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The group of objects that the user creates; by default that of the user of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Further groups; by default those of the user of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<u32>>,
    /// Whether the user may not log on.
    #[serde(default)]
    pub disabled: bool,
}

/// Changes of a user. What is not given stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UserChange {
    /// The password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// The user of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The group of objects that the user creates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// All further groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<u32>>,
    /// Whether the user may not log on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_printed() {
        let new = NewUser { password: Password("hush".to_owned()), ..NewUser::default() };
        assert!(!format!("{new:?}").contains("hush"));
        let change = UserChange { password: Some(Password("hush".to_owned())), ..UserChange::default() };
        assert!(!format!("{change:?}").contains("hush"));
    }
}

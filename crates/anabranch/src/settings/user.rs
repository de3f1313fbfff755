//! A user as given by a flag or by a table of the file.

use std::fmt;
use std::str::FromStr;

use gateway::settings::{UserSettings, check_ids, check_user_name};
use serde::Deserialize;

/// `NAME[=UID[:GID]]:PASSWORD`, or a table in the file. The password may be left out.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UserGiven {
    pub(crate) name: String,
    /// None: the one that a file or the state database holds.
    pub(crate) password: Option<String>,
    /// The NT hash of the password, in place of the password.
    pub(crate) nt_hash: Option<[u8; 16]>,
    /// In `NAME=UID:NUMBER` the number: the gid, if the password is in a file.
    pub(crate) gid_or_password: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    /// None: those of the user of this machine.
    pub(crate) groups: Option<Vec<u32>>,
}

impl fmt::Debug for UserGiven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserGiven").field("name", &self.name).finish_non_exhaustive()
    }
}

impl UserGiven {
    /// One of whom only the name is known, which can be one.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            password: None,
            nt_hash: None,
            gid_or_password: None,
            uid: None,
            gid: None,
            groups: None,
        }
    }

    /// Whether the configuration says how the user proves who they are: what it says is a secret.
    pub(crate) fn has_secret(&self) -> bool {
        self.password.is_some() || self.nt_hash.is_some()
    }

    /// What is meant when all is known that files say.
    pub(super) fn whole(self) -> UserSettings {
        let Self { name, password, nt_hash, gid_or_password: _, uid, gid, groups } = self;
        UserSettings { name, password, nt_hash, uid, gid, groups }
    }
}

impl FromStr for UserGiven {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_at(text.find(['=', ':']).unwrap_or(text.len()));
        let mut table = UserTable { name: name.to_owned(), ..UserTable::default() };
        let mut gid_or_password = None;
        match rest.strip_prefix('=') {
            None => table.password = rest.strip_prefix(':').map(str::to_owned),
            Some(ids) => {
                let (uid, rest) = ids.split_once(':').map_or((ids, None), |(uid, rest)| (uid, Some(rest)));
                table.uid = Some(number("uid", uid)?);
                let (gid, password) = match rest.and_then(|rest| rest.split_once(':')) {
                    Some((gid, password)) if is_number(gid) => (Some(number("gid", gid)?), Some(password)),
                    _ => (None, rest),
                };
                table.gid = gid;
                table.password = password.map(str::to_owned);
                gid_or_password = password.filter(|_| gid.is_none()).and_then(|number| number.parse().ok());
            }
        }
        let (user, wrong) = table.settle();
        wrong.into_iter().next().map_or(Ok(Self { gid_or_password, ..user }), |(_, what)| Err(what))
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn number(what: &str, text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| {
        format!("this is no {what}: expected NAME[=UID[:GID]]:PASSWORD, for example anna=1000:100:PASSWORD")
    })
}

/// The hash in 32 hexadecimal digits. The message never repeats them.
fn nt_hash(name: &str, digits: &str) -> Result<[u8; 16], String> {
    let wrong =
        || format!("the nt-hash of {name} is not 32 hexadecimal digits, as `pdbedit -L -w` prints them");
    let number = u128::from_str_radix(digits, 16).map_err(|_| wrong())?;
    let is_hexadecimal = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hexadecimal { Ok(number.to_be_bytes()) } else { Err(wrong()) }
}

/// The keys of `[[user]]` with their values.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct UserTable {
    name: String,
    password: Option<String>,
    nt_hash: Option<String>,
    uid: Option<u32>,
    gid: Option<u32>,
    groups: Option<Vec<u32>>,
}

impl UserTable {
    /// The user, and what is wrong with which key. A name that is wrong becomes empty.
    pub(crate) fn settle(self) -> (UserGiven, Vec<(&'static str, String)>) {
        let Self { mut name, password, nt_hash: digits, uid, gid, groups } = self;
        let mut wrong = Vec::new();
        if password.as_deref() == Some("") {
            wrong.push(("password", format!("the password of {name} is empty")));
        }
        if password.is_some() && digits.is_some() {
            let what = format!("the user {name} has a password and an nt-hash: leave one out");
            wrong.push(("nt-hash", what));
        }
        let nt_hash = digits.and_then(|digits| match nt_hash(&name, &digits) {
            Ok(hash) => Some(hash),
            Err(e) => {
                wrong.push(("nt-hash", e));
                None
            }
        });
        let ids =
            [("uid", uid.as_slice()), ("gid", gid.as_slice()), ("groups", groups.as_deref().unwrap_or(&[]))];
        for (key, ids) in ids {
            if let Err(e) = check_ids(&name, ids.iter().copied()) {
                wrong.push((key, e));
            }
        }
        if let Err(e) = check_user_name(&name) {
            wrong.insert(0, ("name", e));
            name = String::new();
        }
        (UserGiven { name, password, nt_hash, gid_or_password: None, uid, gid, groups }, wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_name_and_a_password_which_may_have_colons() {
        let u: UserGiven = "anna:a:b@c".parse().unwrap();
        assert_eq!((u.name.as_str(), u.password.as_deref()), ("anna", Some("a:b@c")));
        for bad in [":secret", "anna:", "anna=1:", "an\\na:secret", "anna@home:secret"] {
            assert!(bad.parse::<UserGiven>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_user_may_have_a_uid_and_a_gid_before_the_password() {
        let given = |text: &str| {
            text.parse::<UserGiven>()
                .map(|u| (u.uid, u.gid, u.password.unwrap_or_default(), u.gid_or_password))
        };
        let secret = |text: &str| text.to_owned();
        assert_eq!(given("anna"), Ok((None, None, secret(""), None)));
        assert_eq!(given("anna=0"), Ok((Some(0), None, secret(""), None)));
        assert_eq!(given("anna=1000:pw"), Ok((Some(1000), None, secret("pw"), None)));
        assert_eq!(given("anna=1000:100:p:w=x"), Ok((Some(1000), Some(100), secret("p:w=x"), None)));
        assert_eq!(given("anna=1000:p:w"), Ok((Some(1000), None, secret("p:w"), None)));
        assert_eq!(given("anna=1000:1234"), Ok((Some(1000), None, secret("1234"), Some(1234))));
        assert_eq!(given("anna:a=5:b"), Ok((None, None, secret("a=5:b"), None)));
        for (bad, why) in [
            ("anna=", "no uid"),
            ("anna=me:pw", "no uid"),
            ("anna=-1:pw", "no uid"),
            ("anna=1:4294967296:pw", "no gid"),
            ("anna=4294967295:pw", "nobody's number"),
        ] {
            assert!(given(bad).unwrap_err().contains(why), "{bad}");
        }
    }

    #[test]
    fn a_hash_takes_the_place_of_the_password() {
        let user = |table: &str| toml::from_str::<UserTable>(table).unwrap().settle();
        let (hashed, wrong) = user("name = \"anna\"\nnt-hash = \"a4F49c406510bdcab6824ee7c30fd852\"");
        assert_eq!(wrong, []);
        assert_eq!(hashed.nt_hash, Some(auth::nt_hash("Password")));
        assert!(hashed.has_secret() && !format!("{hashed:?}").contains("a4"));
        let digits = "0".repeat(32);
        for (bad, why) in [
            ("nt-hash = \"abc\"".to_owned(), "32 hexadecimal digits"),
            (format!("nt-hash = \"+{}\"", "f".repeat(31)), "32 hexadecimal digits"),
            (format!("nt-hash = \"{digits}0\""), "32 hexadecimal digits"),
            ("nt-hash = \"XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX\"".to_owned(), "32 hexadecimal digits"),
            (format!("password = \"x\"\nnt-hash = \"{digits}\""), "leave one out"),
        ] {
            let (_, wrong) = user(&format!("name = \"anna\"\n{bad}"));
            let [("nt-hash", what)] = wrong.as_slice() else { panic!("{bad}: {wrong:?}") };
            assert!(what.contains(why) && !what.contains("abc"), "{bad}: {what}");
        }
    }
}

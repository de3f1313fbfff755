//! Accounts as smbpasswd(5) writes them and `pdbedit -L -w` prints them: `name:uid:LANMAN hash:NT hash:[flags]:LCT-time:`.

use std::fmt;

use gateway::settings::check_user_name;

use crate::note::{Grade, Note, Notes, Place};

/// How a file of tdb begins.
const TDB: &str = "TDB file\n";
/// Digits of a hash.
const HASH_DIGITS: usize = 32;
/// The uid of an account that no user of the machine has (the number -1).
const NO_UID: u32 = u32::MAX;

/// An account that may log on.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub name: String,
    /// The uid; None: no user of the other machine had the name.
    pub uid: Option<u32>,
    /// The NT hash in hexadecimal digits. It is as good as the password.
    pub(crate) nt_hash: String,
    /// Why the account may not log on, although it has a hash.
    pub(crate) closed: Option<&'static str>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("name", &self.name).field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// Whether these are not lines of text, but the database itself.
#[must_use]
pub fn is_database(bytes: &[u8]) -> bool {
    bytes.starts_with(TDB.as_bytes())
}

/// The accounts in the lines of a file.
pub(crate) fn read(file: &str, text: &str, notes: &mut Notes) -> Vec<Account> {
    let mut accounts: Vec<Account> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end_matches('\r');
        // smbpasswd(5), startsmbfilepwent: lines that are empty or begin with # are skipped.
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = Place { file: file.to_owned(), line: index.saturating_add(1) };
        let left = match account(line) {
            Ok(account) if accounts.iter().any(|known| same_name(&known.name, &account.name)) => {
                (account.name, Grade::NoCounterpart, "an earlier line has an account of this name".to_owned())
            }
            Ok(account) => {
                accounts.push(account);
                continue;
            }
            Err(left) => left,
        };
        let (parameter, grade, why) = left;
        let (section, value) = (String::new(), String::new());
        notes.add(Note { grade, place, section, parameter, value, why });
    }
    accounts
}

/// Names of accounts are compared regardless of case.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    access::folded_name(one) == access::folded_name(other)
}

/// The account of a line; else its name and why it was left out. The line itself is never repeated: it holds secrets.
fn account(line: &str) -> Result<Account, (String, Grade, String)> {
    let mut fields = line.split(':');
    let name = fields.next().unwrap_or_default();
    let left = |grade, why: &str| (name.to_owned(), grade, why.to_owned());
    let format = "the line is not name:uid:hash:hash:[flags]:, as `pdbedit -L -w` prints it";
    let (Some(uid), Some(_), Some(nt_hash), Some(flags)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err((String::new(), Grade::ChangesAccess, format.to_owned()));
    };
    let (Ok(uid), Some(flags)) =
        (uid.parse::<u32>(), flags.strip_prefix('[').and_then(|flags| flags.strip_suffix(']')))
    else {
        return Err(left(Grade::ChangesAccess, format));
    };
    // W, S and I: trust accounts of machines and domains.
    if flags.contains(['W', 'S', 'I']) || name.ends_with('$') {
        return Err(left(Grade::NotNeeded, "it is the account of a machine or a domain"));
    }
    check_user_name(name).map_err(|why| left(Grade::ChangesAccess, &why))?;
    if nt_hash.len() != HASH_DIGITS || !nt_hash.bytes().all(|b| b.is_ascii_hexdigit()) {
        let why = "it has no password for SMB: set one with `anabranch user add`";
        return Err(left(Grade::ChangesAccess, why));
    }
    let closed = closed(flags, uid);
    let uid = Some(uid).filter(|uid| *uid != NO_UID);
    Ok(Account { name: name.to_owned(), uid, nt_hash: nt_hash.to_ascii_lowercase(), closed })
}

fn closed(flags: &str, uid: u32) -> Option<&'static str> {
    if flags.contains('D') {
        return Some("it is disabled");
    }
    if flags.contains('L') {
        return Some("it is locked");
    }
    if flags.contains('N') {
        return Some("it needs no password there (flag N); here every account needs one");
    }
    (uid == 0).then_some("it acts as root on every share")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "a4f49c406510bdcab6824ee7c30fd852";
    const NONE: &str = "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX";

    fn of(line: &str) -> (Vec<Account>, Vec<Note>) {
        let mut notes = Notes::default();
        let accounts = read("users", line, &mut notes);
        (accounts, notes.sorted())
    }

    #[test]
    fn an_account_has_a_name_a_uid_and_a_hash() {
        let text = format!(
            "# comment\n\nanna:1000:{NONE}:{}:[U          ]:LCT-6B06EE80:\notto:4294967295:{NONE}:{HASH}:[UX]:LCT-0:\r\n",
            HASH.to_uppercase()
        );
        let (accounts, notes) = of(&text);
        let told: Vec<_> = accounts.iter().map(|a| (&*a.name, a.uid, &*a.nt_hash, a.closed)).collect();
        assert_eq!(told, [("anna", Some(1000), HASH, None), ("otto", None, HASH, None)]);
        assert_eq!(notes, []);
        assert!(!format!("{accounts:?}").contains("a4f4"));
    }

    #[test]
    fn accounts_that_may_not_log_on_are_closed_or_left_out() {
        for (uid, flags, why) in
            [(1, "DU", "disabled"), (1, "NU", "flag N"), (1, "UL", "locked"), (0, "U", "root")]
        {
            let (accounts, notes) = of(&format!("a:{uid}:{NONE}:{HASH}:[{flags}]:LCT-0:"));
            assert!(accounts[0].closed.unwrap().contains(why) && notes.is_empty(), "{flags}");
        }
        for (line, grade, why) in [
            (format!("pc$:1:{NONE}:{HASH}:[W          ]:LCT-0:"), Grade::NotNeeded, "machine"),
            (format!("a:1:{NONE}:{NONE}:[U          ]:LCT-0:"), Grade::ChangesAccess, "no password"),
            (format!("a b@c:1:{NONE}:{HASH}:[U]:LCT-0:"), Grade::ChangesAccess, "'@'"),
            (format!("a:-1:{NONE}:{HASH}:[U]:LCT-0:"), Grade::ChangesAccess, "pdbedit"),
            (format!("a:1:{HASH}"), Grade::ChangesAccess, "pdbedit"),
            (format!("a:1:{NONE}:{HASH}:U:LCT-0:"), Grade::ChangesAccess, "pdbedit"),
        ] {
            let (accounts, notes) = of(&line);
            assert!(accounts.is_empty() && notes[0].grade == grade, "{line}");
            assert!(notes[0].why.contains(why) && !format!("{notes:?}").contains("a4f4"), "{notes:?}");
        }
        let (accounts, notes) = of(&format!("a:1:{NONE}:{HASH}:[U]:LCT-0:\nA:2:{NONE}:{HASH}:[U]:LCT-0:"));
        assert_eq!((accounts.len(), notes.len()), (1, 1));
    }

    #[test]
    fn the_database_itself_is_known() {
        assert!(is_database(b"TDB file\n\0\0") && !is_database(b"anna:1000:"));
    }
}

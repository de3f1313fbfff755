//! `valid users`, `invalid users`, `read list` and `write list`, as `smbd/share_access.c` uses them.

use access::Who;
use gateway::settings::check_user_name;

/// The lists of a section, with `%S` replaced.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked<'a> {
    pub(super) valid: Vec<String>,
    pub(super) invalid: Vec<String>,
    pub(super) read: Vec<String>,
    pub(super) write: Vec<String>,
    pub(super) read_only: bool,
    pub(super) guest: bool,
    /// The accounts that are imported and may log on; None: they are not known.
    pub(super) accounts: Option<&'a [String]>,
}

/// What users may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rights {
    /// Every user is admitted.
    Open { read_only: bool },
    /// The users and groups in the lists are admitted.
    Listed { read: Vec<String>, write: Vec<String> },
    /// The lists cannot say it.
    Closed(String),
}

/// What was left out of a parameter, and why.
pub(super) type LeftOut = Vec<(&'static str, String)>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    User(String),
    Group(String),
    Unknown(&'static str),
}

/// An entry of a list. `@`, `+&` and `&+`: a netgroup or a group of the system; there are no netgroups here.
fn entry(text: &str) -> Entry {
    let group = ["@", "+&", "&+", "+"].iter().find_map(|prefix| text.strip_prefix(prefix));
    if text.contains('%') {
        return Entry::Unknown("depends on the client or the user");
    }
    if text.starts_with('&') && group.is_none() {
        return Entry::Unknown("is a netgroup");
    }
    if text.contains('\\') || text.starts_with("S-1-") {
        return Entry::Unknown("belongs to a domain");
    }
    let Some(group) = group else {
        let is_name = check_user_name(text).is_ok() && text.parse::<Who>().is_ok();
        return if is_name {
            Entry::User(text.to_owned())
        } else {
            Entry::Unknown("cannot be the name of a user")
        };
    };
    match format!("@{group}").parse::<Who>() {
        Ok(Who::Group(_)) => Entry::Group(group.to_owned()),
        Ok(_) | Err(_) => Entry::Unknown("cannot be the name of a group of the system"),
    }
}

impl Entry {
    /// Names of users are compared regardless of case.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::User(one), Self::User(other)) => access::folded_name(one) == access::folded_name(other),
            (Self::Group(one), Self::Group(other)) => one == other,
            _ => false,
        }
    }

    fn written(&self) -> String {
        match self {
            Self::User(name) => name.clone(),
            Self::Group(name) => format!("@{name}"),
            Self::Unknown(_) => String::new(),
        }
    }

    fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }

    fn is_root(&self) -> bool {
        self.is(&Self::User("root".to_owned()))
    }
}

fn is_in(list: &[Entry], entry: &Entry) -> bool {
    list.iter().any(|other| other.is(entry))
}

/// What the lists come to; what is not certain is not given.
pub(super) fn rights(asked: &Asked<'_>) -> (Rights, LeftOut) {
    let mut left = LeftOut::new();
    let mut entries = |parameter: &'static str, texts: &[String]| {
        let parsed: Vec<Entry> = texts.iter().map(|text| entry(text)).collect();
        for (text, entry) in texts.iter().zip(&parsed) {
            if let Entry::Unknown(why) = entry {
                left.push((parameter, format!("{text} {why}")));
            }
        }
        parsed
    };
    let lists = Lists {
        valid: entries("valid users", &asked.valid),
        // No account acts as root unless somebody writes so.
        invalid: entries("invalid users", &asked.invalid).into_iter().filter(|e| !e.is_root()).collect(),
        read: entries("read list", &asked.read),
        write: entries("write list", &asked.write),
        read_only: asked.read_only,
    };
    let accounts = asked.accounts.filter(|_| !asked.guest);
    let account = |name: &String| match name.parse::<Who>() {
        Ok(_) => Entry::User(name.clone()),
        Err(_) => Entry::Unknown("cannot be in a list"),
    };
    let accounts: Option<Vec<Entry>> = accounts.map(|names| names.iter().map(account).collect());
    let rights = if asked.valid.is_empty() {
        lists.of_everybody(accounts, &mut left)
    } else {
        lists.of_valid(&mut left)
    };
    (rights, left)
}

struct Lists {
    valid: Vec<Entry>,
    invalid: Vec<Entry>,
    read: Vec<Entry>,
    write: Vec<Entry>,
    read_only: bool,
}

impl Lists {
    /// Only `valid users` are admitted.
    fn of_valid(&self, left: &mut LeftOut) -> Rights {
        let has_only_users = |list: &[Entry]| list.iter().all(|entry| matches!(entry, Entry::User(_)));
        let is_group = |entry: &Entry| matches!(entry, Entry::Group(_));
        if !has_only_users(&self.invalid) {
            return Rights::Closed(
                "invalid users names a group, and no list here refuses the members of a group".to_owned(),
            );
        }
        // A member of a group may be an invalid user.
        let is_certain = |entry: &&Entry| {
            let may_be_invalid = is_in(&self.invalid, entry) || is_group(entry) && !self.invalid.is_empty();
            entry.is_known() && !may_be_invalid
        };
        let may_write = |entry: &Entry| {
            // "if a user is in both the read list and the write list then they will be given write access"
            is_in(&self.write, entry) || !self.read_only && self.is_surely_not_reader(entry)
        };
        let (write, read): (Vec<&Entry>, Vec<&Entry>) =
            self.valid.iter().filter(is_certain).partition(|entry| may_write(entry));
        let written = |entries: Vec<&Entry>| entries.into_iter().map(Entry::written).collect::<Vec<_>>();
        self.tell_losses(&read, left);
        let (read, write) = (written(read), written(write));
        if read.is_empty() && write.is_empty() {
            return Rights::Closed("no user or group of valid users can be carried over".to_owned());
        }
        if read.len().saturating_add(write.len()) > access::RIGHTS_MAX {
            return Rights::Closed(format!("its lists have more than {} users", access::RIGHTS_MAX));
        }
        Rights::Listed { read, write }
    }

    /// Says who gets less than Samba may give them.
    fn tell_losses(&self, readers: &[&Entry], left: &mut LeftOut) {
        let valid = self.valid.iter().filter(|entry| entry.is_known());
        let is_left_out = |entry: &&Entry| {
            !self.invalid.is_empty() && matches!(entry, Entry::Group(_)) && !is_in(&self.invalid, entry)
        };
        for entry in valid.filter(is_left_out) {
            let why =
                format!("{} is left out of valid users: its members may be invalid users", entry.written());
            left.push(("invalid users", why));
        }
        for entry in readers.iter().filter(|entry| !self.read_only && !is_in(&self.read, entry)) {
            let because = match entry {
                Entry::Group(_) => "its members may be in read list",
                Entry::User(_) | Entry::Unknown(_) => "a group in read list may contain the user",
            };
            left.push(("read list", format!("{} may only read: {because}", entry.written())));
        }
        let matters = self.read_only || !self.read.is_empty();
        for entry in
            self.write.iter().filter(|entry| matters && entry.is_known() && !is_in(&self.valid, entry))
        {
            let why =
                format!("{} is not in valid users by this name, and gets no right to write", entry.written());
            left.push(("write list", why));
        }
    }

    /// Whether nobody whom the entry names can be in `read list`.
    fn is_surely_not_reader(&self, entry: &Entry) -> bool {
        let is_user = |entry: &Entry| matches!(entry, Entry::User(_));
        self.read.is_empty() || is_user(entry) && self.read.iter().all(is_user) && !is_in(&self.read, entry)
    }

    /// Every user is admitted who is not invalid.
    fn of_everybody(mut self, accounts: Option<Vec<Entry>>, left: &mut LeftOut) -> Rights {
        let matters = if self.read_only { ("write list", &self.write) } else { ("read list", &self.read) };
        if self.invalid.is_empty() && matters.1.is_empty() {
            return Rights::Open { read_only: self.read_only };
        }
        let parameter = matters.0;
        if let Some(accounts) = accounts {
            // A list of all accounts says the same, as long as no account is added. Groups that may write are part of it.
            let groups = self.write.iter().filter(|entry| matches!(entry, Entry::Group(_))).cloned();
            self.valid = accounts.into_iter().chain(groups).collect();
            let valid = &self.valid;
            self.write.retain(|entry| is_in(valid, entry));
            return self.of_valid(left);
        }
        if !self.invalid.is_empty() {
            return Rights::Closed(
                "invalid users refuses some users and admits all others, and lists here only admit"
                    .to_owned(),
            );
        }
        let why = "a list admits its users only, and here all others may read: nobody may write (--users lists them all)";
        left.push((parameter, why.to_owned()));
        Rights::Open { read_only: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samba::value::list;

    fn of(
        valid: &str,
        invalid: &str,
        read: &str,
        write: &str,
        read_only: bool,
        accounts: Option<&str>,
    ) -> String {
        let accounts = accounts.map(list);
        let asked = Asked {
            valid: list(valid),
            invalid: list(invalid),
            read: list(read),
            write: list(write),
            read_only,
            guest: false,
            accounts: accounts.as_deref(),
        };
        match rights(&asked).0 {
            Rights::Open { read_only } => format!("open{}", if read_only { " ro" } else { "" }),
            Rights::Listed { read, write } => format!("r {} w {}", read.join(" "), write.join(" ")),
            Rights::Closed(_) => "closed".to_owned(),
        }
    }

    #[test]
    fn lists_give_what_samba_gives() {
        for (valid, invalid, read, write, read_only, expected) in [
            ("", "", "", "", true, "open ro"),
            ("", "", "", "", false, "open"),
            ("anna @staff", "", "", "", false, "r  w anna @staff"),
            ("anna @staff", "", "", "", true, "r anna @staff w "),
            ("anna +staff", "", "", "anna", true, "r @staff w anna"),
            ("anna otto", "", "otto", "", false, "r otto w anna"),
            ("anna otto", "", "otto", "otto", false, "r  w anna otto"),
            ("", "root", "", "", false, "open"),
            ("anna otto", "OTTO", "", "", false, "r  w anna"),
        ] {
            assert_eq!(of(valid, invalid, read, write, read_only, None), expected, "{valid} - {invalid}");
        }
    }

    #[test]
    fn what_is_not_certain_is_not_given() {
        for (valid, invalid, read, write, read_only, expected) in [
            // otto may be a member of staff.
            ("@staff", "otto", "", "", false, "closed"),
            ("@staff anna", "otto", "", "", false, "r  w anna"),
            ("anna", "@staff", "", "", false, "closed"),
            ("@staff anna", "", "otto", "", false, "r @staff w anna"),
            ("anna", "", "@staff", "", false, "r anna w "),
            ("@staff", "", "", "anna", true, "r @staff w "),
            ("", "otto", "", "", false, "closed"),
            ("", "", "", "anna", true, "open ro"),
            ("", "", "otto", "", false, "open ro"),
            ("DOM\\anna &net %U \"@domain users\"", "", "", "", false, "closed"),
        ] {
            assert_eq!(of(valid, invalid, read, write, read_only, None), expected, "{valid} - {invalid}");
        }
    }

    #[test]
    fn known_accounts_can_be_listed() {
        let accounts = Some("anna otto");
        assert_eq!(of("", "otto", "", "", false, accounts), "r  w anna");
        assert_eq!(of("", "", "", "anna @staff", true, accounts), "r otto w anna @staff");
        assert_eq!(of("", "", "otto", "", false, accounts), "r otto w anna");
        assert_eq!(of("", "", "@staff", "", false, accounts), "r anna otto w ");
        assert_eq!(of("", "@staff", "", "", false, accounts), "closed");
    }

    /// What Samba gives a user who is in these groups: None, or whether it may write (`user_ok_token`,
    /// `is_share_read_only_for_token`).
    fn samba_gives(asked: &Asked<'_>, user: &str, groups: &[&str]) -> Option<bool> {
        let is_in = |list: &[String]| {
            list.iter().any(|entry| {
                entry == user || entry.strip_prefix('@').is_some_and(|group| groups.contains(&group))
            })
        };
        if is_in(&asked.invalid) || !asked.valid.is_empty() && !is_in(&asked.valid) {
            return None;
        }
        Some(is_in(&asked.write) || !asked.read_only && !is_in(&asked.read))
    }

    fn given(rights: &Rights, user: &str, groups: &[&str]) -> Option<bool> {
        let is_in = |list: &[String]| {
            list.iter().any(|entry| {
                entry == user || entry.strip_prefix('@').is_some_and(|group| groups.contains(&group))
            })
        };
        match rights {
            Rights::Open { read_only } => Some(!read_only),
            Rights::Listed { write, .. } if is_in(write) => Some(true),
            Rights::Listed { read, .. } if is_in(read) => Some(false),
            Rights::Listed { .. } | Rights::Closed(_) => None,
        }
    }

    fn any_list() -> impl proptest::strategy::Strategy<Value = Vec<String>> {
        const ENTRIES: &[&str] = &["anna", "otto", "zoe", "@staff", "@lab", "&net", "root", "DOM\\anna"];
        proptest::collection::vec(proptest::sample::select(ENTRIES).prop_map(str::to_owned), 0..4)
    }

    use proptest::strategy::Strategy as _;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]
        #[test]
        fn nobody_gets_more_than_samba_gives(
            valid in any_list(), invalid in any_list(), read in any_list(), write in any_list(),
            read_only: bool, guest: bool, knows_accounts: bool,
        ) {
            let accounts = ["anna".to_owned(), "otto".to_owned(), "zoe".to_owned()];
            let accounts = knows_accounts.then_some(&accounts[..]);
            let asked = Asked { valid, invalid, read, write, read_only, guest, accounts };
            let rights = rights(&asked).0;
            // root has no account here.
            for user in ["anna", "otto", "zoe", "eve"] {
                for groups in [&[][..], &["staff"], &["lab"], &["staff", "lab"]] {
                    let (samba, here) = (samba_gives(&asked, user, groups), given(&rights, user, groups));
                    proptest::prop_assert!(here <= samba, "{:?} {} {:?}: {:?}", asked, user, groups, rights);
                }
            }
        }
    }
}

//! Who is charged.

/// What a quota is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// The files below the directory with this number, but not those below another directory with a quota.
    Directory(u64),
    /// The files of the user with this number.
    User(u32),
    /// The files of the group with this number.
    Group(u32),
    /// The files of each user without a quota of its own. The superuser is no such user.
    EachUser,
    /// The files of each group without a quota of its own. The group of the superuser is no such group.
    EachGroup,
}

impl Subject {
    /// The account that the quota is for; None for a default.
    #[must_use]
    pub fn account(self) -> Option<Account> {
        match self {
            Self::Directory(number) => Some(Account::Directory(number)),
            Self::User(uid) => Some(Account::User(uid)),
            Self::Group(gid) => Some(Account::Group(gid)),
            Self::EachUser | Self::EachGroup => None,
        }
    }
}

/// Somebody who holds files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Account {
    /// The directory with this number.
    Directory(u64),
    /// The user with this number.
    User(u32),
    /// The group with this number.
    Group(u32),
}

impl Account {
    /// The quota that is for this account alone.
    #[must_use]
    pub fn own(self) -> Subject {
        match self {
            Self::Directory(number) => Subject::Directory(number),
            Self::User(uid) => Subject::User(uid),
            Self::Group(gid) => Subject::Group(gid),
        }
    }

    /// The quota that holds for this account unless it has one of its own.
    #[must_use]
    pub fn default(self) -> Option<Subject> {
        match self {
            Self::User(uid) if uid != 0 => Some(Subject::EachUser),
            Self::Group(gid) if gid != 0 => Some(Subject::EachGroup),
            Self::Directory(_) | Self::User(_) | Self::Group(_) => None,
        }
    }
}

/// Whom a file is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owners {
    /// The user that owns it.
    pub user: u32,
    /// The group that owns it.
    pub group: u32,
    /// The nearest directory above it that has a quota.
    pub directory: Option<u64>,
}

impl Owners {
    /// The accounts that are charged.
    pub fn accounts(self) -> impl Iterator<Item = Account> {
        let own = [Account::User(self.user), Account::Group(self.group)];
        own.into_iter().chain(self.directory.map(Account::Directory))
    }

    /// The accounts that are charged for a file of these owners, and not for one of `others`.
    pub fn unlike(self, others: Self) -> impl Iterator<Item = Account> {
        self.accounts().filter(move |account| others.accounts().all(|other| other != *account))
    }
}

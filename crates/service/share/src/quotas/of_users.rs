//! The quotas of users, for clients that list and change them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::Pin;

use quota::{Account, Limits, Standing};
use storage::MayWait;

use super::{QuotaStatus, QuotaSubject, Quotas};
use crate::{Caller, Share};

/// What a user holds and may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserQuota {
    /// The user.
    pub uid: u32,
    /// Bytes that are held; 0 until all files were counted.
    pub used: u64,
    /// The quota that holds for the user.
    pub limits: Option<Limits>,
}

impl QuotaStatus {
    /// How the accounts stand, for those who look up many.
    #[must_use]
    pub fn by_subject(&self) -> HashMap<&QuotaSubject, &Standing> {
        self.standings.iter().map(|(subject, standing)| (subject, standing)).collect()
    }

    /// The quota of this subject, which it has itself.
    fn own(&self, subject: &QuotaSubject) -> Option<Limits> {
        self.rules.iter().find(|(_, meaning)| meaning.as_ref() == Some(subject)).map(|(rule, _)| rule.limits)
    }

    /// The quota of each user that has none of its own.
    #[must_use]
    pub fn of_each_user(&self) -> Option<Limits> {
        self.own(&QuotaSubject::EachUser)
    }

    /// The users who hold something or have a quota of their own, by number.
    #[must_use]
    pub fn users(&self) -> Vec<UserQuota> {
        let user = |subject: &QuotaSubject| match subject {
            QuotaSubject::User(uid) => Some(*uid),
            _ => None,
        };
        // What is not counted yet has no standing.
        let own = self.rules.iter().filter_map(|(rule, meaning)| {
            let uid = user(meaning.as_ref()?)?;
            Some((uid, UserQuota { uid, used: 0, limits: Some(rule.limits) }))
        });
        // Of two quotas for the same user, the first counts.
        let mut users: BTreeMap<u32, UserQuota> = own.rev().collect();
        for (subject, standing) in &self.standings {
            if let Some(uid) = user(subject) {
                users.insert(uid, UserQuota { uid, used: standing.used, limits: standing.limits });
            }
        }
        users.into_values().collect()
    }
}

impl Quotas {
    /// What these users hold and may hold. Settles first.
    pub(crate) fn settled_users(&self, uids: &[u32], may: MayWait<'_>) -> Vec<Option<UserQuota>> {
        self.settle_all(may);
        let user = |uid: &u32| UserQuota::of(*uid, &self.standing(Account::User(*uid)));
        uids.iter().map(user).collect()
    }
}

impl UserQuota {
    /// The quota of a user whose account stands so; None if the account holds nothing and no quota holds for the user.
    fn of(uid: u32, &Standing { used, limits, .. }: &Standing) -> Option<Self> {
        (used > 0 || limits.is_some()).then_some(Self { uid, used, limits })
    }
}

/// What the quota of a user, or of each user, is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaChange {
    /// The user; None: each user that has no quota of its own.
    pub uid: Option<u32>,
    /// The new limits.
    pub to: NewLimits,
}

impl fmt::Display for QuotaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.uid {
            Some(uid) => write!(f, "user {uid}")?,
            None => f.write_str("each user")?,
        }
        let NewLimits::Amounts { soft, hard } = self.to else { return f.write_str(", removed") };
        let limits = [("soft", soft), ("hard", hard)];
        limits
            .into_iter()
            .filter_map(|(name, bytes)| Some((name, bytes?)))
            .try_for_each(|(name, bytes)| write!(f, ", {name} limit {bytes} bytes"))
    }
}

/// New limits, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewLimits {
    /// These; the grace stays as it is.
    Amounts {
        /// The soft limit.
        soft: Option<u64>,
        /// The hard limit.
        hard: Option<u64>,
    },
    /// The quota is removed.
    Removed,
}

/// Why quotas were not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuotaChangeError {
    /// The quotas of the share are changed elsewhere: in the configuration.
    #[error("the quotas of this share cannot be changed by clients")]
    NotHere,
    /// There is no such quota to remove.
    #[error("there is no such quota")]
    NotThere,
    /// The soft limit is above the hard limit.
    #[error("the limits do not go together")]
    Limits,
    /// The share has [`QUOTAS_MAX`](crate::QUOTAS_MAX) quotas.
    #[error("the share has too many quotas")]
    TooMany,
    /// So many changes are under way that no other is begun.
    #[error("too many changes of quotas are under way")]
    Busy,
    /// The change could not be kept.
    #[error("the change could not be kept")]
    Failed,
}

/// What changes of quotas return when they are kept.
pub type QuotaChanging = Pin<Box<dyn Future<Output = Result<(), QuotaChangeError>>>>;

/// Changes the quotas of shares for clients, and keeps them.
pub trait QuotaAuthority: fmt::Debug + Send + Sync {
    /// Whether the caller administers the server.
    fn is_administrator(&self, caller: &Caller) -> bool;

    /// Changes quotas of a share: all of them, or none. The caller may do so.
    fn change(&self, share: &Share, caller: &Caller, changes: Vec<QuotaChange>) -> QuotaChanging;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(rules: &[(&str, QuotaSubject)], standings: &[(u32, u64, &str)]) -> QuotaStatus {
        let limits = |text: &str| format!("x {text}").parse::<super::super::QuotaRule>().unwrap().limits;
        let rules = rules.iter().map(|(text, meaning)| (text.parse().unwrap(), Some(meaning.clone())));
        let standing = |(uid, used, text): &(u32, u64, &str)| {
            let account = Account::User(*uid);
            let limits = (!text.is_empty()).then(|| limits(text));
            let standing = Standing { account, used: *used, limits, is_default: false, over_since: None };
            (QuotaSubject::User(*uid), standing)
        };
        QuotaStatus {
            counted: None,
            is_counting: false,
            rules: rules.collect(),
            standings: standings.iter().map(standing).collect(),
        }
    }

    #[test]
    fn users_are_those_who_hold_something_or_have_a_quota() {
        let anna = QuotaSubject::User(1000);
        let rules = [
            ("anna hard=2KiB", anna.clone()),
            ("1000 hard=9KiB", anna),
            ("* hard=1KiB", QuotaSubject::EachUser),
        ];
        let told = |status: &QuotaStatus| {
            let hard = |user: &UserQuota| user.limits.and_then(|limits| limits.hard());
            status.users().iter().map(|user| (user.uid, user.used, hard(user))).collect::<Vec<_>>()
        };
        assert_eq!(told(&status(&rules, &[])), [(1000, 0, Some(2048))], "nothing was counted");
        let standings = [(1001, 5, "hard=1KiB"), (1000, 7, "hard=2KiB"), (0, 9, "")];
        let counted = status(&rules, &standings);
        assert_eq!(told(&counted), [(0, 9, None), (1000, 7, Some(2048)), (1001, 5, Some(1024))]);
    }

    #[test]
    fn a_change_is_told_by_whom_it_is_for() {
        let told = |uid, to| QuotaChange { uid, to }.to_string();
        let amounts = NewLimits::Amounts { soft: Some(5), hard: Some(7) };
        assert_eq!(told(Some(1000), amounts), "user 1000, soft limit 5 bytes, hard limit 7 bytes");
        assert_eq!(told(None, NewLimits::Removed), "each user, removed");
    }
}

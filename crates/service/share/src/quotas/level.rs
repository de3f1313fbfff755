//! How full a quota is, for those who are told before it is full.

use quota::{Account, Standing};

use super::places::Places;
use crate::QuotaSubject;

/// Users are warned from so many percent of a limit on.
const NEAR_PERCENT: u128 = 80;

/// How full a quota is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Level {
    Fine,
    Near,
    OverSoft,
    Full,
}

impl Level {
    pub(super) fn of(standing: &Standing) -> Self {
        let Some(limits) = standing.limits else { return Self::Fine };
        let (used, last) = (standing.used, limits.last());
        if limits.hard().is_some_and(|hard| used >= hard) {
            Self::Full
        } else if limits.soft().is_some_and(|soft| used > soft) {
            Self::OverSoft
        } else if u128::from(used) * 100 >= u128::from(last) * NEAR_PERCENT {
            Self::Near
        } else {
            Self::Fine
        }
    }

    /// Tells that a quota has become so full.
    pub(super) fn tell(self, share: &str, standing: &Standing, places: &Places) {
        let Some(limits) = standing.limits else { return };
        let (whose, used) = (whose(standing.account, places), standing.used);
        let (soft, hard) = (limits.soft(), limits.hard());
        match self {
            Self::Fine => tracing::info!(share, used, soft, hard, "the quota of {whose} has room again"),
            Self::Near => tracing::warn!(share, used, soft, hard, "the quota of {whose} is nearly full"),
            Self::OverSoft => {
                let days = limits.grace().as_secs() / 86_400;
                tracing::warn!(
                    share,
                    used,
                    soft,
                    hard,
                    "{whose} holds more than the soft limit, which is allowed for {days} days"
                );
            }
            Self::Full => tracing::warn!(share, used, soft, hard, "the quota of {whose} is full"),
        }
    }
}

fn whose(account: Account, places: &Places) -> String {
    match places.subject_of(account) {
        Some(QuotaSubject::Directory(path)) => format!("the directory /{}", path.escape_ascii()),
        Some(QuotaSubject::Group(gid)) => format!("the group {gid}"),
        Some(QuotaSubject::User(uid)) => format!("the user {uid}"),
        Some(QuotaSubject::EachUser | QuotaSubject::EachGroup) | None => "nobody".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use quota::{GRACE, Limits};

    use super::*;

    #[test]
    fn a_quota_is_nearly_full_over_its_soft_limit_and_full() {
        let level = |used, soft, hard| {
            let limits = Limits::new(soft, hard, GRACE).ok();
            let (account, over_since) = (Account::User(1), None);
            Level::of(&Standing { account, used, limits, is_default: false, over_since })
        };
        assert_eq!(level(1 << 60, None, None), Level::Fine);
        assert_eq!(
            [79, 80, 99, 100].map(|used| level(used, None, Some(100))),
            [Level::Fine, Level::Near, Level::Near, Level::Full]
        );
        assert_eq!(
            [50, 51, 100].map(|used| level(used, Some(50), Some(100))),
            [Level::Fine, Level::OverSoft, Level::Full]
        );
        assert_eq!(
            [80, 100, 101].map(|used| level(used, Some(100), None)),
            [Level::Near, Level::Near, Level::OverSoft]
        );
        assert_eq!(level(u64::MAX, None, Some(u64::MAX)), Level::Full);
    }
}

//! The quotas that clients change: those of users, by the tab of Windows or `smbcquotas`.

use std::sync::{Arc, Weak};

use share::{
    Caller, NewLimits, QUOTAS_MAX, QuotaAuthority, QuotaChange, QuotaChangeError, QuotaChanging, QuotaFor,
    QuotaLimits, QuotaRule, QuotaSubject, Share, ShareId,
};
use tokio::sync::{Semaphore, oneshot};

use super::Administration;

/// How many changes of quotas that clients have asked for may be under way: each has a thread.
pub const QUOTA_CHANGES_MAX: usize = 16;

/// Carries out what clients ask for.
#[derive(Debug)]
pub(crate) struct ClientQuotas {
    administration: Weak<Administration>,
    /// One for each change that may begin.
    turns: Arc<Semaphore>,
}

impl ClientQuotas {
    pub(crate) fn new(administration: &Arc<Administration>) -> Self {
        let turns = Arc::new(Semaphore::new(QUOTA_CHANGES_MAX));
        Self { administration: Arc::downgrade(administration), turns }
    }
}

impl QuotaAuthority for ClientQuotas {
    fn is_administrator(&self, caller: &Caller) -> bool {
        let administration = self.administration.upgrade();
        let serving = administration.as_ref().and_then(|administration| administration.serving.as_ref());
        serving.is_some_and(|serving| serving.admins.change_shares(&caller.identity, &caller.proof))
    }

    fn change(&self, share: &Share, caller: &Caller, changes: Vec<QuotaChange>) -> QuotaChanging {
        let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() else {
            return Box::pin(async { Err(QuotaChangeError::Busy) });
        };
        let (administration, share) =
            (Weak::clone(&self.administration), (share.id(), share.name().to_owned()));
        let caller = caller.identity.uid();
        let (tell, told) = oneshot::channel();
        // The state database waits for the disk.
        let started = std::thread::Builder::new().name("client quotas".to_owned()).spawn(move || {
            let changed = administration.upgrade().ok_or(QuotaChangeError::NotHere);
            let changed =
                changed.and_then(|administration| administration.change_quotas(share, caller, &changes));
            drop(turn);
            let _ = tell.send(changed);
        });
        Box::pin(async move {
            // The system has no more threads.
            started.map_err(|_| QuotaChangeError::Busy)?;
            told.await.unwrap_or(Err(QuotaChangeError::Failed))
        })
    }
}

impl Administration {
    fn change_quotas(
        &self,
        (id, name): (ShareId, String),
        caller: u32,
        changes: &[QuotaChange],
    ) -> Result<(), QuotaChangeError> {
        let _changing = self.idle.lock();
        let serving = self.serving.as_ref().ok_or(QuotaChangeError::NotHere)?;
        // Another share may have the name by now.
        let present = serving.shares.present();
        let share = present.by_name(&name).filter(|share| share.id() == id);
        let share = share.ok_or(QuotaChangeError::NotHere)?;
        // What the configuration declares is changed there.
        let mut record = self.made_share(&name).map_err(|_| QuotaChangeError::NotHere)?;
        let rules = record.quotas().map_err(|_| QuotaChangeError::Failed)?;
        let status = share.quota_glance();
        let meaning = |rule: &QuotaRule| match &rule.subject {
            QuotaFor::Known(subject) => Some(subject.clone()),
            QuotaFor::Named(_) => {
                let mut known = status.iter().flat_map(|status| &status.rules);
                known.find(|(known, _)| known.subject == rule.subject)?.1.clone()
            }
        };
        let mut rules: Vec<_> = rules.into_iter().map(|rule| (meaning(&rule), rule)).collect();
        changes.iter().try_for_each(|change| apply(&mut rules, *change))?;
        let rules = rules.into_iter().map(|(_, rule)| rule).collect();
        self.use_quotas(&mut record, rules).map_err(|_| QuotaChangeError::Failed)?;
        for change in changes {
            tracing::info!(share = record.name, by = caller, "a client has changed a quota: {change}");
        }
        Ok(())
    }
}

/// Changes the quota of a user, or of each user, among these and what they are for.
fn apply(
    rules: &mut Vec<(Option<QuotaSubject>, QuotaRule)>,
    QuotaChange { uid, to }: QuotaChange,
) -> Result<(), QuotaChangeError> {
    let subject = uid.map_or(QuotaSubject::EachUser, QuotaSubject::User);
    // Of two for the same user, the first counts.
    let at = rules.iter().position(|(meaning, _)| meaning.as_ref() == Some(&subject));
    let NewLimits::Amounts { soft, hard } = to else {
        at.ok_or(QuotaChangeError::NotThere)?;
        rules.retain(|(meaning, _)| meaning.as_ref() != Some(&subject));
        return Ok(());
    };
    let count = rules.len();
    let known = at.and_then(|at| rules.get_mut(at)).map(|(_, rule)| rule);
    let grace = known.as_ref().map_or(share::GRACE, |rule| rule.limits.grace());
    let limits = QuotaLimits::new(soft, hard, grace).map_err(|_| QuotaChangeError::Limits)?;
    match known {
        Some(rule) => rule.limits = limits,
        None if count >= QUOTAS_MAX => return Err(QuotaChangeError::TooMany),
        None => {
            let rule = QuotaRule { subject: QuotaFor::Known(subject.clone()), limits };
            // A name that is not known yet may stand for the same user, and of two the first counts.
            let at = rules.iter().position(|(meaning, _)| meaning.is_none()).unwrap_or(count);
            rules.insert(at, (Some(subject), rule));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use share::{Identity, Proof, Settings};
    use state::State;
    use storage::memory::MemoryStore;

    use super::*;

    #[test]
    fn so_many_changes_are_under_way_and_no_more() {
        let place = tempfile::tempdir().unwrap();
        let state = State::open(&place.path().join("state")).unwrap();
        let here = Arc::new(Administration::of_state(state));
        let authority = ClientQuotas::new(&here);
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        let caller = Caller::new(Identity::unix(0, 0, Vec::new()), Proof::Stated);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let begin = || authority.change(&share, &caller, Vec::new());
        let held = here.idle.lock();
        let under_way: Vec<_> = (0..QUOTA_CHANGES_MAX).map(|_| begin()).collect();
        assert_eq!(runtime.block_on(begin()), Err(QuotaChangeError::Busy));
        drop(held);
        for change in under_way {
            assert_eq!(runtime.block_on(change), Err(QuotaChangeError::NotHere));
        }
        assert_eq!(runtime.block_on(begin()), Err(QuotaChangeError::NotHere), "there is room again");
    }

    fn changed(
        rules: &[(&str, Option<QuotaSubject>)],
        change: QuotaChange,
    ) -> Result<Vec<String>, QuotaChangeError> {
        let rules = rules.iter().map(|(text, meaning)| (meaning.clone(), text.parse().unwrap()));
        let mut rules: Vec<(_, QuotaRule)> = rules.collect();
        apply(&mut rules, change)?;
        Ok(rules.into_iter().map(|(_, rule)| rule.to_string()).collect())
    }

    fn amounts(uid: Option<u32>, soft: Option<u64>, hard: Option<u64>) -> QuotaChange {
        QuotaChange { uid, to: NewLimits::Amounts { soft, hard } }
    }

    #[test]
    fn a_quota_that_is_known_by_name_is_changed_and_keeps_its_grace() {
        let rules = [("anna hard=1KiB grace=3d", Some(QuotaSubject::User(7))), ("otto hard=1KiB", None)];
        let told = |change| changed(&rules, change);
        let anna = told(amounts(Some(7), Some(1024), Some(2048)));
        assert_eq!(anna.unwrap(), ["anna soft=1KiB hard=2KiB grace=3d", "otto hard=1KiB"]);
        assert_eq!(told(amounts(Some(8), None, Some(0))).unwrap()[1..], ["8 hard=0B", "otto hard=1KiB"]);
        assert_eq!(told(amounts(None, Some(5 << 20), None)).unwrap()[1], "* soft=5MiB");
        let removed = |uid| told(QuotaChange { uid, to: NewLimits::Removed });
        assert_eq!(removed(Some(7)).unwrap(), ["otto hard=1KiB"]);
        assert_eq!(
            (removed(Some(8)), removed(None)),
            (Err(QuotaChangeError::NotThere), Err(QuotaChangeError::NotThere))
        );
        assert_eq!(told(amounts(Some(7), Some(2), Some(1))), Err(QuotaChangeError::Limits));
        assert_eq!(told(amounts(Some(7), None, None)), Err(QuotaChangeError::Limits));
    }

    #[test]
    fn what_limits_nothing_can_be_kept() {
        let told = changed(&[], amounts(Some(7), None, Some(u64::MAX))).unwrap();
        assert_eq!(told[0].parse::<QuotaRule>().unwrap().limits.hard(), Some(u64::MAX), "{told:?}");
    }

    #[test]
    fn a_share_has_so_many_quotas_and_no_more() {
        let full: Vec<(String, QuotaSubject)> = (0..u32::try_from(QUOTAS_MAX).unwrap())
            .map(|uid| (format!("{uid} hard=1KiB"), QuotaSubject::User(uid)))
            .collect();
        let rules: Vec<_> =
            full.iter().map(|(text, subject)| (text.as_str(), Some(subject.clone()))).collect();
        assert_eq!(changed(&rules, amounts(Some(1_000_000), None, Some(1))), Err(QuotaChangeError::TooMany));
        assert!(changed(&rules, amounts(Some(3), None, Some(1))).is_ok());
    }
}

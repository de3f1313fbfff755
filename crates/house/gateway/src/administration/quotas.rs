//! The quotas of [`Administration`].

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use control::quotas::{Holder, NewQuota, Quota, Quotas};
use control::{Refusal, RefusalKind};
use share::{GRACE, QUOTAS_MAX, QuotaFor, QuotaLimits, QuotaRule, QuotaStatus, QuotaSubject, Standing};
use state::ShareRecord;

use super::{Administration, failed, invalid};
use crate::waiting::wait_for;

type Result<T> = std::result::Result<T, Refusal>;

/// The most holders that are told.
const HOLDERS_MAX: usize = 1000;

const FORMS_ADVICE: &str = "docs/quotas.md has the forms.";

impl Administration {
    pub(super) fn all_quotas(&self, share: &str) -> Result<Quotas> {
        let declared = self.declared();
        let (name, declared_in, rules) = match declared.share(share) {
            Some(found) => {
                let name = &found.given.name;
                (name.clone(), Some(declared.share_place(name).to_owned()), found.given.quotas.clone())
            }
            None => {
                let record = self.made_share(share)?;
                let rules = record.quotas().map_err(failed)?;
                (record.name, None, rules)
            }
        };
        let mut told = match self.quota_status(&name)? {
            Some(status) => tell_status(&status),
            None => {
                Quotas { quotas: rules.iter().map(|rule| tell(rule, None)).collect(), ..Quotas::default() }
            }
        };
        (told.share, told.declared_in) = (name, declared_in);
        Ok(told)
    }

    pub(super) fn count_quotas(&self, share: &str) -> Result<Quotas> {
        let known = self.all_quotas(share)?;
        let name = &known.share;
        let served =
            self.serving.as_ref().and_then(|serving| serving.shares.present().by_name(name).cloned());
        let Some(served) = served else {
            let what = format!("the share {name} is not served");
            return Err(Refusal::new(RefusalKind::NotFound, what, "Its files are counted when it is."));
        };
        if !served.has_quotas() {
            let what = format!("the share {name} has no quotas");
            return Err(Refusal::new(RefusalKind::NotFound, what, "Without quotas, no files are counted."));
        }
        served.count_quotas_again();
        Ok(Quotas { counting: true, ..known })
    }

    /// How the quotas of a share stand; None if it has none, or is not served.
    pub(super) fn quota_status(&self, name: &str) -> Result<Option<QuotaStatus>> {
        let share = self.serving.as_ref().and_then(|serving| serving.shares.present().by_name(name).cloned());
        let Some(share) = share else { return Ok(None) };
        let settled = wait_for(share.quota_status())?.map_err(|e| not_told(name, e))?;
        Ok(settled.or_else(|| share.quota_glance()))
    }

    pub(super) fn enter_quota(&self, share: &str, subject: &str, new: &NewQuota) -> Result<Quota> {
        let changing = self.idle.lock();
        let mut record = self.made_share(share)?;
        let subject = parse(&record.name, subject)?;
        let grace = new.grace.map_or(GRACE, Duration::from_secs);
        let limits = QuotaLimits::new(new.soft, new.hard, grace)
            .map_err(|e| invalid(format!("the quota of {subject}: {e}"), FORMS_ADVICE))?;
        self.check_size(&record, &subject, limits.hard())?;
        let mut rules = record.quotas().map_err(failed)?;
        let rule = QuotaRule { subject, limits };
        // It is kept as text.
        if rule.to_string().parse().ok().as_ref() != Some(&rule) {
            return Err(invalid(
                format!("the quota of {}: such a name cannot be kept", rule.subject),
                FORMS_ADVICE,
            ));
        }
        let count = rules.len();
        match rules.iter_mut().find(|known| known.subject == rule.subject) {
            Some(known) => known.limits = limits,
            None if count >= QUOTAS_MAX => {
                let what = format!("the share {} has {QUOTAS_MAX} quotas already", record.name);
                return Err(Refusal::new(RefusalKind::TooMany, what, "Remove one that nobody needs."));
            }
            None => rules.push(rule.clone()),
        }
        self.use_quotas(&mut record, rules)?;
        drop(changing);
        tracing::info!(share = record.name, quota = %rule, "a quota was set");
        self.one_quota(&record.name, &rule)
    }

    pub(super) fn end_quota(&self, share: &str, subject: &str) -> Result<Quota> {
        let changing = self.idle.lock();
        let mut record = self.made_share(share)?;
        let subject = parse(&record.name, subject)?;
        self.check_size(&record, &subject, None)?;
        let mut rules = record.quotas().map_err(failed)?;
        let Some(at) = rules.iter().position(|rule| rule.subject == subject) else {
            let what = format!("the share {} has no quota of {subject}", record.name);
            let advice = format!("`anabranch quota list {}` lists its quotas.", record.name);
            return Err(Refusal::new(RefusalKind::NotFound, what, advice));
        };
        let rule = rules.remove(at);
        drop(changing);
        // The storage may not answer, so nobody waits for this one.
        let told = self.one_quota(&record.name, &rule)?;
        let _changing = self.idle.lock();
        record = self.made_share(share)?;
        let mut rules = record.quotas().map_err(failed)?;
        rules.retain(|rule| rule.subject != subject);
        self.use_quotas(&mut record, rules)?;
        tracing::info!(share = record.name, quota = %rule, "a quota was removed");
        Ok(told)
    }

    /// Keeps the quotas of a share, and makes the running server use them.
    pub(super) fn use_quotas(&self, record: &mut ShareRecord, rules: Vec<QuotaRule>) -> Result<()> {
        record.quotas = rules.iter().map(ToString::to_string).collect();
        self.state.keep_share(record).map_err(failed)?;
        let Some(serving) = &self.serving else { return Ok(()) };
        if let Some(share) = serving.shares.present().by_name(&record.name) {
            share.set_quota_rules(rules);
            serving.names.look_again();
        }
        Ok(())
    }

    fn one_quota(&self, share: &str, rule: &QuotaRule) -> Result<Quota> {
        let status = self.quota_status(share)?;
        let told = status.iter().flat_map(|status| tell_status(status).quotas);
        let subject = rule.subject.to_string();
        Ok(told.into_iter().find(|quota| quota.subject == subject).unwrap_or_else(|| tell(rule, None)))
    }
}

fn not_told(share: &str, error: share::Error) -> Refusal {
    Refusal::new(RefusalKind::Failed, format!("cannot ask the storage of the share {share}: {error}"), "")
}

fn parse(share: &str, subject: &str) -> Result<QuotaFor> {
    subject.parse().map_err(|e| invalid(format!("the share {share}: {e}"), FORMS_ADVICE))
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn tell_status(status: &QuotaStatus) -> Quotas {
    let standings = status.by_subject();
    let quota = |(rule, meaning): &(QuotaRule, Option<QuotaSubject>)| {
        let standing = meaning.as_ref().and_then(|meaning| standings.get(meaning).copied());
        let id = match meaning {
            Some(QuotaSubject::User(id) | QuotaSubject::Group(id)) => Some(*id),
            _ => None,
        };
        Quota { id, ..tell(rule, standing) }
    };
    let own: HashSet<&QuotaSubject> =
        status.rules.iter().filter_map(|(_, meaning)| meaning.as_ref()).collect();
    let others =
        status.standings.iter().filter(|(subject, standing)| standing.used > 0 && !own.contains(subject));
    let mut holders: Vec<Holder> = others
        .map(|(subject, standing)| Holder {
            subject: subject.to_string(),
            used: standing.used,
            over_since: standing.over_since.map(seconds),
        })
        .collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.used));
    holders.truncate(HOLDERS_MAX);
    Quotas {
        counted: status.counted.map(seconds),
        counting: status.is_counting,
        quotas: status.rules.iter().map(quota).collect(),
        holders,
        ..Quotas::default()
    }
}

fn tell(rule: &QuotaRule, standing: Option<&Standing>) -> Quota {
    let limits = &rule.limits;
    Quota {
        subject: rule.subject.to_string(),
        id: None,
        soft: limits.soft(),
        hard: limits.hard(),
        grace: limits.grace().as_secs(),
        used: standing.map(|standing| standing.used),
        over_since: standing.and_then(|standing| standing.over_since).map(seconds),
    }
}

//! The snapshot policies of [`Administration`].

use control::policies::{NewPolicy, Policy, PolicyChange};
use control::{Refusal, RefusalKind};
use schedule::Period;
use share::folded_name;
use state::PolicyRecord;

use super::{Administration, failed, invalid};
use crate::settings::{Hooks, PolicySettings};

type Result<T> = std::result::Result<T, Refusal>;

/// The most policies that can be created by command.
const POLICIES_MAX: usize = 1000;

const LIST_ADVICE: &str = "`anabranch policy list` lists the policies.";
const FORMS_ADVICE: &str = "docs/snapshot-policies.md has the forms.";

impl Administration {
    pub(super) fn all_policies(&self) -> Result<Vec<Policy>> {
        let declared = self.declared();
        let mut policies: Vec<Policy> = declared
            .policies
            .iter()
            .map(|policy| Policy { declared_in: Some(declared.policies_in.clone()), ..tell(&policy.policy) })
            .collect();
        let made = self.state.made_policies().map_err(failed)?;
        let made = made.iter().filter(|record| declared.policy(&record.name).is_none());
        policies.extend(made.map(tell_record));
        for (share, policy) in self.policies_of_shares()? {
            let found = policies.iter_mut().find(|told| told.name.eq_ignore_ascii_case(&policy));
            found.into_iter().for_each(|told| told.shares.push(share.clone()));
        }
        policies.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(policies)
    }

    pub(super) fn one_policy(&self, name: &str) -> Result<Policy> {
        let found = self.all_policies()?.into_iter().find(|policy| policy.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            Refusal::new(RefusalKind::NotFound, format!("there is no snapshot policy {name}"), LIST_ADVICE)
        })
    }

    pub(super) fn enter_policy(&self, new: &NewPolicy) -> Result<Policy> {
        let changing = self.idle.lock();
        let NewPolicy { name, hourly, daily, weekly, monthly } = new;
        let given = [
            (Period::Hourly, hourly),
            (Period::Daily, daily),
            (Period::Weekly, weekly),
            (Period::Monthly, monthly),
        ];
        let rules = given.into_iter().filter_map(|(period, rule)| Some((period, rule.as_deref()?)));
        let policy = with_rules(name, rules)?;
        let present = self.all_policies()?;
        if let Some(taken) = present.iter().find(|policy| policy.name.eq_ignore_ascii_case(name)) {
            let what = format!("there is a snapshot policy {} already", taken.name);
            return Err(Refusal::new(RefusalKind::NameTaken, what, "Take another name, or remove that one."));
        }
        if present.len() >= POLICIES_MAX {
            let what = format!("there are {POLICIES_MAX} snapshot policies already");
            return Err(Refusal::new(RefusalKind::TooMany, what, "Remove one that nobody needs."));
        }
        self.state.keep_policy(&PolicyRecord::of(&policy)).map_err(failed)?;
        drop(changing);
        tracing::info!(policy = name, "a snapshot policy was created");
        Ok(tell(&policy))
    }

    /// What the shares that have the policy know of its rules is theirs: rules that stay as they are go on.
    pub(super) fn set_policy(&self, name: &str, change: &PolicyChange) -> Result<Policy> {
        let changing = self.idle.lock();
        let present = self.one_policy(name)?;
        self.check_made(&present)?;
        let PolicyChange { hourly, daily, weekly, monthly } = change;
        let rules = [
            (Period::Hourly, hourly, &present.hourly),
            (Period::Daily, daily, &present.daily),
            (Period::Weekly, weekly, &present.weekly),
            (Period::Monthly, monthly, &present.monthly),
        ];
        let rules = rules.into_iter().filter_map(|(period, wanted, present)| {
            let rule = wanted.as_deref().or(present.as_deref())?;
            (!rule.is_empty()).then_some((period, rule))
        });
        let policy = with_rules(&present.name, rules)?;
        self.state.keep_policy(&PolicyRecord::of(&policy)).map_err(failed)?;
        drop(changing);
        tracing::info!(policy = present.name, "a snapshot policy was changed");
        Ok(Policy { shares: present.shares, ..tell(&policy) })
    }

    /// Refuses to change a policy of the configuration.
    fn check_made(&self, policy: &Policy) -> Result<()> {
        let Some(place) = &policy.declared_in else { return Ok(()) };
        let what = format!("the snapshot policy {} is declared in {place}", policy.name);
        Err(Refusal::new(RefusalKind::Declared, what, self.declared().advice(place)))
    }

    pub(super) fn end_policy(&self, name: &str) -> Result<Policy> {
        let changing = self.idle.lock();
        let policy = self.one_policy(name)?;
        self.check_made(&policy)?;
        if !policy.shares.is_empty() {
            let what = format!(
                "the snapshot policy {} is that of these shares: {}",
                policy.name,
                policy.shares.join(", ")
            );
            let advice = "Give them another or none: anabranch share set NAME --snapshot-policy \"\"";
            return Err(Refusal::new(RefusalKind::InUse, what, advice));
        }
        self.state.forget_policy(&policy.name).map_err(failed)?;
        drop(changing);
        tracing::info!(policy = policy.name, "a snapshot policy was removed; its snapshots stay");
        Ok(policy)
    }

    /// The shares that have a snapshot policy, with its name, which may be that of no policy.
    pub(super) fn policies_of_shares(&self) -> Result<Vec<(String, String)>> {
        let declared = self.declared();
        let of_configuration = declared
            .shares
            .iter()
            .map(|share| (share.given.name.clone(), share.given.snapshot_policy.clone()));
        let made = self.made_shares()?;
        let made = made.into_iter().filter(|record| declared.share(&record.name).is_none());
        let made = made.map(|record| (record.name, record.snapshot_policy));
        let mut shares: Vec<_> =
            of_configuration.chain(made).filter(|(_, policy)| !policy.is_empty()).collect();
        shares.sort_by_key(|(share, _)| folded_name(share));
        Ok(shares)
    }

    /// The snapshot policy of this name, with what runs before and after its snapshots.
    pub(super) fn policy_settings(&self, name: &str) -> Result<Option<PolicySettings>> {
        if let Some(declared) = self.declared().policy(name) {
            return Ok(Some(declared.clone()));
        }
        let made = self.state.made_policies().map_err(failed)?;
        let record = made.iter().find(|record| record.name.eq_ignore_ascii_case(name));
        let policy = record.map(PolicyRecord::policy).transpose().map_err(failed)?;
        Ok(policy.map(|policy| PolicySettings { policy, hooks: Hooks::default() }))
    }

    /// The name of the snapshot policy that a share is to have, as the policy has it.
    pub(super) fn check_policy(&self, share: &str, policy: &str) -> Result<String> {
        if policy.is_empty() {
            return Ok(String::new());
        }
        let found = self.policy_settings(policy)?;
        found.map(|found| found.policy.name().to_owned()).ok_or_else(|| {
            invalid(format!("the share {share}: there is no snapshot policy {policy}"), LIST_ADVICE)
        })
    }
}

fn with_rules<'a>(
    name: &str,
    rules: impl IntoIterator<Item = (Period, &'a str)>,
) -> Result<schedule::Policy> {
    schedule::Policy::new(name, rules)
        .map_err(|e| invalid(format!("the snapshot policy {name}: {e}"), FORMS_ADVICE))
}

fn tell(policy: &schedule::Policy) -> Policy {
    written(policy.name(), |period| policy.rule(period).map(ToString::to_string))
}

/// A policy as it is kept, also one that this program does not know.
fn tell_record(record: &PolicyRecord) -> Policy {
    written(&record.name, |period| record.rules.get(period.name()).cloned())
}

/// A policy that a command has made, with its rules as they are written.
fn written(name: &str, rule: impl Fn(Period) -> Option<String>) -> Policy {
    Policy {
        name: name.to_owned(),
        declared_in: None,
        hourly: rule(Period::Hourly),
        daily: rule(Period::Daily),
        weekly: rule(Period::Weekly),
        monthly: rule(Period::Monthly),
        shares: Vec::new(),
    }
}

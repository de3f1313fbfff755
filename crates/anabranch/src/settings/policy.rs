//! A snapshot policy as given by a table of the file.

use std::time::Duration;

use gateway::settings::{HOOK_TIME_MAX, Hooks, PolicySettings};
use schedule::{Period, Policy, PolicyError, Rule};
use serde::Deserialize;

/// A table in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyGiven(pub(crate) PolicySettings);

/// The keys of `[[snapshot-policy]]` with their values.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct PolicyTable {
    name: String,
    hourly: Option<String>,
    daily: Option<String>,
    weekly: Option<String>,
    monthly: Option<String>,
    before: Vec<String>,
    after: Vec<String>,
    hook_seconds: Option<u64>,
}

impl PolicyTable {
    /// The policy, if its values are right; otherwise what is wrong with which key.
    pub(crate) fn settle(self) -> Result<PolicyGiven, Vec<(&'static str, String)>> {
        let Self { name, hourly, daily, weekly, monthly, before, after, hook_seconds } = self;
        let of_policy = |what: &dyn std::fmt::Display| format!("the snapshot policy {name}: {what}");
        let mut wrong = Vec::new();
        let given = [
            (Period::Hourly, hourly),
            (Period::Daily, daily),
            (Period::Weekly, weekly),
            (Period::Monthly, monthly),
        ];
        let rules: Vec<_> =
            given.iter().filter_map(|(period, rule)| Some((*period, rule.as_deref()?))).collect();
        for (period, rule) in &rules {
            if let Err(e) = Rule::parse(*period, rule) {
                wrong.push((period.name(), of_policy(&e)));
            }
        }
        let time = hook_seconds.map_or_else(|| Hooks::default().time, Duration::from_secs);
        if time.is_zero() || time > HOOK_TIME_MAX {
            let most = HOOK_TIME_MAX.as_secs();
            wrong.push(("hook-seconds", of_policy(&format!("a hook takes 1 to {most} seconds"))));
        }
        match Policy::new(&name, rules) {
            Ok(policy) if wrong.is_empty() => {
                return Ok(PolicyGiven(PolicySettings { policy, hooks: Hooks { before, after, time } }));
            }
            Err(e @ (PolicyError::Name(_) | PolicyError::NoRule | PolicyError::TooMany(_))) => {
                wrong.push(("name", of_policy(&e)));
            }
            // That was said of the rule.
            Ok(_) | Err(PolicyError::Times { .. } | PolicyError::Keep { .. }) => {}
        }
        Err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Given, Settings, ShareGiven};

    fn settled(text: &str) -> Result<PolicyGiven, Vec<(&'static str, String)>> {
        toml::from_str::<PolicyTable>(text).unwrap().settle()
    }

    #[test]
    fn what_is_wrong_is_told_at_its_key() {
        for (text, keys) in [
            ("name = 'a'", &["name"][..]),
            ("name = 'a.b'\nhourly = ':05/1'", &["name"]),
            ("name = 'a'\nhourly = ':05'\nmonthly = '32/1'", &["hourly", "monthly"]),
            ("name = 'a'\nhourly = ':05/200'\ndaily = '01:00/56'", &["name"]),
            ("name = 'a'\ndaily = '01:00/1'\nhook-seconds = 0", &["hook-seconds"]),
            ("name = 'a'\ndaily = '01:00/1'\nhook-seconds = 3601", &["hook-seconds"]),
        ] {
            let wrong = settled(text).unwrap_err();
            assert_eq!(wrong.iter().map(|(key, _)| *key).collect::<Vec<_>>(), keys, "{text}");
        }
        let PolicyGiven(whole) = settled("name = 'a'\ndaily = '01:00/255'\nhook-seconds = 3600").unwrap();
        assert_eq!((whole.policy.rules().len(), whole.hooks.time), (1, HOOK_TIME_MAX));
    }

    #[test]
    fn a_share_has_a_policy_that_is_declared() {
        let policy = settled("name = 'Office'\ndaily = '01:00/1'").unwrap();
        let mut share: ShareGiven = "data=/srv/data".parse().unwrap();
        share.0.snapshot_policy = "office".to_owned();
        let given = Given { share: vec![share], snapshot_policy: vec![policy], ..Given::default() };
        assert_eq!(Settings::new(given.clone()).unwrap().gateway.policies.len(), 1);
        let without = Given { snapshot_policy: Vec::new(), ..given };
        let what = Settings::new(without).unwrap_err().what;
        assert!(what.contains("the share data: no snapshot policy office is declared"), "{what}");
    }
}

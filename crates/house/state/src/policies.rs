//! Snapshot policies that were created by command, and up to when nothing is missing on the shares that have one.

use std::collections::BTreeMap;

use schedule::{Period, Policy};
use serde::{Deserialize, Serialize};

use crate::store::{Form, Table};
use crate::{Error, Result, State};

/// The policies that were created by command, as JSON, by name in lower case.
pub(crate) const POLICIES: Table = Table { name: "snapshot-policies", form: Form::TextToBytes };
/// Up to when nothing is missing, as JSON, by name of the share in lower case.
pub(crate) const DONE: Table = Table { name: "snapshots-done", form: Form::TextToBytes };

/// A policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyRecord {
    /// As it was given: lookups do not regard case.
    pub name: String,
    /// Its rules as they are written, by the names of their periods.
    pub rules: BTreeMap<String, String>,
}

/// Up to when nothing is missing on a share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DoneRecord {
    /// The policy of the share.
    pub policy: String,
    /// By the names of the periods, in seconds of the Unix epoch.
    pub done: BTreeMap<String, i64>,
    /// The times of the rules for which that holds, as they are written, by the names of the periods.
    pub times: BTreeMap<String, String>,
}

impl DoneRecord {
    /// Up to when nothing is missing with a rule of these times. One that was added, or has other times than before, begins at `now`:
    /// what would have been due earlier is not made up for.
    pub fn of_rule(&mut self, period: Period, times: String, now: i64) -> &mut i64 {
        let (key, known) = (period.name(), self.times.get(period.name()));
        // Earlier versions did not note the times.
        if known.is_some_and(|known| *known != times) {
            self.done.remove(key);
        }
        self.times.insert(key.to_owned(), times);
        self.done.entry(key.to_owned()).or_insert(now)
    }

    /// Forgets the rules of all periods but these.
    pub fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.done.retain(|period, _| is_kept(period));
        self.times.retain(|period, _| is_kept(period));
    }
}

impl PolicyRecord {
    /// A policy as it is kept.
    pub fn of(policy: &Policy) -> Self {
        let written = policy.rules().iter().map(|rule| (rule.period.name().to_owned(), rule.to_string()));
        Self { name: policy.name().to_owned(), rules: written.collect() }
    }

    /// The policy.
    ///
    /// # Errors
    /// It is one that this program does not know.
    pub fn policy(&self) -> Result<Policy> {
        let rule = |period: Period| Some((period, self.rules.get(period.name())?.as_str()));
        Policy::new(&self.name, Period::ALL.into_iter().filter_map(rule)).map_err(|e| {
            let what = format!("the snapshot policy {} is one that cannot be: {e}", self.name);
            Error::new(what, "Remove it, and create it anew: anabranch policy remove NAME")
        })
    }
}

impl State {
    /// The policies that were created by command.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn made_policies(&self) -> Result<Vec<PolicyRecord>> {
        self.records(POLICIES)
    }

    /// Keeps a policy that was created by command.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_policy(&self, policy: &PolicyRecord) -> Result<()> {
        self.keep(POLICIES, &policy.name.to_ascii_lowercase(), policy)
    }

    /// Forgets a policy that was created by command.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget_policy(&self, name: &str) -> Result<()> {
        self.change(vec![POLICIES.remove(name.to_ascii_lowercase().as_bytes())])
    }

    /// Up to when nothing is missing on a share; None: it never had a policy.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn snapshots_done(&self, share: &str) -> Result<Option<DoneRecord>> {
        let json = self.read(DONE, &share.to_lowercase())?;
        json.map(|json| serde_json::from_slice(&json).map_err(|e| self.trouble(e))).transpose()
    }

    /// Keeps up to when nothing is missing on a share.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_snapshots_done(&self, share: &str, done: &DoneRecord) -> Result<()> {
        self.keep(DONE, &share.to_lowercase(), done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_and_what_is_done_are_there_after_a_restart() {
        let place = tempfile::tempdir().unwrap();
        let open = || State::open(&place.path().join("state")).unwrap();
        let state = open();
        let office = Policy::new("Office", [(Period::Hourly, ":05/24"), (Period::Monthly, "1/12")]).unwrap();
        state.keep_policy(&PolicyRecord::of(&office)).unwrap();
        let done = DoneRecord {
            policy: "Office".to_owned(),
            done: BTreeMap::from([("hourly".to_owned(), -5), ("monthly".to_owned(), 7)]),
            times: BTreeMap::from([("hourly".to_owned(), ":05".to_owned())]),
        };
        assert_eq!(state.snapshots_done("Data").unwrap(), None);
        state.keep_snapshots_done("Data", &done).unwrap();
        drop(state);
        let state = open();
        assert_eq!(state.made_policies().unwrap()[0].policy().unwrap(), office);
        assert_eq!(state.snapshots_done("dATA").unwrap(), Some(done));
        state.forget_policy("OFFICE").unwrap();
        assert_eq!(state.made_policies().unwrap(), []);
        state.forget_share("data").unwrap();
        assert_eq!(state.snapshots_done("data").unwrap(), None, "another share of the name begins anew");
    }

    #[test]
    fn a_rule_with_other_times_begins_anew() {
        let mut record = DoneRecord::default();
        let of = |record: &mut DoneRecord, times: &str, now| {
            *record.of_rule(Period::Hourly, times.to_owned(), now)
        };
        assert_eq!(of(&mut record, ":05", 100), 100);
        assert_eq!(of(&mut record, ":05", 200), 100);
        assert_eq!(of(&mut record, ":06", 300), 300);
        record.times.clear();
        assert_eq!(of(&mut record, ":07", 400), 300, "an earlier version has not noted them");
        record.retain(|period| period != "hourly");
        assert_eq!(record, DoneRecord::default());
        assert_eq!(of(&mut record, ":07", 500), 500);
    }

    #[test]
    fn a_policy_of_another_program_is_no_reason_to_fail() {
        let record = PolicyRecord {
            name: "a".to_owned(),
            rules: BTreeMap::from([("hourly".to_owned(), "5".to_owned())]),
        };
        assert!(record.policy().unwrap_err().what.contains("the snapshot policy a"));
        let yearly = BTreeMap::from([("yearly".to_owned(), "1/1".to_owned())]);
        assert!(PolicyRecord { name: "a".to_owned(), rules: yearly }.policy().is_err());
    }
}

//! Since when soft limits of quotas are exceeded: a restart does not renew the grace.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use share::{QuotaFor, QuotaSubject};

use crate::store::{Form, Table};
use crate::{Result, State};

/// Since when, as JSON, by name of the share in lower case.
pub(crate) const GRACES: Table = Table { name: "quota-graces", form: Form::TextToBytes };

/// By subjects as they are written, in seconds of the Unix epoch.
type Written = BTreeMap<String, u64>;

impl State {
    /// Since when soft limits of a share are exceeded.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn quota_graces(&self, share: &str) -> Result<HashMap<QuotaSubject, SystemTime>> {
        let json = self.read(GRACES, &share.to_lowercase())?;
        let written: Option<Written> =
            json.map(|json| serde_json::from_slice(&json).map_err(|e| self.trouble(e))).transpose()?;
        let known = written.unwrap_or_default().into_iter().filter_map(|(subject, since)| {
            let QuotaFor::Known(subject) = subject.parse().ok()? else { return None };
            Some((subject, SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since))?))
        });
        Ok(known.collect())
    }

    /// Keeps since when soft limits of a share are exceeded.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_quota_graces(&self, share: &str, graces: &HashMap<QuotaSubject, SystemTime>) -> Result<()> {
        let since =
            |at: &SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let written: Written = graces.iter().map(|(of, at)| (of.to_string(), since(at))).collect();
        self.keep(GRACES, &share.to_lowercase(), &written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graces_are_there_after_a_restart_and_go_with_the_share() {
        let place = tempfile::tempdir().unwrap();
        let open = || State::open(&place.path().join("state")).unwrap();
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        let graces = HashMap::from([
            (QuotaSubject::User(1000), at(1_800_000_000)),
            (QuotaSubject::Group(5), at(7)),
            (QuotaSubject::Directory(b"a b/c".to_vec()), at(9)),
        ]);
        let state = open();
        assert_eq!(state.quota_graces("Data").unwrap(), HashMap::new());
        state.keep_quota_graces("Data", &graces).unwrap();
        drop(state);
        let state = open();
        assert_eq!(state.quota_graces("dATA").unwrap(), graces);
        state.forget_share("data").unwrap();
        assert_eq!(state.quota_graces("data").unwrap(), HashMap::new());
    }
}

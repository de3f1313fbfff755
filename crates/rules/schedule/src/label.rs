//! The labels of snapshots that policies take: `PERIOD-POLICY`.

use crate::Period;

/// The label of the snapshots that a policy's rule takes.
#[must_use]
pub fn label(policy: &str, period: Period) -> String {
    format!("{}-{policy}", period.name())
}

/// The policy and the rule whose label this is.
#[must_use]
pub fn of_label(label: &str) -> Option<(&str, Period)> {
    let (word, policy) = label.split_once('-')?;
    let period = Period::ALL.into_iter().find(|period| period.name() == word)?;
    (!policy.is_empty()).then_some((policy, period))
}

/// Whether snapshots that a policy did not take cannot have this label: a policy would count them as its own.
#[must_use]
pub fn is_reserved(label: &str) -> bool {
    of_label(label).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NAME_BYTES_MAX;

    #[test]
    fn a_label_says_whose_it_is() {
        for period in Period::ALL {
            assert_eq!(of_label(&label("a-b", period)), Some(("a-b", period)));
            // storage::SnapshotName: at most 64 bytes.
            assert!(label(&"x".repeat(NAME_BYTES_MAX), period).len() <= 64);
        }
        for other in ["", "hourly", "hourly-", "manual", "before-revert", "Hourly-a", "yearly-a"] {
            assert!(!is_reserved(other), "{other}");
        }
    }
}

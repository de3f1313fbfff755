//! When a plan may be changed to another.

use std::time::{Duration, SystemTime};

use crate::{Limits, Plan};

/// Azure Files: what was provisioned can be increased at any time, and decreased this long after the last increase.
pub const DECREASE_AFTER: Duration = Duration::from_secs(24 * 3600);

/// A plan, and when it was last increased.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provisioned {
    /// The plan.
    pub plan: Plan,
    /// When any value was last increased; `None` if that has not happened since the plan was made.
    pub increased: Option<SystemTime>,
}

/// The plan may not be decreased yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{limit} can be decreased 24 hours after the last increase, in {hours} h {minutes} min",
    hours = wait.as_secs() / 3600, minutes = wait.as_secs() % 3600 / 60
)]
pub struct ChangeError {
    /// The value that would decrease.
    pub limit: &'static str,
    /// How long it cannot be decreased yet.
    pub wait: Duration,
}

impl Provisioned {
    /// A plan that was just made.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self { plan, increased: None }
    }

    /// Changes the plan. The new plan may be smaller than what is used: nothing is lost, but nothing can be added until
    /// enough is deleted. The waiting time applies only to changes from one Azure plan to another; all other changes
    /// are allowed at any time.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn change(&self, plan: Plan, now: SystemTime) -> Result<Self, ChangeError> {
        let (before, after) = (self.plan.limits(), plan.limits());
        let bound = is_azure(&self.plan) && is_azure(&plan);
        if bound && let (Some(limit), Some(wait)) = (decreased(&before, &after), self.wait(now)) {
            return Err(ChangeError { limit, wait });
        }
        let more = decreased(&after, &before).is_some();
        Ok(Self { plan, increased: if more { Some(now) } else { self.increased } })
    }

    /// How long the plan cannot be decreased yet.
    fn wait(&self, now: SystemTime) -> Option<Duration> {
        let end = self.increased? + DECREASE_AFTER;
        end.duration_since(now).ok().filter(|wait| !wait.is_zero())
    }
}

fn is_azure(plan: &Plan) -> bool {
    matches!(plan, Plan::AzureFilesV1 { .. } | Plan::AzureFilesV2 { .. })
}

/// The first value that the change decreases.
fn decreased(before: &Limits, after: &Limits) -> Option<&'static str> {
    let provisioned = |limits: &Limits| {
        [("capacity", limits.capacity), ("iops", limits.iops), ("throughput", limits.throughput)]
    };
    let less = |before: Option<u64>, after: Option<u64>| match (before, after) {
        (Some(before), Some(after)) => after < before,
        (None, Some(_)) => true,
        (_, None) => false,
    };
    let pairs = provisioned(before).into_iter().zip(provisioned(after));
    pairs.into_iter().find(|((_, before), (_, after))| less(*before, *after)).map(|((name, _), _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn v2(iops: u64, mib: u64) -> Plan {
        format!("azure-files-v2-ssd capacity=1TiB iops={iops} throughput={mib}MiB/s").parse().unwrap()
    }

    #[test]
    fn more_at_any_time_and_less_a_day_after_the_last_increase() {
        let start = SystemTime::UNIX_EPOCH + HOUR * 1000;
        let made = Provisioned::new(v2(5000, 200));
        let less = made.change(v2(4000, 200), start).unwrap();
        assert_eq!(less.increased, None, "it was never increased");
        let more = less.change(v2(6000, 200), start).unwrap();
        let again = more.change(v2(6000, 300), start + HOUR).unwrap();
        let refused = again.change(v2(5999, 400), start + HOUR * 24).unwrap_err();
        assert_eq!(refused, ChangeError { limit: "iops", wait: HOUR });
        assert_eq!(
            refused.to_string(),
            "iops can be decreased 24 hours after the last increase, in 1 h 0 min"
        );
        let late = again.change(v2(5999, 300), start + HOUR * 25).unwrap();
        assert_eq!(late.increased, Some(start + HOUR), "a decrease is no increase");
        assert!(late.change(v2(5998, 300), start + HOUR * 25).is_ok());
    }

    #[test]
    fn a_smaller_size_is_less_of_everything() {
        let v1 = |gib| Plan::AzureFilesV1 { gib };
        let now = SystemTime::UNIX_EPOCH;
        let more = Provisioned::new(v1(100)).change(v1(200), now).unwrap();
        assert_eq!(more.change(v1(199), now).unwrap_err().limit, "capacity");
        assert!(more.change(v1(201), now).is_ok());
    }

    #[test]
    fn plans_of_no_such_rule_change_at_any_time() {
        let now = SystemTime::UNIX_EPOCH;
        let of = |text: &str| text.parse::<Plan>().unwrap();
        let custom = Provisioned::new(of("custom iops=5")).change(of("custom iops=10"), now).unwrap();
        assert!(custom.change(of("custom iops=1"), now).is_ok());
        let unlimited = custom.change(Plan::Unlimited, now).unwrap();
        assert!(unlimited.change(of("azure-files-v1 capacity=1TiB"), now).is_ok());
        let anf = Provisioned::new(of("anf-ultra capacity=1TiB")).change(of("anf-ultra capacity=2TiB"), now);
        assert!(anf.unwrap().change(of("anf-standard capacity=1TiB"), now).is_ok());
    }
}

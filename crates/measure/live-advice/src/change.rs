//! Chooses the change of a share that advice leads to.

use advise::{Advice, Verdict};
use control::activity::{LimitWaits, ShareActivity};
use control::shares::{Share, ShareChange};
use limits::{Limit, Limits, Plan};

/// A change of a share, and its reversal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The rule of the advisor that asks for the change.
    pub rule: u8,
    /// The change in words, such as `metadata-cache: off -> on`.
    pub what: String,
    /// The call that makes the change.
    pub forth: ShareChange,
    /// The call that reverts the change.
    pub back: ShareChange,
    /// The command that does the same.
    pub command: String,
}

/// The first advised change of the share that can be reverted. None if there is none.
#[must_use]
pub fn change(
    advice: &[Advice],
    share: &Share,
    before: &ShareActivity,
    after: &ShareActivity,
) -> Option<Change> {
    let asks = |rule: u8, verdict: Verdict| advice.iter().any(|a| a.rule == rule && a.verdict == verdict);
    if asks(15, Verdict::Red) || asks(16, Verdict::Red) {
        let limit = waited_longest(&before.waits, &after.waits)?;
        let plan = doubled(&share.plan, limit)?;
        let of = |plan: &str| ShareChange { plan: Some(plan.to_owned()), ..ShareChange::default() };
        return Some(Change {
            rule: if asks(15, Verdict::Red) { 15 } else { 16 },
            what: format!("plan: {} -> {plan}", share.plan),
            forth: of(&plan),
            back: of(&share.plan),
            command: format!("anabranch share set {} --plan '{plan}'", share.name),
        });
    }
    if asks(13, Verdict::Green) && !share.metadata_cache {
        let of = |on: bool| ShareChange { metadata_cache: Some(on), ..ShareChange::default() };
        return Some(Change {
            rule: 13,
            what: "metadata-cache: off -> on".to_owned(),
            forth: of(true),
            back: of(false),
            command: format!("anabranch share set {} --metadata-cache on", share.name),
        });
    }
    None
}

/// The limit that operations have waited for longest between two looks.
fn waited_longest<'a>(before: &[LimitWaits], after: &'a [LimitWaits]) -> Option<&'a str> {
    let since = |waits: &LimitWaits| {
        let earlier = before.iter().find(|earlier| earlier.limit == waits.limit);
        waits.seconds - earlier.map_or(0.0, |earlier| earlier.seconds)
    };
    let longest = after.iter().max_by(|one, other| since(one).total_cmp(&since(other)))?;
    (since(longest) > 0.0).then_some(&longest.limit)
}

/// A custom plan with one limit doubled. Plans of Azure and of pools may not be reduced at any time, so they are not tried.
fn doubled(plan: &str, limit: &str) -> Option<String> {
    let Plan::Custom(limits) = plan.parse().ok()? else { return None };
    let mut limits: Box<Limits> = limits;
    let rate = limits.rate_mut(*Limit::ALL.iter().find(|known| known.name() == limit)?);
    *rate = Some(rate.as_ref()?.checked_mul(2)?);
    let more = Plan::Custom(limits).to_string();
    more.parse::<Plan>().is_ok().then_some(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plans_that_can_be_taken_back_are_tried() {
        assert_eq!(
            doubled("custom iops=100 throughput=1MiB/s", "iops").unwrap(),
            "custom iops=200 throughput=1MiB/s"
        );
        assert_eq!(
            doubled("custom file-throughput=3MiB/s", "file-throughput").unwrap(),
            "custom file-throughput=6MiB/s"
        );
        for (plan, limit) in [
            ("unlimited", "iops"),
            ("azure-files-v1 capacity=1TiB", "iops"),
            ("anf-ultra capacity=1TiB", "throughput"),
            ("custom iops=100", "throughput"),
            ("custom iops=100", "luck"),
            ("custom iops=18446744073709551615", "iops"),
        ] {
            assert_eq!(doubled(plan, limit), None, "{plan}");
        }
    }

    #[test]
    fn the_limit_that_was_waited_for_since_the_first_look_counts() {
        let waits = |limit: &str, seconds| LimitWaits { limit: limit.to_owned(), operations: 1, seconds };
        let before = [waits("iops", 900.0), waits("read", 1.0)];
        let after = [waits("iops", 901.0), waits("read", 5.0), waits("write", 3.0)];
        assert_eq!(waited_longest(&before, &after), Some("read"));
        assert_eq!(waited_longest(&after, &after), None);
        assert_eq!(waited_longest(&[], &[]), None);
    }
}

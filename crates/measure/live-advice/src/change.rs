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
    changes(advice, share, before, after).into_iter().next()
}

/// The advised changes of the share that can be reverted, in the order in which they are worth trying: the limits of the plan by the
/// time that operations have waited for them, then the metadata cache.
#[must_use]
pub fn changes(
    advice: &[Advice],
    share: &Share,
    before: &ShareActivity,
    after: &ShareActivity,
) -> Vec<Change> {
    let asks = |rule: u8, verdict: Verdict| advice.iter().any(|a| a.rule == rule && a.verdict == verdict);
    let mut all = Vec::new();
    if asks(15, Verdict::Red) || asks(16, Verdict::Red) {
        let rule = if asks(15, Verdict::Red) { 15 } else { 16 };
        let larger = waited_for(&before.waits, &after.waits)
            .into_iter()
            .filter_map(|limit| doubled(&share.plan, limit));
        all.extend(larger.map(|plan| {
            let of = |plan: &str| ShareChange { plan: Some(plan.to_owned()), ..ShareChange::default() };
            Change {
                rule,
                what: format!("plan: {} -> {plan}", share.plan),
                forth: of(&plan),
                back: of(&share.plan),
                command: format!("anabranch share set {} --plan '{plan}'", share.name),
            }
        }));
    }
    if asks(13, Verdict::Green) && !share.metadata_cache {
        let of = |on: bool| ShareChange { metadata_cache: Some(on), ..ShareChange::default() };
        all.push(Change {
            rule: 13,
            what: "metadata-cache: off -> on".to_owned(),
            forth: of(true),
            back: of(false),
            command: format!("anabranch share set {} --metadata-cache on", share.name),
        });
    }
    all
}

/// The limits that operations have waited for between two looks, the longest wait first.
fn waited_for<'a>(before: &[LimitWaits], after: &'a [LimitWaits]) -> Vec<&'a str> {
    let since = |waits: &LimitWaits| {
        let earlier = before.iter().find(|earlier| earlier.limit == waits.limit);
        waits.seconds - earlier.map_or(0.0, |earlier| earlier.seconds)
    };
    let mut waited: Vec<&LimitWaits> = after.iter().filter(|waits| since(waits) > 0.0).collect();
    waited.sort_by(|one, other| since(other).total_cmp(&since(one)));
    waited.into_iter().map(|waits| waits.limit.as_str()).collect()
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
    fn limits_that_were_waited_for_since_the_first_look_count() {
        let waits = |limit: &str, seconds| LimitWaits { limit: limit.to_owned(), operations: 1, seconds };
        let before = [waits("iops", 900.0), waits("read", 1.0)];
        let after = [waits("iops", 901.0), waits("read", 5.0), waits("write", 3.0)];
        assert_eq!(waited_for(&before, &after), ["read", "write", "iops"]);
        assert_eq!(waited_for(&after, &after), [""; 0]);
        assert_eq!(waited_for(&[], &[]), [""; 0]);
    }
}

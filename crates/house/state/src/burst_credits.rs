//! Burst credits that outlive the server.
//!
//! They are written down every [`INTERVAL`] and exactly when the server ends. What is written meanwhile is what will be left
//! at least when the next writing is due: so a server that is killed loses what its share could have spent until then, and
//! nobody has more credits for having killed it.

use std::time::Duration;

use share::{LimitsStatus, Share, Shares};

use crate::{Result, ServerRecords};

/// So often they are written down, if they have changed.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// For how long what is written down holds: so late may the next writing be.
pub const RESERVE: Duration = Duration::from_secs(2 * INTERVAL.as_secs());

/// Gives a share what it had left.
///
/// # Errors
/// The state database cannot be read.
pub fn restore(share: &Share, server: &ServerRecords) -> Result<()> {
    if let Some(left) = server.credits(share.name())? {
        share.set_credits(left);
    }
    Ok(())
}

/// Writes down what the shares have left, less what they can spend in `reserve`. What is written already is not again.
///
/// # Errors
/// The state database cannot be written.
pub fn keep(shares: &Shares, server: &ServerRecords, reserve: Duration) -> Result<()> {
    let mut changed = Vec::new();
    for share in shares.iter() {
        let left = lasting(&share.limits_status(), reserve);
        if server.credits(share.name())? != left {
            changed.push((share.name().to_owned(), left));
        }
    }
    if changed.is_empty() { Ok(()) } else { server.keep_credits(&changed) }
}

/// What is left at least after `reserve`: bursts spend what they have above the baseline.
fn lasting(status: &LimitsStatus, reserve: Duration) -> Option<u64> {
    let burst = status.limits.burst?;
    let above = burst.iops.saturating_sub(status.limits.iops.unwrap_or(0));
    Some(status.credits?.saturating_sub(above.saturating_mul(reserve.as_secs())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use limits::{Plan, Provisioned};
    use share::{Settings, ShareId, ShareTable};
    use storage::memory::MemoryStore;

    use super::*;
    use crate::State;

    fn share(id: u32, name: &str, plan: &str) -> Arc<Share> {
        let provisioned = Provisioned::new(plan.parse().unwrap());
        Share::new(ShareId(id), Settings { provisioned, ..Settings::new(name) }, Arc::new(MemoryStore::new()))
    }

    #[test]
    fn what_is_left_is_written_down_and_given_back() {
        const PLAN: &str = "custom iops=1 burst-iops=201 burst-credits=50000";
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        state.server().share_id("Bursts").unwrap();
        let table = ShareTable::new([share(1, "Bursts", PLAN), share(2, "plain", "unlimited")]).unwrap();
        let shares = table.present();
        let bursts = shares.by_name("bursts").unwrap();
        bursts.set_credits(20_000);
        // 200 above the baseline, for as many seconds as are held in reserve; one accrues in a second meanwhile.
        let is_about = |left: Option<u64>, expected: u64| (expected..expected + 60).contains(&left.unwrap());
        for (reserve, expected) in [(0, 20_000), (10, 18_000), (1000, 0)] {
            keep(&shares, state.server(), Duration::from_secs(reserve)).unwrap();
            assert!(
                is_about(state.server().credits("BURSTS").unwrap(), expected),
                "{:?}",
                state.server().credits("BURSTS")
            );
        }
        assert_eq!(state.server().credits("plain").unwrap(), None);

        keep(&shares, state.server(), Duration::ZERO).unwrap();
        let again = share(1, "Bursts", PLAN);
        restore(&again, state.server()).unwrap();
        assert!(is_about(again.limits_status().credits, 20_000));
        // Of another plan as many as fit; and none are kept where there are no bursts.
        let smaller = share(1, "Bursts", "custom iops=1 burst-iops=300 burst-credits=700");
        restore(&smaller, state.server()).unwrap();
        assert_eq!(smaller.limits_status().credits, Some(700));
        bursts.set_plan(Plan::Unlimited, std::time::SystemTime::now()).unwrap();
        keep(&shares, state.server(), Duration::ZERO).unwrap();
        assert_eq!(state.server().credits("Bursts").unwrap(), None);
    }

    #[test]
    fn a_share_that_is_removed_takes_its_credits_along() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        state.server().share_id("data").unwrap();
        state.server().keep_credits(&[("Data".to_owned(), Some(7))]).unwrap();
        assert_eq!(state.server().credits("data").unwrap(), Some(7));
        state.forget_share("DATA").unwrap();
        assert_eq!(state.server().credits("data").unwrap(), None);
        state.server().keep_credits(&[("Data".to_owned(), Some(7))]).unwrap();
        assert_eq!(state.server().credits("data").unwrap(), None);
    }
}

//! The snapshots of shares.

use super::{Text, escape};
use crate::snapshots::SnapshotFigures;

pub(super) fn write(text: &mut Text, figures: &[SnapshotFigures]) {
    let share = |of: &SnapshotFigures| format!("share=\"{}\"", escape(&of.share));
    text.family("anabranch_share_snapshots", "gauge", "Snapshots of a share.");
    for of in figures {
        if let Some(count) = of.count {
            text.line("", &share(of), count);
        }
    }
    let help = "When the newest snapshot of a share was taken.";
    text.family("anabranch_share_snapshot_newest_timestamp_seconds", "gauge", help);
    for of in figures {
        if let Some(newest) = of.newest {
            text.line("", &share(of), newest);
        }
    }
    let with_policy = || {
        let of_policy = |of: &SnapshotFigures| {
            let policy = escape(of.policy.as_ref()?);
            Some((format!("{},policy=\"{policy}\"", share(of)), of.clone()))
        };
        figures.iter().filter_map(of_policy)
    };
    let help = "Snapshots that a policy has taken, and what failed: taking or removing one, or a hook.";
    text.family("anabranch_snapshot_policy_runs_total", "counter", help);
    for (labels, of) in with_policy() {
        text.line("", &format!("{labels},result=\"success\""), of.taken);
        text.line("", &format!("{labels},result=\"failure\""), of.failed);
    }
    let help = "Whether the snapshot policy of a share fails or is behind.";
    text.family("anabranch_snapshot_policy_failing", "gauge", help);
    for (labels, of) in with_policy() {
        text.line("", &labels, u8::from(of.problem.is_some()));
    }
}

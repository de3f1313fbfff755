//! The command lines of `anabranch snapshot` and `anabranch policy`.

use clap::{Args, Subcommand};
use schedule::Utc;

use crate::asking::Asking;

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// List the snapshots of a share, oldest first: also those that other programs have made
    List {
        /// The share
        share: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Take a snapshot of a share
    Create(SnapshotCreate),
    /// Remove a snapshot of a share
    Remove {
        /// The share
        share: String,
        /// The name of the snapshot, as in the list
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Protect a snapshot: nobody can remove it before this time, and nobody can shorten that
    Protect {
        /// The share
        share: String,
        /// The name of the snapshot, as in the list
        name: String,
        /// Until when, in UTC
        #[arg(long, value_name = "2026-12-31T18:00:00Z|2026-12-31")]
        until: Utc,
        #[command(flatten)]
        asking: Asking,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotCreate {
    /// The share
    pub(crate) share: String,
    /// A part of the name of the snapshot [default: manual]
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// For how long nobody can remove it, nor shorten that
    #[arg(long, value_name = "90s|30m|12h|7d", value_parser = seconds, conflicts_with = "protected_until")]
    pub(crate) protect_for: Option<u64>,
    /// Until when nobody can remove it, in UTC, nor shorten that
    #[arg(long, value_name = "2026-12-31T18:00:00Z|2026-12-31")]
    pub(crate) protected_until: Option<Utc>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Create a policy
    Create(PolicyRules),
    /// List the policies: those of the configuration and those created by command
    List(Asking),
    /// Show one policy, and the shares that have it
    Show {
        /// The policy
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
    /// Change rules of a policy that was created by command, for all shares that have it; "" removes a rule
    Set(PolicyRules),
    /// Remove a policy that was created by command, and that no share has; its snapshots stay
    Remove {
        /// The policy
        name: String,
        #[command(flatten)]
        asking: Asking,
    },
}

/// Rules are written as in Azure NetApp Files: times in UTC, and after a slash how many snapshots are kept, 255 in all.
#[derive(Debug, Args)]
pub(crate) struct PolicyRules {
    /// The name
    pub(crate) name: String,
    /// Every hour, at this minute
    #[arg(long, value_name = ":MINUTE/KEEP")]
    pub(crate) hourly: Option<String>,
    /// Every day, at this time (UTC)
    #[arg(long, value_name = "HOUR:MINUTE/KEEP")]
    pub(crate) daily: Option<String>,
    /// On days of the week, sun to sat, at 00:00 or this time (UTC)
    #[arg(long, value_name = "DAYS[@HOUR:MINUTE]/KEEP")]
    pub(crate) weekly: Option<String>,
    /// On days of the month, 1 to 31, at 00:00 or this time (UTC); a month without the day is left out
    #[arg(long, value_name = "DAYS[@HOUR:MINUTE]/KEEP")]
    pub(crate) monthly: Option<String>,
    #[command(flatten)]
    pub(crate) asking: Asking,
}

/// A duration in seconds: a number and its unit.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("{text:?} is no duration: expected a number and a unit, such as 90s, 30m, 12h or 7d");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.strip_prefix(digits) {
        Some("s") => 1,
        Some("m") => 60,
        Some("h") => 3600,
        Some("d") => 86_400,
        _ => return Err(wrong()),
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number).and_then(|n: u64| n.checked_mul(unit)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        let given = ["90s", "30m", "12h", "7d", "0s"].map(|text| seconds(text).unwrap());
        assert_eq!(given, [90, 1800, 43_200, 604_800, 0]);
        for bad in ["", "7", "d", "-1d", "+1d", "1.5h", "7 d", "7days", "7D", "99999999999999999999d"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}

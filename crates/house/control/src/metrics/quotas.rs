//! The quotas of shares.

use std::time::SystemTime;

use share::{QuotaStatus, Standing};

use super::{Look, Text, escape};

/// The quotas of a share at one moment.
pub(super) struct OfShare<'a> {
    /// The labels of the share.
    labels: String,
    status: &'a QuotaStatus,
}

impl<'a> OfShare<'a> {
    /// Those of a share that has quotas.
    pub(super) fn of(look: &'a Look) -> Option<Self> {
        Some(Self { labels: look.labels(), status: look.quotas.as_ref()? })
    }

    /// The quotas of accounts, with their labels.
    fn quotas(&self) -> Vec<(String, &Standing)> {
        let standings = self.status.by_subject();
        let labelled = self.status.rules.iter().filter_map(|(rule, meaning)| {
            let standing = *standings.get(meaning.as_ref()?)?;
            let subject = escape(&rule.subject.to_string());
            Some((format!("{},subject=\"{subject}\"", self.labels), standing))
        });
        labelled.collect()
    }
}

pub(super) fn write(text: &mut Text, shares: &[OfShare<'_>]) {
    let help = "Bytes that a user, group or directory with a quota holds.";
    text.family("anabranch_quota_used_bytes", "gauge", help);
    let quotas: Vec<_> = shares.iter().flat_map(OfShare::quotas).collect();
    for (labels, standing) in &quotas {
        text.line("", labels, standing.used);
    }
    let help = "The limit of a quota in bytes.";
    text.family("anabranch_quota_limit_bytes", "gauge", help);
    for (labels, standing) in &quotas {
        let limits = standing.limits.map(|limits| [("soft", limits.soft()), ("hard", limits.hard())]);
        for (limit, bytes) in limits.into_iter().flatten() {
            if let Some(bytes) = bytes {
                text.line("", &format!("{labels},limit=\"{limit}\""), bytes);
            }
        }
    }
    let help = "When the files of a share with quotas were last counted.";
    text.family("anabranch_quota_counted_timestamp_seconds", "gauge", help);
    for share in shares {
        let counted = share.status.counted.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        if let Some(counted) = counted {
            text.line("", &share.labels, counted.as_secs());
        }
    }
}

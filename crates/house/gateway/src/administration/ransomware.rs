//! The ransomware alarms of [`Administration`], and what is done at an alarm.

use std::sync::Arc;
use std::time::Instant;

use control::ransomware::{RansomwareAlarm, RansomwareAlarms};
use control::snapshots::NewSnapshot;
use control::{Refusal, RefusalKind};
use share::{Share, folded_name};
use storage::{Snapshot, SnapshotName};

use super::Administration;
use crate::snapshots::{AtAlarm, Crew, asked};

type Result<T> = std::result::Result<T, Refusal>;

/// The label of the snapshots that are taken at an alarm.
const LABEL: &str = "ransomware";
/// The most of them that a share has: nobody may remove them for a while, and clients can raise alarms.
const SNAPSHOTS_MAX: usize = 24;

impl Administration {
    pub(super) fn all_ransomware_alarms(&self, share: &str) -> Result<RansomwareAlarms> {
        let share = self.served(share)?;
        let tell = |alarm: share::RansomwareAlarm| self.with_snapshot(&share, alarm);
        let alarms = share.ransomware_alarms().into_iter().map(tell).collect();
        Ok(RansomwareAlarms { share: share.name().to_owned(), alarms })
    }

    pub(super) fn end_alarm(&self, share: &str, number: u64) -> Result<RansomwareAlarm> {
        let share = self.served(share)?;
        let alarm = share.ransomware_alarms().into_iter().find(|alarm| alarm.number == number);
        let alarm = alarm.filter(|_| share.end_ransomware_alarm(number)).ok_or_else(|| {
            let what = format!("the share {} has no ransomware alarm {number}", share.name());
            let advice = format!("`anabranch share alarms {}` lists the alarms.", share.name());
            Refusal::new(RefusalKind::NotFound, what, advice)
        })?;
        tracing::info!(share = share.name(), number, "a ransomware alarm was ended by command");
        Ok(self.with_snapshot(&share, alarm))
    }

    fn with_snapshot(&self, share: &Arc<Share>, alarm: share::RansomwareAlarm) -> RansomwareAlarm {
        let taken = self.snapshotting.at_alarms.of(share.id(), alarm.number);
        let (snapshot, snapshot_problem) = match taken {
            None => (None, None),
            Some(Ok(name)) => (Some(name), None),
            Some(Err(problem)) => (None, Some(problem)),
        };
        RansomwareAlarm { snapshot, snapshot_problem, ..alarm.into() }
    }

    /// Has the snapshots taken that alarms want which nobody has answered yet, and those that could not be taken before. Does not wait
    /// for that: a storage that hangs holds up its own share only.
    pub(crate) fn answer_ransomware_alarms(self: &Arc<Self>, crew: &mut Crew) {
        let Some(serving) = &self.serving else { return };
        let (present, at_alarms) = (serving.shares.present(), &self.snapshotting.at_alarms);
        for share in present.iter() {
            let name = folded_name(share.name());
            if crew.is_busy(&name) {
                continue;
            }
            let mut unanswered = share.take_ransomware_alarms();
            let lasting = share.ransomware_alarms();
            let numbers: Vec<u64> = lasting.iter().map(|alarm| alarm.number).collect();
            at_alarms.keep(share.id(), &numbers);
            let now = Instant::now();
            let is_retried =
                |alarm: &share::RansomwareAlarm| at_alarms.is_to_be_retried(share.id(), alarm.number, now);
            unanswered.extend(lasting.into_iter().filter(is_retried));
            unanswered.retain(|alarm| alarm.snapshot_protected_for.is_some());
            if !unanswered.is_empty() {
                let (administration, share) = (Arc::clone(self), Arc::clone(share));
                crew.give(name, Box::new(move || administration.answer(&share, &unanswered)));
            }
        }
        at_alarms.keep_shares(|id| present.iter().any(|share| share.id() == id));
    }

    fn answer(&self, share: &Arc<Share>, alarms: &[share::RansomwareAlarm]) {
        for alarm in alarms {
            let Some(time) = alarm.snapshot_protected_for else { continue };
            let take = || self.take_at_alarm(share, time.as_secs());
            self.snapshotting.at_alarms.answer((share.id(), alarm.number), take);
        }
    }

    fn take_at_alarm(&self, share: &Arc<Share>, protect_for_seconds: u64) -> AtAlarm {
        let new = NewSnapshot {
            label: Some(LABEL.to_owned()),
            protect_for_seconds: Some(protect_for_seconds),
            protected_until: None,
        };
        let taken = self.check_taken_at_alarms(share).and_then(|()| self.enter_snapshot(share.name(), &new));
        taken.map(|taken| taken.name).map_err(|refusal| {
            let problem = format!("{}. {}", refusal.what, refusal.advice);
            tracing::error!(share = share.name(), "no snapshot was taken at a ransomware alarm: {problem}");
            problem
        })
    }

    /// Refuses one more if there are as many as a share may have.
    fn check_taken_at_alarms(&self, share: &Arc<Share>) -> Result<()> {
        let listed = asked(share, |snapshots, may| snapshots.list(may))?;
        let is_of_alarm = |snapshot: &&Snapshot| {
            snapshot.is_own && SnapshotName::parse(&snapshot.name).is_some_and(|name| name.label() == LABEL)
        };
        if listed.iter().filter(is_of_alarm).count() < SNAPSHOTS_MAX {
            return Ok(());
        }
        let what =
            format!("{SNAPSHOTS_MAX} snapshots of the share {} were taken at alarms already", share.name());
        Err(Refusal::new(RefusalKind::TooMany, what, "Remove those that nobody needs."))
    }
}

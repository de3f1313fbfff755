//! The snapshots that were taken at ransomware alarms.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use share::ShareId;

/// The name of the snapshot, or why none was taken.
pub(crate) type AtAlarm = Result<String, String>;

/// After a snapshot, further alarms of the share are told of the same one for so long: what was there before is in it, and whoever
/// raises alarms does not fill the disk with snapshots that nobody may remove.
const PAUSE: Duration = Duration::from_secs(3600);

/// The snapshots by share and alarm. The lock is not held while a snapshot is taken.
#[derive(Debug, Default)]
pub(crate) struct AtAlarms(Mutex<HashMap<ShareId, OfShare>>);

#[derive(Debug, Default)]
struct OfShare {
    last: Option<(Instant, String)>,
    by_alarm: HashMap<u64, AtAlarm>,
}

impl AtAlarms {
    /// What became of the snapshot of an alarm. None: none was wanted, or it is still being taken.
    pub(crate) fn of(&self, share: ShareId, alarm: u64) -> Option<AtAlarm> {
        self.0.lock().get(&share).and_then(|of| of.by_alarm.get(&alarm).cloned())
    }

    /// Takes the snapshot that an alarm wants, unless there is one that will do.
    pub(crate) fn answer(&self, (share, alarm): (ShareId, u64), take: impl FnOnce() -> AtAlarm) {
        let taken = match self.recent(share, Instant::now()) {
            Some(name) => Ok(name),
            None => take(),
        };
        let mut all = self.0.lock();
        let of = all.entry(share).or_default();
        if let Ok(name) = &taken
            && of.last.as_ref().is_none_or(|(_, last)| last != name)
        {
            of.last = Some((Instant::now(), name.clone()));
        }
        of.by_alarm.insert(alarm, taken);
    }

    /// Forgets what became of the alarms of a share that do not last: all but these.
    pub(crate) fn keep(&self, share: ShareId, lasting: &[u64]) {
        if let Some(of) = self.0.lock().get_mut(&share) {
            of.by_alarm.retain(|alarm, _| lasting.contains(alarm));
        }
    }

    /// Forgets the shares that are no longer served: all but these.
    pub(crate) fn keep_shares(&self, served: impl Fn(ShareId) -> bool) {
        self.0.lock().retain(|share, _| served(*share));
    }

    fn recent(&self, share: ShareId, now: Instant) -> Option<String> {
        let all = self.0.lock();
        let (at, name) = all.get(&share)?.last.as_ref()?;
        (now.saturating_duration_since(*at) < PAUSE).then(|| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_snapshot_answers_the_alarms_of_an_hour_and_a_failure_is_tried_again() {
        let (all, share) = (AtAlarms::default(), ShareId(1));
        all.answer((share, 1), || Err("full".to_owned()));
        all.answer((share, 2), || Ok("a".to_owned()));
        all.answer((share, 3), || panic!("there is one"));
        all.answer((ShareId(2), 1), || Ok("b".to_owned()));
        let of = |alarm| all.of(share, alarm);
        assert_eq!(of(1), Some(Err("full".to_owned())));
        assert_eq!((of(2), of(3), of(4)), (Some(Ok("a".to_owned())), Some(Ok("a".to_owned())), None));
        assert_eq!(all.recent(share, Instant::now() + PAUSE), None);
        all.keep(share, &[3]);
        assert_eq!(
            (of(1), of(3), all.of(ShareId(2), 1)),
            (None, Some(Ok("a".to_owned())), Some(Ok("b".to_owned())))
        );
        all.keep_shares(|served| served == share);
        assert_eq!((of(3).is_some(), all.of(ShareId(2), 1)), (true, None));
    }
}

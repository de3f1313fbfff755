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

/// A snapshot that could not be taken is tried again so much later,
const RETRY: Duration = Duration::from_secs(60);
/// and so often in all, as long as the alarm lasts.
const ATTEMPTS_MAX: u32 = 30;

/// The snapshots by share and alarm. The lock is not held while a snapshot is taken.
#[derive(Debug, Default)]
pub(crate) struct AtAlarms(Mutex<HashMap<ShareId, OfShare>>);

#[derive(Debug, Default)]
struct OfShare {
    last: Option<(Instant, String)>,
    by_alarm: HashMap<u64, Answer>,
}

/// What became of the snapshot of an alarm.
#[derive(Debug)]
struct Answer {
    outcome: AtAlarm,
    attempts: u32,
    at: Instant,
}

impl AtAlarms {
    /// What became of the snapshot of an alarm. None: none was wanted, or it is still being taken.
    pub(crate) fn of(&self, share: ShareId, alarm: u64) -> Option<AtAlarm> {
        self.0.lock().get(&share).and_then(|of| Some(of.by_alarm.get(&alarm)?.outcome.clone()))
    }

    /// Whether the snapshot of an alarm could not be taken, and is to be tried again now.
    pub(crate) fn is_to_be_retried(&self, share: ShareId, alarm: u64, now: Instant) -> bool {
        let all = self.0.lock();
        all.get(&share).and_then(|of| of.by_alarm.get(&alarm)).is_some_and(|answer| {
            let is_time = now.saturating_duration_since(answer.at) >= RETRY;
            answer.outcome.is_err() && answer.attempts < ATTEMPTS_MAX && is_time
        })
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
        let attempts = of.by_alarm.get(&alarm).map_or(0, |former| former.attempts) + 1;
        of.by_alarm.insert(alarm, Answer { outcome: taken, attempts, at: Instant::now() });
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
    fn a_failure_is_tried_again_after_a_minute_and_not_for_ever() {
        let (all, share) = (AtAlarms::default(), ShareId(1));
        let is_retried = |alarm, after| all.is_to_be_retried(share, alarm, Instant::now() + after);
        assert!(!is_retried(1, RETRY), "it was not tried yet");
        for attempt in 1..=ATTEMPTS_MAX {
            all.answer((share, 1), || Err("full".to_owned()));
            assert_eq!(is_retried(1, RETRY), attempt < ATTEMPTS_MAX);
            assert!(!is_retried(1, Duration::ZERO));
        }
        all.answer((share, 2), || Err("full".to_owned()));
        all.answer((share, 2), || Ok("a".to_owned()));
        assert!(!is_retried(2, RETRY));
    }

    #[test]
    fn one_snapshot_answers_the_alarms_of_an_hour() {
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

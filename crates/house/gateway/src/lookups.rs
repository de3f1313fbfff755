//! What became of the questions that the machine's name service and the directory of the domain were asked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use control::LookupCounts;
use parking_lot::Mutex;
use share::{HISTOGRAM_BUCKETS, bucket_of};

use crate::name_service::NameAnswer;

/// Who is asked for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The directory, for the numbers of users of domains.
    DirectoryNumbers,
    /// The name service, for the same.
    Numbers,
    /// The name service, for the groups of users of NFS.
    Groups,
    /// The name service, for the names of numbers, and the other way round.
    Names,
    /// The directory, for the names of SIDs, and the other way round.
    DirectoryNames,
}

impl Subject {
    /// What is asked for, as the API and the metrics call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DirectoryNumbers | Self::Numbers => "numbers",
            Self::Groups => "groups",
            Self::Names | Self::DirectoryNames => "names",
        }
    }

    /// Who is asked, likewise.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Self::DirectoryNumbers | Self::DirectoryNames => "directory",
            Self::Numbers | Self::Groups | Self::Names => "name-service",
        }
    }
}

/// Answers that are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Those that count, with those that there is nobody.
    pub(crate) fresh: usize,
    /// Those that count only while no other comes.
    pub(crate) stale: usize,
}

/// Keeps answers.
pub(crate) trait Holds: Send + Sync {
    /// The answers that are kept now.
    fn held(&self, now: Instant) -> Held;
}

/// Why somebody who asked got no answer of the source in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It took too long.
    TimedOut,
    /// The source could not answer.
    Failed,
    /// Too many questions are on their way.
    Full,
}

/// The questions to one source about one subject since the server started, whatever the settings were meanwhile.
pub(crate) struct Tally {
    subject: Subject,
    found: AtomicU64,
    absent: AtomicU64,
    failed: AtomicU64,
    timed_out: AtomicU64,
    refused: AtomicU64,
    stale_used: AtomicU64,
    /// How long the answers took, and the failures.
    durations: [AtomicU64; HISTOGRAM_BUCKETS],
    /// The sum of these times, in microseconds.
    micros: AtomicU64,
    /// The last answer, and the last failure.
    last: Mutex<Last>,
    /// Guards who keeps the answers now. Not held while that is asked.
    holder: Mutex<Option<Weak<dyn Holds>>>,
}

#[derive(Debug, Clone, Default)]
struct Last {
    answered: Option<Instant>,
    failed: Option<(Instant, String)>,
}

impl std::fmt::Debug for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tally").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// A tally at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tallied {
    pub(crate) subject: Subject,
    /// Answers that there is somebody.
    pub(crate) found: u64,
    /// Answers that there is nobody.
    pub(crate) absent: u64,
    /// Questions that the source could not answer.
    pub(crate) failed: u64,
    /// Who waited for an answer in vain.
    pub(crate) timed_out: u64,
    /// Who was not heard, because too many questions were on their way.
    pub(crate) refused: u64,
    /// Who got an old answer, for whichever reason no other came.
    pub(crate) stale_used: u64,
    /// How long the answers took, and the failures: buckets, and the sum.
    pub(crate) durations: [u64; HISTOGRAM_BUCKETS],
    pub(crate) time: Duration,
    /// How long ago the last answer came.
    pub(crate) answered: Option<Duration>,
    /// How long ago the last question failed, and why.
    pub(crate) failure: Option<(Duration, String)>,
    /// None: nobody asks this source any more.
    pub(crate) held: Option<Held>,
}

impl Tally {
    pub(crate) fn new(subject: Subject) -> Self {
        let zero = AtomicU64::default;
        Self {
            subject,
            found: zero(),
            absent: zero(),
            failed: zero(),
            timed_out: zero(),
            refused: zero(),
            stale_used: zero(),
            durations: Default::default(),
            micros: zero(),
            last: Mutex::default(),
            holder: Mutex::default(),
        }
    }

    /// From now on, this keeps the answers.
    pub(crate) fn is_held_by(&self, holder: Weak<dyn Holds>) {
        *self.holder.lock() = Some(holder);
    }

    /// Counts an answer of the source, which took so long.
    pub(crate) fn answered<T>(&self, answer: &NameAnswer<T>, now: Instant, took: Duration) {
        let mut last = self.last.lock();
        let counter = match answer {
            NameAnswer::Known(_) => &self.found,
            NameAnswer::Unknown => &self.absent,
            NameAnswer::Unavailable(why) => {
                last.failed = Some((now, why.clone()));
                &self.failed
            }
        };
        if !matches!(answer, NameAnswer::Unavailable(_)) {
            last.answered = Some(now);
        }
        counter.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        if let Some(bucket) = self.durations.get(bucket_of(took)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts somebody who got no answer of the source; `has_stale` says whether there was an old one.
    pub(crate) fn unanswered(&self, why: Unanswered, has_stale: bool) {
        match why {
            Unanswered::TimedOut => self.timed_out.fetch_add(1, Ordering::Relaxed),
            Unanswered::Full => self.refused.fetch_add(1, Ordering::Relaxed),
            Unanswered::Failed => 0, // the question is counted
        };
        if has_stale {
            self.stale_used.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How it stands. None: nobody was ever to be asked.
    fn at(&self, now: Instant) -> Option<Tallied> {
        let holder = self.holder.lock().clone()?;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Last { answered, failed } = self.last.lock().clone();
        let ago = |at| now.saturating_duration_since(at);
        Some(Tallied {
            subject: self.subject,
            found: count(&self.found),
            absent: count(&self.absent),
            failed: count(&self.failed),
            timed_out: count(&self.timed_out),
            refused: count(&self.refused),
            stale_used: count(&self.stale_used),
            durations: self.durations.each_ref().map(count),
            time: Duration::from_micros(count(&self.micros)),
            answered: answered.map(ago),
            failure: failed.map(|(at, why)| (ago(at), why)),
            held: holder.upgrade().map(|holder| holder.held(now)),
        })
    }
}

impl From<Tallied> for LookupCounts {
    fn from(tallied: Tallied) -> Self {
        let Held { fresh, stale } = tallied.held.unwrap_or_default();
        Self {
            subject: tallied.subject.name(),
            source: tallied.subject.source(),
            found: tallied.found,
            absent: tallied.absent,
            failed: tallied.failed,
            timed_out: tallied.timed_out,
            refused: tallied.refused,
            stale_used: tallied.stale_used,
            fresh,
            stale,
            durations: tallied.durations,
            time: tallied.time,
        }
    }
}

/// All tallies of a server.
#[derive(Debug)]
pub(crate) struct Lookups {
    pub(crate) directory_numbers: Arc<Tally>,
    pub(crate) numbers: Arc<Tally>,
    pub(crate) groups: Arc<Tally>,
    pub(crate) names: Arc<Tally>,
    pub(crate) directory_names: Arc<Tally>,
}

impl Default for Lookups {
    fn default() -> Self {
        let tally = |subject| Arc::new(Tally::new(subject));
        Self {
            directory_numbers: tally(Subject::DirectoryNumbers),
            numbers: tally(Subject::Numbers),
            groups: tally(Subject::Groups),
            names: tally(Subject::Names),
            directory_names: tally(Subject::DirectoryNames),
        }
    }
}

impl Lookups {
    /// Those of sources that are asked, or were.
    pub(crate) fn at(&self, now: Instant) -> Vec<Tallied> {
        let Self { directory_numbers, numbers, groups, names, directory_names } = self;
        let all = [directory_numbers, numbers, groups, names, directory_names];
        all.into_iter().filter_map(|tally| tally.at(now)).collect()
    }

    /// The same for the metrics.
    pub(crate) fn counts(&self, now: Instant) -> Vec<LookupCounts> {
        self.at(now).into_iter().map(LookupCounts::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Few;

    impl Holds for Few {
        fn held(&self, _: Instant) -> Held {
            Held { fresh: 3, stale: 1 }
        }
    }

    #[test]
    fn what_was_never_asked_is_not_shown_and_what_is_no_longer_asked_holds_nothing() {
        let lookups = Lookups::default();
        let now = Instant::now();
        assert_eq!(lookups.at(now), []);
        let few: Arc<dyn Holds> = Arc::new(Few);
        lookups.groups.is_held_by(Arc::downgrade(&few));
        let micro = Duration::from_micros(1);
        lookups.groups.answered(&NameAnswer::Known(()), now, micro);
        lookups.groups.answered(&NameAnswer::<()>::Unknown, now, micro);
        lookups.groups.answered(&NameAnswer::<()>::Unavailable("out".to_owned()), now, 2 * micro);
        lookups.groups.unanswered(Unanswered::Failed, true);
        lookups.groups.unanswered(Unanswered::TimedOut, false);
        lookups.groups.unanswered(Unanswered::Full, false);
        let second = Duration::from_secs(1);
        let mut durations = [0; HISTOGRAM_BUCKETS];
        durations[..2].copy_from_slice(&[2, 1]);
        let expected = Tallied {
            subject: Subject::Groups,
            found: 1,
            absent: 1,
            failed: 1,
            timed_out: 1,
            refused: 1,
            stale_used: 1,
            durations,
            time: 4 * micro,
            answered: Some(second),
            failure: Some((second, "out".to_owned())),
            held: Some(Held { fresh: 3, stale: 1 }),
        };
        assert_eq!(lookups.at(now + second), std::slice::from_ref(&expected));
        drop(few);
        assert_eq!(lookups.at(now + second), [Tallied { held: None, ..expected }]);
    }
}

//! Questions to the machine's name service, which may take long to answer: threads ask it, and its answers are kept for a while, so that no
//! connection waits longer than [`PATIENCE`]. Each question is on its way once, however many wait for its answer.

use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::lookups::{Held, Holds, Tally, Unanswered};
use crate::name_service::NameAnswer;

/// How long a client waits for answers.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// How long the answer of the name service about somebody is kept.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// How long it is kept that there is nobody.
const NOBODY_KEPT: Duration = Duration::from_secs(60);
/// How long the last answer about somebody is better than none.
const STALE_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The most entries: answers that are kept, and questions that wait.
const ENTRIES_MAX: usize = 10_000;
/// The most questions that wait. Fewer than the entries: however many ask for names that nobody knows, there is room for answers.
const QUESTIONS_MAX: usize = ENTRIES_MAX / 2;
/// The threads that ask the name service.
const THREADS: usize = 2;

/// Asks the name service, which may take long.
pub(crate) type Ask<Q, A> = dyn Fn(&Q) -> NameAnswer<A> + Send + Sync;

/// The questions, and the answers so far.
#[derive(Debug)]
pub(crate) struct Asked<Q, A> {
    questions: SyncSender<Q>,
    /// Guards the answers and those who wait. Not held while the name service is asked.
    entries: Mutex<HashMap<Q, Entry<A>>>,
    /// What becomes of the questions.
    tally: Arc<Tally>,
}

/// What is known about a question.
#[derive(Debug)]
struct Entry<A> {
    /// The last answer, None: there is nobody; and until when it counts. About somebody, it is still better than none after that.
    answer: Option<(Option<A>, Instant)>,
    /// Whether the question is on its way, even if nobody waits any longer.
    is_asked: bool,
    /// Who waits for an answer.
    waiting: Vec<oneshot::Sender<Heard<A>>>,
}

impl<A> Default for Entry<A> {
    fn default() -> Self {
        Self { answer: None, is_asked: false, waiting: Vec::new() }
    }
}

impl<A> Entry<A> {
    /// The last answer, as far as it is better than none: nobody's time may have come meanwhile.
    fn stale(&self, now: Instant) -> Heard<A>
    where
        A: Clone,
    {
        match &self.answer {
            Some((Some(answer), _)) if self.is_stale(now) => Heard::Somebody(answer.clone()),
            _ => Heard::Nothing,
        }
    }

    /// Whether the answer counts.
    fn counts(&self, now: Instant) -> bool {
        self.answer.as_ref().is_some_and(|(_, until)| now < *until)
    }

    /// Whether the answer is better than none.
    fn is_stale(&self, now: Instant) -> bool {
        matches!(&self.answer, Some((Some(_), until)) if now < *until + (STALE_KEPT - KEPT))
    }

    /// Whether somebody was found.
    fn is_found(&self) -> bool {
        matches!(self.answer, Some((Some(_), _)))
    }
}

/// What is known in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard<A> {
    /// There is somebody.
    Somebody(A),
    /// There is nobody.
    Nobody,
    /// No answer has come, and none is known from before.
    Nothing,
}

impl<A> Heard<A> {
    fn of(answer: Option<A>) -> Self {
        answer.map_or(Self::Nobody, Self::Somebody)
    }

    fn is_somebody(&self) -> bool {
        matches!(self, Self::Somebody(_))
    }

    /// Whoever there is, as far as it is known.
    pub(crate) fn somebody(self) -> Option<A> {
        match self {
            Self::Somebody(answer) => Some(answer),
            Self::Nobody | Self::Nothing => None,
        }
    }
}

/// An answer, or where it will come from.
#[derive(Debug)]
pub(crate) enum Outcome<A> {
    /// The answer.
    Here(Heard<A>),
    /// An answer will come, or not.
    Later(Waiting<A>),
}

/// Somebody who waits for an answer.
#[derive(Debug)]
pub(crate) struct Waiting<A> {
    /// Where the answer will come from.
    answer: oneshot::Receiver<Heard<A>>,
    /// What counts if none comes.
    stale: Heard<A>,
    tally: Arc<Tally>,
}

impl<A> Outcome<A> {
    /// An answer for which nobody has to be asked; None: there is nobody.
    pub(crate) fn here(answer: Option<A>) -> Self {
        Self::Here(Heard::of(answer))
    }

    /// Whoever there is by the answer, or at the deadline by the last one.
    pub(crate) async fn by(self, deadline: tokio::time::Instant) -> Option<A> {
        self.heard_by(deadline).await.somebody()
    }

    /// The answer, or at the deadline the last one.
    pub(crate) async fn heard_by(self, deadline: tokio::time::Instant) -> Heard<A> {
        match self {
            Self::Here(answer) => answer,
            Self::Later(Waiting { answer, stale, tally }) => {
                match tokio::time::timeout_at(deadline, answer).await {
                    Ok(Ok(answer)) => answer,
                    _ => {
                        tally.unanswered(Unanswered::TimedOut, stale.is_somebody());
                        stale
                    }
                }
            }
        }
    }
}

impl<Q, A> Asked<Q, A>
where
    Q: Clone + Eq + Hash + Send + 'static,
    A: Clone + Send + 'static,
{
    /// Starts the threads, which end with this value. `tally` counts what becomes of the questions.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(thread: &str, ask: Arc<Ask<Q, A>>, tally: &Arc<Tally>) -> io::Result<Arc<Self>> {
        let (questions, waiting) = sync_channel(QUESTIONS_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        let asked = Arc::new(Self { questions, entries: Mutex::default(), tally: Arc::clone(tally) });
        let holder: Weak<Self> = Arc::downgrade(&asked);
        tally.is_held_by(holder);
        for _ in 0..THREADS {
            let (asked, waiting, ask) = (Arc::downgrade(&asked), Arc::clone(&waiting), Arc::clone(&ask));
            let run = move || {
                while let Some(question) = next(&waiting) {
                    let begun = Instant::now();
                    let answer = ask(&question);
                    let Some(asked) = asked.upgrade() else { return };
                    let now = Instant::now();
                    asked.tally.answered(&answer, now, now.saturating_duration_since(begun));
                    asked.take(question, answer, now);
                }
            };
            std::thread::Builder::new().name(thread.to_owned()).spawn(run)?;
        }
        Ok(asked)
    }

    /// The answer that is known, or asks for it.
    pub(crate) fn ask(&self, question: Q, now: Instant) -> Outcome<A> {
        let mut entries = self.entries.lock();
        if entries.len() >= ENTRIES_MAX && !entries.contains_key(&question) {
            make_room(&mut entries, now);
            if entries.len() >= ENTRIES_MAX {
                self.tally.unanswered(Unanswered::Full, false);
                return Outcome::Here(Heard::Nothing);
            }
        }
        let entry = entries.entry(question.clone()).or_default();
        let stale = match &entry.answer {
            Some((answer, until)) if now < *until => return Outcome::here(answer.clone()),
            _ => entry.stale(now),
        };
        let (answer, comes) = oneshot::channel();
        entry.waiting.retain(|waiting| !waiting.is_closed());
        if !entry.is_asked && self.questions.try_send(question).is_err() {
            self.tally.unanswered(Unanswered::Full, stale.is_somebody());
            return Outcome::Here(stale);
        }
        entry.is_asked = true;
        entry.waiting.push(answer);
        Outcome::Later(Waiting { answer: comes, stale, tally: Arc::clone(&self.tally) })
    }

    /// Keeps the answer of the name service, and tells those who wait.
    fn take(&self, question: Q, answer: NameAnswer<A>, now: Instant) {
        let mut entries = self.entries.lock();
        let entry = entries.entry(question).or_default();
        entry.is_asked = false;
        let is_failure = matches!(answer, NameAnswer::Unavailable(_));
        let answer = match answer {
            NameAnswer::Known(known) => {
                entry.answer = Some((Some(known.clone()), now + KEPT));
                Heard::Somebody(known)
            }
            NameAnswer::Unknown => {
                entry.answer = Some((None, now + NOBODY_KEPT));
                Heard::Nobody
            }
            NameAnswer::Unavailable(error) => {
                tracing::debug!("the name service cannot answer: {error}");
                entry.stale(now)
            }
        };
        for waiting in entry.waiting.drain(..) {
            let is_heard = waiting.send(answer.clone()).is_ok(); // who waited may have gone
            if is_heard && is_failure {
                self.tally.unanswered(Unanswered::Failed, answer.is_somebody());
            }
        }
    }
}

impl<Q: Send, A: Send> Holds for Asked<Q, A> {
    fn held(&self, now: Instant) -> Held {
        let mut held = Held::default();
        for entry in self.entries.lock().values() {
            if entry.counts(now) {
                held.fresh += 1;
            } else if entry.is_stale(now) {
                held.stale += 1;
            }
        }
        held
    }
}

/// Forgets answers that there is nobody, before those about somebody: a client may ask for as many names and numbers as it likes, and
/// nearly all of them are nobody's.
fn make_room<Q: Eq + Hash, A>(entries: &mut HashMap<Q, Entry<A>>, now: Instant) {
    entries.retain(|_, entry| entry.is_asked || entry.is_found());
    if entries.len() >= ENTRIES_MAX {
        entries.retain(|_, entry| entry.is_asked || entry.counts(now));
    }
    if entries.len() >= ENTRIES_MAX {
        // Answers that are still wanted are soon here again.
        entries.retain(|_, entry| entry.is_asked);
    }
}

/// The next question; None when nobody asks any more.
fn next<Q>(waiting: &Mutex<Receiver<Q>>) -> Option<Q> {
    waiting.lock().recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookups::Subject;

    fn asked(ask: impl Fn(&u32) -> NameAnswer<String> + Send + Sync + 'static) -> Arc<Asked<u32, String>> {
        Asked::start("names", Arc::new(ask), &Arc::new(Tally::new(Subject::Names))).unwrap()
    }

    #[test]
    fn an_answer_counts_for_a_while_and_is_better_than_none_after_that() {
        let asked = asked(|_| NameAnswer::Unavailable("out".to_owned()));
        let now = Instant::now();
        asked.take(7, NameAnswer::Known("otto".to_owned()), now);
        let here = |outcome| matches!(outcome, Outcome::Here(Heard::Somebody(_)));
        assert!(here(asked.ask(7, now + KEPT - Duration::from_secs(1))));
        let Outcome::Later(Waiting { answer, stale, .. }) = asked.ask(7, now + KEPT) else { panic!() };
        assert_eq!(stale, Heard::Somebody("otto".to_owned()));
        assert_eq!(answer.blocking_recv().unwrap(), stale, "the last answer, while there is no other");
        asked.take(7, NameAnswer::Unknown, now);
        assert!(matches!(asked.ask(7, now), Outcome::Here(Heard::Nobody)), "there is nobody");
        assert!(
            matches!(asked.ask(7, now + NOBODY_KEPT), Outcome::Later(Waiting { stale: Heard::Nothing, .. })),
            "there may be somebody now"
        );
    }

    #[test]
    fn an_old_answer_is_as_good_as_none() {
        let asked = asked(|_| NameAnswer::Unavailable("out".to_owned()));
        let now = Instant::now();
        asked.take(7, NameAnswer::Known("otto".to_owned()), now);
        let ask = |after: Duration| match asked.ask(7, now + after) {
            Outcome::Here(answer) | Outcome::Later(Waiting { stale: answer, .. }) => answer,
        };
        assert_eq!(ask(STALE_KEPT - Duration::from_secs(1)), Heard::Somebody("otto".to_owned()));
        assert_eq!(ask(STALE_KEPT), Heard::Nothing);
    }

    #[test]
    fn answers_that_count_are_told_from_old_ones() {
        let asked = asked(|_| NameAnswer::Unknown);
        let now = Instant::now();
        asked.take(7, NameAnswer::Known("otto".to_owned()), now);
        asked.take(8, NameAnswer::Unknown, now);
        let held = |after| asked.held(now + after);
        assert_eq!(held(Duration::ZERO), Held { fresh: 2, stale: 0 });
        assert_eq!(held(NOBODY_KEPT), Held { fresh: 1, stale: 0 });
        assert_eq!(held(KEPT), Held { fresh: 0, stale: 1 });
        assert_eq!(held(STALE_KEPT), Held::default());
    }

    #[test]
    fn what_is_kept_is_bounded_and_nobody_goes_first() {
        let asked = asked(|_| NameAnswer::Unknown);
        let now = Instant::now();
        asked.take(7, NameAnswer::Known("otto".to_owned()), now);
        for number in 0..u32::try_from(ENTRIES_MAX).unwrap() + 10 {
            asked.take(100 + number, NameAnswer::Unknown, now);
            let _ = asked.ask(1_000_000 + number, now);
        }
        assert!(asked.entries.lock().len() <= ENTRIES_MAX + 1);
        assert!(
            matches!(asked.ask(7, now), Outcome::Here(Heard::Somebody(_))),
            "who was found is still known"
        );
        for number in 0..u32::try_from(ENTRIES_MAX).unwrap() + 10 {
            let _ = asked.ask(2_000_000 + number, now);
            asked.take(2_000_000 + number, NameAnswer::Known("one of many".to_owned()), now);
        }
        assert!(asked.entries.lock().len() <= ENTRIES_MAX + 1);
    }

    #[test]
    fn questions_without_an_answer_do_not_drive_out_who_was_found() {
        let gate = Arc::new(Mutex::new(()));
        let closed = gate.lock();
        let asked = asked({
            let gate = Arc::clone(&gate);
            move |_| {
                drop(gate.lock());
                NameAnswer::Unknown
            }
        });
        let now = Instant::now();
        asked.take(7, NameAnswer::Known("otto".to_owned()), now);
        let refused = (100..100 + 2 * u32::try_from(ENTRIES_MAX).unwrap())
            .filter(|number| matches!(asked.ask(*number, now), Outcome::Here(Heard::Nothing)))
            .count();
        assert!(refused >= 2 * ENTRIES_MAX - QUESTIONS_MAX - THREADS, "{refused} questions had no place");
        assert!(
            matches!(asked.ask(7, now), Outcome::Here(Heard::Somebody(_))),
            "who was found is still known"
        );
        drop(closed);
    }
}

//! Until when connections may be answered.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;

use crate::Socket;

/// A time until which somebody may serve, which may be put off. Once it is over, it stays over. Clones name the same term. It is on the
/// monotonic clock, which goes on while the process is stopped.
#[derive(Debug, Clone)]
pub struct Term(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    origin: Instant,
    /// The end, in nanoseconds after `origin`; [`OVER`] once it is over.
    end: AtomicU64,
}

const OVER: u64 = 0;

impl Term {
    /// A term that lasts until then.
    #[must_use]
    pub fn until(end: Instant) -> Self {
        let origin = Instant::now();
        let shared = Shared { origin, end: AtomicU64::new(nanoseconds(origin, end)) };
        Self(Arc::new(shared))
    }

    /// Puts the end off until then. False: the term is over.
    #[must_use]
    pub fn extend(&self, end: Instant) -> bool {
        let Shared { origin, end: shared } = &*self.0;
        let end = nanoseconds(*origin, end);
        let later = |now_end| (now_end > nanoseconds(*origin, Instant::now())).then_some(end.max(now_end));
        shared.fetch_update(Ordering::AcqRel, Ordering::Acquire, later).is_ok() && !self.is_over()
    }

    /// Ends it now.
    pub fn end(&self) {
        self.0.end.store(OVER, Ordering::Release);
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// How long it lasts if it is not put off; zero: it is over.
    #[must_use]
    pub fn left(&self) -> Duration {
        let Shared { origin, end: shared } = &*self.0;
        loop {
            let end = shared.load(Ordering::Acquire);
            let left = end.saturating_sub(nanoseconds(*origin, Instant::now()));
            // Whoever has been told that it is over may rely on that. Another thread may put it off at this moment.
            if left > 0 || shared.compare_exchange(end, OVER, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Duration::from_nanos(left);
            }
        }
    }
}

fn nanoseconds(origin: Instant, time: Instant) -> u64 {
    u64::try_from(time.saturating_duration_since(origin).as_nanos()).unwrap_or(u64::MAX)
}

/// A socket that sends nothing when its term is over.
#[derive(Debug)]
pub(crate) struct InTerm<S> {
    pub(crate) socket: S,
    /// None: it lasts for ever.
    pub(crate) term: Option<Term>,
}

impl<S: Socket> Socket for InTerm<S> {
    async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    async fn writable(&self) -> io::Result<()> {
        self.socket.writable().await
    }

    fn try_read(&self, received: &mut BytesMut) -> io::Result<usize> {
        self.socket.try_read(received)
    }

    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.term.as_ref().is_some_and(Term::is_over) {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the time in which clients may be answered is over",
            ));
        }
        self.socket.try_write(slices)
    }

    fn round_trip(&self) -> Option<Duration> {
        self.socket.round_trip()
    }

    async fn retransmissions(&self) -> io::Result<Option<u32>> {
        self.socket.retransmissions().await
    }

    fn reset_at_end(&self) -> io::Result<()> {
        self.socket.reset_at_end()
    }

    fn set_known(&self, is_known: bool) {
        self.socket.set_known(is_known);
    }

    fn held_bytes(&self) -> usize {
        self.socket.held_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_term_that_is_over_is_not_put_off() {
        for term in [Term::until(Instant::now()), Term::until(Instant::now() - Duration::from_nanos(1))] {
            assert!(term.is_over() && term.left().is_zero());
            assert!(!term.extend(Instant::now() + LONG) && term.is_over());
        }
        let ended = Term::until(Instant::now() + LONG);
        ended.end();
        assert!(!ended.extend(Instant::now() + LONG) && ended.is_over());
    }

    #[test]
    fn a_term_is_put_off_and_never_shortened() {
        let term = Term::until(Instant::now() + LONG);
        assert!(!term.is_over() && term.left() <= LONG);
        let same = term.clone();
        assert!(term.extend(Instant::now() + 2 * LONG) && same.left() > LONG);
        assert!(term.extend(Instant::now()) && same.left() > LONG);
    }
}

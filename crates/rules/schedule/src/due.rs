//! What a rule wants now, also after the server was away or the clock was set.

use crate::{Every, Utc};

/// What a rule wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A snapshot now, for this time. Times before it that were missed, too, are made up for by this one.
    Due(Utc),
    /// Nothing before this time; None: never again.
    Wait(Option<Utc>),
    /// The clock was set back. Nothing is missing up to this time, which is to be remembered instead of the former one.
    Again(Utc),
}

/// What a rule wants at `now`, if nothing is missing up to `done`: the time for which a snapshot was taken last, or that at which the
/// rule began to hold.
///
/// If the clock was set back, the time after `now` may be done already: then it is left out, so nothing is taken twice. If the clock
/// was set back farther, the rule begins again with its next time: it does not rest until the clock is where it was.
#[must_use]
pub fn look(every: &Every, done: Utc, now: Utc) -> Look {
    let next = every.next(now);
    if next.is_some_and(|next| done > next) {
        return Look::Again(now);
    }
    match every.last(now).filter(|last| *last > done) {
        Some(due) => Look::Due(due),
        None if next.is_some_and(|next| next <= done) => Look::Wait(next.and_then(|next| every.next(next))),
        None => Look::Wait(next),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Period;

    fn utc(text: &str) -> Utc {
        format!("2026-11-23T{text}Z").parse().unwrap()
    }

    fn hourly() -> Every {
        Every::parse(Period::Hourly, ":05").unwrap()
    }

    #[test]
    fn a_time_is_due_once() {
        let (every, begun) = (hourly(), utc("05:04:59"));
        assert_eq!(look(&every, begun, begun), Look::Wait(Some(utc("05:05:00"))));
        assert_eq!(look(&every, begun, utc("05:05:00")), Look::Due(utc("05:05:00")));
        let done = utc("05:05:00");
        assert_eq!(look(&every, done, done), Look::Wait(Some(utc("06:05:00"))));
        assert_eq!(look(&every, done, utc("06:04:59")), Look::Wait(Some(utc("06:05:00"))));
        assert_eq!(look(&every, done, utc("06:05:00")), Look::Due(utc("06:05:00")));
    }

    #[test]
    fn times_that_were_missed_are_made_up_for_once() {
        let (every, done) = (hourly(), utc("05:05:00"));
        assert_eq!(look(&every, done, utc("19:30:00")), Look::Due(utc("19:05:00")));
        assert_eq!(look(&every, utc("19:05:00"), utc("19:30:00")), Look::Wait(Some(utc("20:05:00"))));
    }

    #[test]
    fn a_clock_that_was_set_back_takes_nothing_twice() {
        let (every, done) = (hourly(), utc("10:05:00"));
        for now in ["09:05:00", "09:30:00", "10:04:59", "10:05:00", "10:30:00", "11:04:59"] {
            assert_eq!(look(&every, done, utc(now)), Look::Wait(Some(utc("11:05:00"))), "{now}");
        }
        assert_eq!(look(&every, done, utc("11:05:00")), Look::Due(utc("11:05:00")));
    }

    #[test]
    fn a_clock_that_was_far_ahead_is_not_waited_for() {
        let (every, done) = (hourly(), "2027-11-23T10:05:00Z".parse().unwrap());
        let now = utc("09:04:00");
        assert_eq!(look(&every, done, now), Look::Again(now));
        assert_eq!(look(&every, now, now), Look::Wait(Some(utc("09:05:00"))));
        assert_eq!(look(&every, now, utc("09:05:00")), Look::Due(utc("09:05:00")));
    }

    proptest! {
        /// A server that looks now and then, with a clock that only goes forward, takes a snapshot after each time that was due since it
        /// looked before, and no other.
        #[test]
        fn each_look_takes_what_became_due_since_the_one_before(
            text in prop::sample::select(vec![":05/1", "01:10/1"]),
            steps in prop::collection::vec(1..200_000_i64, 1..40),
        ) {
            let period = if text.starts_with(':') { Period::Hourly } else { Period::Daily };
            let every = Every::parse(period, text.trim_end_matches("/1")).unwrap();
            let mut now = utc("00:00:00");
            let mut done = now;
            for step in steps {
                let before = now;
                now = Utc::from_secs(now.secs() + step);
                let became_due = every.last(now).filter(|last| *last > before);
                match look(&every, done, now) {
                    Look::Due(due) => {
                        prop_assert_eq!(Some(due), became_due);
                        done = due;
                    }
                    Look::Wait(next) => {
                        prop_assert_eq!(became_due, None);
                        prop_assert!(next > Some(now));
                    }
                    Look::Again(_) => prop_assert!(false, "the clock went forward"),
                }
            }
        }

        /// However often the clock is set, a rule is due again within two of its times.
        #[test]
        fn no_clock_makes_a_rule_rest(
            done in 1_000_000_000..2_000_000_000_i64,
            now in 1_000_000_000..2_000_000_000_i64,
        ) {
            let (every, mut done, now) = (hourly(), Utc::from_secs(done), Utc::from_secs(now));
            if let Look::Again(at) = look(&every, done, now) {
                done = at;
            }
            let soon = Utc::from_secs(now.secs() + 2 * 3600);
            prop_assert!(matches!(look(&every, done, soon), Look::Due(_)));
        }
    }
}

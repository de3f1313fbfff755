//! Who is signed in to the console. Everything is in memory, so a restart of the server signs everybody out.
//!
//! A sign-in stands for the token or the password that was shown. It ends with them, after a time without requests, and after
//! a time in all.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::administrators::Administrator;
use crate::token::{Digest, Token};

/// The most sign-ins at a time.
pub(crate) const SIGN_INS_MAX: usize = 64;
/// The most sign-ins of one token or account.
pub(crate) const OF_ONE_HOLDER_MAX: usize = 16;
/// How long a sign-in lasts without a request. A page that is shown asks every few seconds.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// How long a sign-in lasts at most.
pub(crate) const AGE_MAX: Duration = Duration::from_secs(12 * 3600);

/// Who has signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The holder of the token with this digest.
    Token(Digest),
    /// An administrator, with a password.
    Administrator(Administrator),
}

/// All sign-ins.
#[derive(Debug, Default)]
pub(crate) struct SignIns {
    /// Guards the list, in no order.
    entries: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    /// The digest of the secret in the browser's cookie.
    cookie: Digest,
    csrf: Token,
    holder: Holder,
    begun: Instant,
    used: Instant,
}

/// The secrets of a new sign-in.
#[derive(Debug)]
pub(crate) struct Begun {
    /// For the cookie, which scripts cannot read.
    pub(crate) cookie: Token,
    /// For the page, which shows it with each call: other pages make the browser send the cookie, but cannot read this.
    pub(crate) csrf: Token,
}

/// A sign-in that lasts.
#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    pub(crate) holder: Holder,
    pub(crate) csrf: Token,
    /// How long it lasts at most.
    pub(crate) left: Duration,
}

impl Entry {
    fn lasts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.used) < IDLE_MAX
            && now.saturating_duration_since(self.begun) < AGE_MAX
    }
}

impl SignIns {
    /// Begins a sign-in with these secrets for this holder. Where there are too many, the one that was used the longest
    /// time ago ends: of the same holder if that has too many.
    pub(crate) fn begin(&self, holder: Holder, secrets: &Begun, now: Instant) {
        let mut entries = self.entries.lock();
        entries.retain(|entry| entry.lasts(now));
        let of_holder = entries.iter().filter(|entry| entry.holder == holder).count();
        let must_go = |entry: &&Entry| of_holder < OF_ONE_HOLDER_MAX || entry.holder == holder;
        if of_holder >= OF_ONE_HOLDER_MAX || entries.len() >= SIGN_INS_MAX {
            let oldest = entries.iter().filter(must_go).min_by_key(|entry| entry.used);
            let oldest = oldest.map(|entry| entry.cookie);
            entries.retain(|entry| Some(entry.cookie) != oldest);
        }
        let (cookie, csrf) = (secrets.cookie.digest(), secrets.csrf.clone());
        entries.push(Entry { cookie, csrf, holder, begun: now, used: now });
    }

    /// The sign-in of this cookie, which is used now.
    pub(crate) fn of(&self, cookie: &[u8], now: Instant) -> Option<SignedIn> {
        let cookie = Digest::of(cookie);
        let mut entries = self.entries.lock();
        let entry = entries.iter_mut().find(|entry| entry.cookie == cookie && entry.lasts(now))?;
        entry.used = now;
        let left = AGE_MAX.saturating_sub(now.saturating_duration_since(entry.begun));
        Some(SignedIn { holder: entry.holder.clone(), csrf: entry.csrf.clone(), left })
    }

    /// Ends the sign-in of this cookie.
    pub(crate) fn end(&self, cookie: &[u8]) {
        let cookie = Digest::of(cookie);
        self.entries.lock().retain(|entry| entry.cookie != cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(n: u8) -> Begun {
        Begun { cookie: Token::new([n; 32]), csrf: Token::new([n.wrapping_add(100); 32]) }
    }

    fn token(n: u8) -> Holder {
        Holder::Token(Token::new([n; 32]).digest())
    }

    fn is_in(sign_ins: &SignIns, n: u8, now: Instant) -> bool {
        sign_ins.of(secrets(n).cookie.as_str().as_bytes(), now).is_some()
    }

    #[test]
    fn it_lasts_while_it_is_used_and_not_for_ever() {
        let (sign_ins, now) = (SignIns::default(), Instant::now());
        sign_ins.begin(token(9), &secrets(1), now);
        let signed_in = sign_ins.of(secrets(1).cookie.as_str().as_bytes(), now).unwrap();
        assert_eq!((signed_in.holder, &signed_in.csrf), (token(9), &secrets(1).csrf));
        assert_eq!(signed_in.left, AGE_MAX);
        assert!(!is_in(&sign_ins, 2, now));
        let second = Duration::from_secs(1);
        let mut at = now;
        while at + IDLE_MAX < now + AGE_MAX {
            at += IDLE_MAX.checked_sub(second).unwrap();
            assert!(is_in(&sign_ins, 1, at), "it is used in time");
        }
        assert!(!is_in(&sign_ins, 1, now + AGE_MAX), "used, and too old");
        sign_ins.begin(token(9), &secrets(2), now);
        assert!(!is_in(&sign_ins, 2, now + IDLE_MAX), "not used in time");
        assert!(!is_in(&sign_ins, 2, now + IDLE_MAX + second), "and not revived by the attempt");
    }

    #[test]
    fn it_ends_alone() {
        let (sign_ins, now) = (SignIns::default(), Instant::now());
        for n in [1, 2, 3] {
            sign_ins.begin(token(9), &secrets(n), now);
        }
        sign_ins.end(secrets(2).cookie.as_str().as_bytes());
        assert_eq!([1, 2, 3].map(|n| is_in(&sign_ins, n, now)), [true, false, true]);
    }

    #[test]
    fn one_token_ends_its_own_and_all_together_end_the_one_unused_for_longest() {
        let (sign_ins, now) = (SignIns::default(), Instant::now());
        assert_eq!((OF_ONE_HOLDER_MAX, SIGN_INS_MAX), (16, 64));
        let at = |n: u64| now + Duration::from_secs(n);
        sign_ins.begin(token(0), &secrets(0), at(0));
        for n in 1..=16 {
            sign_ins.begin(token(1), &secrets(n), at(n.into()));
        }
        assert!(is_in(&sign_ins, 1, at(17)), "as many as one token may have");
        sign_ins.begin(token(1), &secrets(17), at(18));
        assert!(!is_in(&sign_ins, 2, at(18)) && is_in(&sign_ins, 1, at(18)), "2 was used before 1");
        assert!(is_in(&sign_ins, 0, at(19)), "that of another token stays");
        let (sign_ins, all) = (SignIns::default(), 64);
        for n in 0..all {
            sign_ins.begin(token(n), &secrets(n), at(n.into()));
        }
        assert!(is_in(&sign_ins, 0, at(64)), "as many as there may be");
        sign_ins.begin(token(all), &secrets(all), at(65));
        assert!(!is_in(&sign_ins, 1, at(65)) && is_in(&sign_ins, 0, at(65)));
        assert_eq!(sign_ins.entries.lock().len(), SIGN_INS_MAX);
    }
}

//! Failed logons are answered with increasing delay, so that nobody can guess passwords quickly.
//!
//! Failures are counted by the address that they come from and by the account. The failures of one address with one
//! account wait in one queue, so guessing on many connections at once is no faster than on one. While the queue is
//! full, no logon is evaluated. The same holds, with a much longer queue, for all failures of one address. For an
//! account that others try to guess, only failures are delayed: a user who knows the password gets in at once from
//! another address.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use crate::accounts::{folded_name, local_name};

/// The delay of the first failure. Each further failure waits twice as long.
pub const DELAY_FIRST: Duration = Duration::from_millis(250);
/// The longest delay. Windows 11 24H2 delays each failure by this much.
pub const DELAY_MAX: Duration = Duration::from_secs(2);
/// How much each failure adds to the queue of its address, whatever the account.
const ADDRESS_STEP: Duration = Duration::from_millis(100);
/// The longest queue.
pub const LINE_MAX: Duration = Duration::from_secs(10);
/// How long until one failure is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);
/// The most failures that are remembered of an address or an account.
const FAILURES_MAX: u32 = 10;
/// The most addresses, accounts, and pairs of them that are remembered.
const REMEMBERED_MAX: usize = 4096;
/// How many characters of a name count: no account has a longer name.
const NAME_CHARS_MAX: usize = 64;

/// Recent failures.
#[derive(Debug, Default)]
pub struct Brake {
    addresses: Failures<IpAddr>,
    accounts: Failures<String>,
    pairs: Failures<(IpAddr, String)>,
}

/// What to do with a failed logon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// How long to delay the answer.
    pub delay: Duration,
    /// How many failures of the address are remembered, including this one.
    pub of_address: u32,
}

impl Brake {
    /// A logon from `address` for `user`, as the client wrote the name, has failed. None: so many failures wait that
    /// the logon was not evaluated; it must be answered as one with the right password would be.
    pub fn failed(&mut self, address: IpAddr, user: &str, now: Instant) -> Option<Failed> {
        let (address, account) = (network(address), account(user));
        let pair = (address, account);
        self.wait(&pair, now)?;
        let of_account = self.accounts.enter(pair.1.clone(), now).count;
        let by_address = self.addresses.enter(address, now);
        by_address.lengthen(ADDRESS_STEP, now);
        let of_address = by_address.count;
        let by_pair = self.pairs.enter(pair, now);
        by_pair.lengthen(delay(of_address.max(of_account)), now);
        Some(Failed { delay: by_pair.wait(now), of_address })
    }

    /// A logon from `address` has failed for another reason than its password: it counts, and need not wait. Returns
    /// how many failures of the address are remembered.
    pub fn refused(&mut self, address: IpAddr, now: Instant) -> u32 {
        self.addresses.enter(network(address), now).count
    }

    /// A logon from `address` for `user` has succeeded, or failed for another reason than its password. Returns how
    /// long to delay its answer: until the earlier failures are answered. A client that has received those answers need
    /// not wait. None: so many failures wait that the logon is not evaluated.
    pub fn passed(&self, address: IpAddr, user: &str, now: Instant) -> Option<Duration> {
        self.wait(&(network(address), account(user)), now)
    }

    /// The length of the pair's queue, if neither this queue nor that of the address is full.
    fn wait(&self, pair: &(IpAddr, String), now: Instant) -> Option<Duration> {
        let wait = |entry: Option<&FailureCount>| entry.map_or(Duration::ZERO, |entry| entry.wait(now));
        let of_pair = wait(self.pairs.0.get(pair));
        let longest = of_pair.max(wait(self.addresses.0.get(&pair.0)));
        (longest < LINE_MAX).then_some(of_pair)
    }
}

/// The account that a name stands for.
fn account(user: &str) -> String {
    folded_name(local_name(user)).chars().take(NAME_CHARS_MAX).collect()
}

/// What belongs to one client alone: an IPv4 address, or a network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

fn delay(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    DELAY_FIRST.saturating_mul(doubled).min(DELAY_MAX)
}

#[derive(Debug)]
struct FailureCount {
    count: u32,
    /// When the last failure happened.
    since: Instant,
    /// When the last waiting failure is answered.
    line_until: Instant,
}

/// Failures by their origin or account.
#[derive(Debug)]
struct Failures<K>(HashMap<K, FailureCount>);

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Clone + Eq + Hash> Failures<K> {
    /// Counts one more failure.
    fn enter(&mut self, key: K, now: Instant) -> &mut FailureCount {
        if self.0.len() >= REMEMBERED_MAX && !self.0.contains_key(&key) {
            self.make_room(now);
        }
        let entry = self.0.entry(key).or_insert(FailureCount { count: 0, since: now, line_until: now });
        entry.count = entry.remembered(now).saturating_add(1).min(FAILURES_MAX);
        entry.since = now;
        entry
    }

    /// Drops entries without remembered failures; if there are none, the entry that has been silent for longest.
    fn make_room(&mut self, now: Instant) {
        self.0.retain(|_, entry| entry.remembered(now) > 0);
        if self.0.len() >= REMEMBERED_MAX {
            let oldest = self.0.iter().min_by_key(|(_, entry)| entry.since).map(|(key, _)| key.clone());
            oldest.map(|key| self.0.remove(&key));
        }
    }
}

impl FailureCount {
    fn wait(&self, now: Instant) -> Duration {
        self.line_until.saturating_duration_since(now)
    }

    fn lengthen(&mut self, step: Duration, now: Instant) {
        let until = self.line_until.max(now);
        self.line_until = until.checked_add(step).unwrap_or(until);
    }

    fn remembered(&self, now: Instant) -> u32 {
        let passed = now.saturating_duration_since(self.since).as_secs();
        let forgotten = passed.checked_div(FORGOTTEN_AFTER.as_secs()).unwrap_or(0);
        self.count.saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    /// A brake, and a time to start at.
    fn brake() -> (Brake, Instant) {
        #[expect(clippy::disallowed_methods, reason = "any time will do")]
        let now = Instant::now();
        (Brake::default(), now)
    }

    /// How many of these logons are evaluated, with one in each millisecond of a minute.
    fn heard_in_a_minute(brake: &mut Brake, from: Instant, user: impl Fn(u64) -> String) -> usize {
        let at = |tick| from + Duration::from_millis(tick);
        (0..60_000).filter(|tick| brake.failed(HERE, &user(*tick), at(*tick)).is_some()).count()
    }

    #[test]
    fn who_waits_for_each_answer_gets_the_next_one_later() {
        let (mut brake, mut now) = brake();
        let mut waited = Vec::new();
        for _ in 0..7 {
            let delay = brake.failed(HERE, "alice", now).unwrap().delay;
            waited.push(delay.as_millis());
            now += delay;
        }
        assert_eq!(waited, [250, 500, 1000, 2000, 2000, 2000, 2000]);
        // After that, the right password is answered at once.
        assert_eq!(brake.passed(HERE, "alice", now), Some(Duration::ZERO));
    }

    #[test]
    fn guessing_side_by_side_is_no_quicker() {
        let (mut brake, now) = brake();
        let heard = (0..1000).filter(|_| brake.failed(HERE, "alice", now).is_some()).count();
        // 0.25 + 0.5 + 1 and then 2 s each, until the sum exceeds ten seconds.
        assert_eq!(
            (heard, brake.passed(HERE, "alice", now)),
            (8, None),
            "also the right password is not heard"
        );
        assert_eq!(
            brake.passed(HERE, "alice", now + Duration::from_secs(2)),
            Some(Duration::from_millis(9750))
        );
        assert_eq!(brake.passed(HERE, "otto", now), Some(Duration::ZERO), "others of the address are");
        assert_eq!(brake.passed(THERE, "alice", now), Some(Duration::ZERO), "and from other addresses");
        // 30, not 80 000.
        assert_eq!(heard_in_a_minute(&mut brake, now, |_| "alice".to_owned()), 30);
    }

    #[test]
    fn one_address_does_not_guess_for_many_accounts_either() {
        let (mut brake, now) = brake();
        // A hundred at once, and then ten a second.
        assert_eq!(heard_in_a_minute(&mut brake, now, |tick| format!("user {tick}")), 700);
        let failed = brake.failed(THERE, "user 1", now).unwrap();
        assert_eq!(failed.of_address, 1);
    }

    #[test]
    fn an_account_is_slow_for_who_does_not_know_its_password() {
        let (mut brake, now) = brake();
        for host in 1..=20 {
            brake.failed([10, 1, 0, host].into(), "alice", now).unwrap();
        }
        for (name, host) in [("alice", 1), ("ALICE", 2), ("alice@REALM", 3), ("DOMAIN\\alice", 4)] {
            let failed = brake.failed([10, 2, 0, host].into(), name, now).unwrap();
            assert_eq!((failed.delay, failed.of_address), (DELAY_MAX, 1), "{name}");
        }
        assert_eq!(brake.failed(THERE, "otto", now).unwrap().delay, DELAY_FIRST);
        assert_eq!(brake.passed([10, 3, 0, 1].into(), "alice", now), Some(Duration::ZERO));
    }

    #[test]
    fn failures_are_forgotten() {
        let (mut brake, now) = brake();
        for n in 0..100 {
            brake.failed(HERE, &format!("user {n}"), now);
        }
        let mut later = |seconds| {
            let now = now + Duration::from_secs(seconds);
            brake.failed(HERE, "alice", now).unwrap().of_address
        };
        assert_eq!(later(29), FAILURES_MAX);
        assert_eq!(later(29 + 30 * 9), 2);
        assert_eq!(later(3600), 1);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest() {
        let (mut brake, now) = brake();
        for n in 0..10_000_u32 {
            let now = now + Duration::from_millis(n.into());
            let user = format!("user {n}{}", "x".repeat(100_000 * usize::from(n == 9999)));
            brake.failed(IpAddr::from(n.to_be_bytes()), &user, now).unwrap();
            let Brake { addresses, accounts, pairs } = &brake;
            assert!(
                [addresses.0.len(), accounts.0.len(), pairs.0.len()].iter().all(|n| *n <= REMEMBERED_MAX)
            );
        }
        assert!(brake.accounts.0.contains_key("USER 9998") && !brake.accounts.0.contains_key("USER 0"));
        assert!(brake.accounts.0.keys().all(|name| name.len() <= NAME_CHARS_MAX));
    }

    #[test]
    fn an_ipv6_network_is_one_address() {
        let (mut brake, now) = brake();
        let mut failed = |from: &str| brake.failed(from.parse().unwrap(), "x", now).unwrap().of_address;
        assert_eq!((failed("2001:db8::1"), failed("2001:db8::ffff:2"), failed("2001:db8:0:1::1")), (1, 2, 1));
        assert_eq!((failed("::ffff:10.0.0.1"), failed("10.0.0.1"), failed("10.0.0.2")), (1, 2, 1));
    }
}

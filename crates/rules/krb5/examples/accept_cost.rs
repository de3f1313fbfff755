//! What one token of a client costs the server: `cargo xtask bench kerberos`.
//!
//! Prints a line for each case: its name, and the best, the median and the 99th percentile in nanoseconds. The tokens of a
//! domain's users are recorded ones of Samba's domain controller; the others are made here, each with an authenticator of its
//! own. The replay cache is behind a lock, as in a server.
//!
//!     accept_cost TOKENS
#![expect(clippy::unwrap_used, reason = "a program for measuring")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

#[path = "../tests/mint/mod.rs"]
mod mint;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anabranch_krb5::crypto::Enctype;
use anabranch_krb5::keytab::Keytab;
use anabranch_krb5::{Acceptor, Noted, Randomness, ReplayCache, ReplayId, Replays, Request, Settings, Time};
use mint::{NOW, PacOf, Ticket, Token, around_pac, key, keytab};

struct Shared {
    cache: Mutex<ReplayCache>,
    /// Seconds that the cache's clock advances with each token, so that a token may come again
    step: i64,
    noted: AtomicI64,
}

impl Shared {
    fn new(step: i64) -> Self {
        let cache = ReplayCache::new(ReplayCache::CAPACITY, Duration::from_secs(300));
        Self { cache: Mutex::new(cache), step, noted: AtomicI64::new(0) }
    }
}

impl Replays for Shared {
    fn note(&self, id: ReplayId, now: Time) -> Noted {
        let before = self.noted.fetch_add(1, Ordering::Relaxed);
        self.cache.lock().unwrap().note(id, Time::from_unix(now.as_unix() + before * self.step))
    }
}

fn main() {
    let count = std::env::args().nth(1).map_or(3000, |count| count.parse().unwrap());
    for (name, file) in [("7 SIDs", "samba-alice.txt"), ("153 SIDs", "samba-many.txt")] {
        print(&format!("a domain's user, {name}"), recorded(file, count));
    }
    let (sha1, sha2) = (Enctype::Aes256Sha1, Enctype::Aes256Sha384);
    let with_pac =
        |enctype, sids| Ticket { authorization_data: Some(pac(enctype, sids)), ..Ticket::new(enctype) };
    let cases = [
        ("the same, made here: 7 SIDs", with_pac(sha1, 7)),
        ("the same, made here: 153 SIDs", with_pac(sha1, 153)),
        ("aes256-sha384, 7 SIDs", with_pac(sha2, 7)),
        ("aes256-sha1, no PAC", Ticket::new(sha1)),
        ("aes256-sha384, no PAC", Ticket::new(sha2)),
        ("refused: no such service", Ticket { service: &["cifs", "other"], ..Ticket::new(sha1) }),
        ("refused: another key, 7 SIDs", Ticket { key: key(sha1, 9), ..with_pac(sha1, 7) }),
    ];
    for (name, ticket) in cases {
        print(name, made(&ticket, count));
    }
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_nanos();
    println!("{name}\t{}\t{}\t{}", at(0), at(50), at(99));
}

/// A PAC with this many SIDs, in the proportions of a domain's user.
fn pac(enctype: Enctype, sids: u32) -> Vec<u8> {
    let groups = (0..sids - 4).map(|n| if n == 0 { 513 } else { 2000 + n }).collect();
    around_pac(&PacOf { groups, ..PacOf::new() }.signed(&key(enctype, 0x11)))
}

/// A recorded token of a client of Samba's domain controller, again and again.
fn recorded(file: &str, count: u32) -> Vec<Duration> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/recorded");
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let after = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).unwrap();
    let keytab = Keytab::parse(&std::fs::read(folder.join(after("keytab "))).unwrap()).unwrap();
    let now = after("> now ").parse().unwrap();
    let token = after("> token ").as_bytes().chunks(2);
    let token: Vec<u8> =
        token.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
    let acceptor = Acceptor::new(keytab, Settings::default());
    let replays = Shared::new(1200);
    (0..count).map(|_| accept(&acceptor, &token, now, &replays, true)).collect()
}

/// New tokens, each with an authenticator of its own.
fn made(ticket: &Ticket<'_>, count: u32) -> Vec<Duration> {
    let enctype = ticket.session.enctype();
    let acceptor = Acceptor::new(keytab(&key(enctype, 0x11)), Settings::default());
    let replays = Shared::new(0);
    let base = Token::new(ticket);
    let tokens: Vec<_> =
        (0..count).map(|cusec| Token { cusec: cusec.into(), ..base.clone() }.encode()).collect();
    let good = ticket.key.as_bytes() == key(enctype, 0x11).as_bytes() && ticket.service == mint::SERVICE;
    tokens.iter().map(|token| accept(&acceptor, token, NOW, &replays, good)).collect()
}

fn accept(acceptor: &Acceptor, token: &[u8], now: i64, replays: &Shared, good: bool) -> Duration {
    let randomness = Randomness { confounder: [1; 16], subkey: [4; 32].into(), sequence_number: [0; 4] };
    let request = Request { token, now: Time::from_unix(now), channel: None, randomness: &randomness };
    let begun = Instant::now();
    let outcome = acceptor.accept(&request, replays);
    let time = begun.elapsed();
    assert_eq!(outcome.is_ok(), good);
    time
}

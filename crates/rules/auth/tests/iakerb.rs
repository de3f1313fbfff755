//! Exchanges of MIT's library that were recorded (`tests/interop/iakerb.sh --record`), as they were and with anything changed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod proxy;

use std::sync::Arc;

use anabranch_auth::{Acceptor, AccountList, Config, Step};

/// What a client sent and got.
struct Recorded {
    now: u64,
    /// In the order of their exchange
    client: Vec<Vec<u8>>,
    server: Vec<Vec<u8>>,
    /// The account, and the session key in hexadecimal digits
    done: String,
}

impl Recorded {
    fn all() -> [Self; 2] {
        [include_str!("../testdata/iakerb/mit-1.20.txt"), include_str!("../testdata/iakerb/mit-1.22.txt")]
            .map(Self::read)
    }

    fn read(text: &str) -> Self {
        let of = |mark: &'static str| text.lines().filter_map(move |line| line.strip_prefix(mark));
        let tokens = |mark| of(mark).map(proxy::bytes).collect();
        let now = of("now ").next().unwrap().parse().unwrap();
        Self { now, client: tokens("> "), server: tokens("< "), done: of("done ").next().unwrap().to_owned() }
    }

    /// An exchange after so many of its tokens.
    fn after(&self, config: &Arc<Config>, accounts: &AccountList, tokens: usize) -> Acceptor {
        let mut acceptor = proxy::acceptor(config, self.now);
        for (token, expected) in self.client.iter().zip(&self.server).take(tokens) {
            let Step::Continue { reply, next, .. } = acceptor.step(token, accounts) else { panic!("an end") };
            assert_eq!(reply, *expected);
            acceptor = next;
        }
        acceptor
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The account and the key, if the client has authenticated.
fn outcome(step: &Step) -> Option<String> {
    let Step::Done(done) = step else { return None };
    Some(format!("{} {}", done.identity.name(), hex(done.session_key.as_bytes())))
}

#[test]
fn what_was_recorded_is_answered_as_it_was() {
    let accounts = proxy::accounts();
    for recorded in Recorded::all() {
        let config = proxy::config();
        let last = recorded.after(&config, &accounts, recorded.server.len());
        let step = last.step(recorded.client.last().unwrap(), &accounts);
        assert_eq!(outcome(&step), Some(recorded.done.clone()));
        // The same again: the ticket was used.
        let last = recorded.after(&config, &accounts, recorded.server.len());
        assert_eq!(outcome(&last.step(recorded.client.last().unwrap(), &accounts)), None);
    }
}

/// Each token with a bit changed or cut. Whoever still gets through is anna with the key of the recording, and only if the
/// last token was changed where no key covers it.
#[test]
fn a_changed_bit_or_a_cut_makes_no_other_client() {
    let accounts = proxy::accounts();
    for recorded in Recorded::all() {
        let tokens = recorded.client.len();
        for (number, whole) in recorded.client.iter().enumerate() {
            let config = proxy::config();
            let cut = (0..whole.len()).step_by(3).map(|length| whole[..length].to_vec());
            let flipped = (0..whole.len() * 8).step_by(5).map(|bit| {
                let mut changed = whole.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                changed
            });
            for changed in cut.chain(flipped) {
                let config = if number + 1 == tokens { proxy::config() } else { Arc::clone(&config) };
                let before = recorded.after(&config, &accounts, number);
                match before.step(&changed, &accounts) {
                    Step::Fail(_) => {}
                    step @ Step::Ask(_) => panic!("an account has its numbers: {step:?}"),
                    step @ Step::Done(_) => assert_eq!(outcome(&step), Some(recorded.done.clone())),
                    Step::Continue { reply, next, .. } => {
                        // The rest as it was: the checksum of the last token covers all before it.
                        let same = recorded.server.get(number) == Some(&reply);
                        assert!(number + 1 < tokens, "the ticket is the end");
                        let mut next = Some(next);
                        for token in &recorded.client[number + 1..] {
                            let Some(acceptor) = next.take() else { break };
                            match acceptor.step(token, &accounts) {
                                Step::Continue { next: more, .. } => next = Some(more),
                                step @ (Step::Done(_) | Step::Ask(_)) => {
                                    panic!("token {number}, same {same}: {step:?}")
                                }
                                Step::Fail(_) => {}
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn no_bytes_make_the_acceptor_panic() {
    let accounts = proxy::accounts();
    let recorded = &Recorded::all()[1];
    bolero::check!().for_each(|bytes: &[u8]| {
        let config = proxy::config();
        for number in [0, recorded.server.len()] {
            let _ = recorded.after(&config, &accounts, number).step(bytes, &accounts);
        }
    });
}

#[test]
fn a_client_that_never_comes_to_an_end_is_refused() {
    let accounts = proxy::accounts();
    let recorded = &Recorded::all()[1];
    let mut acceptor = proxy::acceptor(&proxy::config(), recorded.now);
    let mut rounds = 0;
    while let Step::Continue { next, .. } = acceptor.step(&recorded.client[0], &accounts) {
        acceptor = next;
        rounds += 1;
        assert!(rounds <= 16, "a limit");
    }
    assert_eq!(rounds, 16);
}

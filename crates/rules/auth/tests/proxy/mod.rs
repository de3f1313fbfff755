//! A server whose accounts log on by IAKERB, and that is asked in words. The commands are in `examples/iakerb.rs`.
#![allow(dead_code, reason = "each program uses a part")]

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_auth::ntlm::ServerNames;
use anabranch_auth::{Acceptor, Account, AccountList, Authenticated, Config, Iakerb, Nonces, Ntlm, Step};
use kdc::{ClientKeys, Kdc, Randomness};
use krb5::{Enctype, Noted, ReplayCache, ReplayId, Replays, Time, string_to_key};

pub(crate) const REALM: &str = "FILES.TEST";
pub(crate) const PASSWORD: &str = "correct horse";
/// 100 ns, in which FILETIME counts, in a second; and seconds from 1601 to 1970.
const TICKS: u64 = 10_000_000;
const UNIX_EPOCH: u64 = 11_644_473_600;

struct Cache(Mutex<ReplayCache>);

impl Replays for Cache {
    fn note(&self, id: ReplayId, now: Time) -> Noted {
        self.0.lock().unwrap().note(id, now)
    }
}

/// How the server authenticates. Each has a cache of used tickets of its own.
pub(crate) fn config() -> Arc<Config> {
    let settings = kdc::Settings {
        realm: REALM.to_owned(),
        services: vec!["cifs".to_owned()],
        domain: "FILES".to_owned(),
        clock_skew: Duration::from_secs(300),
        lifetime: Duration::from_secs(36_000),
    };
    let kdc = Kdc::new(settings, &[[1; 32].into(), [2; 32].into(), [3; 32].into()]).unwrap();
    let cache = Cache(Mutex::new(ReplayCache::new(1000, Duration::from_secs(300))));
    let names = ServerNames {
        nb_computer: "FILES".to_owned(),
        nb_domain: "FILES".to_owned(),
        dns_computer: "files".to_owned(),
        dns_domain: String::new(),
    };
    let iakerb = Some(Arc::new(Iakerb::new(kdc, Arc::new(cache)).unwrap()));
    Arc::new(Config { names, allow_anonymous: false, guest: None, kerberos: None, iakerb, ntlm: Ntlm::Off })
}

/// The accounts anna and gone. Their keys take a while in a build that is not optimized.
pub(crate) fn accounts() -> AccountList {
    let account = |name: &str, rid: u32, disabled| {
        let salt = format!("{REALM}{name}");
        let key = |enctype| string_to_key(enctype, PASSWORD, salt.as_bytes()).unwrap();
        let keys = vec![key(Enctype::Aes256Sha384), key(Enctype::Aes256Sha1)];
        Account {
            name: name.to_owned(),
            nt_hash: None,
            keys: Some(Arc::new(ClientKeys { salt, keys })),
            uid: rid,
            gid: rid,
            groups: Vec::new(),
            sid: Some(format!("S-1-5-21-1-2-3-{rid}").parse().unwrap()),
            disabled,
        }
    };
    AccountList(vec![account("anna", 1000, false), account("gone", 1001, true)])
}

pub(crate) fn acceptor(config: &Arc<Config>, now: u64) -> Acceptor {
    let nonces = Nonces {
        server_challenge: [0x50; 8],
        confounder: [0x51; 16],
        subkey: [0x52; 32],
        sequence_number: [0, 0, 1, 0],
        kdc: [5, 6, 7].map(|fill| Randomness::new([fill; 32], [fill; 16], [fill; 16])),
    };
    Acceptor::new(Arc::clone(config), nonces, (now + UNIX_EPOCH) * TICKS)
}

pub(crate) struct Session {
    accounts: AccountList,
    now: u64,
    acceptor: RefCell<Option<Acceptor>>,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self { accounts: accounts(), now: 0, acceptor: RefCell::new(None) }
    }

    /// The reply to a command.
    pub(crate) fn command(&mut self, line: &str) -> String {
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["now", seconds] => {
                self.now = seconds.parse().unwrap();
                *self.acceptor.borrow_mut() = Some(acceptor(&config(), self.now));
                "ok".to_owned()
            }
            ["token", token] => self.token(&bytes(token)),
            _ => "fail no such command".to_owned(),
        }
    }

    fn token(&self, token: &[u8]) -> String {
        let Some(acceptor) = self.acceptor.borrow_mut().take() else { return "fail no exchange".to_owned() };
        match acceptor.step(token, &self.accounts) {
            Step::Continue { reply, next, .. } => {
                *self.acceptor.borrow_mut() = Some(next);
                format!("continue {}", hex(&reply))
            }
            Step::Done(Authenticated { identity, session_key, reply, .. }) => {
                format!("done {} {} {}", identity.name(), hex(session_key.as_bytes()), hex(&reply))
            }
            // An account has its numbers.
            Step::Ask(_) => "fail numbers".to_owned(),
            Step::Fail(failure) => format!("fail {}", failure.reason),
        }
    }
}

pub(crate) fn bytes(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! An acceptor that is asked in words, for tests that have another program as the client, and for what was recorded of them.
//!
//! `now SECONDS` sets the clock, which stands. `token HEX` is the first token of a client: `ok CLIENT REPLY` or
//! `no REASON REPLY`. After that, `mic HEX`, `seal HEX` and `sign HEX` make tokens, `verify HEX MIC` and `unwrap HEX` take
//! the client's; `sids` are the SIDs of the client, and `key` is the session key. Bytes are hexadecimal, and `-` is none.
//! The random numbers are not random, so that a session can be recorded and repeated.

use std::cell::RefCell;
use std::time::Duration;

use anabranch_krb5::keytab::Keytab;
use anabranch_krb5::{
    Accepted, Acceptor, Noted, PerMessage, Protection, Randomness, ReplayCache, ReplayId, Replays, Request,
    Settings, Time,
};

struct Cell(RefCell<ReplayCache>);

impl Replays for Cell {
    fn note(&self, id: ReplayId, now: Time) -> Noted {
        self.0.borrow_mut().note(id, now)
    }
}

pub(crate) struct Session {
    acceptor: Acceptor,
    replays: Cell,
    now: Time,
    accepted: Option<(Accepted, PerMessage)>,
}

impl Session {
    /// A session of a server with this keytab.
    pub(crate) fn new(keytab: &[u8]) -> Self {
        let keytab = Keytab::parse(keytab).unwrap_or_else(|error| panic!("{error}"));
        let services = ["cifs", "nfs", "host", "HTTP"].map(str::to_owned).to_vec();
        let acceptor = Acceptor::new(keytab, Settings { services, ..Settings::default() });
        let replays = Cell(RefCell::new(ReplayCache::new(100_000, Duration::from_secs(300))));
        Self { acceptor, replays, now: Time::from_unix(0), accepted: None }
    }

    /// The reply to a command.
    pub(crate) fn command(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.words(&words)
    }

    fn words(&mut self, words: &[&str]) -> String {
        match words {
            ["now", seconds] => {
                self.now = Time::from_unix(seconds.parse().unwrap());
                "ok".to_owned()
            }
            ["token", token] => self.token(&bytes(token)),
            _ => match &self.accepted {
                Some((accepted, context)) => after(accepted, context, words),
                None => "no client".to_owned(),
            },
        }
    }

    /// The reply to a token.
    pub(crate) fn token(&mut self, token: &[u8]) -> String {
        let randomness =
            Randomness { confounder: [0x51; 16], subkey: [0x52; 32].into(), sequence_number: [0, 0, 1, 0] };
        let request = Request { token, now: self.now, channel: None, randomness: &randomness };
        match self.acceptor.accept(&request, &self.replays) {
            Ok(accepted) => {
                let said = format!("ok {} {}", accepted.client, hex(&accepted.reply));
                let context = accepted.context.per_message().unwrap();
                self.accepted = Some((accepted, context));
                said
            }
            Err(refused) => {
                format!("no {} {}", refused.reason.label(), hex(&refused.reply.unwrap_or_default()))
            }
        }
    }
}

fn after(accepted: &Accepted, context: &PerMessage, words: &[&str]) -> String {
    let number = accepted.context.sequence_number();
    match words {
        ["key"] => hex(accepted.context.session_key().as_bytes()),
        ["sids"] => match accepted.pac.as_ref().map(|pac| &pac.logon) {
            None => "no PAC".to_owned(),
            Some(None) => "no user".to_owned(),
            Some(Some(logon)) => {
                let groups: Vec<String> = logon.groups().iter().map(ToString::to_string).collect();
                format!("{} {}", logon.sid, groups.join(" "))
            }
        },
        ["mic", message] => hex(context.mic(number, &[&bytes(message)]).as_ref()),
        ["verify", message, mic] => match context.verify_mic(&[&bytes(message)], &bytes(mic)) {
            Ok(number) => format!("ok {number}"),
            Err(error) => format!("no {error}"),
        },
        ["seal", message] => {
            let mut buffer = vec![0; PerMessage::SEALED_HEAD];
            buffer.extend(bytes(message));
            buffer.resize(buffer.len() + context.sealed_tail(), 0);
            context.seal(number, &[0x53; 16], &mut buffer).unwrap();
            hex(&buffer)
        }
        ["sign", message] => {
            let mut buffer = vec![0; PerMessage::SIGNED_HEAD];
            buffer.extend(bytes(message));
            buffer.resize(buffer.len() + context.signed_tail(), 0);
            context.sign(number, &mut buffer).unwrap();
            hex(&buffer)
        }
        ["unwrap", token] => {
            let mut token = bytes(token);
            match context.unwrap(&mut token) {
                Ok(unwrapped) => {
                    let sealed = unwrapped.protection == Protection::Sealed;
                    let how = if sealed { "sealed" } else { "signed" };
                    format!("{how} {} {}", unwrapped.sequence_number, hex(&token[unwrapped.message]))
                }
                Err(error) => format!("no {error}"),
            }
        }
        other => panic!("what is {other:?}"),
    }
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a text.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    let text = if text == "-" { "" } else { text };
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

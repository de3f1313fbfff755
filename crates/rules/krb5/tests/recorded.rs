//! Sessions with real clients and tickets of real KDCs, as they were recorded (testdata/recorded/README.md).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod session;

use std::fs;
use std::path::{Path, PathBuf};

use session::{Session, bytes};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/recorded")
}

/// A recorded session: its name, its keytab, its commands with the replies.
struct Recorded {
    name: String,
    keytab: Vec<u8>,
    commands: Vec<(String, String)>,
}

fn sessions() -> Vec<Recorded> {
    let mut paths: Vec<_> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "txt"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let mut lines = text.lines();
        let keytab = fs::read(folder().join(lines.next().unwrap().strip_prefix("keytab ").unwrap())).unwrap();
        let lines: Vec<_> = lines.collect();
        let pairs = lines.chunks(2).map(|pair| {
            (pair[0].strip_prefix("> ").unwrap().to_owned(), pair[1].strip_prefix("< ").unwrap().to_owned())
        });
        Recorded { name: path.file_stem().unwrap().display().to_string(), keytab, commands: pairs.collect() }
    };
    paths.iter().map(read).collect()
}

#[test]
fn recorded_sessions_go_on_as_they_went() {
    let sessions = sessions();
    assert!(sessions.len() >= 4, "{} sessions", sessions.len());
    for Recorded { name, keytab, commands } in sessions {
        let mut session = Session::new(&keytab);
        for (command, reply) in commands {
            let shown = command.get(..40).unwrap_or(&command);
            assert_eq!(session.command(&command), reply, "{name}: {shown}");
        }
    }
}

/// The commands up to the token, and the token.
fn token(commands: &[(String, String)]) -> (&str, Vec<u8>, &str) {
    let now = &commands[0].0;
    let (command, reply) = &commands[1];
    (now, bytes(command.strip_prefix("token ").unwrap()), reply)
}

#[test]
fn a_changed_bit_or_length_of_a_recorded_token_admits_nobody_else() {
    for Recorded { name, keytab, commands } in sessions() {
        let (now, whole, good) = token(&commands);
        let mut session = Session::new(&keytab);
        session.command(now);
        assert_eq!(session.token(&whole), good, "{name}");
        // of the token with 153 SIDs a part, which takes seconds
        let step = if whole.len() < 2500 { 1 } else { 13 };
        let mut replayed = 0;
        for bit in (0..whole.len() * 8).step_by(step) {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let reply = session.token(&changed);
            // the cache knows the authenticator: all else of the token was right
            assert!(reply.starts_with("no "), "{name}: bit {bit}: {reply}");
            replayed += usize::from(reply.starts_with("no replayed"));
        }
        assert!(replayed < 600, "{name}: {replayed} changes do not matter");
        for length in (0..whole.len()).step_by(step) {
            let reply = session.token(&whole[..length]);
            assert!(reply.starts_with("no ") && !reply.starts_with("no replayed"), "{name}: {length}");
        }
    }
}

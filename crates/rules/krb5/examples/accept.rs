//! An acceptor on standard input, for tests with other programs as clients: a command a line, a reply a line. The commands
//! are in `tests/session/mod.rs`.
//!
//!     accept KEYTAB-FILE
#![expect(clippy::unwrap_used, reason = "a program for tests")]

#[path = "../tests/session/mod.rs"]
mod session;

use std::io::{BufRead, Write};

fn main() {
    let file = std::env::args().nth(1).unwrap_or_else(|| panic!("usage: accept KEYTAB-FILE"));
    let mut session = session::Session::new(&std::fs::read(&file).unwrap());
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(output, "{}", session.command(&line.unwrap())).unwrap();
        output.flush().unwrap();
    }
}

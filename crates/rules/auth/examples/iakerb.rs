//! The acceptor of a server whose accounts log on by IAKERB, on standard input, for tests with other programs as clients: a
//! command a line, a reply a line.
//!
//! `now SECONDS` sets the clock, which stands. `token HEX` is the next token of the client: `continue HEX`,
//! `done ACCOUNT SESSION-KEY HEX` or `fail REASON`. Bytes are hexadecimal, and `-` is none. There are the accounts anna and
//! gone (disabled) in the realm FILES.TEST, both with the password `correct horse`. The random numbers are not random, so
//! that an exchange can be recorded and repeated.
#![expect(clippy::unwrap_used, reason = "a program for tests")]

#[path = "../tests/proxy/mod.rs"]
mod proxy;

use std::io::{BufRead, Write};

fn main() {
    let mut session = proxy::Session::new();
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(output, "{}", session.command(&line.unwrap())).unwrap();
        output.flush().unwrap();
    }
}

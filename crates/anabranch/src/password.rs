//! A password from the person at the terminal, or from standard input; never from the command line, which others can see.

use std::io::{self, BufRead, IsTerminal, Write};

use control::users::Password;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::problem::{Cause, Problem, Result};

/// Bytes of a line that is read.
const LINE_BYTES_MAX: u64 = 4096;

/// Asks twice at a terminal; else reads the first line of standard input.
///
/// # Errors
/// There is none, or the two differ.
pub(crate) fn read(user: &str) -> Result<Password> {
    let password = if io::stdin().is_terminal() {
        let password = ask(&format!("Password of {user}: "))?;
        if ask("Again: ")? != password {
            return Err(Problem::new(Cause::Refused, "the two passwords differ", "Type the same one twice."));
        }
        password
    } else {
        line().map_err(trouble)?
    };
    if password.is_empty() {
        let advice =
            "Type it, or give it on standard input: printf '%s\\n' \"$PASSWORD\" | anabranch user ...";
        return Err(Problem::new(Cause::Refused, format!("there is no password for {user}"), advice));
    }
    Ok(Password(password))
}

fn trouble(e: impl std::fmt::Display) -> Problem {
    Problem::new(Cause::Refused, format!("cannot read the password: {e}"), "")
}

fn line() -> io::Result<String> {
    let mut line = String::new();
    io::BufReader::new(io::Read::take(io::stdin(), LINE_BYTES_MAX)).read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// A terminal that does not show what is typed, until this is dropped.
struct Silent(Termios);

impl Silent {
    fn begin() -> rustix::io::Result<Self> {
        let shown = tcgetattr(io::stdin())?;
        let mut silent = shown.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(shown))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
        eprintln!();
    }
}

fn ask(prompt: &str) -> Result<String> {
    eprint!("{prompt}");
    io::stderr().flush().map_err(trouble)?;
    let _silent = Silent::begin().map_err(trouble)?;
    let mut line = String::new();
    // No buffer of our own: it would take the answer to the next question.
    io::stdin().lock().read_line(&mut line).map_err(trouble)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

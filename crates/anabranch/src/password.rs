//! A password from the person at the terminal, from standard input or from a file; never from the command line, which others
//! can see.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::fs::MetadataExt;

use control::users::Password;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::config::READ_BY_OTHERS;
use crate::problem::{Cause, Problem, Result};
use crate::settings::PasswordFileGiven;

/// Bytes of a line that is read.
const LINE_BYTES_MAX: u64 = 4096;

/// The password that a user has in a file, or on standard input.
///
/// # Errors
/// The file cannot be read, others may read it, or it has no password.
pub(crate) fn of_file(given: &PasswordFileGiven) -> Result<String> {
    let name = &given.name;
    let wrong = |what: String, advice: String| Problem::new(Cause::Settings, what, advice);
    let place =
        given.file.as_ref().map_or_else(|| "standard input".to_owned(), |file| file.display().to_string());
    let trouble =
        |e: io::Error| wrong(format!("cannot read the password of {name} from {place}: {e}"), String::new());
    let line = match &given.file {
        None if io::stdin().is_terminal() => ask(&format!("Password of {name}: "))?,
        None => first_line(io::stdin()).map_err(trouble)?,
        Some(file) => {
            let open = File::open(file).map_err(trouble)?;
            let found = open.metadata().map_err(trouble)?;
            if found.is_file() && found.mode() & READ_BY_OTHERS != 0 {
                let what = format!(
                    "users other than its owner may read {place}, which contains the password of {name}"
                );
                return Err(wrong(what, format!("chmod 600 {place}")));
            }
            first_line(open).map_err(trouble)?
        }
    };
    if line.is_empty() {
        return Err(wrong(
            format!("there is no password for {name} in {place}"),
            "The password is the first line.".to_owned(),
        ));
    }
    Ok(line)
}

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
        first_line(io::stdin()).map_err(trouble)?
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

/// The first line, without its end.
fn first_line(from: impl Read) -> io::Result<String> {
    let mut line = String::new();
    io::BufReader::new(from.take(LINE_BYTES_MAX)).read_line(&mut line)?;
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

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_password_is_the_first_line_of_a_file_that_nobody_else_may_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        let given = PasswordFileGiven { name: "anna".to_owned(), file: Some(file.clone()) };
        let missing = of_file(&given).unwrap_err();
        assert!(missing.cause == Cause::Settings && missing.what.contains("No such file"), "{missing}");
        for (text, expected) in
            [("pw", "pw"), ("pw\n", "pw"), ("p w \r\nmore\n", "p w "), ("\u{e9}=:\n", "\u{e9}=:")]
        {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            assert_eq!(of_file(&given).unwrap(), expected);
        }
        for mode in [0o604, 0o640, 0o644] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let refused = of_file(&given).unwrap_err();
            assert!(refused.what.contains("users other than its owner may read"), "{mode:o}: {refused}");
            assert!(refused.advice.starts_with("chmod 600 "), "{refused}");
        }
        fs::set_permissions(&file, Permissions::from_mode(0o400)).unwrap();
        assert!(of_file(&given).is_ok());
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        for nothing in ["", "\n", "\npw"] {
            fs::write(&file, nothing).unwrap();
            assert!(of_file(&given).unwrap_err().what.contains("there is no password for anna"));
        }
    }
}

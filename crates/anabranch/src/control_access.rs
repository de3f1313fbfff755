//! How a command finds the server that runs, and shows that it may ask: two files in the state directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use control::Token;

use crate::problem::{Cause, Problem, Result};

/// Where the running server's control address is; there only while it runs, or after it was killed.
const ADDRESS_FILE: &str = "control-address";
/// What callers of its API show; for the owner of the state directory only.
const TOKEN_FILE: &str = "control-token";
/// Bytes of either file at most.
const FILE_BYTES_MAX: u64 = 4096;

/// The files of a server that runs. Dropped when it ends.
#[derive(Debug)]
pub(crate) struct Published {
    address_file: PathBuf,
}

/// Where a server answers, and what it must be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// A token for a server that starts, written into its state directory.
///
/// # Errors
/// The directory cannot be written.
pub(crate) fn make_token(state: &Path) -> Result<Token> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|e| Problem::new(Cause::Serving, format!("no random numbers: {e}"), ""))?;
    let token = Token::new(random);
    write(&state.join(TOKEN_FILE), token.as_str())?;
    Ok(token)
}

/// Tells commands where the server answers, until the returned value is dropped.
///
/// # Errors
/// The directory cannot be written.
pub(crate) fn publish(state: &Path, address: SocketAddr) -> Result<Published> {
    let address_file = state.join(ADDRESS_FILE);
    write(&address_file, &address.to_string())?;
    Ok(Published { address_file })
}

impl Drop for Published {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_file(&self.address_file) {
            tracing::warn!("cannot remove {}: {e}", self.address_file.display());
        }
    }
}

/// Writes a line into a file that only its owner can read; whoever reads it sees all of it or the one before.
fn write(file: &Path, line: &str) -> Result<()> {
    let trouble = |e: io::Error| {
        Problem::new(
            Cause::State,
            format!("cannot write {}: {e}", file.display()),
            "Pass a directory that this user may write: --state DIR",
        )
    };
    let new = file.with_extension("new");
    match fs::remove_file(&new) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(trouble(e)),
        _ => {}
    }
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(trouble)?;
    writeln!(open, "{line}").map_err(trouble)?;
    fs::rename(&new, file).map_err(trouble)
}

/// The server that serves from this state directory; `given` is its control address where the caller knows better.
///
/// # Errors
/// None runs, or the token may not be read.
pub(crate) fn find(state: &Path, given: Option<SocketAddr>) -> Result<Access> {
    let token = read(state, TOKEN_FILE)?;
    let address = match given {
        Some(address) => address,
        None => {
            let file = state.join(ADDRESS_FILE);
            read(state, ADDRESS_FILE)?.parse().map_err(|_| {
                let what = format!("{} holds no address", file.display());
                Problem::new(Cause::Asking, what, "Pass it: --control ADDR:PORT")
            })?
        }
    };
    Ok(Access { address: reachable(address), token })
}

/// Whether a server has said where it answers; it may have been killed since.
pub(crate) fn is_published(state: &Path) -> bool {
    state.join(ADDRESS_FILE).exists()
}

/// A server that listens on all addresses is asked on this machine's own.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn read(state: &Path, name: &str) -> Result<String> {
    let file = state.join(name);
    let mut text = String::new();
    let read = File::open(&file).and_then(|open| open.take(FILE_BYTES_MAX).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(text.trim().to_owned()),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(Problem::new(
            Cause::Asking,
            format!("no server runs with the state directory {} (there is no {name})", state.display()),
            "Start it, or name the directory of the one that runs: --state DIR",
        )),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(Problem::new(
            Cause::Asking,
            format!("this user may not read {}", file.display()),
            "Run the command as the user who runs the server (or with sudo).",
        )),
        Err(e) => Err(Problem::new(Cause::Asking, format!("cannot read {}: {e}", file.display()), "")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_running_server_is_found_until_it_ends() {
        let state = tempfile::tempdir().unwrap();
        let missing = find(state.path(), None).unwrap_err();
        assert!(missing.cause == Cause::Asking && missing.what.contains("no server runs"), "{missing}");
        let token = make_token(state.path()).unwrap();
        let published = publish(state.path(), "0.0.0.0:8080".parse().unwrap()).unwrap();
        let access = find(state.path(), None).unwrap();
        assert_eq!(access.address, "127.0.0.1:8080".parse().unwrap());
        assert_eq!(access.token, token.as_str());
        for name in [ADDRESS_FILE, TOKEN_FILE] {
            let mode = fs::metadata(state.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        let given = "[::]:1".parse().unwrap();
        assert_eq!(find(state.path(), Some(given)).unwrap().address, "[::1]:1".parse().unwrap());
        drop(published);
        assert!(find(state.path(), None).unwrap_err().what.contains("no server runs"));
        assert!(find(state.path(), Some(given)).is_ok());
    }

    #[test]
    fn each_start_has_a_token_of_its_own() {
        let state = tempfile::tempdir().unwrap();
        let first = make_token(state.path()).unwrap();
        assert_ne!(first, make_token(state.path()).unwrap());
    }

    #[test]
    fn nonsense_is_explained() {
        let state = tempfile::tempdir().unwrap();
        make_token(state.path()).unwrap();
        write(&state.path().join(ADDRESS_FILE), "here").unwrap();
        let problem = find(state.path(), None).unwrap_err();
        assert!(
            problem.what.contains("holds no address") && problem.advice.contains("--control"),
            "{problem}"
        );
    }
}

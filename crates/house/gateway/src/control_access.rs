//! Files in the state directory by which a command finds the running server, recognises it, and authenticates itself.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use control::Token;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::problem::{Cause, Problem, Result};

/// The file with the control address of the running server. It exists only while the server runs, or after it was
/// killed.
const ADDRESS_FILE: &str = "control-address";
/// The file with the token that callers of the API show. Only the owner of the state directory can read it.
const TOKEN_FILE: &str = "control-token";
/// The file with the certificate of the control address, in PEM. It exists only if the control address uses TLS.
const CERTIFICATE_FILE: &str = "control-certificate.pem";
/// The most bytes of each file.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The files of a running server. Dropping the value removes them.
#[derive(Debug)]
pub(crate) struct Published {
    address_file: PathBuf,
}

/// How to reach a server, and how to authenticate to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The address at which the control address can be reached from this machine.
    pub address: SocketAddr,
    /// The token that callers show.
    pub token: String,
    /// The certificate that the control address shows; None: it does not use TLS.
    pub certificate: Option<CertificateDer<'static>>,
}

/// Makes a token for a server that starts, and writes it into the state directory.
///
/// # Errors
/// The directory cannot be written.
pub(crate) fn make_token(state: &Path) -> Result<Token> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|e| Problem::new(Cause::Serving, format!("no random numbers: {e}"), ""))?;
    let token = Token::new(random);
    write_private(&state.join(TOKEN_FILE), token.as_str())?;
    Ok(token)
}

/// Publishes the address of the server and its certificate (PEM) for commands, until the returned value is dropped.
///
/// # Errors
/// The directory cannot be written.
pub(crate) fn publish(state: &Path, address: SocketAddr, certificate: Option<&str>) -> Result<Published> {
    let certificate_file = state.join(CERTIFICATE_FILE);
    match certificate {
        Some(certificate) => publish_certificate(state, certificate)?,
        None => match fs::remove_file(&certificate_file) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(cannot_write(&certificate_file, &e)),
            _ => {}
        },
    }
    let address_file = state.join(ADDRESS_FILE);
    write_private(&address_file, &format!("{address}\n{}", identity(state)?))?;
    Ok(Published { address_file })
}

/// Publishes the certificate (PEM) of the running server.
///
/// # Errors
/// The directory cannot be written.
pub(crate) fn publish_certificate(state: &Path, certificate: &str) -> Result<()> {
    write_private(&state.join(CERTIFICATE_FILE), certificate.trim_end())
}

impl Drop for Published {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_file(&self.address_file) {
            tracing::warn!("cannot remove {}: {e}", self.address_file.display());
        }
    }
}

/// Writes a text into a file that only its owner can read. A reader sees either the whole new text or the whole old
/// one.
///
/// # Errors
/// The directory cannot be written.
pub fn write_private(file: &Path, text: &str) -> Result<()> {
    let trouble = |e: io::Error| cannot_write(file, &e);
    let new = file.with_extension("new");
    match fs::remove_file(&new) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(trouble(e)),
        _ => {}
    }
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(trouble)?;
    writeln!(open, "{text}").map_err(trouble)?;
    fs::rename(&new, file).map_err(trouble)
}

fn cannot_write(file: &Path, error: &io::Error) -> Problem {
    Problem::new(
        Cause::State,
        format!("cannot write {}: {error}", file.display()),
        "Pass a directory that this user may write: --state DIR",
    )
}

/// Finds the server that uses this state directory. `given` is its control address, if the caller knows it better.
///
/// # Errors
/// No server is running, or the token cannot be read.
pub fn find(state: &Path, given: Option<SocketAddr>) -> Result<Access> {
    let token = read(state, TOKEN_FILE)?;
    let address = match given {
        Some(address) => address,
        None => {
            let text = read(state, ADDRESS_FILE)?;
            let (address, of) = text.split_once('\n').unwrap_or((&text, ""));
            if of != identity(state)? {
                let what = format!("no server is running with the state directory {}", state.display());
                let copy = "It is a copy of one. Start a server with it, or name the directory of the one that runs: --state DIR";
                return Err(Problem::new(Cause::Asking, what, copy));
            }
            address.parse().map_err(|_| {
                let what = format!("{} holds no address", state.join(ADDRESS_FILE).display());
                Problem::new(Cause::Asking, what, "Pass it: --control ADDR:PORT")
            })?
        }
    };
    Ok(Access { address: reachable(address), token, certificate: certificate(state)? })
}

/// The certificate of a server that uses TLS.
fn certificate(state: &Path) -> Result<Option<CertificateDer<'static>>> {
    let file = state.join(CERTIFICATE_FILE);
    if !file.exists() {
        return Ok(None);
    }
    let text = read(state, CERTIFICATE_FILE)?;
    CertificateDer::from_pem_slice(text.as_bytes()).map(Some).map_err(|e| {
        let what = format!("{} holds no certificate: {e}", file.display());
        Problem::new(Cause::Asking, what, "Start the server again: it writes the file.")
    })
}

/// Whether a server has published its address; it may have been killed since. The address in a copy of a state
/// directory does not count: it belongs to the server of the original.
pub fn is_published(state: &Path) -> bool {
    let of = read(state, ADDRESS_FILE).ok().and_then(|text| Some(text.split_once('\n')?.1.to_owned()));
    of.is_some_and(|of| identity(state).is_ok_and(|identity| of == identity))
}

/// Identifies the directory by its device and inode, which no copy shares.
fn identity(state: &Path) -> Result<String> {
    let found = fs::metadata(state).map_err(|e| {
        let what = format!("cannot use the state directory {}: {e}", state.display());
        Problem::new(Cause::Asking, what, "Name the one of the server that runs: --state DIR")
    })?;
    Ok(format!("{}:{}", found.dev(), found.ino()))
}

/// The address to use from this machine. A server that listens on all addresses is reached over loopback.
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
            format!("no server is running with the state directory {} (there is no {name})", state.display()),
            "Start a server, or pass the state directory of a running one: --state DIR",
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
        assert!(missing.cause == Cause::Asking && missing.what.contains("no server is running"), "{missing}");
        let token = make_token(state.path()).unwrap();
        let published = publish(state.path(), "0.0.0.0:8080".parse().unwrap(), None).unwrap();
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
        assert!(find(state.path(), None).unwrap_err().what.contains("no server is running"));
        assert!(find(state.path(), Some(given)).is_ok());
    }

    #[test]
    fn each_start_has_a_token_of_its_own() {
        let state = tempfile::tempdir().unwrap();
        let first = make_token(state.path()).unwrap();
        assert_ne!(first, make_token(state.path()).unwrap());
    }

    #[test]
    fn a_copy_of_a_state_directory_is_not_the_servers() {
        let (state, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        make_token(state.path()).unwrap();
        let _published = publish(state.path(), "127.0.0.1:8080".parse().unwrap(), None).unwrap();
        for name in [ADDRESS_FILE, TOKEN_FILE] {
            fs::copy(state.path().join(name), copy.path().join(name)).unwrap();
        }
        assert!(is_published(state.path()) && !is_published(copy.path()));
        let problem = find(copy.path(), None).unwrap_err();
        assert!(
            problem.what.contains("no server is running") && problem.advice.contains("a copy"),
            "{problem}"
        );
        let moved = copy.path().join("moved");
        fs::rename(state.path(), &moved).unwrap();
        assert!(find(&moved, None).is_ok());
        fs::rename(&moved, state.path()).unwrap();
    }

    #[test]
    fn nonsense_is_explained() {
        let state = tempfile::tempdir().unwrap();
        make_token(state.path()).unwrap();
        let of = identity(state.path()).unwrap();
        write_private(&state.path().join(ADDRESS_FILE), &format!("here\n{of}")).unwrap();
        let problem = find(state.path(), None).unwrap_err();
        assert!(
            problem.what.contains("holds no address") && problem.advice.contains("--control"),
            "{problem}"
        );
    }
}

//! How another server is asked.

use std::io::Read;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use control::RefusalKind;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::control_access::Access;

/// The body of an answer, which arrives while it is read.
pub type Answer = Box<dyn Read + Send>;

/// Asks other servers. The program has the client.
pub trait Remote: Send + Sync + fmt::Debug {
    /// Makes a call of the API.
    ///
    /// # Errors
    /// The server cannot be asked, or refuses.
    fn call(
        &self,
        access: &Access,
        of: (&str, &str),
        body: &[u8],
        patience: &Patience,
    ) -> Result<Answer, Unanswered>;
}

/// How long another server is waited for.
#[derive(Clone)]
pub struct Patience {
    silence: Duration,
    is_over: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience").field("silence", &self.silence).finish_non_exhaustive()
    }
}

impl Patience {
    /// For as long as it is silent, at most.
    #[must_use]
    pub fn new(silence: Duration) -> Self {
        Self::until(silence, || false)
    }

    /// The same, and no longer than until that is true. It is asked often.
    pub fn until(silence: Duration, is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { silence, is_over: Arc::new(is_over) }
    }

    /// Whether to wait on for a server that is silent since then.
    ///
    /// # Errors
    /// It is over, or the silence lasts too long ([`io::ErrorKind::TimedOut`]).
    pub fn check(&self, since: Instant) -> io::Result<()> {
        if (self.is_over)() {
            return Err(io::Error::other("stopped"));
        }
        if since.elapsed() > self.silence {
            let why = format!("it has said nothing for {} s", self.silence.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        Ok(())
    }
}

/// Why another server has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// What has happened.
    pub what: String,
    /// What to do; may be empty.
    pub advice: String,
    /// The kind of refusal, for programs; [`NO_SOURCE`] if it is another server than the one that was meant; empty if the server could
    /// not be asked.
    pub code: String,
}

/// The code of [`Unanswered`] for a server that is not the one that was meant: its certificate is another one, or it is no control address.
pub const NO_SOURCE: &str = "no-source";
/// The code of [`Unanswered`] for a token that the server does not accept.
pub const WRONG_TOKEN: &str = "wrong-token";

/// Where a source is: `https://HOST:PORT/SHARE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    is_tls: bool,
    host: String,
    port: u16,
    pub(crate) share: String,
}

/// The longest answer in JSON, in bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

impl Place {
    /// Reads where a source is.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?} is no source: {why}");
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| wrong("expected https://HOST:PORT/SHARE"))?;
        let is_tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(wrong("expected https://HOST:PORT/SHARE")),
        };
        let (authority, share) = rest.split_once('/').ok_or_else(|| wrong("it names no share"))?;
        let (host, port) = authority.rsplit_once(':').ok_or_else(|| wrong("it has no port"))?;
        let port = port.parse().map_err(|_| wrong("the port is no number"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || share.is_empty() || share.contains('/') {
            return Err(wrong("expected https://HOST:PORT/SHARE"));
        }
        let is_near = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !is_tls && !is_near {
            return Err(wrong(
                "the token would cross the network as plain text; only https:// is for other machines",
            ));
        }
        Ok(Self { is_tls, host: host.to_owned(), port, share: share.to_owned() })
    }

    /// How to reach it with this token and certificate.
    ///
    /// # Errors
    /// The host has no address, or there is no certificate for it.
    pub(crate) fn access(&self, token: &str, certificate: &str) -> Result<Access, String> {
        let certificate = if self.is_tls {
            let parsed = CertificateDer::from_pem_slice(certificate.as_bytes());
            Some(parsed.map_err(|e| format!("the certificate of {} cannot be read: {e}", self.host))?)
        } else {
            None
        };
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let address = found.map_err(|e| format!("the host {}: {e}", self.host))?.next();
        let address = address.ok_or_else(|| format!("the host {} has no address", self.host))?;
        Ok(Access { address, token: token.trim().to_owned(), certificate })
    }
}

/// Whether something can be a token.
pub(crate) fn is_token(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Unanswered {
    /// What kind of refusal that is for whoever has named the server, the share there and the token.
    pub(crate) fn kind(&self) -> RefusalKind {
        match self.code.as_str() {
            "not-found" | "invalid" | "scope" | WRONG_TOKEN | NO_SOURCE => RefusalKind::Invalid,
            "busy" => RefusalKind::Busy,
            "in-use" => RefusalKind::InUse,
            "no-snapshots" => RefusalKind::NoSnapshots,
            "too-many" => RefusalKind::TooMany,
            // The server is silent or has failed, which is not the fault of who asks.
            _ => RefusalKind::Failed,
        }
    }

    pub(crate) fn here(what: impl Into<String>) -> Self {
        Self { what: what.into(), advice: String::new(), code: String::new() }
    }
}

/// The most characters of what another server says of itself.
const WORDS_MAX: usize = 500;

/// What another server says, as it can be shown on a terminal: without control characters, and not without end.
pub(crate) fn legible(said: &str) -> String {
    let plain = said.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char });
    plain.take(WORDS_MAX).collect()
}

/// Makes a call with a body in JSON, or without one, and reads the answer.
pub(crate) fn json_call<T: DeserializeOwned>(
    remote: &dyn Remote,
    access: &Access,
    of: (&str, &str),
    body: Option<&impl Serialize>,
    patience: &Patience,
) -> Result<T, Unanswered> {
    let body = body.map_or(Ok(Vec::new()), serde_json::to_vec);
    let body = body.map_err(|e| Unanswered::here(e.to_string()))?;
    let answer = remote.call(access, of, &body, patience)?;
    let mut bytes = Vec::new();
    let read = answer.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|e| Unanswered::here(format!("the answer of {}: {e}", access.address)))?;
    serde_json::from_slice(&bytes)
        .map_err(|e| Unanswered::here(format!("the answer of {} is not understood: {e}", access.address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_host_a_port_and_a_share() {
        let place = Place::parse("https://files.example:8443/Office").unwrap();
        assert_eq!(
            (place.is_tls, &*place.host, place.port, &*place.share),
            (true, "files.example", 8443, "Office")
        );
        let place = Place::parse("http://[::1]:8080/a").unwrap();
        assert_eq!((place.is_tls, &*place.host, place.port), (false, "::1", 8080));
        for bad in [
            "",
            "files:8443/a",
            "ftp://a:1/b",
            "https://a:1",
            "https://a:1/",
            "https://a/b",
            "https://a:x/b",
            "https://:1/b",
            "https://a:1/b/c",
            "http://files.example:8080/a",
            "http://10.0.0.1:8080/a",
        ] {
            assert!(Place::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_a_source_refuses_is_a_refusal_here() {
        let kind = |code: &str| Unanswered { code: code.to_owned(), ..Unanswered::here("no") }.kind();
        let wrong = ["not-found", "invalid", "scope", "wrong-token", "no-source"];
        assert!(wrong.into_iter().all(|code| kind(code) == RefusalKind::Invalid));
        assert_eq!((kind("busy"), kind("in-use")), (RefusalKind::Busy, RefusalKind::InUse));
        assert_eq!(kind("no-snapshots"), RefusalKind::NoSnapshots);
        assert_eq!(
            (kind(""), kind("failed"), kind("else")),
            (RefusalKind::Failed, RefusalKind::Failed, RefusalKind::Failed)
        );
    }

    #[test]
    fn what_others_say_cannot_write_to_a_terminal() {
        assert_eq!(legible("no\u{1b}[2J\nway \u{fc}"), "no\u{fffd}[2J\u{fffd}way \u{fc}");
        assert_eq!(legible(&"x".repeat(10_000)).len(), WORDS_MAX);
    }

    #[test]
    fn tls_needs_a_certificate() {
        let place = Place::parse("https://127.0.0.1:8443/a").unwrap();
        assert!(place.access("t", "").unwrap_err().starts_with("the certificate of 127.0.0.1"));
        let place = Place::parse("http://127.0.0.1:8443/a").unwrap();
        assert_eq!(place.access(" t\n", "").unwrap().token, "t");
    }
}

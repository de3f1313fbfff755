//! The names under which the control address answers. A web page can make its own name resolve to this address (DNS
//! rebinding); the browser would then let the page read what is served here. But its requests still carry the page's
//! name.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{StatusCode, Version};
use axum::middleware::Next;
use axum::response::Response;

use crate::About;
use crate::api::refuse;
use crate::server::Peer;

/// The name of every machine for itself. RFC 6761 6.3.
const LOCALHOST: &str = "localhost";

/// The host names that a request may contain.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// In addition to loopback and the address to which the connection was made.
    names: Vec<String>,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
enum WrongHost {
    /// The request has no host name, more than one, or an invalid one.
    Unclear,
    /// The request names another host.
    Foreign(String),
}

impl Hosts {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self { names }
    }

    /// RFC 9112 3.2: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1 request message that lacks a
    /// Host header field and to any request message that contains more than one Host header field line or a Host header
    /// field with an invalid field value." 3.2.2: in the absolute form the name in the target counts.
    fn check(&self, came_to: Option<IpAddr>, request: &Request) -> Result<(), WrongHost> {
        let mut given = request.headers().get_all(HOST).iter();
        let (first, second) = (given.next(), given.next());
        if second.is_some() || (first.is_none() && request.version() > Version::HTTP_10) {
            return Err(WrongHost::Unclear);
        }
        let in_header = first.map(|value| Authority::try_from(value.as_bytes()));
        let in_header = in_header.transpose().map_err(|_| WrongHost::Unclear)?;
        for authority in [in_header.as_ref(), request.uri().authority()].into_iter().flatten() {
            if authority.as_str().contains('@') {
                return Err(WrongHost::Unclear);
            }
            if !self.is_ours(came_to, authority.host()) {
                return Err(WrongHost::Foreign(authority.host().to_owned()));
            }
        }
        Ok(())
    }

    /// The port is ignored: it may be forwarded.
    fn is_ours(&self, came_to: Option<IpAddr>, host: &str) -> bool {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse::<IpAddr>() {
            let address = address.to_canonical();
            let is_named =
                || self.names.iter().any(|name| name.parse().is_ok_and(|named: IpAddr| named == address));
            return address.is_loopback() || came_to == Some(address) || is_named();
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        name.eq_ignore_ascii_case(LOCALHOST) || self.names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
    }
}

/// Refuses requests for other hosts.
pub(crate) async fn check(
    State(about): State<Arc<About>>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    match about.hosts.check(peer.server, &request) {
        Ok(()) => next.run(request).await,
        Err(WrongHost::Unclear) => {
            let message = "the request does not say with one header Host whom it asks";
            refuse(
                StatusCode::BAD_REQUEST,
                "unclear-host",
                message,
                "Send the address, or `Host: localhost`.",
            )
        }
        Err(WrongHost::Foreign(name)) => {
            about.complaints.warn(peer.client, "asks for another name", &name);
            let message = format!("the control address does not answer to the name {name}");
            let advice =
                format!("Ask for its address or for localhost, or give it the name: --control-name {name}");
            refuse(StatusCode::MISDIRECTED_REQUEST, "wrong-host", &message, &advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn asked(version: Version, target: &str, hosts: &[&str]) -> Request {
        let mut builder = Request::builder().version(version).uri(target);
        for host in hosts {
            builder = builder.header(HOST, *host);
        }
        builder.body(Body::empty()).unwrap()
    }

    fn check(host: &str) -> Result<(), WrongHost> {
        let hosts = Hosts::new(vec!["files.example.org".to_owned(), "203.0.113.7".to_owned()]);
        hosts.check(Some([10, 0, 0, 5].into()), &asked(Version::HTTP_11, "/metrics", &[host]))
    }

    #[test]
    fn loopback_the_address_and_the_names_that_are_given_are_ours() {
        for host in [
            "localhost",
            "LocalHost:8080",
            "localhost.",
            "127.0.0.1:1",
            "127.8.9.1",
            "[::1]:8080",
            "[::ffff:127.0.0.1]",
            "10.0.0.5:8080",
            "Files.Example.org:99",
            "203.0.113.7",
        ] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
    }

    #[test]
    fn all_other_names_are_somebody_elses() {
        for host in [
            "rebind.example:8080",
            "10.0.0.6",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "example.org",
            "[::2]",
        ] {
            assert!(matches!(check(host), Err(WrongHost::Foreign(_))), "{host}: {:?}", check(host));
        }
        for host in ["", "a b", "localhost/", "user@localhost", "[::1"] {
            assert_eq!(check(host), Err(WrongHost::Unclear), "{host}");
        }
    }

    #[test]
    fn there_is_one_name_and_that_of_the_target_counts_too() {
        let hosts = Hosts::default();
        let check = |version, target, names: &[&str]| hosts.check(None, &asked(version, target, names));
        assert_eq!(check(Version::HTTP_11, "/", &[]), Err(WrongHost::Unclear));
        assert_eq!(check(Version::HTTP_10, "/", &[]), Ok(()), "RFC 1945 knows no Host");
        assert_eq!(check(Version::HTTP_11, "/", &["localhost", "localhost"]), Err(WrongHost::Unclear));
        assert_eq!(check(Version::HTTP_11, "http://localhost/", &["localhost"]), Ok(()));
        let foreign = || Err(WrongHost::Foreign("evil.example".to_owned()));
        assert_eq!(check(Version::HTTP_11, "http://evil.example/", &["localhost"]), foreign());
        assert_eq!(check(Version::HTTP_10, "http://evil.example/", &[]), foreign());
    }
}

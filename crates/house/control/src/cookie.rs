//! The cookie of a sign-in.
//!
//! Cookies of one host go to all of its ports, so the name has the port to which the browser connects: two servers of a
//! machine, or behind one tunnel, do not sign each other out.

use axum::http::HeaderMap;
use axum::http::header::{COOKIE, HOST};
use axum::http::uri::Authority;

use crate::token::Token;

/// Whether the control address uses TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
}

/// The name of the cookie. RFC 6265bis 4.1.3.2: a name with the prefix `__Host-` is only taken over TLS, without a domain,
/// so no other host of the domain can plant it.
fn name(transport: Transport, headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let port = host.and_then(|host| host.port_u16());
    match transport {
        Transport::Plain => format!("anabranch-{}", port.unwrap_or(80)),
        Transport::Tls => format!("__Host-anabranch-{}", port.unwrap_or(443)),
    }
}

/// The value of the cookie in a request.
pub(crate) fn shown(transport: Transport, headers: &HeaderMap) -> Option<&[u8]> {
    let name = name(transport, headers);
    let cookies = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    cookies
        .map(<[u8]>::trim_ascii)
        .find_map(|cookie| cookie.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// The header `Set-Cookie` that gives the browser this value. It lasts until the browser ends.
pub(crate) fn given(transport: Transport, headers: &HeaderMap, value: &Token) -> String {
    format!("{}={}; {}", name(transport, headers), value.as_str(), terms(transport))
}

/// The header `Set-Cookie` that takes the cookie from the browser.
pub(crate) fn taken(transport: Transport, headers: &HeaderMap) -> String {
    format!("{}=; Max-Age=0; {}", name(transport, headers), terms(transport))
}

fn terms(transport: Transport) -> &'static str {
    match transport {
        Transport::Plain => "Path=/; HttpOnly; SameSite=Strict",
        Transport::Tls => "Path=/; HttpOnly; SameSite=Strict; Secure",
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(host: &str, cookies: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        for cookie in cookies {
            headers.append(COOKIE, HeaderValue::from_str(cookie).unwrap());
        }
        headers
    }

    #[test]
    fn the_cookie_of_this_port_is_found_among_others() {
        let shown = |host, cookies: &[&str]| {
            let headers = headers(host, cookies);
            shown(Transport::Plain, &headers).map(|value| String::from_utf8(value.to_vec()).unwrap())
        };
        let both = ["anabranch-8080=a; x=y", "anabranch-9090=b;anabranch-80=c"];
        for (host, value) in [("localhost:8080", "a"), ("[::1]:9090", "b"), ("files.example.org", "c")] {
            assert_eq!(shown(host, &both).as_deref(), Some(value), "{host}");
        }
        assert_eq!(shown("localhost:1", &both), None);
        assert_eq!(shown("localhost", &["anabranch-80", "xanabranch-80=1"]), None);
        assert_eq!(shown("localhost", &["__Host-anabranch-80=1"]), None);
    }

    #[test]
    fn the_cookie_has_all_its_terms() {
        let value = Token::new([1; 32]);
        let headers = headers("localhost:8080", &[]);
        let given = |transport| given(transport, &headers, &value).replace(value.as_str(), "VALUE");
        assert_eq!(given(Transport::Plain), "anabranch-8080=VALUE; Path=/; HttpOnly; SameSite=Strict");
        let of_tls = "__Host-anabranch-8080=VALUE; Path=/; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(given(Transport::Tls), of_tls);
        assert!(taken(Transport::Tls, &headers).starts_with("__Host-anabranch-8080=; Max-Age=0; Path=/;"));
    }
}

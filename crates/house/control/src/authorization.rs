//! Who makes a call of the API: the bearer of a token, or somebody who is signed in to the console.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{OriginalUri, Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;

use crate::About;
use crate::api::refuse;
use crate::cookie;
use crate::logged::{self, Called};
use crate::server::Peer;
use crate::token::{Digest, Token};
use crate::tokens::{Bearer, Scope, needed};

/// The call that signs in, which shows the token in its body, and those that tell who is signed in and sign out.
const SIGN_IN: &str = "/v1/sign-in";
/// What a page of the console shows with each call.
const CSRF: HeaderName = HeaderName::from_static("x-csrf-token");
/// Where a request of a browser comes from. Fetch Metadata Request Headers 2.3: "cross-site", "same-origin", "same-site"
/// or "none"; pages cannot set it.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who makes a call. Every call that is admitted has it among its extensions.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    pub(crate) bearer: Bearer,
    /// None: a token came with the call.
    pub(crate) signed_in: Option<SignedInHere>,
}

/// What a page may know of its sign-in.
#[derive(Debug, Clone)]
pub(crate) struct SignedInHere {
    pub(crate) csrf: Token,
    pub(crate) left: Duration,
}

/// Why a call is refused before it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    NoToken,
    WrongToken,
    SignedOut,
    NoCsrf,
    OtherPage,
}

/// Admits callers with a token, RFC 6750 section 2.1, and the pages of those who are signed in.
pub(crate) async fn authorize(
    State(about): State<Arc<About>>,
    Extension(Peer { client: peer, .. }): Extension<Peer>,
    OriginalUri(uri): OriginalUri,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, path, begun) = (request.method().clone(), uri.path(), Instant::now());
    let mut user = None;
    let mut response = if (&method, path) == (&Method::POST, SIGN_IN) {
        next.run(request).await
    } else {
        let admitted = admit(&about, request.headers(), &method, &uri, begun);
        user = admitted.as_ref().ok().map(|admitted| admitted.bearer.clone());
        match admitted {
            Ok(admitted) if admitted.bearer.scope >= needed(&method, path) => {
                request.extensions_mut().insert(admitted);
                next.run(request).await
            }
            Ok(Admitted { bearer: Bearer { name: token, scope }, .. }) => {
                tracing::warn!(%peer, %method, path, token, "a request to the control address asked for too much");
                forbidden(scope, needed(&method, path))
            }
            Err(why) => {
                // Every page that is opened asks who is signed in.
                match path == SIGN_IN {
                    true => {
                        tracing::debug!(%peer, %method, path, "nobody is signed in: a request {}", words(why))
                    }
                    false => {
                        tracing::warn!(%peer, %method, path, "a request to the control address {}", words(why))
                    }
                }
                refusal(why)
            }
        }
    };
    // Every page that is opened asks who is signed in.
    if (&method, path) != (&Method::GET, SIGN_IN) {
        let user = user.as_ref().or_else(|| response.extensions().get());
        let called = Called { method: &method, path, peer, user };
        logged::call(&about.subject.access_log, &called, begun, &response);
    }
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn admit(
    about: &About,
    headers: &HeaderMap,
    method: &Method,
    uri: &Uri,
    now: Instant,
) -> Result<Admitted, Refused> {
    if let Some(header) = headers.get(AUTHORIZATION) {
        let bearer = about.subject.tokens.bearer(header.as_bytes()).ok_or(Refused::WrongToken)?;
        return Ok(Admitted { bearer, signed_in: None });
    }
    let shown = cookie::shown(about.transport, headers).ok_or(Refused::NoToken)?;
    if is_of_another_page(headers) {
        return Err(Refused::OtherPage);
    }
    let signed_in = about.sign_ins.of(shown, now).ok_or(Refused::SignedOut)?;
    let bearer = about.subject.tokens.holder(signed_in.token).ok_or_else(|| {
        about.sign_ins.end(shown);
        Refused::SignedOut
    })?;
    // A page that was just opened asks for its CSRF token. No page of another origin can read the answer.
    let asks_for_csrf = (method, uri.path()) == (&Method::GET, SIGN_IN);
    let csrf = headers.get(CSRF).map(|shown| Digest::of(shown.as_bytes()));
    if !asks_for_csrf && csrf != Some(signed_in.csrf.digest()) {
        return Err(Refused::NoCsrf);
    }
    let signed_in = SignedInHere { csrf: signed_in.csrf, left: signed_in.left };
    Ok(Admitted { bearer, signed_in: Some(signed_in) })
}

/// Whether a browser says that a page of another origin makes the request.
pub(crate) fn is_of_another_page(headers: &HeaderMap) -> bool {
    let is_foreign_site = headers.get(FETCH_SITE).is_some_and(|site| site != "same-origin");
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    let authority = |origin: &HeaderValue| {
        let origin = origin.to_str().ok()?.split_once("://")?.1.as_bytes().to_vec();
        Some(origin)
    };
    let is_foreign = |origin: &HeaderValue| authority(origin).as_deref() != host;
    is_foreign_site || headers.get(ORIGIN).is_some_and(is_foreign)
}

fn words(why: Refused) -> &'static str {
    match why {
        Refused::NoToken => "showed no token",
        Refused::WrongToken => "showed a wrong token",
        Refused::SignedOut => "came from a page that is signed out",
        Refused::NoCsrf => "came with a cookie and without the CSRF token",
        Refused::OtherPage => "came from another page",
    }
}

fn refusal(why: Refused) -> Response {
    const AGAIN: &str = "Sign in again.";
    match why {
        Refused::NoToken => unauthorized("no-token", "the API is for who shows the token"),
        Refused::WrongToken => wrong_token(),
        Refused::SignedOut => {
            let message = "the sign-in has ended: its time is over, its token was revoked, or the server has started anew";
            refuse(StatusCode::UNAUTHORIZED, "signed-out", message, AGAIN)
        }
        Refused::NoCsrf => {
            let message = "the header X-CSRF-Token does not have the value of this sign-in";
            refuse(StatusCode::FORBIDDEN, "no-csrf-token", message, "GET /v1/sign-in has the value.")
        }
        Refused::OtherPage => refuse_other_page(),
    }
}

/// The answer to a page of another origin.
pub(crate) fn refuse_other_page() -> Response {
    let message = "the request comes from a page of another address";
    let advice = "Open the console at the address that is in the browser's address line.";
    refuse(StatusCode::FORBIDDEN, "other-page", message, advice)
}

/// The answer to a caller whose token this server does not know.
pub(crate) fn wrong_token() -> Response {
    let message = "the token is not one of this server: it was revoked, or the server has created a new one at its start";
    unauthorized("wrong-token", message)
}

fn unauthorized(error: &str, message: &str) -> Response {
    let advice =
        "Show the token from the file control-token of the state directory: Authorization: Bearer TOKEN";
    let mut response = refuse(StatusCode::UNAUTHORIZED, error, message, advice);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// RFC 6750 3.1: "insufficient_scope: The request requires higher privileges than provided by the access token."
fn forbidden(scope: Scope, needed: Scope) -> Response {
    let message = format!("the token is for {scope}, and this is for {needed}");
    let advice = format!("Make one that may: anabranch token create NAME --scope {needed}");
    let mut response = refuse(StatusCode::FORBIDDEN, "scope", &message, &advice);
    let header = HeaderValue::from_static("Bearer error=\"insufficient_scope\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, header);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_says_which_page_asks() {
        let is_foreign = |given: &[(HeaderName, &str)]| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost:8080"));
            for (name, value) in given {
                headers.insert(name, HeaderValue::from_str(value).unwrap());
            }
            is_of_another_page(&headers)
        };
        assert!(!is_foreign(&[]), "no browser, or an old one");
        for site in ["cross-site", "same-site", "none", ""] {
            assert!(is_foreign(&[(FETCH_SITE, site)]), "{site}");
        }
        assert!(!is_foreign(&[(FETCH_SITE, "same-origin"), (ORIGIN, "http://localhost:8080")]));
        for origin in ["http://localhost:8081", "http://localhost", "https://evil.example", "null", ""] {
            assert!(is_foreign(&[(ORIGIN, origin)]), "{origin}");
        }
    }
}

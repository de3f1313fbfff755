//! Who makes a call of the API: the bearer of a token, an administrator with a password, or somebody who is signed in to the
//! console.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{OriginalUri, Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use zeroize::Zeroizing;

use crate::About;
use crate::api::refuse;
use crate::cookie;
use crate::logged::{self, Called};
use crate::server::Peer;
use crate::sign_in;
use crate::sign_ins::Holder;
use crate::token::{Digest, Token};
use crate::tokens::{Bearer, Scope, Shown, needed};

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
#[derive(Debug)]
pub(crate) enum Refused {
    NoToken,
    WrongToken,
    /// With this answer.
    WrongPassword(Response),
    SignedOut,
    NoCsrf,
    OtherPage,
}

/// Admits callers with a token, RFC 6750 section 2.1, and the pages of those who are signed in.
pub(crate) async fn authorize(
    State(about): State<Arc<About>>,
    Extension(from): Extension<Peer>,
    OriginalUri(uri): OriginalUri,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, path, begun, peer) = (request.method().clone(), uri.path(), Instant::now(), from.client);
    let mut user = None;
    let mut response = if (&method, path) == (&Method::POST, SIGN_IN) {
        next.run(request).await
    } else {
        let admitted = admit(&about, from, request.headers(), (&method, &uri), begun).await;
        user = admitted.as_ref().ok().map(|admitted| admitted.bearer.clone());
        match admitted {
            Ok(admitted) if admitted.bearer.scope.allows(needed(&method, path)) => {
                request.extensions_mut().insert(admitted);
                next.run(request).await
            }
            Ok(Admitted { bearer, .. }) => {
                let what = format_args!("{method} {path}, {}", bearer.shown.name());
                about.complaints.warn(peer, "asked for too much", &what);
                forbidden(&bearer, needed(&method, path))
            }
            Err(why) => {
                // Every page that is opened asks who is signed in.
                match path == SIGN_IN {
                    true => {
                        tracing::debug!(%peer, %method, path, "nobody is signed in: a request {}", words(&why))
                    }
                    false => about.complaints.warn(peer, words(&why), &format_args!("{method} {path}")),
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

async fn admit(
    about: &About,
    from: Peer,
    headers: &HeaderMap,
    (method, uri): (&Method, &Uri),
    now: Instant,
) -> Result<Admitted, Refused> {
    if let Some(header) = headers.get(AUTHORIZATION) {
        // A browser that knows a password sends it with the calls of every page.
        if is_of_another_page(headers) {
            return Err(Refused::OtherPage);
        }
        let bearer = caller(about, from, header.as_bytes()).await?;
        return Ok(Admitted { bearer, signed_in: None });
    }
    let shown = cookie::shown(about.transport, headers).ok_or(Refused::NoToken)?;
    if is_of_another_page(headers) {
        return Err(Refused::OtherPage);
    }
    let signed_in = about.sign_ins.of(shown, now).ok_or(Refused::SignedOut)?;
    let bearer = holder(about, signed_in.holder).ok_or_else(|| {
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

/// Who is in an `Authorization` header: the bearer of a token (RFC 6750 2.1), or an administrator with the name and password
/// of an account (RFC 7617 2).
pub(crate) async fn caller(about: &About, from: Peer, header: &[u8]) -> Result<Bearer, Refused> {
    let Some((user, password)) = basic(header) else {
        return about.subject.tokens.bearer(header).ok_or(Refused::WrongToken);
    };
    let known = sign_in::by_password(about, from, &user, &password).await;
    known.map(|(_, bearer)| bearer).map_err(Refused::WrongPassword)
}

/// The name and password in an `Authorization` header. RFC 7617 2: "the user-id and password MUST NOT contain any control
/// characters", and the first colon separates them.
fn basic(header: &[u8]) -> Option<(String, Zeroizing<String>)> {
    const SCHEME: &[u8] = b"Basic ";
    let (scheme, shown) = header.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let pair = Zeroizing::new(BASE64_STANDARD.decode(shown.trim_ascii()).ok()?);
    let (user, password) = std::str::from_utf8(&pair).ok()?.split_once(':')?;
    Some((user.to_owned(), Zeroizing::new(password.to_owned())))
}

/// What the holder of a sign-in may do now.
fn holder(about: &About, holder: Holder) -> Option<Bearer> {
    match holder {
        Holder::Token(token) => about.subject.tokens.holder(token),
        Holder::Administrator(administrator) => {
            let scope = about.subject.administrators.scope(&administrator)?;
            Some(Bearer { shown: Shown::Password(administrator.name), scope })
        }
    }
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

fn words(why: &Refused) -> &'static str {
    match why {
        Refused::NoToken => "showed no token",
        Refused::WrongToken => "showed a wrong token",
        Refused::WrongPassword(_) => "showed no account and password of an administrator",
        Refused::SignedOut => "came from a page that is signed out",
        Refused::NoCsrf => "came with a cookie and without the CSRF token",
        Refused::OtherPage => "came from another page",
    }
}

/// The answer to a caller who is refused.
pub(crate) fn refusal(why: Refused) -> Response {
    const AGAIN: &str = "Sign in again.";
    match why {
        Refused::NoToken => unauthorized("no-token", "the API is for who shows the token"),
        Refused::WrongToken => {
            let message = "the token is not one of this server: it was revoked, or the server has created a new one at its start";
            unauthorized("wrong-token", message)
        }
        Refused::WrongPassword(answer) => answer,
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

fn unauthorized(error: &str, message: &str) -> Response {
    let advice =
        "Show the token from the file control-token of the state directory: Authorization: Bearer TOKEN";
    let mut response = refuse(StatusCode::UNAUTHORIZED, error, message, advice);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// RFC 6750 3.1: "insufficient_scope: The request requires higher privileges than provided by the access token."
pub(crate) fn forbidden(Bearer { shown, scope }: &Bearer, needed: Scope) -> Response {
    let (message, advice) = match shown {
        Shown::OwnToken | Shown::Token(_) => (
            format!("the token is for {scope}, and this is for {needed}"),
            format!("Make one that may: anabranch token create NAME --scope {needed}"),
        ),
        Shown::Password(name) => (
            format!("{name} is an administrator for {scope}, and this is for {needed}"),
            format!("The configuration says what administrators may do: admins = [\"{name}:{needed}\"]"),
        ),
    };
    let mut response = refuse(StatusCode::FORBIDDEN, "scope", &message, &advice);
    let header = HeaderValue::from_static("Bearer error=\"insufficient_scope\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, header);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7617 2 has the first example.
    #[test]
    fn a_name_and_a_password_are_parted_by_the_first_colon() {
        let of = |header: &str| basic(header.as_bytes()).map(|(user, password)| (user, password.to_string()));
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(of("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), pair("Aladdin", "open sesame"));
        assert_eq!(of("basic  YTpiOmM= "), pair("a", "b:c"));
        for bad in ["Basic", "Basic ", "Basic QWxhZGRpbg==", "Basic !", "Bearer YTpi", "Basic /zpi"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

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

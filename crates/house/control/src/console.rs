//! The web console: pages for administrators, which are in the program and use nothing but the API. Here are their files, and
//! the headers that keep them apart from all other pages.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use crate::About;
use crate::token::Digest;

/// A file of the console.
struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($kind:expr, $name:literal) => {
        Asset { name: $name, kind: $kind, text: include_str!(concat!("../console/", $name)) }
    };
}

/// All of them. The first is the page.
const ASSETS: &[Asset] = &[
    asset!(HTML, "index.html"),
    asset!(CSS, "console.css"),
    asset!(SVG, "icon.svg"),
    asset!(SCRIPT, "advice.js"),
    asset!(SCRIPT, "api.js"),
    asset!(SCRIPT, "chart.js"),
    asset!(SCRIPT, "clients.js"),
    asset!(SCRIPT, "deleted.js"),
    asset!(SCRIPT, "dom.js"),
    asset!(SCRIPT, "files.js"),
    asset!(SCRIPT, "format.js"),
    asset!(SCRIPT, "forms.js"),
    asset!(SCRIPT, "live.js"),
    asset!(SCRIPT, "log.js"),
    asset!(SCRIPT, "main.js"),
    asset!(SCRIPT, "new-share.js"),
    asset!(SCRIPT, "overview.js"),
    asset!(SCRIPT, "page.js"),
    asset!(SCRIPT, "plan.js"),
    asset!(SCRIPT, "quotas.js"),
    asset!(SCRIPT, "replication.js"),
    asset!(SCRIPT, "share-texts.js"),
    asset!(SCRIPT, "share.js"),
    asset!(SCRIPT, "shares.js"),
    asset!(SCRIPT, "sizes.js"),
    asset!(SCRIPT, "snapshots.js"),
    asset!(SCRIPT, "texts.js"),
    asset!(SCRIPT, "tokens.js"),
    asset!(SCRIPT, "users.js"),
];

/// What a page may do: use scripts, styles and images of this origin, and call this origin; nothing inline, no frames around
/// it, and no text that becomes markup. Content Security Policy Level 3; Trusted Types.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// A name for this version of the files, which changes with any of them.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all: Vec<u8> = ASSETS.iter().flat_map(|asset| asset.text.bytes()).collect();
    format!("\"{}\"", Digest::of(&all).short())
});

/// The page at `/console/`, its files beside it, and the way there from `/`.
pub(crate) fn router() -> Router<Arc<About>> {
    Router::new()
        .route("/", get(async || Redirect::temporary("/console/")))
        .route("/console", get(async || Redirect::temporary("/console/")))
        .route("/console/", get(async |headers: HeaderMap| answer(ASSETS.first(), &headers)))
        .route("/console/{name}", get(file))
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    answer(ASSETS.iter().find(|asset| asset.name == name), &headers)
}

/// A browser asks each time whether a file is still the same: a page never mixes the files of two versions.
fn answer(asset: Option<&Asset>, headers: &HeaderMap) -> Response {
    let Some(asset) = asset else {
        return (StatusCode::NOT_FOUND, [(CONTENT_TYPE, "text/plain")], "There is no such page.\n")
            .into_response();
    };
    let about = [
        (CONTENT_TYPE, asset.kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-cache"),
        (ETAG, VERSION.as_str()),
    ];
    match headers.get(IF_NONE_MATCH).is_some_and(|known| known == VERSION.as_str()) {
        true => (StatusCode::NOT_MODIFIED, about).into_response(),
        false => (about, asset.text).into_response(),
    }
}

/// Adds to each answer of the control address what browsers must know of it.
pub(crate) async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (OPENER_POLICY, "same-origin"),
        (RESOURCE_POLICY, "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests;

//! The API below `/v1`: JSON, for those who show the token.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::About;

/// Bytes of a request's body: none of the calls has a long one.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// The body of every answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// For programs: the kind of error, stable.
    pub error: String,
    /// For people: what was wrong and what to do.
    pub message: String,
}

/// The routes below `/v1`.
pub(crate) fn router(about: &Arc<About>) -> Router<Arc<About>> {
    Router::new()
        .route("/clients", get(clients))
        .fallback(async || refuse(StatusCode::NOT_FOUND, "not-found", "there is no such call"))
        .method_not_allowed_fallback(async || {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "this call is made with GET")
        })
        // Around the fallbacks too: who has no token does not learn what calls there are.
        .layer(middleware::from_fn_with_state(Arc::clone(about), authorize))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

/// Lets through who shows the token. RFC 6750 section 2.1.
async fn authorize(State(about): State<Arc<About>>, request: Request, next: Next) -> Response {
    let shown = request.headers().get(AUTHORIZATION);
    let mut response = match shown {
        Some(header) if about.subject.token.is_shown_by(header.as_bytes()) => next.run(request).await,
        Some(_) => {
            tracing::warn!(
                path = request.uri().path(),
                "a request to the control address showed a wrong token"
            );
            unauthorized(
                "wrong-token",
                "the token is not that of this server; a new one is made at each start",
            )
        }
        None => unauthorized(
            "no-token",
            "show the token from the file control-token of the state directory: Authorization: Bearer TOKEN",
        ),
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn unauthorized(error: &str, message: &str) -> Response {
    let mut response = refuse(StatusCode::UNAUTHORIZED, error, message);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn refuse(status: StatusCode, error: &str, message: &str) -> Response {
    let body = ApiError { error: error.to_owned(), message: message.to_owned() };
    (status, Json(body)).into_response()
}

async fn clients(State(about): State<Arc<About>>) -> Response {
    Json((about.subject.clients)()).into_response()
}

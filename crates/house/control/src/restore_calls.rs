//! The calls on what is restored into a share.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::About;
use crate::administration::Refusal;
use crate::api::{JsonReply, administer, read};
use crate::restores::Restore;

pub(crate) async fn show(State(about): State<Arc<About>>, Path(share): Path<String>) -> JsonReply<Restore> {
    administer(about, move |administration| administration.restore(&share)).await
}

pub(crate) async fn begin(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let new = read(&body)?;
    let begun = administer(about, move |administration| administration.begin_restore(&share, new)).await?;
    Ok((StatusCode::ACCEPTED, begun).into_response())
}

pub(crate) async fn cancel(State(about): State<Arc<About>>, Path(share): Path<String>) -> JsonReply<Restore> {
    administer(about, move |administration| administration.cancel_restore(&share)).await
}

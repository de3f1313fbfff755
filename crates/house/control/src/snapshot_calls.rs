//! The calls on the snapshots of a share.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use crate::About;
use crate::administration::Refusal;
use crate::api::{JsonReply, administer, read};
use crate::logged::Concerned;
use crate::snapshots::{NewSnapshot, Snapshot, Snapshots};

pub(crate) async fn list(State(about): State<Arc<About>>, Path(share): Path<String>) -> JsonReply<Snapshots> {
    administer(about, move |administration| administration.snapshots(&share)).await
}

/// The body may be empty.
pub(crate) async fn take(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let new = if body.is_empty() { NewSnapshot::default() } else { read(&body)? };
    let taken = administer(about, move |administration| administration.take_snapshot(&share, new)).await?;
    let Json(Snapshot { name, .. }) = &taken;
    let concerned = Concerned(name.clone());
    Ok((StatusCode::CREATED, Extension(concerned), taken).into_response())
}

pub(crate) async fn revert(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
    body: Bytes,
) -> JsonReply<Snapshot> {
    let revert = read(&body)?;
    administer(about, move |administration| administration.revert_share(&share, revert)).await
}

pub(crate) async fn change(
    State(about): State<Arc<About>>,
    Path((share, name)): Path<(String, String)>,
    body: Bytes,
) -> JsonReply<Snapshot> {
    let change = read(&body)?;
    administer(about, move |administration| administration.change_snapshot(&share, &name, change)).await
}

pub(crate) async fn remove(
    State(about): State<Arc<About>>,
    Path((share, name)): Path<(String, String)>,
) -> JsonReply<Snapshot> {
    administer(about, move |administration| administration.remove_snapshot(&share, &name)).await
}

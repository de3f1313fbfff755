//! The calls on replicas, and those that replicas make.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use crate::About;
use crate::administration::Refusal;
use crate::api::{JsonReply, administer, read};
use crate::contents::{self, LongAnswer};
use crate::replications::{
    Contents, Destination, Destinations, Replication, ReplicationChange, SourceShare, Transfer,
};

pub(crate) async fn show(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
) -> JsonReply<Replication> {
    administer(about, move |administration| administration.replication(&share)).await
}

pub(crate) async fn begin(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let new = read(&body)?;
    let begun =
        administer(about, move |administration| administration.begin_replication(&share, new)).await?;
    Ok((StatusCode::CREATED, begun).into_response())
}

pub(crate) async fn change(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
    body: Bytes,
) -> JsonReply<Replication> {
    let ReplicationChange { action } = read(&body)?;
    administer(about, move |administration| administration.change_replication(&share, action)).await
}

pub(crate) async fn end(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
) -> JsonReply<Replication> {
    administer(about, move |administration| administration.end_replication(&share)).await
}

pub(crate) async fn destinations(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
) -> JsonReply<Destinations> {
    administer(about, move |administration| administration.destinations(&share)).await
}

pub(crate) async fn remove_destination(
    State(about): State<Arc<About>>,
    Path((share, id)): Path<(String, String)>,
) -> JsonReply<Destination> {
    administer(about, move |administration| administration.remove_destination(&share, &id)).await
}

pub(crate) async fn source(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
) -> JsonReply<SourceShare> {
    administer(about, move |administration| administration.source_share(&share)).await
}

pub(crate) async fn transfer(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
    body: Bytes,
) -> JsonReply<Transfer> {
    let new = read(&body)?;
    administer(about, move |administration| administration.begin_transfer(&share, &new)).await
}

pub(crate) async fn changes(
    State(about): State<Arc<About>>,
    Extension(long): Extension<LongAnswer>,
    Path((share, destination)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let made = made(about, move |administration| administration.changes(&share, &destination)).await?;
    Ok(contents::answer(made, &long))
}

pub(crate) async fn objects(
    State(about): State<Arc<About>>,
    Extension(long): Extension<LongAnswer>,
    Path((share, destination)): Path<(String, String)>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let made = made(about, move |administration| administration.objects(&share, &destination, &body)).await?;
    Ok(contents::answer(made, &long))
}

async fn made(
    about: Arc<About>,
    work: impl FnOnce(&dyn crate::Administration) -> Result<Contents, Refusal> + Send + 'static,
) -> Result<Contents, Refusal> {
    let Json(made) = administer(about, work).await?;
    Ok(made)
}

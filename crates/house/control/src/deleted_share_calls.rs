//! The calls on shares that were removed.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::About;
use crate::administration::{Refusal, RefusalKind};
use crate::api::{JsonReply, administer, read, unclear_query};
use crate::deleted_shares::{DeletedShare, DeletedShares, Purge, Undelete};
use crate::logged::Concerned;

pub(crate) async fn list(State(about): State<Arc<About>>) -> JsonReply<DeletedShares> {
    administer(about, |administration| administration.deleted_shares()).await
}

pub(crate) async fn undelete(
    State(about): State<Arc<About>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let (id, how): (u32, Undelete) = (number(&id)?, read(&body)?);
    let back = administer(about, move |administration| administration.undelete_share(id, &how)).await?;
    Ok((StatusCode::CREATED, Extension(Concerned(back.name.clone())), back).into_response())
}

pub(crate) async fn purge(
    State(about): State<Arc<About>>,
    Path(id): Path<String>,
    how: Result<Query<Purge>, QueryRejection>,
) -> JsonReply<DeletedShare> {
    let (id, Query(how)) = (number(&id)?, how.map_err(|e| unclear_query(&e))?);
    administer(about, move |administration| administration.purge_share(id, how)).await
}

fn number(id: &str) -> Result<u32, Refusal> {
    let what = format!("{id:?} is no number of a deleted share");
    id.parse().map_err(|_| Refusal::new(RefusalKind::Invalid, what, "GET /v1/deleted-shares lists them."))
}

//! The calls on the quotas of a share.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};

use crate::About;
use crate::api::{JsonReply, administer, read};
use crate::quotas::{NewQuota, Quota, Quotas};

pub(crate) async fn list(State(about): State<Arc<About>>, Path(share): Path<String>) -> JsonReply<Quotas> {
    administer(about, move |administration| administration.quotas(&share)).await
}

pub(crate) async fn check(State(about): State<Arc<About>>, Path(share): Path<String>) -> JsonReply<Quotas> {
    administer(about, move |administration| administration.check_quotas(&share)).await
}

pub(crate) async fn set(
    State(about): State<Arc<About>>,
    Path((share, subject)): Path<(String, String)>,
    body: Bytes,
) -> JsonReply<Quota> {
    let new: NewQuota = read(&body)?;
    administer(about, move |administration| administration.set_quota(&share, &subject, new)).await
}

pub(crate) async fn remove(
    State(about): State<Arc<About>>,
    Path((share, subject)): Path<(String, String)>,
) -> JsonReply<Quota> {
    administer(about, move |administration| administration.remove_quota(&share, &subject)).await
}

//! The calls on snapshot policies.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::About;
use crate::administration::Refusal;
use crate::api::{JsonReply, administer, read};
use crate::logged::Concerned;
use crate::policies::{NewPolicy, Policies, Policy};

pub(crate) async fn list(State(about): State<Arc<About>>) -> JsonReply<Policies> {
    administer(about, |administration| administration.policies()).await
}

pub(crate) async fn show(State(about): State<Arc<About>>, Path(name): Path<String>) -> JsonReply<Policy> {
    administer(about, move |administration| administration.policy(&name)).await
}

pub(crate) async fn create(State(about): State<Arc<About>>, body: Bytes) -> Result<Response, Refusal> {
    let new: NewPolicy = read(&body)?;
    let concerned = Concerned(new.name.clone());
    let made = administer(about, move |administration| administration.create_policy(new)).await?;
    Ok((StatusCode::CREATED, Extension(concerned), made).into_response())
}

pub(crate) async fn change(
    State(about): State<Arc<About>>,
    Path(name): Path<String>,
    body: Bytes,
) -> JsonReply<Policy> {
    let change = read(&body)?;
    administer(about, move |administration| administration.change_policy(&name, change)).await
}

pub(crate) async fn remove(State(about): State<Arc<About>>, Path(name): Path<String>) -> JsonReply<Policy> {
    administer(about, move |administration| administration.remove_policy(&name)).await
}

//! The calls on the shares of vservers.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::administration::Refusal;
use crate::api::{JsonReply, read};
use crate::cluster::{ShareMove, VserverShares};
use crate::cluster_calls::{Long, OfServer, ask, change as changed};
use crate::logged::Concerned;
use crate::shares::{NewShare, Share, ShareChange};

pub(crate) async fn list(State(about): OfServer, Path(vserver): Path<String>) -> JsonReply<VserverShares> {
    ask(about, move |gateways| gateways.vserver_shares(&vserver)).await
}

pub(crate) async fn show(
    State(about): OfServer,
    Path((vserver, share)): Path<(String, String)>,
) -> JsonReply<Share> {
    ask(about, move |gateways| gateways.vserver_share(&vserver, &share)).await
}

pub(crate) async fn add(
    State(about): OfServer,
    Path(vserver): Path<String>,
    long: Long,
    body: Bytes,
) -> Result<Response, Refusal> {
    let new: NewShare = read(&body)?;
    let concerned = Concerned(new.name.clone());
    let made = changed(about, long, move |gateways| gateways.add_vserver_share(&vserver, &new)).await?;
    Ok((StatusCode::CREATED, Extension(concerned), made).into_response())
}

pub(crate) async fn change(
    State(about): OfServer,
    Path((vserver, share)): Path<(String, String)>,
    long: Long,
    body: Bytes,
) -> JsonReply<Share> {
    let change: ShareChange = read(&body)?;
    changed(about, long, move |gateways| gateways.change_vserver_share(&vserver, &share, &change)).await
}

pub(crate) async fn remove(
    State(about): OfServer,
    Path((vserver, share)): Path<(String, String)>,
    long: Long,
) -> JsonReply<Share> {
    changed(about, long, move |gateways| gateways.remove_vserver_share(&vserver, &share)).await
}

pub(crate) async fn move_to(
    State(about): OfServer,
    Path((vserver, share)): Path<(String, String)>,
    long: Long,
    body: Bytes,
) -> JsonReply<Share> {
    let to: ShareMove = read(&body)?;
    changed(about, long, move |gateways| gateways.move_vserver_share(&vserver, &share, &to)).await
}

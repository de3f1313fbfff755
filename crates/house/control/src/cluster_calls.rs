//! The calls on the cluster, its vservers and its users.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::About;
use crate::administration::Refusal;
use crate::api::{JsonReply, administer, read};
use crate::cluster::{
    Cluster, ClusterGateways, Drained, NewKeytab, NewVserver, Vserver, VserverMove, Vservers,
};
use crate::contents::LongAnswer;
use crate::logged::Concerned;
use crate::users::{NewUser, User, UserChange, Users};

/// The most bytes of a request with a keytab: one of 1 MiB in Base64, and what is around it.
pub(crate) const KEYTAB_BODY_BYTES_MAX: usize = 3 << 19;

pub(crate) type OfServer = State<Arc<About>>;
pub(crate) type Long = Extension<LongAnswer>;

/// Asks the gateway on a thread that may wait.
pub(crate) async fn ask<T: Send + 'static>(
    about: Arc<About>,
    work: impl FnOnce(&dyn ClusterGateways) -> Result<T, Refusal> + Send + 'static,
) -> JsonReply<T> {
    administer(about, move |administration| work(&*administration.cluster_gateways()?)).await
}

/// Has the gateway change something, and wait until it is so: for [`CALL_MAX`](crate::cluster::CALL_MAX) at most, however long connections
/// may last.
pub(crate) async fn change<T: Send + 'static>(
    about: Arc<About>,
    Extension(long): Long,
    work: impl FnOnce(&dyn ClusterGateways) -> Result<T, Refusal> + Send + 'static,
) -> JsonReply<T> {
    long.expect();
    ask(about, work).await
}

pub(crate) async fn show(State(about): OfServer) -> JsonReply<Cluster> {
    ask(about, |gateways| gateways.cluster()).await
}

pub(crate) async fn init(State(about): OfServer, long: Long) -> JsonReply<Cluster> {
    change(about, long, |gateways| gateways.init()).await
}

pub(crate) async fn join(State(about): OfServer, long: Long) -> JsonReply<Cluster> {
    change(about, long, |gateways| gateways.join()).await
}

pub(crate) async fn leave(
    State(about): OfServer,
    Path(gateway): Path<String>,
    long: Long,
) -> JsonReply<Cluster> {
    change(about, long, move |gateways| gateways.leave(&gateway)).await
}

pub(crate) async fn drain(
    State(about): OfServer,
    Path(gateway): Path<String>,
    long: Long,
) -> JsonReply<Drained> {
    change(about, long, move |gateways| gateways.drain(&gateway)).await
}

pub(crate) async fn vservers(State(about): OfServer) -> JsonReply<Vservers> {
    ask(about, |gateways| gateways.vservers()).await
}

pub(crate) async fn create(State(about): OfServer, long: Long, body: Bytes) -> Response {
    let new: NewVserver = match read(&body) {
        Ok(new) => new,
        Err(refusal) => return refusal.into_response(),
    };
    let concerned = Concerned(new.name.clone());
    let made: JsonReply<Vserver> = change(about, long, move |gateways| gateways.create_vserver(&new)).await;
    (Extension(concerned), made).into_response()
}

pub(crate) async fn move_to(
    State(about): OfServer,
    Path(name): Path<String>,
    long: Long,
    body: Bytes,
) -> JsonReply<Vserver> {
    let to: VserverMove = read(&body)?;
    change(about, long, move |gateways| gateways.move_vserver(&name, &to)).await
}

pub(crate) async fn set_keytab(
    State(about): OfServer,
    Path(name): Path<String>,
    long: Long,
    body: Bytes,
) -> JsonReply<Vserver> {
    let new: NewKeytab = read(&body)?;
    change(about, long, move |gateways| gateways.set_keytab(&name, &new)).await
}

pub(crate) async fn remove_keytab(
    State(about): OfServer,
    Path(name): Path<String>,
    long: Long,
) -> JsonReply<Vserver> {
    change(about, long, move |gateways| gateways.remove_keytab(&name)).await
}

pub(crate) async fn remove(
    State(about): OfServer,
    Path(name): Path<String>,
    long: Long,
) -> JsonReply<Vserver> {
    change(about, long, move |gateways| gateways.remove_vserver(&name)).await
}

pub(crate) async fn users(State(about): OfServer) -> JsonReply<Users> {
    ask(about, |gateways| gateways.users()).await
}

pub(crate) async fn add_user(State(about): OfServer, long: Long, body: Bytes) -> Result<Response, Refusal> {
    let new: NewUser = read(&body)?;
    let concerned = Concerned(new.name.clone());
    let added: JsonReply<User> = change(about, long, move |gateways| gateways.add_user(&new)).await;
    Ok((StatusCode::CREATED, Extension(concerned), added?).into_response())
}

pub(crate) async fn change_user(
    State(about): OfServer,
    Path(name): Path<String>,
    long: Long,
    body: Bytes,
) -> JsonReply<User> {
    let new: UserChange = read(&body)?;
    change(about, long, move |gateways| gateways.change_user(&name, &new)).await
}

pub(crate) async fn remove_user(
    State(about): OfServer,
    Path(name): Path<String>,
    long: Long,
) -> JsonReply<User> {
    change(about, long, move |gateways| gateways.remove_user(&name)).await
}

//! The calls on the cluster and its vservers.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};

use crate::About;
use crate::administration::Refusal;
use crate::api::{JsonReply, administer, read};
use crate::cluster::{Cluster, ClusterGateways, Drained, NewVserver, Vserver, VserverMove, Vservers};
use crate::logged::Concerned;

type OfServer = State<Arc<About>>;

/// Asks the gateway on a thread that may wait.
async fn ask<T: Send + 'static>(
    about: Arc<About>,
    work: impl FnOnce(&dyn ClusterGateways) -> Result<T, Refusal> + Send + 'static,
) -> JsonReply<T> {
    administer(about, move |administration| work(&*administration.cluster_gateways()?)).await
}

pub(crate) async fn show(State(about): OfServer) -> JsonReply<Cluster> {
    ask(about, |gateways| gateways.cluster()).await
}

pub(crate) async fn init(State(about): OfServer) -> JsonReply<Cluster> {
    ask(about, |gateways| gateways.init()).await
}

pub(crate) async fn join(State(about): OfServer) -> JsonReply<Cluster> {
    ask(about, |gateways| gateways.join()).await
}

pub(crate) async fn leave(State(about): OfServer, Path(gateway): Path<String>) -> JsonReply<Cluster> {
    ask(about, move |gateways| gateways.leave(&gateway)).await
}

pub(crate) async fn drain(State(about): OfServer, Path(gateway): Path<String>) -> JsonReply<Drained> {
    ask(about, move |gateways| gateways.drain(&gateway)).await
}

pub(crate) async fn vservers(State(about): OfServer) -> JsonReply<Vservers> {
    ask(about, |gateways| gateways.vservers()).await
}

pub(crate) async fn create(State(about): OfServer, body: Bytes) -> Response {
    let new: NewVserver = match read(&body) {
        Ok(new) => new,
        Err(refusal) => return refusal.into_response(),
    };
    let concerned = Concerned(new.name.clone());
    let made: JsonReply<Vserver> = ask(about, move |gateways| gateways.create_vserver(&new)).await;
    (Extension(concerned), made).into_response()
}

pub(crate) async fn move_to(
    State(about): OfServer,
    Path(name): Path<String>,
    body: Bytes,
) -> JsonReply<Vserver> {
    let to: VserverMove = read(&body)?;
    ask(about, move |gateways| gateways.move_vserver(&name, &to)).await
}

pub(crate) async fn remove(State(about): OfServer, Path(name): Path<String>) -> JsonReply<Vserver> {
    ask(about, move |gateways| gateways.remove_vserver(&name)).await
}

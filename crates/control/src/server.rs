//! HTTP over TCP, for few clients: one request a connection, and for each a time within which it must be over.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at a time; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// From the connection's beginning to the last byte of its answer.
const CONNECTION_TIME: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long the accept loop rests when the process is out of descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Whence a request comes: every one has it among its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Serves `routes` for ever.
pub(crate) async fn serve(listener: TcpListener, routes: Router) -> Infallible {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(turn) = Arc::clone(&free).acquire_owned().await else { std::future::pending().await };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let routes = routes.clone().layer(Extension(Peer(peer)));
                tokio::spawn(async move {
                    answer(stream, routes).await;
                    drop(turn);
                });
            }
            Err(e) => {
                tracing::warn!("the control address: accept: {e}");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, routes: Router) {
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    match tokio::time::timeout(CONNECTION_TIME, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::debug!("the control address: {e}"),
        Err(_) => tracing::debug!("the control address: a connection took longer than {CONNECTION_TIME:?}"),
    }
}

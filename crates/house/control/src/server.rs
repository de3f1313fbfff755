//! HTTP over TCP or TLS, for few clients: one request per connection, which must be finished within a time limit.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::error::Elapsed;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::connections::{Connections, ControlLimits, Place};
use crate::contents::LongAnswer;

/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long the accept loop rests when the process is out of descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Sent to a client for whom there is no room, as far as it can be sent at once.
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n\
    Content-Type: text/plain\r\n\r\nToo many requests are under way at the control address. Try again.\n";

/// Sent to a client that speaks HTTP to a TLS port, as far as it can be sent at once.
const SPEAK_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n\
    This address speaks HTTPS. Ask for https:// instead of http://.\n";
/// The first byte of every TLS connection. RFC 8446 5.1: ContentType handshake(22).
const TLS_HANDSHAKE: u8 = 22;

/// The origin of a request, which every request has among its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) client: SocketAddr,
    /// The local address to which the connection was made.
    pub(crate) server: Option<IpAddr>,
}

/// Serves `routes` for ever, over TLS if there is an acceptor.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    routes: Router,
    limits: ControlLimits,
) -> Infallible {
    let connections = Connections::new(limits);
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                let Some(place) = connections.enter(client.ip().to_canonical()) else {
                    tracing::debug!(%client, "the control address: no room for a further connection");
                    let _ = stream.try_write(NO_ROOM);
                    continue;
                };
                let server = stream.local_addr().ok().map(|at| at.ip().to_canonical());
                let long = LongAnswer::default();
                let routes =
                    routes.clone().layer(Extension(Peer { client, server })).layer(Extension(long.clone()));
                tokio::spawn(answer(stream, tls.clone(), routes, (place, long), limits));
            }
            Err(e) => {
                tracing::warn!("the control address: accept: {e}");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn answer(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    routes: Router,
    (mut place, long): (Place, LongAnswer),
    limits: ControlLimits,
) {
    let has_asked = place.has_asked();
    let conversation = async {
        match tls {
            None => converse(stream, routes, has_asked, limits).await,
            Some(tls) => match tokio::time::timeout(limits.head_time, handshake(stream, &tls)).await {
                Ok(Ok(stream)) => converse(stream, routes, has_asked, limits).await,
                Ok(Err(e)) => Err(e),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            },
        }
    };
    let conversation = std::pin::pin!(within(limits.connection_time, &long, conversation));
    tokio::select! {
        over = conversation => match over {
            Ok(Ok(())) => {}
            Ok(Err(e)) => tracing::debug!("the control address: {e}"),
            Err(_) => tracing::debug!("the control address: a connection took too long"),
        },
        () = place.must_go() => tracing::debug!("the control address: a silent connection gives way"),
    }
}

/// What takes too long fails, unless a long answer is expected: who writes that sees to it that the client reads it.
async fn within<T>(time: Duration, long: &LongAnswer, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut work = std::pin::pin!(work);
    match tokio::time::timeout(time, &mut work).await {
        Err(_) if long.is_expected() => Ok(work.await),
        done => done,
    }
}

/// The TLS handshake. A client that begins with anything else is told so and refused.
async fn handshake(stream: TcpStream, tls: &TlsAcceptor) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 1 && first != [TLS_HANDSHAKE] {
        // If data is left unread when the connection ends, the system discards the answer.
        let _ = stream.try_read(&mut [0; HEAD_BYTES_MAX]);
        let _ = stream.try_write(SPEAK_TLS);
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a client does not speak TLS"));
    }
    tls.accept(stream).await
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    routes: Router,
    has_asked: Arc<AtomicBool>,
    limits: ControlLimits,
) -> io::Result<()> {
    let service = TowerToHyperService::new(routes);
    let service = service_fn(move |request| {
        has_asked.store(true, Ordering::Relaxed);
        service.call(request)
    });
    http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .serve_connection(TokioIo::new(stream), service)
        .await
        .map_err(io::Error::other)
}

//! The metadata of the host, over HTTP: one POST, one reply.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::message::{Endpoint, MESSAGE_BYTES_MAX, What};
use super::udp::random;
use crate::interfaces::Interface;

/// The port of the Devices Profile's metadata on Windows, which its firewall opens for neighbours.
pub(super) const PORT: u16 = 5357;
/// Connections at a time.
const CONNECTIONS_MAX: usize = 16;
/// How long a connection may take in all.
const TIME: Duration = Duration::from_secs(5);
/// The most bytes of the head of a request. hyper takes no less.
const HEAD_BYTES_MAX: usize = 8192;
const SOAP: HeaderValue = HeaderValue::from_static("application/soap+xml");

/// # Errors
/// Another program uses the port at this address.
pub(super) fn listen(interface: &Interface) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(SocketAddr::new(interface.address, PORT))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Answers neighbours, for ever.
pub(super) async fn serve(listener: TcpListener, interface: Interface, endpoint: Rc<Endpoint>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(TIME).await; // the system lacks descriptors
            continue;
        };
        let place = Arc::clone(&places).try_acquire_owned();
        let (Ok(place), true) = (place, interface.is_local(from.ip())) else { continue };
        let endpoint = Rc::clone(&endpoint);
        tokio::task::spawn_local(async move {
            let _ = tokio::time::timeout(TIME, answer(stream, &endpoint)).await;
            drop(place);
        });
    }
}

async fn answer(stream: TcpStream, endpoint: &Endpoint) {
    let service = service_fn(async |request| Ok::<_, Infallible>(describe(request, endpoint).await));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!("WS-Discovery: {error}");
    }
}

async fn describe(request: Request<Incoming>, endpoint: &Endpoint) -> Response<Full<Bytes>> {
    if request.uri().path() != endpoint.path() {
        return refused(StatusCode::NOT_FOUND);
    }
    if request.method() != Method::POST {
        return refused(StatusCode::METHOD_NOT_ALLOWED);
    }
    let Ok(body) = Limited::new(request.into_body(), MESSAGE_BYTES_MAX).collect().await else {
        return refused(StatusCode::PAYLOAD_TOO_LARGE);
    };
    match endpoint.asked(&body.to_bytes()).filter(|asked| asked.what == What::Get) {
        Some(asked) => {
            let mut response = Response::new(Full::from(endpoint.metadata(&asked, random())));
            response.headers_mut().insert(CONTENT_TYPE, SOAP);
            response
        }
        None => refused(StatusCode::BAD_REQUEST),
    }
}

fn refused(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

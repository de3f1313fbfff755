//! Answers whose contents are made while they are sent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use hyper::body::{Bytes, Frame};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::replications::Contents;

/// Bytes that are sent at a time.
const PIECE: usize = 64 << 10;
/// Pieces that wait to be sent.
const PIECES: usize = 16;
/// How long a client may read nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// That the answer on a connection takes as long as its client reads it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LongAnswer(Arc<AtomicBool>);

impl LongAnswer {
    pub(crate) fn expect(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_expected(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// An answer with these contents.
pub(crate) fn answer(contents: Contents, long: &LongAnswer) -> Response {
    long.expect();
    let (sender, receiver) = mpsc::channel(PIECES);
    let writer = Writer { sender, runtime: Handle::current(), piece: Vec::with_capacity(PIECE) };
    contents(Box::new(writer));
    ([(CONTENT_TYPE, "application/octet-stream")], Body::new(Pieces(receiver))).into_response()
}

/// What is yet to be sent.
struct Pieces(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Where contents are written to, on a thread that is none of the runtime's.
struct Writer {
    sender: mpsc::Sender<Bytes>,
    runtime: Handle,
    piece: Vec<u8>,
}

impl Writer {
    fn send(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE)));
        let sent = self.runtime.block_on(self.sender.send_timeout(piece, SILENCE));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

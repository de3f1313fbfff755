//! One QUIC stream as a socket.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::BytesMut;
use quinn::{Connection, RecvStream, SendStream, VarInt};
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;

use crate::socket::Socket;

/// What may have arrived without being read, and what may be sent without being acknowledged, in bytes.
pub(crate) const WINDOW: VarInt = VarInt::from_u32(2 << 20);
/// The same of a stranger.
pub(crate) const STRANGER_WINDOW: VarInt = VarInt::from_u32(16 * 1024);
/// Memory of a stranger's connection: both windows, what the handshake buffers, and the state of QUIC and TLS.
pub(crate) const STRANGER_BYTES: usize = 64 * 1024;
/// How long the client may take to acknowledge what was sent before the end.
const LAST_BYTES: Duration = Duration::from_secs(2);
/// The application's error code of a connection that ends as it should. [MS-SMB2] names no codes.
const NO_ERROR: VarInt = VarInt::from_u32(0);

/// A connection, and the one stream that is served.
#[derive(Debug)]
pub(crate) struct QuicStream {
    connection: Connection,
    send: RefCell<SendStream>,
    receive: RefCell<RecvStream>,
    readable: Readiness,
    writable: Readiness,
}

impl QuicStream {
    pub(crate) fn new(connection: Connection, send: SendStream, receive: RecvStream) -> Self {
        let (send, receive) = (RefCell::new(send), RefCell::new(receive));
        Self { connection, send, receive, readable: Readiness::new(), writable: Readiness::new() }
    }

    /// The address of this machine that the client has connected to, where the system reports it.
    pub(crate) fn local_ip(&self) -> Option<IpAddr> {
        self.connection.local_ip()
    }

    /// Ends the connection when its client has what was sent, or soon.
    pub(crate) async fn finish(&self) {
        let _ = self.send.borrow_mut().finish(); // the client may have stopped the stream
        let acknowledged = self.send.borrow().stopped();
        let _ = tokio::time::timeout(LAST_BYTES, acknowledged).await;
        self.close();
    }

    /// Ends the connection at once.
    pub(crate) fn close(&self) {
        self.connection.close(NO_ERROR, b"");
    }
}

impl Socket for Rc<QuicStream> {
    async fn readable(&self) -> io::Result<()> {
        self.readable.ready().await;
        Ok(())
    }

    async fn writable(&self) -> io::Result<()> {
        self.writable.ready().await;
        Ok(())
    }

    fn try_read(&self, received: &mut BytesMut) -> io::Result<usize> {
        let mut stream = self.receive.borrow_mut();
        self.readable.attempt(|context| pin!(stream.read_buf(received)).poll(context))
    }

    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut stream = self.send.borrow_mut();
        self.writable.attempt(|context| write(&mut stream, slices, context))
    }

    fn round_trip(&self) -> Option<Duration> {
        Some(self.connection.rtt())
    }

    /// QUIC itself ends a connection whose client acknowledges nothing.
    async fn retransmissions(&self) -> io::Result<Option<u32>> {
        Ok(None)
    }

    fn reset_at_end(&self) -> io::Result<()> {
        self.close();
        Ok(())
    }

    fn set_known(&self, is_known: bool) {
        let window = if is_known { WINDOW } else { STRANGER_WINDOW };
        self.connection.set_receive_window(window);
        self.connection.set_send_window(window.into_inner());
    }

    fn held_bytes(&self) -> usize {
        STRANGER_BYTES
    }
}

/// Writes as much as there is room for.
fn write(
    stream: &mut SendStream,
    slices: &[IoSlice<'_>],
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut written = 0;
    for slice in slices {
        let mut rest = &slice[..];
        while !rest.is_empty() {
            match Pin::new(&mut *stream).poll_write(context, rest) {
                Poll::Ready(Ok(count)) => {
                    written += count;
                    rest = &rest[count..];
                }
                Poll::Ready(Err(_)) | Poll::Pending if written > 0 => return Poll::Ready(Ok(written)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
    Poll::Ready(Ok(written))
}

/// Whether an attempt may succeed: as for the sockets of the system, an attempt that would block has to come first.
#[derive(Debug)]
struct Readiness {
    signal: Arc<ReadySignal>,
    waker: Waker,
}

#[derive(Debug)]
struct ReadySignal {
    is_ready: AtomicBool,
    wake: Notify,
}

impl Wake for ReadySignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_ready.store(true, Ordering::Release);
        self.wake.notify_one();
    }
}

impl Readiness {
    fn new() -> Self {
        let signal = Arc::new(ReadySignal { is_ready: AtomicBool::new(true), wake: Notify::new() });
        Self { waker: Waker::from(Arc::clone(&signal)), signal }
    }

    /// Resolves when an attempt may succeed.
    async fn ready(&self) {
        while !self.signal.is_ready.load(Ordering::Acquire) {
            self.signal.wake.notified().await;
        }
    }

    /// Makes an attempt.
    fn attempt<T>(&self, make: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<T>>) -> io::Result<T> {
        // Before the attempt: a signal that comes during it counts.
        self.signal.is_ready.store(false, Ordering::Release);
        match make(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(made) => {
                self.signal.is_ready.store(true, Ordering::Release);
                made
            }
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

//! The socket operations that the loop of a connection needs.

use std::future::Future;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use socket2::SockRef;
use tokio::net::TcpStream;

use crate::retransmissions::retransmissions;
use crate::round_trip::round_trip;

/// A stream of bytes to a peer and back. Shards serve TCP sockets; [`crate::SingleShard`] serves any.
pub trait Socket: 'static {
    /// Resolves when [`Socket::try_read`] may have data to return.
    fn readable(&self) -> impl Future<Output = io::Result<()>>;

    /// Resolves when [`Socket::try_write`] may accept data.
    fn writable(&self) -> impl Future<Output = io::Result<()>>;

    /// Appends the bytes that have arrived to `received`, as far as there is room. Returns the number of bytes, 0 when
    /// the peer has ended its direction.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when no bytes have arrived; otherwise the reason why the connection is no longer
    /// usable.
    fn try_read(&self, received: &mut BytesMut) -> io::Result<usize>;

    /// Sends as much as there is room for. Returns the number of bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is no room; otherwise the reason why the connection is no longer
    /// usable.
    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// The smoothed time from sending to acknowledgment, as far as it is known.
    fn round_trip(&self) -> Option<Duration>;

    /// How often the oldest unacknowledged bytes have been sent again since the peer last acknowledged any; `None` when
    /// that is not known.
    ///
    /// # Errors
    /// The connection is no longer usable.
    fn retransmissions(&self) -> impl Future<Output = io::Result<Option<u32>>>;

    /// Makes the connection end with a reset when it is dropped, so that no data queues in front of its end.
    ///
    /// # Errors
    /// The system refuses.
    fn reset_at_end(&self) -> io::Result<()>;

    /// Notes whether the client has identified itself: a stranger has little memory.
    fn set_known(&self, _is_known: bool) {}

    /// Memory of this process that the socket of a stranger holds, in bytes.
    fn held_bytes(&self) -> usize {
        0
    }
}

impl Socket for Arc<TcpStream> {
    async fn readable(&self) -> io::Result<()> {
        TcpStream::readable(self).await
    }

    async fn writable(&self) -> io::Result<()> {
        TcpStream::writable(self).await
    }

    fn try_read(&self, received: &mut BytesMut) -> io::Result<usize> {
        self.try_read_buf(received)
    }

    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_write_vectored(slices)
    }

    fn round_trip(&self) -> Option<Duration> {
        round_trip(&**self)
    }

    async fn retransmissions(&self) -> io::Result<Option<u32>> {
        let (local, peer) = (self.local_addr()?, self.peer_addr()?);
        Ok(tokio::task::spawn_blocking(move || retransmissions(local, peer)).await.ok().flatten())
    }

    fn reset_at_end(&self) -> io::Result<()> {
        SockRef::from(&**self).set_linger(Some(Duration::ZERO))
    }
}

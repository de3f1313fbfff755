//! Connections that the server opens: one question and its answer each.
//!
//! Their number and their time are limited, in all and for each origin, and no shard waits for one.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use crate::Origin;

/// Exchanges at a time.
const EXCHANGES_MAX: usize = 64;
/// Exchanges with one origin at a time, and those that wait for a place.
const EXCHANGES_OF_ORIGIN_MAX: usize = 16;
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 4096;
/// The bytes in front of a message that tell its length.
const MARK_BYTES: usize = 4;

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum OutgoingError {
    /// Nothing was sent.
    #[error("not sent: {0}")]
    NotSent(io::Error),
    /// The question was sent, at least in part, and the other side may have received it.
    #[error("no answer: {0}")]
    Unanswered(io::Error),
}

/// The places for exchanges.
#[derive(Debug)]
pub struct Outgoing {
    places: Semaphore,
    /// Guards the number of exchanges with each origin; none is zero.
    by_origin: Mutex<HashMap<Origin, usize>>,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self { places: Semaphore::new(EXCHANGES_MAX), by_origin: Mutex::default() }
    }
}

/// An exchange that counts for its origin.
struct Place<'a> {
    outgoing: &'a Outgoing,
    origin: Origin,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut by_origin = self.outgoing.by_origin.lock();
        match by_origin.get_mut(&self.origin) {
            Some(held) if *held > 1 => *held -= 1,
            _ => drop(by_origin.remove(&self.origin)),
        }
    }
}

impl Outgoing {
    /// Connects to `to` from the address `from`, sends a message, and returns the answer. Each is a record with its mark
    /// (RFC 5531 section 11) in one fragment; the mark of the answer is not part of it.
    ///
    /// # Errors
    /// [`OutgoingError`], which tells whether the message was sent.
    pub async fn exchange(
        self: &Arc<Self>,
        from: IpAddr,
        to: SocketAddr,
        message: &[u8],
    ) -> Result<Vec<u8>, OutgoingError> {
        let not_sent =
            |kind: io::ErrorKind, why: &str| OutgoingError::NotSent(io::Error::new(kind, why.to_owned()));
        let place = self.enter(to.ip().into());
        let _place =
            place.ok_or_else(|| not_sent(io::ErrorKind::ResourceBusy, "too many calls to this address"))?;
        let permit = self.places.acquire().await;
        let _permit = permit.map_err(|_| not_sent(io::ErrorKind::NotConnected, "the server ends"))?;
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connect(from, to)).await;
        let connected = connected.map_err(|_| not_sent(io::ErrorKind::TimedOut, "no connection in time"))?;
        let stream = connected.map_err(OutgoingError::NotSent)?;
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, ask(stream, message)).await;
        answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(OutgoingError::Unanswered)
    }

    fn enter(&self, origin: Origin) -> Option<Place<'_>> {
        let mut by_origin = self.by_origin.lock();
        let held = by_origin.entry(origin).or_default();
        if *held >= EXCHANGES_OF_ORIGIN_MAX {
            return None;
        }
        *held += 1;
        Some(Place { outgoing: self, origin })
    }
}

async fn connect(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if from.is_ipv4() == to.is_ipv4() && !from.is_unspecified() {
        // A link-local address is not complete without its interface; the route finds it.
        if !matches!(from, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
            socket.bind(SocketAddr::new(from, 0))?;
        }
    }
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn ask(mut stream: TcpStream, message: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(message).await?;
    let mut mark = [0; MARK_BYTES];
    stream.read_exact(&mut mark).await?;
    let mark = u32::from_be_bytes(mark);
    let (is_last, length) = (mark >> 31 == 1, usize::try_from(mark & 0x7fff_ffff).unwrap_or(usize::MAX));
    if !is_last || length > ANSWER_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "an answer in pieces, or one that is too long",
        ));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn a_question_is_answered_from_the_address_that_was_asked_for() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, peer) = listener.accept().await.unwrap();
            let mut question = [0; 8];
            stream.read_exact(&mut question).await.unwrap();
            stream.write_all(&[0x80, 0, 0, 3, 1, 2, 3]).await.unwrap();
            (peer.ip(), question)
        });
        let outgoing = Arc::new(Outgoing::default());
        let from = IpAddr::from([127, 0, 0, 9]);
        let answer = outgoing.exchange(from, to, b"\x80\0\0\x04ask!").await.unwrap();
        assert_eq!((answer, server.await.unwrap()), (vec![1, 2, 3], (from, *b"\x80\0\0\x04ask!")));
        assert!(outgoing.by_origin.lock().is_empty());
    }

    #[tokio::test]
    async fn it_is_known_whether_the_question_was_sent() {
        let outgoing = Arc::new(Outgoing::default());
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = outgoing.exchange(HERE, closed, b"").await.unwrap_err();
        assert!(matches!(refused, OutgoingError::NotSent(_)), "{refused}");
        for answer in [&b""[..], b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let to = listener.local_addr().unwrap();
            tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.read_exact(&mut [0; 1]).await.unwrap();
                stream.write_all(answer).await.unwrap();
            });
            let refused = outgoing.exchange(HERE, to, b"?").await.unwrap_err();
            assert!(matches!(refused, OutgoingError::Unanswered(_)), "{refused}");
        }
    }

    #[tokio::test]
    async fn one_origin_has_a_limited_number_of_calls() {
        let outgoing = Arc::new(Outgoing::default());
        let places: Vec<_> =
            (0..EXCHANGES_OF_ORIGIN_MAX).map(|_| outgoing.enter(HERE.into()).unwrap()).collect();
        let to = SocketAddr::new(HERE, 9);
        assert!(matches!(outgoing.exchange(HERE, to, b"").await, Err(OutgoingError::NotSent(_))));
        drop(places);
        assert!(outgoing.by_origin.lock().is_empty() && outgoing.enter(HERE.into()).is_some());
    }
}

//! Datagrams that are answered one by one.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use crate::Listeners;
use crate::stop::Stop;

/// The most bytes of a datagram that is looked at. The rest of a longer one is lost.
pub const DATAGRAM_BYTES_MAX: usize = 4096;

/// How long a socket rests that cannot be read.
const RETRY: Duration = Duration::from_millis(100);

/// Answers datagrams. An answer should not be longer than its question: the sender's address may be another one's.
pub trait Datagrams: Send + Sync + 'static {
    /// The answer to a datagram; None: there is none. Must not block.
    fn answer(&self, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>>;
}

impl Listeners {
    /// Answers the datagrams that arrive at any of the sockets.
    ///
    /// # Errors
    /// A socket cannot be made non-blocking.
    pub fn answer_datagrams<D: Datagrams>(
        &self,
        sockets: Vec<UdpSocket>,
        service: &Arc<D>,
    ) -> io::Result<()> {
        for socket in sockets {
            socket.set_nonblocking(true)?;
            let service = Arc::clone(service);
            self.begin(Box::new(move |stop| {
                let (socket, service) = (socket.try_clone()?, Arc::clone(&service));
                Ok(Box::new(move || {
                    tokio::task::spawn_local(answer_all(socket, service, stop));
                }))
            }))?;
        }
        Ok(())
    }
}

async fn answer_all<D: Datagrams>(socket: UdpSocket, service: Arc<D>, mut stop: Stop) {
    let socket = match tokio::net::UdpSocket::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return tracing::error!("cannot receive datagrams: {error}"),
    };
    let mut datagram = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut datagram) => received,
            () = stop.given() => return,
        };
        let Ok((length, from)) = received else {
            // An earlier answer came to nobody, or the system is short of memory.
            tokio::time::sleep(RETRY).await;
            continue;
        };
        let answer = datagram.get(..length).and_then(|datagram| service.answer(from, datagram));
        if let Some(answer) = answer {
            // A sender that gets no answer asks again.
            let _ = socket.try_send_to(&answer, from);
        }
    }
}

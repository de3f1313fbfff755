//! A connection to a server that may be silent for long, whose reader can be told to wait no more.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use gateway::replication::Patience;

/// How often it is looked whether to wait on.
const LOOK: Duration = Duration::from_millis(200);
/// How long one attempt to connect takes at most: so long nobody can be told to wait no more.
const ATTEMPT: Duration = Duration::from_secs(2);

/// A connection.
#[derive(Debug)]
pub(crate) struct Patient {
    stream: TcpStream,
    patience: Patience,
}

impl Patient {
    /// Connects, for so long.
    pub(crate) fn connect(address: &SocketAddr, within: Duration, patience: Patience) -> io::Result<Self> {
        let begun = Instant::now();
        let stream = loop {
            let left = within.saturating_sub(begun.elapsed()).max(LOOK);
            match TcpStream::connect_timeout(address, left.min(ATTEMPT)) {
                Err(e) if e.kind() == ErrorKind::TimedOut && begun.elapsed() < within => {
                    patience.check(begun)?;
                }
                connected => break connected?,
            }
        };
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(LOOK))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, patience })
    }

    fn wait<T>(&mut self, mut attempt: impl FnMut(&mut TcpStream) -> io::Result<T>) -> io::Result<T> {
        let begun = Instant::now();
        loop {
            match attempt(&mut self.stream) {
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) =>
                {
                    self.patience.check(begun)?;
                }
                done => return done,
            }
        }
    }
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.wait(|stream| stream.read(into))
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A server that never says a word, and how a connection to it ends.
    fn silent(patience: Patience) -> io::Error {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut connection = Patient::connect(&address, Duration::from_secs(60), patience).unwrap();
        let _held = listener.accept().unwrap();
        connection.write_all(b"hello?").unwrap();
        connection.read(&mut [0; 8]).unwrap_err()
    }

    #[test]
    fn who_is_told_to_wait_no_more_waits_no_more() {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        // Were this not looked at, the test would never end.
        let patience = Patience::until(Duration::MAX, move || seen.swap(true, Ordering::Relaxed));
        assert_eq!(silent(patience).to_string(), "stopped");
        assert!(is_over.load(Ordering::Relaxed));
    }

    #[test]
    fn a_server_may_be_silent_for_so_long() {
        assert_eq!(silent(Patience::new(Duration::from_millis(1))).kind(), ErrorKind::TimedOut);
    }
}

//! One connection and its client: asking one thing at a time, before and after the load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{Client, Framing, Handle, Outcome, Request, Sent, next_message};
use crate::fault::{Fault, Result};
use crate::result::ProblemKind;

/// Bytes that are asked of a socket at a time.
const READ_BYTES: usize = 256 << 10;

/// A connection without a client yet: messages in and out, one after the other.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    framing: Framing,
    input: Vec<u8>,
}

impl Wire {
    /// Connects.
    ///
    /// # Errors
    /// [`ProblemKind::Unreachable`].
    pub(crate) fn connect(address: SocketAddr, framing: Framing, timeout: Duration) -> Result<Self> {
        let failed = |e: std::io::Error| {
            Fault::new(ProblemKind::Unreachable, format!("{address} cannot be reached: {e}"))
        };
        let stream = TcpStream::connect_timeout(&address, timeout).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(timeout)).map_err(failed)?;
        stream.set_write_timeout(Some(timeout)).map_err(failed)?;
        Ok(Self { stream, framing, input: Vec::new() })
    }

    /// Sends bytes, prefix included.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(|e| Fault::of_socket(&e))
    }

    /// The next message, without its prefix.
    pub(crate) fn receive(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some((message, next)) = next_message(self.framing, &mut self.input)? {
                let message = self.input.get(message).unwrap_or_default().to_vec();
                self.input.drain(..next);
                return Ok(message);
            }
            let filled = self.input.len();
            self.input.resize(filled + READ_BYTES, 0);
            let read = self.stream.read(self.input.get_mut(filled..).unwrap_or_default());
            self.input.truncate(filled + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(Fault::new(ProblemKind::Closed, "the server closed the connection")),
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Fault::of_socket(&e)),
            }
        }
    }
}

/// A connection and its client.
pub(crate) struct Link {
    pub(crate) wire: Wire,
    pub(crate) client: Box<dyn Client>,
}

/// What a single request brought.
#[derive(Debug)]
pub(crate) enum Answer {
    Done,
    Handle(Handle),
}

impl Link {
    /// Asks for one thing and waits for it. `Later` is asked again for ten seconds.
    ///
    /// # Errors
    /// What the server refused, or what is wrong with the connection.
    pub(crate) fn ask(&mut self, request: &Request<'_>) -> Result<Answer> {
        const AGAIN: u32 = 100;
        for _ in 0..AGAIN {
            if let Some(answer) = self.ask_once(request)? {
                return Ok(answer);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(Fault::new(ProblemKind::Refused, "the server says again and again that it would answer later"))
    }

    fn ask_once(&mut self, request: &Request<'_>) -> Result<Option<Answer>> {
        let mut out = Vec::new();
        match self.client.submit(0, request, &mut out)? {
            Sent::NotNeeded => return Ok(Some(Answer::Done)),
            Sent::NotNow => return Err(Fault::protocol("the server lets not one request in")),
            Sent::Yes => self.wire.send(&out)?,
        }
        let mut answer = None;
        while answer.is_none() {
            let mut message = self.wire.receive()?;
            self.client.receive(&mut message, &mut |_, outcome| {
                answer = Some(match outcome {
                    Outcome::Handle(handle) => Ok(Some(Answer::Handle(handle))),
                    Outcome::Later => Ok(None),
                    Outcome::Refused(fault) => Err(fault),
                    Outcome::Data(_) | Outcome::Done | Outcome::Written(_) => Ok(Some(Answer::Done)),
                });
            })?;
        }
        answer.unwrap_or(Ok(None))
    }

    /// Asks for something that has a handle.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(crate) fn handle(&mut self, request: &Request<'_>) -> Result<Handle> {
        match self.ask(request)? {
            Answer::Handle(handle) => Ok(handle),
            Answer::Done => Err(Fault::protocol("the server has given no handle")),
        }
    }
}

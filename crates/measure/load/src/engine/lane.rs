//! One connection under load: bytes out, bytes in, messages to their operations.

use std::io::{ErrorKind, Read, Write};

use crate::fault::{Fault, Result};
use crate::link::Link;
use crate::result::ProblemKind;
use client::{Outcome, Request, Sent, next_message};

/// Nothing more is put in front of a connection that has so many bytes to send.
const OUT_BYTES_MAX: usize = 2 << 20;
/// Room for what is received, at first.
const IN_BYTES: usize = 256 << 10;

/// One connection under load.
pub(super) struct Lane<'a> {
    pub(super) link: &'a mut Link,
    out: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    begin: usize,
    filled: usize,
    /// Whether the loop is told when the socket takes more.
    pub(super) waits_to_send: bool,
}

impl<'a> Lane<'a> {
    pub(super) fn new(link: &'a mut Link) -> Result<Self> {
        link.wire.stream.set_nonblocking(true).map_err(|e| Fault::of_socket(&e))?;
        let input = vec![0; IN_BYTES];
        Ok(Self { link, out: Vec::new(), sent: 0, input, begin: 0, filled: 0, waits_to_send: false })
    }

    /// The connection is used one request at a time again.
    pub(super) fn end(&self) {
        let _ = self.link.wire.stream.set_nonblocking(false);
    }

    pub(super) fn submit(&mut self, tag: usize, request: &Request<'_>) -> Result<Sent> {
        if self.out.len() - self.sent > OUT_BYTES_MAX {
            return Ok(Sent::NotNow);
        }
        Ok(self.link.client.submit(tag, request, &mut self.out)?)
    }

    /// Whether there is something to send.
    pub(super) fn has_output(&self) -> bool {
        self.sent < self.out.len() || self.link.wire.has_output()
    }

    /// Sends as much as the socket takes.
    pub(super) fn flush(&mut self) -> Result<()> {
        while self.sent < self.out.len() {
            match self.link.wire.write(self.out.get(self.sent..).unwrap_or_default()) {
                Ok(0) => return Err(Fault::new(ProblemKind::Closed, "the server closed the connection")),
                Ok(n) => self.sent += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Fault::of_socket(&e)),
            }
        }
        match self.link.wire.flush() {
            Err(e) if !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Err(Fault::of_socket(&e));
            }
            _ => {}
        }
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        } else if self.sent > OUT_BYTES_MAX {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }

    /// Takes what has arrived; `done` is told of each operation that has ended.
    pub(super) fn receive(&mut self, done: &mut dyn FnMut(usize, Outcome<'_>)) -> Result<()> {
        loop {
            let room = self.input.get_mut(self.filled..).unwrap_or_default();
            let wanted = room.len();
            let read = match self.link.wire.read(room) {
                Ok(0) => return Err(Fault::new(ProblemKind::Closed, "the server closed the connection")),
                Ok(read) => read,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(Fault::of_socket(&e)),
            };
            self.filled += read;
            self.messages(done)?;
            if read < wanted && !self.link.wire.may_have_more() {
                return Ok(());
            }
        }
    }

    fn messages(&mut self, done: &mut dyn FnMut(usize, Outcome<'_>)) -> Result<()> {
        let framing = self.link.client.framing();
        loop {
            let received = self.input.get_mut(self.begin..self.filled).unwrap_or_default();
            let Some((message, next)) = next_message(framing, received)? else { break };
            self.link.client.receive(received.get_mut(message).unwrap_or_default(), done)?;
            self.begin += next;
        }
        if self.begin == self.filled {
            (self.begin, self.filled) = (0, 0);
        } else if self.filled == self.input.len() {
            // A part of a message is at the end: it goes to the front, and gets more room if it fills the buffer.
            self.input.copy_within(self.begin..self.filled, 0);
            (self.begin, self.filled) = (0, self.filled - self.begin);
            if self.filled * 2 > self.input.len() {
                self.input.resize(self.input.len() * 2, 0);
            }
        }
        Ok(())
    }
}

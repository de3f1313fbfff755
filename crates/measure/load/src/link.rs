//! The world of clients here: TCP, TLS, tickets, the names and the clock of this machine. One connection and its client: asking one thing
//! at a time, before and after the load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::fault::{Fault, Result};
use crate::result::ProblemKind;
use crate::tls;
use client::{Client, FaultKind, Framing, Handle, NfsTls, Outcome, Request, Sent, Wire, World, next_message};

/// Bytes that are asked of a socket at a time.
const READ_BYTES: usize = 256 << 10;

/// The network that this machine sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Network {
    /// After this long without an answer a reply counts as lost.
    pub(crate) timeout: Duration,
}

/// A connection without a client yet: messages in and out, one after the other.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) stream: TcpStream,
    tls: Option<Box<tls::Session>>,
    framing: Framing,
    input: Vec<u8>,
}

impl Socket {
    /// Whether bytes that [`Write::write`] took still wait for the socket.
    pub(crate) fn has_output(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_output())
    }

    /// Whether more may be there after a read that was shorter than its room.
    pub(crate) fn may_have_more(&self) -> bool {
        self.tls.is_some()
    }
}

impl Read for Socket {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.read(&mut self.stream, room),
            None => self.stream.read(room),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.write(&mut self.stream, bytes),
            None => self.stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.flush(&mut self.stream),
            None => Ok(()),
        }
    }
}

/// The first address of a host.
///
/// # Errors
/// [`FaultKind::Unreachable`]: the name has no address.
pub(crate) fn resolve(host: &str, port: u16) -> client::Result<SocketAddr> {
    let none =
        |why: String| client::Fault::new(FaultKind::Unreachable, format!("{host} has no address: {why}"));
    let mut found = (host, port).to_socket_addrs().map_err(|e| none(e.to_string()))?;
    found.next().ok_or_else(|| none("none was found".to_owned()))
}

impl World for Network {
    type Wire = Socket;

    fn resolve(&self, host: &str, port: u16) -> client::Result<SocketAddr> {
        resolve(host, port)
    }

    fn connect(&self, address: SocketAddr, framing: Framing) -> client::Result<Socket> {
        let failed = |e: std::io::Error| {
            client::Fault::new(FaultKind::Unreachable, format!("{address} cannot be reached: {e}"))
        };
        let stream = TcpStream::connect_timeout(&address, self.timeout).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(self.timeout)).map_err(failed)?;
        stream.set_write_timeout(Some(self.timeout)).map_err(failed)?;
        Ok(Socket { stream, tls: None, framing, input: Vec::new() })
    }

    fn is_reachable(&self, address: SocketAddr) -> bool {
        TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
    }

    fn random(&self, buffer: &mut [u8]) -> client::Result<()> {
        getrandom::fill(buffer)
            .map_err(|e| client::Fault::new(FaultKind::ThisMachine, format!("no random numbers: {e}")))
    }

    fn credential_cache(&self) -> client::Result<Vec<u8>> {
        let not_read = |why: String| client::Fault::new(FaultKind::ThisMachine, why);
        let path = credential_cache_path().map_err(not_read)?;
        std::fs::read(&path).map_err(|e| {
            let path = path.display();
            not_read(format!("the credential cache {path} cannot be read: {e}; get a ticket with `kinit`"))
        })
    }

    fn now(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

impl Wire for Socket {
    fn send(&mut self, bytes: &[u8]) -> client::Result<()> {
        self.write_all(bytes).and_then(|()| self.flush()).map_err(|e| client::Fault::of_connection(&e))
    }

    fn receive(&mut self) -> client::Result<Vec<u8>> {
        loop {
            if let Some((message, next)) = next_message(self.framing, &mut self.input)? {
                let message = self.input.get(message).unwrap_or_default().to_vec();
                self.input.drain(..next);
                return Ok(message);
            }
            let mut input = std::mem::take(&mut self.input);
            let filled = input.len();
            input.resize(filled + READ_BYTES, 0);
            let read = self.read(input.get_mut(filled..).unwrap_or_default());
            input.truncate(filled + *read.as_ref().unwrap_or(&0));
            self.input = input;
            match read {
                Ok(0) => {
                    return Err(client::Fault::new(FaultKind::Closed, "the server closed the connection"));
                }
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(client::Fault::of_connection(&e)),
            }
        }
    }

    fn start_tls(&mut self, host: &str, tls: &NfsTls) -> client::Result<String> {
        let session = tls::Session::begin(&mut self.stream, host, tls)?;
        let cipher = session.cipher();
        self.tls = Some(Box::new(session));
        Ok(cipher)
    }
}

/// The file that the user's Kerberos tickets are in: what KRB5CCNAME says, or what MIT's library takes without it.
fn credential_cache_path() -> std::result::Result<PathBuf, String> {
    let named = std::env::var("KRB5CCNAME").unwrap_or_default();
    match named.split_once(':') {
        None if named.is_empty() => Ok(format!("/tmp/krb5cc_{}", rustix::process::getuid().as_raw()).into()),
        None => Ok(named.into()),
        Some(("FILE", path)) => Ok(path.into()),
        Some((kind, _)) => Err(format!(
            "KRB5CCNAME names a credential cache of kind {kind}: only files (FILE:/PATH) can be read"
        )),
    }
}

/// A connection and its client.
pub(crate) struct Link {
    pub(crate) wire: Socket,
    pub(crate) client: Box<dyn Client>,
}

/// What a single request brought.
#[derive(Debug)]
pub(crate) enum LinkReply {
    Done,
    Handle(Handle),
}

impl From<(Socket, Box<dyn Client>)> for Link {
    fn from((wire, client): (Socket, Box<dyn Client>)) -> Self {
        Self { wire, client }
    }
}

impl Link {
    /// Asks for one thing and waits for it. `Later` is asked again for ten seconds.
    ///
    /// # Errors
    /// What the server refused, or what is wrong with the connection.
    pub(crate) fn ask(&mut self, request: &Request<'_>) -> Result<LinkReply> {
        const AGAIN: u32 = 100;
        for _ in 0..AGAIN {
            if let Some(answer) = self.ask_once(request)? {
                return Ok(answer);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(Fault::new(ProblemKind::Refused, "the server says again and again that it would answer later"))
    }

    fn ask_once(&mut self, request: &Request<'_>) -> Result<Option<LinkReply>> {
        let mut out = Vec::new();
        match self.client.submit(0, request, &mut out)? {
            Sent::NotNeeded => return Ok(Some(LinkReply::Done)),
            Sent::NotNow => return Err(Fault::protocol("the server lets not one request in")),
            Sent::Yes => self.wire.send(&out)?,
        }
        let mut answer = None;
        while answer.is_none() {
            let mut message = self.wire.receive()?;
            self.client.receive(&mut message, &mut |_, outcome| {
                answer = Some(match outcome {
                    Outcome::Handle(handle) => Ok(Some(LinkReply::Handle(handle))),
                    Outcome::Later => Ok(None),
                    Outcome::Refused(fault) => Err(Fault::from(fault)),
                    Outcome::Data(_) | Outcome::Done | Outcome::Written(_) => Ok(Some(LinkReply::Done)),
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
            LinkReply::Handle(handle) => Ok(handle),
            LinkReply::Done => Err(Fault::protocol("the server has given no handle")),
        }
    }
}

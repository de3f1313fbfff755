//! Registration with the machine's own rpcbind, over its local socket (RFC 1833 section 2).
//!
//! Rpcbind forgets everything when it is restarted, and may start after this server. So what is registered is looked at again
//! and again. An address that another program has registered is left alone while that program answers.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nfs_wire::mount::List;
use nfs_wire::portmap::{self as wire, PORT};
use nfs_wire::record_mark::{MARK_BYTES, Mark};
use nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody};
use nfs_wire::rpcbind::{self, Binding, Procedure, Text, VERSION_4, netid};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};
use socket2::{Domain, Socket, Type};

use super::Registration;

/// Where rpcbind listens for programs of its machine.
pub const RPCBIND_SOCKET: &str = "/run/rpcbind.sock";

/// How long rpcbind may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long it is tried whether a program that has registered an address still answers.
const PROBE: Duration = Duration::from_millis(500);
/// The most bytes of an answer of rpcbind: thousands of registrations.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Rpcbind takes registrations over TCP only from these ports, which are for root.
const RESERVED_PORTS: std::ops::RangeInclusive<u16> = 600..=1023;

/// Why programs are not registered.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RegisterError {
    /// There is no rpcbind, or it does not answer.
    #[error("no rpcbind answers at {RPCBIND_SOCKET} or port {PORT} of this machine: {0}")]
    Absent(String),
    /// Another program is registered.
    #[error("another program of this machine serves {0}")]
    Taken(String),
    /// Rpcbind does not let this process register.
    #[error("rpcbind refuses to register {0}")]
    Refused(String),
}

/// Registers the programs of one server.
#[derive(Debug)]
pub struct Registrar {
    socket: PathBuf,
    wanted: Vec<Registration>,
}

impl Registrar {
    /// Registers these programs with the rpcbind of this machine.
    #[must_use]
    pub fn new(wanted: Vec<Registration>) -> Self {
        Self { socket: RPCBIND_SOCKET.into(), wanted }
    }

    /// Whether a rpcbind answers on this machine.
    #[must_use]
    pub fn is_there() -> bool {
        Binder::connect(Path::new(RPCBIND_SOCKET)).is_ok()
    }

    /// Registers what is not registered. Returns how many there were. May block for some seconds.
    ///
    /// # Errors
    /// [`RegisterError`]; all programs that can be registered are.
    pub fn register(&self) -> Result<usize, RegisterError> {
        let absent = |error: io::Error| RegisterError::Absent(error.to_string());
        let mut binder = Binder::connect(&self.socket).map_err(absent)?;
        let present = binder.dump().map_err(absent)?;
        let (mut entered, mut failed) = (0, None);
        for wanted in &self.wanted {
            match present.iter().find(|known| is_same(known, wanted)) {
                Some(known) if known.address == wanted.address => continue,
                Some(known) if is_alive(known) => {
                    failed.get_or_insert_with(|| RegisterError::Taken(said(known)));
                    continue;
                }
                // The program that has registered it is gone.
                Some(known) => drop(binder.set(Procedure::Unset, known)),
                None => {}
            }
            match binder.set(Procedure::Set, wanted) {
                Ok(true) => entered += 1,
                Ok(false) => drop(failed.get_or_insert_with(|| RegisterError::Refused(said(wanted)))),
                Err(error) => return Err(absent(error)),
            }
        }
        failed.map_or(Ok(entered), Err)
    }

    /// Removes what is registered for this server.
    ///
    /// # Errors
    /// [`RegisterError::Absent`].
    pub fn unregister(&self) -> Result<(), RegisterError> {
        let absent = |error: io::Error| RegisterError::Absent(error.to_string());
        let mut binder = Binder::connect(&self.socket).map_err(absent)?;
        let present = binder.dump().map_err(absent)?;
        for wanted in &self.wanted {
            if present.iter().any(|known| is_same(known, wanted) && known.address == wanted.address) {
                binder.set(Procedure::Unset, wanted).map_err(absent)?;
            }
        }
        Ok(())
    }
}

fn is_same(one: &Registration, other: &Registration) -> bool {
    (one.program, one.version, one.netid) == (other.program, other.version, other.netid)
}

fn said(known: &Registration) -> String {
    let Registration { program, version, netid, address } = known;
    format!("program {program} version {version} over {netid} at {address}")
}

/// Whether somebody still answers at a registered address. Over UDP that cannot be seen.
fn is_alive(known: &Registration) -> bool {
    if known.netid != netid::TCP && known.netid != netid::TCP6 {
        return true;
    }
    let mut at = known.address;
    if at.ip().is_unspecified() {
        let loopback = match at.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        };
        at.set_ip(loopback);
    }
    TcpStream::connect_timeout(&at, PROBE).is_ok()
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// A connection to rpcbind.
struct Binder {
    stream: Box<dyn Stream>,
    next_xid: u32,
}

impl Binder {
    /// Over the local socket, or over TCP from a reserved port where only that is there.
    fn connect(socket: &Path) -> io::Result<Self> {
        let stream: Box<dyn Stream> = match UnixStream::connect(socket) {
            Ok(stream) => {
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                Box::new(stream)
            }
            Err(error) => Box::new(over_tcp().map_err(|_| error)?),
        };
        Ok(Self { stream, next_xid: std::process::id() })
    }

    fn call(&mut self, procedure: Procedure, args: &impl Encode) -> io::Result<Vec<u8>> {
        self.next_xid = self.next_xid.wrapping_add(1);
        let (xid, program, version, procedure) = (self.next_xid, wire::PROGRAM, VERSION_4, procedure as u32);
        let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
        let mut message = Vec::new();
        let mut writer = Writer::new(&mut message);
        Call { xid, program, version, procedure, credential, verifier }.encode(&mut writer);
        args.encode(&mut writer);
        self.stream.write_all(&[&Mark::whole_record(message.len()).to_bytes()[..], &message].concat())?;
        let answer = self.record()?;
        let mut reader = Reader::new(&answer);
        match Reply::decode(&mut reader) {
            Ok(Reply { xid: of, body: ReplyBody::Accepted { status: AcceptStatus::Success, .. } })
                if of == xid =>
            {
                Ok(reader.rest().to_vec())
            }
            _ => Err(io::Error::other("rpcbind refuses the call")),
        }
    }

    /// The next record, which may come in fragments.
    fn record(&mut self) -> io::Result<Vec<u8>> {
        let mut record = Vec::new();
        loop {
            let mut mark = [0; MARK_BYTES];
            self.stream.read_exact(&mut mark)?;
            let mark = Mark::from_bytes(mark);
            let length = usize::try_from(mark.length).unwrap_or(usize::MAX);
            let begin = record.len();
            if length > ANSWER_BYTES_MAX.saturating_sub(begin) {
                return Err(io::Error::other("the answer of rpcbind is too long"));
            }
            record.resize(begin + length, 0);
            self.stream.read_exact(record.get_mut(begin..).unwrap_or_default())?;
            if mark.last {
                return Ok(record);
            }
        }
    }

    /// What is registered on networks that this server knows.
    fn dump(&mut self) -> io::Result<Vec<Registration>> {
        let answer = self.call(Procedure::Dump, &())?;
        let List(all) = List::<Binding<'_>>::from_bytes(&answer).map_err(io::Error::other)?;
        let networks = [netid::TCP, netid::UDP, netid::TCP6, netid::UDP6];
        let known = |binding: &Binding<'_>| {
            let netid = networks.into_iter().find(|netid| netid.as_bytes() == binding.netid.0)?;
            let address = rpcbind::from_universal(binding.address.0)?;
            Some(Registration { program: binding.program, version: binding.version, netid, address })
        };
        Ok(all.iter().filter_map(known).collect())
    }

    fn set(&mut self, procedure: Procedure, wanted: &Registration) -> io::Result<bool> {
        let address = rpcbind::universal(wanted.address);
        let binding = Binding {
            program: wanted.program,
            version: wanted.version,
            netid: Text(wanted.netid.as_bytes()),
            address: Text(address.as_bytes()),
            owner: Text(b""),
        };
        let answer = self.call(procedure, &binding)?;
        bool::from_bytes(&answer).map_err(io::Error::other)
    }
}

/// Connects from a port that only root may have.
fn over_tcp() -> io::Result<TcpStream> {
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    for port in RESERVED_PORTS.rev() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        match socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => continue,
            bound => bound?,
        }
        socket.connect_timeout(&to.into(), TIMEOUT)?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        return Ok(stream);
    }
    Err(io::ErrorKind::AddrInUse.into())
}

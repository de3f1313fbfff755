//! The programs of this server as port mappers know them, and a port mapper of its own (RFC 1833), for machines on which no
//! other one runs.
//!
//! It knows the programs of this server and nothing else. It registers nothing and calls nobody. Over UDP it gives no answer
//! that is longer than its question, because the sender of a datagram may be somebody else.

mod registrar;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use net::{Answer, Buffer, ConnectionLimits, Datagrams, Limits, Outbox, Peer, Prefix, PrefixError, Protocol};
use nfs_wire::mount::List;
use nfs_wire::portmap::{self, Mapping, TCP, UDP};
use nfs_wire::record_mark::{MARK_BYTES, Mark};
use nfs_wire::rpc::{AcceptStatus, Call};
use nfs_wire::rpcbind::{self, Binding, Text, netid};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};
use nfs_wire::{mount, nlm, nsm, rquota, v3, v4};

use crate::reply::{mark, unmarked};

pub use registrar::{RPCBIND_SOCKET, RegisterError, Registrar};

/// A program of this server at one address of one network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The number of the program.
    pub program: u32,
    /// The version of the program.
    pub version: u32,
    /// The network ([`netid`]).
    pub netid: &'static str,
    /// The address.
    pub address: SocketAddr,
}

/// The programs and versions, and whether they are served over UDP too.
const PROGRAMS: [(u32, u32, bool); 7] = [
    (v3::PROGRAM, v3::VERSION, false),
    (v4::PROGRAM, v4::VERSION, false),
    (mount::PROGRAM, mount::VERSION, false),
    (nlm::PROGRAM, nlm::VERSION, false),
    (nsm::PROGRAM, nsm::VERSION, true),
    (rquota::PROGRAM, rquota::VERSION_1, true),
    (rquota::PROGRAM, rquota::VERSION_2, true),
];

/// What a server that listens on these addresses has to register. A port mapper has one address for each program, version and
/// network: with several addresses, the one that stands for most.
#[must_use]
pub fn registrations(listen: &[SocketAddr]) -> Vec<Registration> {
    let any_v6 = listen.iter().find(|at| at.is_ipv6() && at.ip().is_unspecified());
    let of_v4: Vec<_> = listen.iter().copied().filter(|at| at.ip().to_canonical().is_ipv4()).collect();
    // A socket of all IPv6 addresses also has the IPv4 ones, unless another socket has them.
    let v4 = of_most(&of_v4, Ipv4Addr::UNSPECIFIED.into())
        .or_else(|| any_v6.map(|at| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), at.port())));
    let of_v6: Vec<_> = listen.iter().copied().filter(|at| at.ip().to_canonical().is_ipv6()).collect();
    let v6 = of_most(&of_v6, Ipv6Addr::UNSPECIFIED.into());
    let networks = [(v4, netid::TCP, netid::UDP), (v6, netid::TCP6, netid::UDP6)];
    let mut all = Vec::new();
    for (address, tcp, udp) in networks {
        let Some(address) = address else { continue };
        for (program, version, has_udp) in PROGRAMS {
            all.push(Registration { program, version, netid: tcp, address });
            if has_udp {
                all.push(Registration { program, version, netid: udp, address });
            }
        }
    }
    all
}

/// The address to register for these.
fn of_most(listen: &[SocketAddr], any: IpAddr) -> Option<SocketAddr> {
    let first = listen.iter().find(|at| at.ip().is_unspecified()).or_else(|| {
        let is_public = |at: &&SocketAddr| !at.ip().is_loopback();
        listen.iter().find(is_public).or_else(|| listen.first())
    })?;
    let is_alone = listen.len() == 1;
    Some(if is_alone { *first } else { SocketAddr::new(any, first.port()) })
}

/// The port mapper.
#[derive(Debug)]
pub struct Portmapper {
    registrations: Arc<[Registration]>,
    connections: ConnectionLimits,
}

/// The connections of the port mapper, which are short.
const CONNECTIONS_MAX: usize = 256;
/// The most bytes of a question.
const QUESTION_BYTES_MAX: usize = 1024;
/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(30);

impl Portmapper {
    /// A port mapper that knows these programs, and itself.
    #[must_use]
    pub fn new(mut registrations: Vec<Registration>) -> Arc<Self> {
        let networks = [
            (Ipv4Addr::UNSPECIFIED.into(), [netid::TCP, netid::UDP]),
            (IpAddr::from(Ipv6Addr::UNSPECIFIED), [netid::TCP6, netid::UDP6]),
        ];
        for (any, netids) in networks {
            if !registrations.iter().any(|known| known.netid == netids[0]) {
                continue;
            }
            let address = SocketAddr::new(any, portmap::PORT);
            for netid in netids {
                registrations.extend((portmap::VERSION..=rpcbind::VERSION_4).map(|version| Registration {
                    program: portmap::PROGRAM,
                    version,
                    netid,
                    address,
                }));
            }
        }
        let connections = ConnectionLimits { max: CONNECTIONS_MAX, of_one_address: None };
        Arc::new(Self { registrations: registrations.into(), connections })
    }

    /// The reply to a call.
    fn answer(&self, from: &Asker, message: &[u8]) -> Option<Vec<u8>> {
        unmarked(message, |call, reader| match (call.program, call.version) {
            (portmap::PROGRAM, portmap::VERSION) => self.version_2(from, call.procedure, reader),
            (portmap::PROGRAM, rpcbind::VERSION_3 | rpcbind::VERSION_4) => self.version_3(from, call, reader),
            (portmap::PROGRAM, _) => {
                Err(AcceptStatus::ProgramMismatch { low: portmap::VERSION, high: rpcbind::VERSION_4 })
            }
            _ => Err(AcceptStatus::ProgramUnavailable),
        })
    }

    /// RFC 1833 section 3.
    fn version_2(&self, from: &Asker, procedure: u32, reader: Reader<'_>) -> Result<Vec<u8>, AcceptStatus> {
        use portmap::Procedure as P;
        match P::try_from(procedure).map_err(|_| AcceptStatus::ProcedureUnavailable)? {
            P::Null => Ok(Vec::new()),
            P::GetPort => {
                let Mapping { program, version, protocol, .. } = read(reader)?;
                let netid = match protocol {
                    TCP => netid::TCP,
                    UDP => netid::UDP,
                    _ => return Ok(0_u32.encode_to_vec()),
                };
                let port = self.find(program, version, netid).map_or(0, |known| known.address.port());
                Ok(u32::from(port).encode_to_vec())
            }
            P::Dump if from.is_proved => {
                let mapping = |known: &Registration| {
                    let protocol = match known.netid {
                        netid::TCP => TCP,
                        netid::UDP => UDP,
                        _ => return None,
                    };
                    let Registration { program, version, address, .. } = *known;
                    Some(Mapping { program, version, protocol, port: address.port().into() })
                };
                Ok(List(self.registrations.iter().filter_map(mapping).collect()).encode_to_vec())
            }
            // Nobody registers anything here.
            P::Set | P::Unset => Ok(false.encode_to_vec()),
            P::Dump | P::CallIt => Err(AcceptStatus::ProcedureUnavailable),
        }
    }

    /// RFC 1833 section 2.
    fn version_3(&self, from: &Asker, call: Call<'_>, reader: Reader<'_>) -> Result<Vec<u8>, AcceptStatus> {
        use rpcbind::Procedure as P;
        match P::try_from(call.procedure).map_err(|_| AcceptStatus::ProcedureUnavailable)? {
            P::Null => Ok(Vec::new()),
            // "the address is returned [...] for the transport on which the request was received"; r_netid is ignored.
            P::GetAddr => {
                let Binding { program, version, address, .. } = read(reader)?;
                let hint = rpcbind::from_universal(address.0).map(|address| address.ip());
                let found = self.find(program, version, from.netid);
                let found = found.map_or_else(String::new, |known| from.reached(known, hint));
                Ok(Text(found.as_bytes()).encode_to_vec())
            }
            P::Dump if from.is_proved => {
                let addresses: Vec<_> =
                    self.registrations.iter().map(|known| rpcbind::universal(known.address)).collect();
                let binding = |(known, address): (&Registration, &String)| {
                    let Registration { program, version, netid, .. } = *known;
                    let (netid, owner) = (Text(netid.as_bytes()), Text(b"superuser"));
                    Binding { program, version, netid, address: Text(address.as_bytes()), owner }
                        .encode_to_vec()
                };
                let entries = self.registrations.iter().zip(&addresses).map(binding);
                let mut list = Vec::new();
                for entry in entries {
                    true.encode(&mut Writer::new(&mut list));
                    list.extend(entry);
                }
                false.encode(&mut Writer::new(&mut list));
                Ok(list)
            }
            P::GetTime => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                Ok(u32::try_from(since & u64::from(u32::MAX)).unwrap_or(0).encode_to_vec())
            }
            P::Set | P::Unset => Ok(false.encode_to_vec()),
            P::Dump
            | P::CallIt
            | P::ToAddress
            | P::ToUniversal
            | P::GetVersAddr
            | P::Indirect
            | P::GetAddrList
            | P::GetStat => Err(AcceptStatus::ProcedureUnavailable),
        }
    }

    /// A program on a network: in this version, otherwise in any. RFC 1833 2.2.1 (RPCBPROC_GETADDR): the address "of the program
    /// [...] even if the version is not the one that is registered", so that the program itself can say which it has.
    fn find(&self, program: u32, version: u32, netid: &str) -> Option<&Registration> {
        let of_program = |known: &&Registration| known.program == program && known.netid == netid;
        let mut all = self.registrations.iter().filter(of_program);
        let exact = all.clone().find(|known| known.version == version);
        exact.or_else(|| all.next())
    }
}

fn read<'a, T: Decode<'a>>(mut reader: Reader<'a>) -> Result<T, AcceptStatus> {
    T::decode(&mut reader).map_err(|_| AcceptStatus::GarbageArgs)
}

/// Who asks, and how.
struct Asker {
    netid: &'static str,
    /// The address that was asked, where it is known.
    local: Option<IpAddr>,
    /// Whether the sender has the address that it states: it has made a connection.
    is_proved: bool,
}

impl Asker {
    /// The universal address by which the asker reaches a program. Where the address that was asked is not known, it is the one
    /// that the asker itself says it has used (r_addr): nobody else learns of it.
    fn reached(&self, known: &Registration, hint: Option<IpAddr>) -> String {
        let address = known.address;
        let same = |ip: &IpAddr| ip.is_ipv4() == address.is_ipv4() && !ip.is_unspecified();
        let asked = self.local.or(hint).filter(same);
        let ip = asked.filter(|_| address.ip().is_unspecified()).unwrap_or_else(|| address.ip());
        rpcbind::universal(SocketAddr::new(ip, address.port()))
    }
}

impl Datagrams for Portmapper {
    fn answer(&self, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        let netid = if from.ip().to_canonical().is_ipv4() { netid::UDP } else { netid::UDP6 };
        self.answer(&Asker { netid, local: None, is_proved: false }, datagram)
    }
}

impl net::Service for Portmapper {
    type Connection = PortmapConnection;

    fn connected(&self, peer: Peer, _outbox: Outbox) -> Rc<PortmapConnection> {
        let portmapper =
            Self { registrations: Arc::clone(&self.registrations), connections: self.connections };
        Rc::new(PortmapConnection { portmapper, local: peer.local.ip().to_canonical() })
    }

    fn limits(&self) -> Limits {
        Limits { frame_bytes: QUESTION_BYTES_MAX, silence: SILENCE, ..Limits::default() }
    }

    fn connections(&self) -> ConnectionLimits {
        self.connections
    }

    fn name(&self) -> &'static str {
        "portmap"
    }
}

/// A connection to the port mapper.
#[derive(Debug)]
pub struct PortmapConnection {
    portmapper: Portmapper,
    local: IpAddr,
}

impl Protocol for PortmapConnection {
    fn prefix(&self, prefix: [u8; MARK_BYTES]) -> Result<Prefix, PrefixError> {
        let mark = Mark::from_bytes(prefix);
        Ok(Prefix { length: usize::try_from(mark.length).unwrap_or(usize::MAX), last: mark.last })
    }

    fn answer(self: Rc<Self>, frame: BytesMut) -> Answer {
        let netid = if self.local.is_ipv4() { netid::TCP } else { netid::TCP6 };
        let from = Asker { netid, local: Some(self.local), is_proved: true };
        match self.portmapper.answer(&from, &frame) {
            Some(reply) => Answer::Now(mark(Buffer::from(&*reply))),
            None => Answer::Close("a message that is no RPC call".to_owned()),
        }
    }

    fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use nfs_wire::rpc::{OpaqueAuth, Reply, ReplyBody};

    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn of(listen: &[&str], netid: &str) -> Option<SocketAddr> {
        let all = registrations(&listen.iter().map(|text| at(text)).collect::<Vec<_>>());
        all.iter()
            .find(|known| known.netid == netid && known.program == nsm::PROGRAM)
            .map(|known| known.address)
    }

    #[test]
    fn one_address_of_each_network_is_registered() {
        assert_eq!(of(&["10.0.0.1:2049"], "tcp"), Some(at("10.0.0.1:2049")));
        assert_eq!(of(&["10.0.0.1:2049"], "tcp6"), None);
        assert_eq!(of(&["127.0.0.1:2049", "10.0.0.1:2049"], "udp"), Some(at("0.0.0.0:2049")));
        assert_eq!(of(&["[::]:2049"], "tcp"), Some(at("0.0.0.0:2049")));
        assert_eq!(of(&["[::]:2049"], "udp6"), Some(at("[::]:2049")));
        assert_eq!(of(&["0.0.0.0:2049", "[::]:2049"], "tcp"), Some(at("0.0.0.0:2049")));
        assert_eq!(
            registrations(&[at("0.0.0.0:2049")]).len(),
            10,
            "seven versions of programs, three of them over UDP too"
        );
    }

    fn asked(
        portmapper: &Portmapper,
        from: &Asker,
        version: u32,
        procedure: u32,
        args: &impl Encode,
    ) -> Vec<u8> {
        let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
        let call = Call { xid: 9, program: portmap::PROGRAM, version, procedure, credential, verifier };
        let message = [call.encode_to_vec(), args.encode_to_vec()].concat();
        let reply = portmapper.answer(from, &message).unwrap();
        assert!(from.is_proved || reply.len() <= message.len(), "an answer is not longer than its question");
        reply
    }

    #[test]
    fn ports_and_addresses_are_found() {
        let portmapper = Portmapper::new(registrations(&[at("[::]:12049")]));
        let tcp = Asker { netid: "tcp", local: Some([10, 0, 0, 9].into()), is_proved: true };
        let mapping = |program, protocol| Mapping { program, version: 3, protocol, port: 0 };
        let port = |program, protocol| {
            let reply =
                asked(&portmapper, &tcp, 2, portmap::Procedure::GetPort as u32, &mapping(program, protocol));
            u32::from_bytes(&reply[24..]).unwrap()
        };
        assert_eq!(
            [port(v3::PROGRAM, TCP), port(v3::PROGRAM, UDP), port(nsm::PROGRAM, UDP)],
            [12049, 0, 12049]
        );
        assert_eq!([port(4711, TCP), port(portmap::PROGRAM, UDP)], [0, 111]);
        let (netid, address, owner) = (Text(b"tcp"), Text(b""), Text(b""));
        let wanted = Binding { program: mount::PROGRAM, version: 3, netid, address, owner };
        let reply = asked(&portmapper, &tcp, 3, rpcbind::Procedure::GetAddr as u32, &wanted);
        assert_eq!(
            Text::from_bytes(&reply[24..]),
            Ok(Text(b"10.0.0.9.47.17")),
            "12049 is 47 times 256 and 17"
        );
    }

    #[test]
    fn only_connections_get_lists() {
        let portmapper = Portmapper::new(registrations(&[at("0.0.0.0:2049")]));
        let tcp = Asker { netid: "tcp", local: None, is_proved: true };
        let udp = Asker { netid: "udp", local: None, is_proved: false };
        let reply = asked(&portmapper, &tcp, 2, portmap::Procedure::Dump as u32, &());
        assert_eq!(List::<Mapping>::from_bytes(&reply[24..]).unwrap().0.len(), 16);
        let reply = asked(&portmapper, &tcp, 4, rpcbind::Procedure::Dump as u32, &());
        assert_eq!(List::<Binding<'_>>::from_bytes(&reply[24..]).unwrap().0.len(), 16);
        for version in 2..=4 {
            let reply = asked(&portmapper, &udp, version, 4, &());
            let status = Reply::from_bytes(&reply).unwrap().body;
            assert_eq!(status, ReplyBody::accepted(AcceptStatus::ProcedureUnavailable));
        }
    }
}

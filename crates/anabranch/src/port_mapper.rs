//! The sockets by which clients of NFSv3 find the server: port 111, and UDP beside NFS for hosts that have restarted.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};

use gateway::settings::Portmap;
use gateway::{PortmapSockets, Registrar};
use socket2::{Domain, Socket, Type};

use crate::problem::{Cause, Problem, Result, serving};

/// The port of port mappers.
const PORT: u16 = 111;
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 128;

/// Opens the sockets that `portmap` asks for, at the addresses of NFS.
///
/// # Errors
/// A port cannot be had; says what to do.
pub(crate) fn listen(portmap: Portmap, nfs: &[TcpListener]) -> Result<PortmapSockets> {
    if portmap == Portmap::Off || nfs.is_empty() {
        return Ok(PortmapSockets::default());
    }
    let addresses = nfs.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>();
    let addresses = addresses.map_err(serving("cannot read an address"))?;
    let monitor = addresses.iter().map(|at| bind(*at, &addresses, Type::DGRAM).map(UdpSocket::from));
    let monitor = monitor.collect::<io::Result<Vec<_>>>().map_err(|error| no_monitor(&addresses, &error))?;
    let serves = match portmap {
        Portmap::Serve => true,
        Portmap::On => !Registrar::is_there(),
        Portmap::Off | Portmap::Register => false,
    };
    if !serves {
        return Ok(PortmapSockets { monitor, ..PortmapSockets::default() });
    }
    let mut finders: Vec<_> = addresses.iter().map(|at| SocketAddr::new(at.ip(), PORT)).collect();
    finders.sort_unstable();
    finders.dedup();
    let tcp = finders.iter().map(|at| bind(*at, &finders, Type::STREAM).map(TcpListener::from));
    let tcp = tcp.collect::<io::Result<Vec<_>>>().map_err(|error| no_port(&error))?;
    let udp = finders.iter().map(|at| bind(*at, &finders, Type::DGRAM).map(UdpSocket::from));
    let udp = udp.collect::<io::Result<Vec<_>>>().map_err(|error| no_port(&error))?;
    Ok(PortmapSockets { monitor, tcp, udp })
}

/// A socket at this address; one of all IPv6 addresses leaves those of IPv4 to another one of `all`.
fn bind(at: SocketAddr, all: &[SocketAddr], kind: Type) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(at), kind, None)?;
    if at.is_ipv6() && at.ip().is_unspecified() {
        socket.set_only_v6(all.iter().any(SocketAddr::is_ipv4))?;
    }
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&at.into())?;
    if kind == Type::STREAM {
        socket.listen(BACKLOG)?;
    }
    Ok(socket)
}

fn no_port(error: &io::Error) -> Problem {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => {
            "Stop that program. If it is rpcbind, be registered with it instead: --portmap register"
        }
        ErrorKind::PermissionDenied => {
            "Start as root, or with CAP_NET_BIND_SERVICE; or be registered with rpcbind: --portmap register"
        }
        _ => "Pass --portmap register to be registered with rpcbind, or --portmap off.",
    };
    let what = match error.kind() {
        ErrorKind::AddrInUse => format!("port {PORT} is taken, so it cannot be answered (--portmap serve)"),
        _ => format!("port {PORT} cannot be answered (--portmap serve): {error}"),
    };
    Problem::new(Cause::Address, what, advice)
}

fn no_monitor(addresses: &[SocketAddr], error: &io::Error) -> Problem {
    let port = addresses.first().map_or(0, SocketAddr::port);
    let what = format!(
        "cannot receive over UDP at port {port}, where clients say that they have restarted: {error}"
    );
    Problem::new(
        Cause::Address,
        what,
        "Stop the program that has the port, or pass another one with --nfs ADDR:PORT, or --portmap off.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_portmap_or_nfs_there_are_no_sockets() {
        let nfs = [TcpListener::bind("127.0.0.1:0").unwrap()];
        for (portmap, nfs) in [(Portmap::Off, &nfs[..]), (Portmap::Serve, &[])] {
            let sockets = listen(portmap, nfs).unwrap();
            assert!(sockets.monitor.is_empty() && sockets.tcp.is_empty() && sockets.udp.is_empty());
        }
    }

    #[test]
    fn who_is_registered_receives_over_udp_at_the_port_of_nfs() {
        let nfs = [TcpListener::bind("127.0.0.1:0").unwrap()];
        let sockets = listen(Portmap::Register, &nfs).unwrap();
        assert_eq!(sockets.monitor[0].local_addr().unwrap(), nfs[0].local_addr().unwrap());
        assert!(sockets.tcp.is_empty());
        let problem = listen(Portmap::Register, &nfs).unwrap_err();
        assert!(problem.what.contains("over UDP at port") && problem.advice.contains("--nfs"), "{problem}");
    }

    #[test]
    fn a_taken_port_is_explained() {
        let problem = no_port(&ErrorKind::AddrInUse.into());
        assert!(problem.what.contains("port 111 is taken") && problem.advice.contains("--portmap register"));
    }
}

//! The listening sockets, and why one cannot be had.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};

use gateway::port_owner;
use socket2::{Domain, Socket, Type};

use crate::problem::{Cause, Problem, Result};

/// Ports below this are for root.
const PRIVILEGED_BELOW: u16 = 1024;
/// How many connections may wait to be accepted until the servers say how many.
const BACKLOG: i32 = 128;
/// How many ports after the wanted one [`first_free`] tries.
const TRIES: u16 = 100;

/// What listens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Role {
    /// For messages.
    pub(crate) name: &'static str,
    /// The flag that names its address.
    pub(crate) flag: &'static str,
    /// A port that anyone may take.
    pub(crate) free_port: u16,
}

pub(crate) const SMB: Role = Role { name: "SMB", flag: "--smb", free_port: 10445 };
pub(crate) const SMB_QUIC: Role = Role { name: "SMB over QUIC", flag: "--smb-quic", free_port: 10443 };
pub(crate) const NFS: Role = Role { name: "NFS", flag: "--nfs", free_port: 12049 };
pub(crate) const CONTROL: Role = Role { name: "control", flag: "--control", free_port: 18080 };

/// Listens on an address.
///
/// # Errors
/// The address cannot be had; says by whom it is taken, and what to pass instead.
pub(crate) fn listen(role: Role, address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| explain(role, address, &error))
}

/// Listens on several addresses.
///
/// # Errors
/// One of them cannot be had, as in [`listen`].
pub(crate) fn listen_at_all(role: Role, addresses: &[SocketAddr]) -> Result<Vec<TcpListener>> {
    let listen = |address: &SocketAddr| {
        let bound = if leaves_ipv4_to_another(*address, addresses) {
            bind_ipv6_only(*address)
        } else {
            TcpListener::bind(address)
        };
        bound.map_err(|error| explain(role, *address, &error))
    };
    addresses.iter().map(listen).collect()
}

/// Has QUIC connections arrive at several addresses.
///
/// # Errors
/// One of them cannot be had, as in [`listen`].
pub(crate) fn listen_to_quic(role: Role, addresses: &[SocketAddr]) -> Result<Vec<UdpSocket>> {
    let listen = |address: &SocketAddr| {
        let bound = gateway::quic_socket(*address, leaves_ipv4_to_another(*address, addresses));
        bound.map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => explain_taken_by_datagrams(role, *address),
            _ => explain(role, *address, &error),
        })
    };
    addresses.iter().map(listen).collect()
}

/// Who has a port of UDP is not in the table that [`port_owner`] reads.
fn explain_taken_by_datagrams(role: Role, address: SocketAddr) -> Problem {
    let instead = SocketAddr::new(address.ip(), role.free_port);
    let what = format!("cannot listen on {address} for {}: UDP port {} is taken", role.name, address.port());
    let advice =
        format!("Stop that program (`ss -lunp` lists them), or pass another port: {} {instead}", role.flag);
    Problem::new(Cause::Address, what, advice)
}

/// Whether a socket at this address must not accept IPv4 connections, as `[::]` otherwise does, because another address
/// has them.
fn leaves_ipv4_to_another(address: SocketAddr, all: &[SocketAddr]) -> bool {
    let is_wildcard = address.is_ipv6() && address.ip().is_unspecified();
    is_wildcard && all.iter().any(|other| other.is_ipv4() && other.port() == address.port())
}

fn bind_ipv6_only(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV6, Type::STREAM, None)?;
    socket.set_only_v6(true)?;
    // As `TcpListener::bind` does.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Listens on the wanted port or one of the next that is free.
///
/// # Errors
/// None of them is.
pub(crate) fn first_free(role: Role, wanted: SocketAddr) -> Result<TcpListener> {
    let mut address = wanted;
    for port in wanted.port()..=wanted.port().saturating_add(TRIES) {
        address.set_port(port);
        match TcpListener::bind(address) {
            Err(e) if e.kind() == ErrorKind::AddrInUse => {}
            result => return result.map_err(|error| explain(role, address, &error)),
        }
    }
    Err(explain(role, wanted, &ErrorKind::AddrInUse.into()))
}

fn explain(role: Role, address: SocketAddr, error: &io::Error) -> Problem {
    let (port, flag) = (address.port(), role.flag);
    let instead = SocketAddr::new(address.ip(), role.free_port);
    let (why, advice) = match error.kind() {
        ErrorKind::AddrInUse => {
            let by = port_owner::of_listener(port).map_or_else(String::new, |owner| format!(" by {owner}"));
            let instead = if port == role.free_port { SocketAddr::new(address.ip(), 0) } else { instead };
            let any = if instead.port() == 0 { " (any free port)" } else { "" };
            (
                format!("port {port} is taken{by}"),
                format!("Stop that program, or pass another port: {flag} {instead}{any}"),
            )
        }
        ErrorKind::PermissionDenied if port < PRIVILEGED_BELOW => (
            format!(
                "port {port} is below {PRIVILEGED_BELOW}, which only root, or a process with CAP_NET_BIND_SERVICE, may use"
            ),
            format!("Start as root, or pass a port that every user may use: {flag} {instead}"),
        ),
        ErrorKind::AddrNotAvailable => (
            format!("this machine does not have the address {}", address.ip()),
            format!(
                "Pass an address that it has (`ip address` lists them), or listen on all of them: {flag} 0.0.0.0:{port}"
            ),
        ),
        _ => (error.to_string(), format!("Pass another address with {flag} ADDR:PORT.")),
    };
    Problem::new(Cause::Address, format!("cannot listen on {address} for {}: {why}", role.name), advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_explained_with_its_owner_and_what_to_pass() {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = first.local_addr().unwrap();
        let problem = listen(SMB, address).unwrap_err();
        assert_eq!(problem.cause, Cause::Address);
        assert!(problem.what.contains(&format!("(process {})", std::process::id())), "{problem}");
        assert!(problem.advice.contains("--smb 127.0.0.1:10445"), "{problem}");
    }

    #[test]
    fn the_next_free_port_is_found() {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = first.local_addr().unwrap();
        let second = first_free(SMB, address).unwrap().local_addr().unwrap();
        assert!(second.port() > address.port());
    }

    #[test]
    fn all_addresses_of_both_families_can_be_had_at_one_port() {
        let port = listen(SMB, "[::]:0".parse().unwrap()).unwrap().local_addr().unwrap().port();
        let both = [SocketAddr::from(([0, 0, 0, 0], port)), SocketAddr::from(([0; 8], port))];
        for order in [both, [both[1], both[0]]] {
            let listeners = listen_at_all(SMB, &order).unwrap();
            assert_eq!(listeners.iter().map(|one| one.local_addr().unwrap()).collect::<Vec<_>>(), order);
        }
        let alone = listen_at_all(SMB, &both[1..]).unwrap();
        std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        drop(alone);
    }

    #[test]
    #[cfg(feature = "quic")]
    fn a_taken_port_of_quic_is_explained() {
        let first = UdpSocket::bind("127.0.0.1:0").unwrap();
        let problem = listen_to_quic(SMB_QUIC, &[first.local_addr().unwrap()]).unwrap_err();
        assert!(
            problem.what.contains("UDP port") && problem.advice.contains("--smb-quic 127.0.0.1:10443"),
            "{problem}"
        );
    }

    #[test]
    fn a_foreign_address_is_explained() {
        let problem = listen(NFS, "192.0.2.1:12049".parse().unwrap()).unwrap_err();
        assert!(problem.what.contains("does not have the address 192.0.2.1"), "{problem}");
    }

    #[test]
    fn a_privileged_port_is_explained() {
        let refused = io::Error::from(ErrorKind::PermissionDenied);
        let problem = explain(SMB, "0.0.0.0:445".parse().unwrap(), &refused);
        assert!(problem.what.contains("CAP_NET_BIND_SERVICE"), "{problem}");
        assert!(problem.advice.ends_with("--smb 0.0.0.0:10445"), "{problem}");
    }
}

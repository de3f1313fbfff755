//! The sockets of a gateway, and their addresses.

use std::net::{SocketAddr, TcpListener, UdpSocket};

use crate::problem::{Result, serving};

/// The sockets of a gateway that is about to start. They listen already.
#[derive(Debug)]
pub struct Sockets {
    /// The sockets of SMB; none: SMB is off.
    pub smb: Vec<TcpListener>,
    /// The sockets of SMB over QUIC, made by [`crate::quic_socket`].
    pub smb_quic: Vec<UdpSocket>,
    /// The sockets of NFS and MOUNT; none: they are off.
    pub nfs: Vec<TcpListener>,
    /// The socket of the control address, with health, metrics and the API.
    pub control: TcpListener,
    /// How clients of NFSv3 find the server.
    pub portmap: PortmapSockets,
}

/// The sockets by which clients of NFSv3 find the server, and say that they have restarted.
#[derive(Debug, Default)]
pub struct PortmapSockets {
    /// UDP at the addresses of NFS, for the status monitor.
    pub monitor: Vec<UdpSocket>,
    /// TCP at port 111; none: the server is registered with the rpcbind of the machine, if there is a monitor.
    pub tcp: Vec<TcpListener>,
    /// UDP at port 111.
    pub udp: Vec<UdpSocket>,
}

/// The addresses on which a gateway listens.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// The addresses of SMB; none: SMB is off.
    pub smb: Vec<SocketAddr>,
    /// The addresses of SMB over QUIC; none: it is off.
    pub smb_quic: Vec<SocketAddr>,
    /// The addresses of NFS; none: NFS is off.
    pub nfs: Vec<SocketAddr>,
    /// The control address.
    pub control: SocketAddr,
}

impl Sockets {
    /// The addresses on which the sockets listen.
    ///
    /// # Errors
    /// The system does not report them.
    pub fn addresses(&self) -> Result<Addresses> {
        let of = |listener: &TcpListener| listener.local_addr().map_err(serving("cannot read an address"));
        let of_datagrams =
            |socket: &UdpSocket| socket.local_addr().map_err(serving("cannot read an address"));
        Ok(Addresses {
            smb: self.smb.iter().map(of).collect::<Result<_>>()?,
            smb_quic: self.smb_quic.iter().map(of_datagrams).collect::<Result<_>>()?,
            nfs: self.nfs.iter().map(of).collect::<Result<_>>()?,
            control: of(&self.control)?,
        })
    }
}

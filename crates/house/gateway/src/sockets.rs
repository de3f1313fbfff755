//! The sockets of a gateway, and their addresses.

use std::net::{SocketAddr, TcpListener};

use crate::problem::{Result, serving};

/// The sockets of a gateway that is about to start. They listen already.
#[derive(Debug)]
pub struct Sockets {
    /// The socket of SMB; None: SMB is off.
    pub smb: Option<TcpListener>,
    /// The socket of NFS and MOUNT; None: they are off.
    pub nfs: Option<TcpListener>,
    /// The socket of the control address, with health, metrics and the API.
    pub control: TcpListener,
}

/// The addresses on which a gateway listens.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// The address of SMB; None: SMB is off.
    pub smb: Option<SocketAddr>,
    /// The address of NFS; None: NFS is off.
    pub nfs: Option<SocketAddr>,
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
        Ok(Addresses {
            smb: self.smb.as_ref().map(of).transpose()?,
            nfs: self.nfs.as_ref().map(of).transpose()?,
            control: of(&self.control)?,
        })
    }
}

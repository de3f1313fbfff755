//! The sockets of a gateway, and their addresses.

use std::net::{SocketAddr, TcpListener};

use crate::problem::{Result, serving};

/// The sockets of a gateway that is about to start. They listen already.
#[derive(Debug)]
pub struct Sockets {
    /// Where SMB is served; None: it is off.
    pub smb: Option<TcpListener>,
    /// Where NFS and MOUNT are served; None: they are off.
    pub nfs: Option<TcpListener>,
    /// Where health, metrics and the API are served.
    pub control: TcpListener,
}

/// Where a gateway listens.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// None: SMB is off.
    pub smb: Option<SocketAddr>,
    /// None: NFS is off.
    pub nfs: Option<SocketAddr>,
    /// Of the control address.
    pub control: SocketAddr,
}

impl Sockets {
    /// Where they listen.
    ///
    /// # Errors
    /// The system does not say.
    pub fn addresses(&self) -> Result<Addresses> {
        let of = |listener: &TcpListener| listener.local_addr().map_err(serving("cannot read an address"));
        Ok(Addresses {
            smb: self.smb.as_ref().map(of).transpose()?,
            nfs: self.nfs.as_ref().map(of).transpose()?,
            control: of(&self.control)?,
        })
    }
}

//! Where clients find a vserver: sockets that listen already, or addresses that are put on interfaces of this machine first.

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::str::FromStr;

use service_address::{Raised, ServiceAddress};

use crate::port_owner;
use crate::problem::{Cause, Problem, Result};

/// An address of a vserver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VserverAddress {
    /// One that moves with the vserver.
    Moves(ServiceAddress),
    /// One that each of its gateways has.
    Stays(IpAddr),
}

/// Where clients find a vserver.
#[derive(Debug)]
pub enum Reach {
    /// Sockets that listen already.
    Sockets {
        /// Those of SMB; none: SMB is off.
        smb: Vec<TcpListener>,
        /// Those of NFS.
        nfs: Vec<TcpListener>,
    },
    /// These ports at each of the addresses.
    Addresses {
        /// The addresses.
        addresses: Vec<VserverAddress>,
        /// The port of SMB; None: SMB is off.
        smb: Option<u16>,
        /// The port of NFS.
        nfs: Option<u16>,
    },
}

/// Where clients find a vserver from now on.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) smb: Vec<TcpListener>,
    pub(crate) nfs: Vec<TcpListener>,
    /// They are not announced yet.
    pub(crate) raised: Raised,
}

impl FromStr for VserverAddress {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text.contains('%') {
            return text.parse().map(Self::Moves);
        }
        let address = text.parse().map_err(|_| {
            format!(
                "{text:?} is not an address: expected ADDRESS%INTERFACE[/PREFIX], such as 192.0.2.10%eth0/24, or ADDRESS for one \
                 that each gateway has"
            )
        })?;
        Ok(Self::Stays(address))
    }
}

impl fmt::Display for VserverAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moves(address) => address.fmt(f),
            Self::Stays(address) => address.fmt(f),
        }
    }
}

impl VserverAddress {
    /// The address itself.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        match self {
            Self::Moves(address) => address.address,
            Self::Stays(address) => *address,
        }
    }
}

impl Reach {
    /// # Errors
    /// An address cannot be raised, or a port there is taken.
    pub(crate) fn begin(self) -> Result<Reached> {
        match self {
            Self::Sockets { smb, nfs } => Ok(Reached { smb, nfs, raised: Raised::default() }),
            Self::Addresses { addresses, smb, nfs } => {
                let moving: Vec<_> = addresses.iter().filter_map(VserverAddress::moving).cloned().collect();
                let raised = service_address::raise(&moving)
                    .map_err(|error| Problem::new(Cause::Serving, error.what, error.advice))?;
                let at = |port: Option<u16>| {
                    let at = addresses.iter().filter_map(|one| Some(SocketAddr::new(one.ip(), port?)));
                    at.map(listen).collect::<Result<Vec<_>>>()
                };
                Ok(Reached { smb: at(smb)?, nfs: at(nfs)?, raised })
            }
        }
    }
}

impl VserverAddress {
    pub(crate) fn moving(&self) -> Option<&ServiceAddress> {
        if let Self::Moves(address) = self { Some(address) } else { None }
    }
}

fn listen(at: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(at).map_err(|error| {
        let by = port_owner::of_listener(at.port());
        let by = by.map_or_else(String::new, |owner| format!(" (the port is used by {owner})"));
        Problem::new(
            Cause::Serving,
            format!("cannot listen on {at}: {error}{by}"),
            "A server that listens at all addresses (0.0.0.0) leaves none for vservers: give `smb` and `nfs` of the configuration an \
             address of this machine, or `off`.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_moves_or_stays() {
        let read = |text: &str| text.parse::<VserverAddress>().map(|address| address.to_string());
        for text in ["192.0.2.10%eth0/24", "2001:db8::10%eth0", "192.0.2.10", "::1"] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
        for bad in ["", "eth0", "192.0.2.10%", "192.0.2.10/24", "192.0.2.10%eth0/33"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_port_that_is_taken_is_told_with_what_to_do() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = taken.local_addr().unwrap();
        let addresses = vec![VserverAddress::Stays(at.ip())];
        let problem = Reach::Addresses { addresses, smb: None, nfs: Some(at.port()) }.begin().unwrap_err();
        assert!(problem.what.contains(&at.to_string()), "{problem}");
        assert!(problem.advice.contains("0.0.0.0"), "{problem}");
    }
}

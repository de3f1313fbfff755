//! A share that has gone to another server.

use std::net::{IpAddr, SocketAddr};

use crate::ShareId;

/// The port of NFS, which clients assume where none is told (RFC 8881 11.16).
pub const NFS_PORT: u16 = 2049;

/// A share that is not here: another server has it, under the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// The number that the share had here, which is in the filehandles that clients keep. No other share has it.
    pub id: ShareId,
    /// The share's name.
    pub name: String,
    /// The addresses of the other server, each with its port for NFS.
    pub addresses: Vec<SocketAddr>,
    /// Whether lists of shares leave it out, as they leave out a share that is hidden.
    pub is_hidden: bool,
}

impl Gone {
    /// The addresses that a client with this address can use: those of its family if there are any, otherwise all.
    pub fn addresses_for(&self, client: IpAddr) -> impl Iterator<Item = SocketAddr> {
        let is_ipv4 = client.to_canonical().is_ipv4();
        let any = self.addresses.iter().any(|address| address.is_ipv4() == is_ipv4);
        self.addresses.iter().copied().filter(move |address| !any || address.is_ipv4() == is_ipv4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_addresses_of_its_family() {
        let (four, six) = ("192.0.2.1:2049".parse().unwrap(), "[2001:db8::1]:2049".parse().unwrap());
        let told = |addresses: &[SocketAddr], client: &str| -> Vec<_> {
            let (name, addresses) = ("data".to_owned(), addresses.to_vec());
            let gone = Gone { id: ShareId(1), name, addresses, is_hidden: false };
            gone.addresses_for(client.parse().unwrap()).collect()
        };
        assert_eq!(told(&[six, four], "192.0.2.9"), [four]);
        assert_eq!(told(&[six, four], "::ffff:192.0.2.9"), [four]);
        assert_eq!(told(&[six, four], "2001:db8::9"), [six]);
        assert_eq!(told(&[six], "192.0.2.9"), [six]);
    }
}

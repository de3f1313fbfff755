//! Rpcbind, versions 3 and 4 of the binding protocols (RFC 1833 section 2): which address serves a program. The program
//! is the port mapper's ([`portmap::PROGRAM`](crate::portmap::PROGRAM)).

use std::net::{IpAddr, SocketAddr};

use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// The lowest version of these procedures.
pub const VERSION_3: u32 = 3;
/// The highest version of these procedures.
pub const VERSION_4: u32 = 4;

/// The longest text in bytes. The protocol sets no limit; universal addresses of IPv6 have at most 47 bytes.
pub const TEXT_BYTES_MAX: usize = 255;

/// Network identifiers (RFC 1833 2.1, r_netid; RFC 5665 5.2).
pub mod netid {
    /// TCP over IPv4.
    pub const TCP: &str = "tcp";
    /// UDP over IPv4.
    pub const UDP: &str = "udp";
    /// TCP over IPv6.
    pub const TCP6: &str = "tcp6";
    /// UDP over IPv6.
    pub const UDP6: &str = "udp6";
}

xdr_enum! {
    /// The procedures that both versions have, RFC 1833 2.2.
    Procedure {
        /// Do nothing.
        Null = 0,
        /// Enter an address, if there is none of this program, version and network.
        Set = 1,
        /// Remove an address.
        Unset = 2,
        /// The universal address of a program and version on the network of the caller; empty: it is not registered.
        GetAddr = 3,
        /// All addresses.
        Dump = 4,
        /// Call a procedure of a registered program (CALLIT, in version 4 BCAST).
        CallIt = 5,
        /// The time in seconds since 1970.
        GetTime = 6,
        /// Universal address to bytes of an address.
        ToAddress = 7,
        /// Bytes of an address to universal address.
        ToUniversal = 8,
        /// Version 4: GETADDR, for exactly this version of the program.
        GetVersAddr = 9,
        /// Version 4: CALLIT, with an error for a program that is not registered.
        Indirect = 10,
        /// Version 4: all addresses of a program and version.
        GetAddrList = 11,
        /// Version 4: statistics.
        GetStat = 12,
    }
}

/// A short text of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub &'a [u8]);

impl Encode for Text<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for Text<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(TEXT_BYTES_MAX).map(Self)
    }
}

/// The address of a program, RFC 1833 2.1.
#[doc(alias = "rpcb")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding<'a> {
    /// The program.
    pub program: u32,
    /// The version of the program.
    pub version: u32,
    /// The network ([`netid`]).
    pub netid: Text<'a>,
    /// The universal address ([`universal`]).
    pub address: Text<'a>,
    /// Who has entered the address. Rpcbind itself decides that.
    pub owner: Text<'a>,
}

xdr_struct!(Binding<'a> { program, version, netid, address, owner });

/// The universal address of a socket (RFC 5665 5.2.3.3 and 5.2.3.4): the address, then the two bytes of the port, each
/// after a dot.
#[must_use]
pub fn universal(address: SocketAddr) -> String {
    let [high, low] = address.port().to_be_bytes();
    format!("{}.{high}.{low}", address.ip())
}

/// The socket that a universal address names.
#[must_use]
pub fn from_universal(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let (rest, low) = text.rsplit_once('.')?;
    let (address, high) = rest.rsplit_once('.')?;
    let port = u16::from_be_bytes([high.parse().ok()?, low.parse().ok()?]);
    Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn universal_addresses_are_those_of_rfc_5665() {
        // The port 2049 is 0x0801; 111 is 0x006f.
        for (address, text) in [
            ("10.1.3.7:2049", "10.1.3.7.8.1"),
            ("0.0.0.0:111", "0.0.0.0.0.111"),
            ("[::]:2049", "::.8.1"),
            ("[2001:db8::7]:65535", "2001:db8::7.255.255"),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(universal(address), text);
            assert_eq!(from_universal(text.as_bytes()), Some(address));
        }
        for nonsense in ["", ".", "8.1", "10.1.3.7", "10.1.3.7.8.256", "10.1.3.7.-1.1", "::8.1", "name.8.1"] {
            assert_eq!(from_universal(nonsense.as_bytes()), None, "{nonsense}");
        }
    }
}

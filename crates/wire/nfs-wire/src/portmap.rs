//! The port mapper, version 2 of the binding protocols (RFC 1833 section 3): which port serves a program. Versions 3 and
//! 4 are in [`rpcbind`](crate::rpcbind).

use crate::xdr::{xdr_enum, xdr_struct};

/// The program's number, in all versions.
pub const PROGRAM: u32 = 100_000;
/// The version of these procedures.
pub const VERSION: u32 = 2;
/// The port of TCP and UDP on which the port mapper is found (RFC 1833 section 3, PMAP_PORT).
pub const PORT: u16 = 111;

/// The number of TCP in a [`Mapping`] (IPPROTO_TCP).
pub const TCP: u32 = 6;
/// The number of UDP in a [`Mapping`] (IPPROTO_UDP).
pub const UDP: u32 = 17;

xdr_enum! {
    /// The procedures, RFC 1833 3.2.
    Procedure {
        /// Do nothing.
        Null = 0,
        /// Enter a mapping, if there is none of this program, version and protocol.
        Set = 1,
        /// Remove the mappings of a program and version.
        Unset = 2,
        /// The port of a program, version and protocol; 0: it is not registered.
        GetPort = 3,
        /// All mappings.
        Dump = 4,
        /// Call a procedure of a registered program.
        CallIt = 5,
    }
}

/// The port of a program.
#[doc(alias = "mapping")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The program.
    pub program: u32,
    /// The version of the program.
    pub version: u32,
    /// [`TCP`] or [`UDP`].
    pub protocol: u32,
    /// The port. GETPORT ignores it.
    pub port: u32,
}

xdr_struct!(Mapping { program, version, protocol, port });

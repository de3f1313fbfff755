//! EXCHANGE_ID, RFC 8881 18.35: a client and a server identify themselves to each other.

use crate::v4::status::Status;
use crate::v4::types::{Bitmap, ClientId, OwnerId, Text, Time, Verifier};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_bitflags, xdr_struct};

/// Arguments.
#[doc(alias = "EXCHANGE_ID4args")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args<'a> {
    /// The client, and its incarnation.
    pub client_owner: ClientOwner<'a>,
    /// The client's capabilities and wishes.
    pub flags: Flags,
    /// How the client's state is protected.
    pub state_protect: StateProtectArgs<'a>,
    /// The client's implementation, which has no effect.
    pub implementation: Option<ImplementationId<'a>>,
}

xdr_struct!(Args<'a> { client_owner, flags, state_protect, implementation });

/// Success.
#[doc(alias = "EXCHANGE_ID4resok")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The server's number for the client.
    pub client_id: ClientId,
    /// The sequence ID of the client's next CREATE_SESSION.
    pub sequence_id: u32,
    /// The server's capabilities, and whether the client ID is confirmed.
    pub flags: Flags,
    /// How the client's state is protected.
    pub state_protect: StateProtectRes<'a>,
    /// The server, which shows whether two connections reach the same one (2.10.5).
    pub server_owner: ServerOwner<'a>,
    /// The set of servers within which client IDs, filehandles and verifiers have the same meaning.
    pub server_scope: OwnerId<'a>,
    /// The server's implementation, which has no effect.
    pub implementation: Option<ImplementationId<'a>>,
}

xdr_struct!(ResOk<'a> {
    client_id,
    sequence_id,
    flags,
    state_protect,
    server_owner,
    server_scope,
    implementation
});

/// Result.
#[doc(alias = "EXCHANGE_ID4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;

/// A client and its incarnation.
#[doc(alias = "client_owner4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientOwner<'a> {
    /// Differs after the client has restarted.
    pub verifier: Verifier,
    /// The client.
    pub owner_id: OwnerId<'a>,
}

xdr_struct!(ClientOwner<'a> { verifier, owner_id });

/// A server.
#[doc(alias = "server_owner4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerOwner<'a> {
    /// Sessions can be trunked between addresses where this is also the same.
    pub minor_id: u64,
    /// Client IDs can be trunked between addresses where this is the same.
    pub major_id: OwnerId<'a>,
}

xdr_struct!(ServerOwner<'a> { minor_id, major_id });

/// Name, vendor and date of an implementation.
#[doc(alias = "nfs_impl_id4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImplementationId<'a> {
    /// The vendor's domain.
    pub domain: Text<'a>,
    /// Product and version.
    pub name: Text<'a>,
    /// When the implementation was built.
    pub date: Time,
}

xdr_struct!(ImplementationId<'a> { domain, name, date });

xdr_bitflags! {
    /// RFC 8881 18.35.3, and RFC 7862 14.1.
    pub struct Flags {
        /// The client understands referrals.
        #[doc(alias = "EXCHGID4_FLAG_SUPP_MOVED_REFER")]
        const SUPP_MOVED_REFER = 0x0000_0001;
        /// The client understands migration.
        #[doc(alias = "EXCHGID4_FLAG_SUPP_MOVED_MIGR")]
        const SUPP_MOVED_MIGR = 0x0000_0002;
        /// Copies between servers can be fenced.
        #[doc(alias = "EXCHGID4_FLAG_SUPP_FENCE_OPS")]
        const SUPP_FENCE_OPS = 0x0000_0004;
        /// Stateids are bound to the principal.
        #[doc(alias = "EXCHGID4_FLAG_BIND_PRINC_STATEID")]
        const BIND_PRINC_STATEID = 0x0000_0100;
        /// No pNFS.
        #[doc(alias = "EXCHGID4_FLAG_USE_NON_PNFS")]
        const USE_NON_PNFS = 0x0001_0000;
        /// pNFS metadata server.
        #[doc(alias = "EXCHGID4_FLAG_USE_PNFS_MDS")]
        const USE_PNFS_MDS = 0x0002_0000;
        /// pNFS data server.
        #[doc(alias = "EXCHGID4_FLAG_USE_PNFS_DS")]
        const USE_PNFS_DS = 0x0004_0000;
        /// Change a confirmed record.
        #[doc(alias = "EXCHGID4_FLAG_UPD_CONFIRMED_REC_A")]
        const UPD_CONFIRMED_REC_A = 0x4000_0000;
        /// The client ID is confirmed.
        #[doc(alias = "EXCHGID4_FLAG_CONFIRMED_R")]
        const CONFIRMED_R = 0x8000_0000;
    }
}

impl Flags {
    /// The flags that a client of NFSv4.1 may send: any other bit is NFS4ERR_INVAL (RFC 8881 18.35.3).
    const CLIENT: Self = Self::SUPP_MOVED_REFER
        .union(Self::SUPP_MOVED_MIGR)
        .union(Self::BIND_PRINC_STATEID)
        .union(Self::MASK_PNFS)
        .union(Self::UPD_CONFIRMED_REC_A);

    /// Whether a client may send these flags by this minor version. [`Self::SUPP_FENCE_OPS`] comes with NFSv4.2 (RFC 7862
    /// 14.1): the client would understand fenced copies between servers.
    #[must_use]
    pub fn may_be_sent(self, minor_version: u32) -> bool {
        let client = if minor_version < 2 { Self::CLIENT } else { Self::CLIENT.union(Self::SUPP_FENCE_OPS) };
        client.contains(self)
    }

    /// The bits that state a server's roles.
    #[doc(alias = "EXCHGID4_FLAG_MASK_PNFS")]
    pub const MASK_PNFS: Self = Self::USE_NON_PNFS.union(Self::USE_PNFS_MDS).union(Self::USE_PNFS_DS);
}

/// Operations, as [`Operation`](crate::v4::Operation) numbers, to which a state protection applies.
#[doc(alias = "state_protect_ops4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProtectedOperations {
    /// Operations allowed only with the protecting credential.
    pub must_enforce: Bitmap,
    /// Operations also allowed with the protecting credential.
    pub must_allow: Bitmap,
}

xdr_struct!(ProtectedOperations { must_enforce, must_allow });

/// The client's parameters for a secret state verifier (2.10.9).
#[doc(alias = "ssv_sp_parms4")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SsvParameters<'a> {
    /// The operations that are protected.
    pub operations: ProtectedOperations,
    /// Object identifiers of hash algorithms.
    pub hash_algorithms: Vec<&'a [u8]>,
    /// Object identifiers of encryption algorithms.
    pub encryption_algorithms: Vec<&'a [u8]>,
    /// How many versions of the verifier are kept.
    pub window: u32,
    /// How many GSS handles are asked for.
    pub gss_handles: u32,
}

xdr_struct!(SsvParameters<'a> { operations, hash_algorithms, encryption_algorithms, window, gss_handles });

/// The server's parameters for a secret state verifier.
#[doc(alias = "ssv_prot_info4")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SsvInfo<'a> {
    /// The operations that are protected.
    pub operations: ProtectedOperations,
    /// The index of the hash algorithm.
    pub hash_algorithm: u32,
    /// The index of the encryption algorithm.
    pub encryption_algorithm: u32,
    /// Length of the verifier.
    pub ssv_bytes: u32,
    /// How many versions of the verifier are kept.
    pub window: u32,
    /// GSS handles.
    pub handles: Vec<&'a [u8]>,
}

xdr_struct!(SsvInfo<'a> { operations, hash_algorithm, encryption_algorithm, ssv_bytes, window, handles });

/// Declares a union over `state_protect_how4`.
macro_rules! state_protect {
    ($(#[$meta:meta])* $name:ident { $ssv:ident }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name<'a> {
            /// No protection beyond the principal.
            #[doc(alias = "SP4_NONE")]
            None,
            /// The machine's credential, with RPCSEC_GSS.
            #[doc(alias = "SP4_MACH_CRED")]
            MachineCredential(ProtectedOperations),
            /// A secret state verifier.
            #[doc(alias = "SP4_SSV")]
            Ssv($ssv<'a>),
        }

        impl Encode for $name<'_> {
            fn encode(&self, writer: &mut Writer<'_>) {
                match self {
                    Self::None => writer.u32(0),
                    Self::MachineCredential(operations) => {
                        writer.u32(1);
                        operations.encode(writer);
                    }
                    Self::Ssv(ssv) => {
                        writer.u32(2);
                        ssv.encode(writer);
                    }
                }
            }
        }

        impl<'a> Decode<'a> for $name<'a> {
            fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
                match reader.u32()? {
                    0 => Ok(Self::None),
                    1 => ProtectedOperations::decode(reader).map(Self::MachineCredential),
                    2 => $ssv::decode(reader).map(Self::Ssv),
                    value => Err(XdrError::UndefinedValue { kind: "state_protect_how4", value }),
                }
            }
        }
    };
}

state_protect! {
    /// How a client wants its state to be protected.
    #[doc(alias = "state_protect4_a")]
    StateProtectArgs { SsvParameters }
}

state_protect! {
    /// How a server protects a client's state.
    #[doc(alias = "state_protect4_r")]
    StateProtectRes { SsvInfo }
}

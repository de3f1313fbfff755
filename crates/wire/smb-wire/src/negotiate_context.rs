//! Negotiate contexts of SMB 3.1.1, [MS-SMB2] 2.2.3.1 and 2.2.4.1.

use bitflags::bitflags;

use crate::codec::{Put, Reader, Utf16, WireError, len_u16, pad_from};

wire_enum! {
    /// A hash for preauthentication integrity.
    pub enum HashAlgorithm: u16 {
        /// SHA-512
        Sha512 = 0x0001,
    }
}

wire_enum! {
    /// A cipher for encryption.
    pub enum Cipher: u16 {
        /// AES-128-CCM
        Aes128Ccm = 0x0001,
        /// AES-128-GCM
        Aes128Gcm = 0x0002,
        /// AES-256-CCM
        Aes256Ccm = 0x0003,
        /// AES-256-GCM
        Aes256Gcm = 0x0004,
    }
}

wire_enum! {
    /// An algorithm for signing.
    pub enum SigningAlgorithm: u16 {
        /// HMAC-SHA256
        HmacSha256 = 0x0000,
        /// AES-CMAC
        AesCmac = 0x0001,
        /// AES-GMAC
        AesGmac = 0x0002,
    }
}

wire_enum! {
    /// An algorithm for compression.
    pub enum CompressionAlgorithm: u16 {
        /// No compression.
        None = 0x0000,
        /// LZNT1
        Lznt1 = 0x0001,
        /// LZ77
        Lz77 = 0x0002,
        /// LZ77 + Huffman
        Lz77Huffman = 0x0003,
        /// Pattern_V1
        PatternV1 = 0x0004,
        /// LZ4
        Lz4 = 0x0005,
    }
}

wire_enum! {
    /// A transform of RDMA payloads.
    pub enum RdmaTransform: u16 {
        /// No transform.
        None = 0x0000,
        /// Encryption.
        Encryption = 0x0001,
        /// Signing.
        Signing = 0x0002,
    }
}

bitflags! {
    /// `Flags` of the compression context.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct CompressionFlags: u32 {
        /// Chained compression is supported.
        const CHAINED = 0x0000_0001;
        const _ = !0;
    }
}

bitflags! {
    /// `Flags` of the transport context.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct TransportFlags: u32 {
        /// SMB2_ACCEPT_TRANSPORT_LEVEL_SECURITY
        const ACCEPT_TRANSPORT_LEVEL_SECURITY = 0x0000_0001;
        const _ = !0;
    }
}

mod context_type {
    pub(super) const PREAUTH_INTEGRITY: u16 = 0x0001;
    pub(super) const ENCRYPTION: u16 = 0x0002;
    pub(super) const COMPRESSION: u16 = 0x0003;
    pub(super) const NETNAME: u16 = 0x0005;
    pub(super) const TRANSPORT: u16 = 0x0006;
    pub(super) const RDMA_TRANSFORM: u16 = 0x0007;
    pub(super) const SIGNING: u16 = 0x0008;
}

/// One negotiate context. In a response every list has one entry.
#[doc(alias = "SMB2_NEGOTIATE_CONTEXT")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NegotiateContext<'a> {
    /// SMB2_PREAUTH_INTEGRITY_CAPABILITIES
    PreauthIntegrity {
        /// The hashes in the client's order of preference.
        hash_algorithms: Vec<HashAlgorithm>,
        /// Random bytes.
        salt: &'a [u8],
    },
    /// SMB2_ENCRYPTION_CAPABILITIES: the ciphers in the client's order of preference.
    Encryption(Vec<Cipher>),
    /// SMB2_COMPRESSION_CAPABILITIES
    Compression {
        /// Whether compression can be chained.
        flags: CompressionFlags,
        /// The algorithms.
        algorithms: Vec<CompressionAlgorithm>,
    },
    /// SMB2_NETNAME_NEGOTIATE_CONTEXT_ID: the server's name, as the client knows it.
    Netname(Utf16<'a>),
    /// SMB2_TRANSPORT_CAPABILITIES
    Transport(TransportFlags),
    /// SMB2_RDMA_TRANSFORM_CAPABILITIES
    RdmaTransform(Vec<RdmaTransform>),
    /// SMB2_SIGNING_CAPABILITIES: the algorithms in the client's order of preference.
    Signing(Vec<SigningAlgorithm>),
    /// A context that this crate does not know and that is to be ignored.
    Other {
        /// `ContextType`
        context_type: u16,
        /// `Data`
        data: &'a [u8],
    },
}

impl<'a> NegotiateContext<'a> {
    /// Decodes `count` contexts, each aligned to 8 bytes from the start of `list`.
    pub(crate) fn decode_list(list: &'a [u8], count: u16) -> Result<Vec<Self>, WireError> {
        let mut r = Reader::new(list);
        let mut contexts = Vec::new();
        for _ in 0..count {
            // The padding between two contexts. The header (8 bytes) is aligned when the data is padded.
            let padding = contexts_padding(list.len().saturating_sub(r.rest().len()));
            r.skip(padding)?;
            let context_type = r.u16()?;
            let length = r.len16()?;
            r.skip(4)?;
            contexts.push(Self::decode(context_type, r.bytes(length)?)?);
        }
        Ok(contexts)
    }

    fn decode(context_type: u16, data: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(data);
        Ok(match context_type {
            context_type::PREAUTH_INTEGRITY => {
                let (count, salt_length) = (r.len16()?, r.len16()?);
                Self::PreauthIntegrity { hash_algorithms: ids(&mut r, count)?, salt: r.bytes(salt_length)? }
            }
            context_type::ENCRYPTION => {
                let count = r.len16()?;
                Self::Encryption(ids(&mut r, count)?)
            }
            context_type::COMPRESSION => {
                let count = r.len16()?;
                r.skip(2)?;
                let flags = CompressionFlags::from_bits_retain(r.u32()?);
                Self::Compression { flags, algorithms: ids(&mut r, count)? }
            }
            context_type::NETNAME => Self::Netname(Utf16::from_wire(data)?),
            context_type::TRANSPORT => Self::Transport(TransportFlags::from_bits_retain(r.u32()?)),
            context_type::RDMA_TRANSFORM => {
                let count = r.len16()?;
                r.skip(6)?;
                Self::RdmaTransform(ids(&mut r, count)?)
            }
            context_type::SIGNING => {
                let count = r.len16()?;
                Self::Signing(ids(&mut r, count)?)
            }
            _ => Self::Other { context_type, data },
        })
    }

    /// The contexts, each padded to 8 bytes except the last.
    pub(crate) fn encode_list(contexts: &[Self]) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::new();
        for context in contexts {
            pad_from(&mut out, 0, 8);
            let data = context.data()?;
            out.put_u16(context.context_type());
            out.put_u16(len_u16(data.len(), "negotiate context")?);
            out.put_u32(0);
            out.put(&data);
        }
        Ok(out)
    }

    /// `ContextType`
    #[must_use]
    pub const fn context_type(&self) -> u16 {
        match self {
            Self::PreauthIntegrity { .. } => context_type::PREAUTH_INTEGRITY,
            Self::Encryption(_) => context_type::ENCRYPTION,
            Self::Compression { .. } => context_type::COMPRESSION,
            Self::Netname(_) => context_type::NETNAME,
            Self::Transport(_) => context_type::TRANSPORT,
            Self::RdmaTransform(_) => context_type::RDMA_TRANSFORM,
            Self::Signing(_) => context_type::SIGNING,
            Self::Other { context_type, .. } => *context_type,
        }
    }

    fn data(&self) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::new();
        match self {
            Self::PreauthIntegrity { hash_algorithms, salt } => {
                out.put_u16(len_u16(hash_algorithms.len(), "HashAlgorithms")?);
                out.put_u16(len_u16(salt.len(), "Salt")?);
                put_ids(&mut out, hash_algorithms);
                out.put(salt);
            }
            Self::Encryption(ciphers) => {
                out.put_u16(len_u16(ciphers.len(), "Ciphers")?);
                put_ids(&mut out, ciphers);
            }
            Self::Compression { flags, algorithms } => {
                out.put_u16(len_u16(algorithms.len(), "CompressionAlgorithms")?);
                out.put_u16(0);
                out.put_u32(flags.bits());
                put_ids(&mut out, algorithms);
            }
            Self::Netname(name) => name.encode_into(&mut out),
            Self::Transport(flags) => out.put_u32(flags.bits()),
            Self::RdmaTransform(transforms) => {
                out.put_u16(len_u16(transforms.len(), "RDMATransformIds")?);
                out.put(&[0; 6]);
                put_ids(&mut out, transforms);
            }
            Self::Signing(algorithms) => {
                out.put_u16(len_u16(algorithms.len(), "SigningAlgorithms")?);
                put_ids(&mut out, algorithms);
            }
            Self::Other { data, .. } => out.put(data),
        }
        Ok(out)
    }
}

const fn contexts_padding(position: usize) -> usize {
    crate::codec::aligned(position, 8).saturating_sub(position)
}

fn ids<T: From<u16>>(r: &mut Reader<'_>, count: usize) -> Result<Vec<T>, WireError> {
    let mut list = Reader::new(r.bytes(count.saturating_mul(2))?);
    let mut ids = Vec::with_capacity(count);
    while !list.is_empty() {
        ids.push(T::from(list.u16()?));
    }
    Ok(ids)
}

fn put_ids<T: Copy + Into<u16>>(out: &mut Vec<u8>, ids: &[T]) {
    ids.iter().for_each(|id| out.put_u16((*id).into()));
}

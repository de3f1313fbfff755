//! Buffers of the FSCTLs that concern the server, not the file system: negotiation, interfaces, copies, snapshots,
//! pipes, DFS.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use bitflags::bitflags;

use super::list;
use crate::codec::{Put, Reader, Utf16, WireError, len_u16, len_u32, put_zeros};
use crate::dtyp::Guid;
use crate::fscc::next_entry::Entries;
use crate::negotiate::{Capabilities, Dialect, SecurityMode};

/// Input of FSCTL_VALIDATE_NEGOTIATE_INFO, [MS-SMB2] 2.2.31.4: what the client sent in NEGOTIATE.
#[doc(alias = "VALIDATE_NEGOTIATE_INFO")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidateNegotiateRequest {
    /// The capabilities.
    pub capabilities: Capabilities,
    /// The GUID by which it identifies itself.
    pub guid: Guid,
    /// The security mode.
    pub security_mode: SecurityMode,
    /// The dialects.
    pub dialects: Vec<Dialect>,
}

impl ValidateNegotiateRequest {
    /// Decodes the input buffer.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn decode(input: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(input);
        let capabilities = Capabilities::from_bits_retain(r.u32()?);
        let guid = Guid::read(&mut r)?;
        let security_mode = SecurityMode::from_bits_retain(r.u16()?);
        let count = r.len16()?;
        let mut list = Reader::new(r.bytes(count.saturating_mul(2))?);
        let mut dialects = Vec::with_capacity(count);
        while !list.is_empty() {
            dialects.push(Dialect::from(list.u16()?));
        }
        Ok(Self { capabilities, guid, security_mode, dialects })
    }

    /// Appends the input buffer.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u32(self.capabilities.bits());
        self.guid.put(out);
        out.put_u16(self.security_mode.bits());
        out.put_u16(len_u16(self.dialects.len(), "Dialects")?);
        self.dialects.iter().for_each(|dialect| out.put_u16((*dialect).into()));
        Ok(())
    }
}

flags_field!(Capabilities, SecurityMode);

fixed_struct! {
    /// Output of FSCTL_VALIDATE_NEGOTIATE_INFO, [MS-SMB2] 2.2.32.6: what the server sent in NEGOTIATE.
    pub struct ValidateNegotiateResponse[24] {
        /// The capabilities.
        capabilities: Capabilities,
        /// The GUID by which it identifies itself.
        guid: Guid,
        /// The security mode.
        security_mode: SecurityMode,
        /// The dialect of the connection, a [`Dialect`].
        dialect: u16,
    }
}

bitflags! {
    /// The capabilities of a network interface.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct InterfaceCapabilities: u32 {
        /// RSS_CAPABLE: several queues, so several channels to it are worthwhile.
        const RSS_CAPABLE = 0x0000_0001;
        /// RDMA_CAPABLE
        const RDMA_CAPABLE = 0x0000_0002;
        const _ = !0;
    }
}

/// An address of the server: output of FSCTL_QUERY_NETWORK_INTERFACE_INFO, [MS-SMB2] 2.2.32.5.
#[doc(alias = "NETWORK_INTERFACE_INFO")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkInterface {
    /// The number of the interface, which can have several addresses.
    pub if_index: u32,
    /// The capabilities of the interface.
    pub capabilities: InterfaceCapabilities,
    /// Bits per second.
    pub link_speed: u64,
    /// The address. Servers send port 0, and clients ignore the port.
    pub address: SocketAddr,
}

const ADDRESS_FAMILY_INET: u16 = 0x0002;
const ADDRESS_FAMILY_INET6: u16 = 0x0017;

impl NetworkInterface {
    /// Bytes of an entry.
    const LEN: usize = 152;
    const SOCKADDR_LEN: usize = 128;

    /// Reads the output buffer. Addresses of other families are an error.
    ///
    /// # Errors
    /// [`WireError`] for a malformed list.
    pub fn decode_list(output: &[u8]) -> Result<Vec<Self>, WireError> {
        Entries::new(output).map(|entry| Self::decode(entry?)).collect()
    }

    fn decode(entry: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(entry);
        r.skip(4)?;
        let if_index = r.u32()?;
        let capabilities = InterfaceCapabilities::from_bits_retain(r.u32()?);
        r.skip(4)?;
        let link_speed = r.u64()?;
        let mut r = Reader::new(r.bytes(Self::SOCKADDR_LEN)?);
        let family = r.u16()?;
        let port = r.u16()?.swap_bytes();
        let address = match family {
            ADDRESS_FAMILY_INET => SocketAddr::new(IpAddr::V4(Ipv4Addr::from(r.array::<4>()?)), port),
            ADDRESS_FAMILY_INET6 => {
                let flow_info = r.u32()?;
                let ip = Ipv6Addr::from(r.array::<16>()?);
                SocketAddr::V6(SocketAddrV6::new(ip, port, flow_info, r.u32()?))
            }
            _ => return Err(WireError::Invalid("address family")),
        };
        Ok(Self { if_index, capabilities, link_speed, address })
    }

    /// Appends the output buffer.
    pub fn encode_list(interfaces: &[Self], out: &mut Vec<u8>) {
        let mut left = interfaces.len();
        for interface in interfaces {
            left = left.saturating_sub(1);
            // LEN is 152
            out.put_u32(if left == 0 { 0 } else { 152 });
            interface.encode(out);
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let end = out.len().saturating_add(Self::LEN.saturating_sub(4));
        out.put_u32(self.if_index);
        out.put_u32(self.capabilities.bits());
        out.put_u32(0);
        out.put_u64(self.link_speed);
        match self.address {
            SocketAddr::V4(v4) => {
                out.put_u16(ADDRESS_FAMILY_INET);
                out.put_u16(v4.port().swap_bytes());
                out.put(&v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                out.put_u16(ADDRESS_FAMILY_INET6);
                out.put_u16(v6.port().swap_bytes());
                out.put_u32(v6.flowinfo());
                out.put(&v6.ip().octets());
                out.put_u32(v6.scope_id());
            }
        }
        out.resize(end, 0);
    }
}

fixed_struct! {
    /// Output of FSCTL_SRV_REQUEST_RESUME_KEY, [MS-SMB2] 2.2.32.3, with an empty context.
    #[doc(alias = "SRV_REQUEST_RESUME_KEY")]
    pub struct ResumeKey[32] {
        /// Identifies the source of a copy.
        resume_key: [u8; 24],
    }
}

fixed_struct! {
    /// A range of a [`Copychunk`].
    #[doc(alias = "SRV_COPYCHUNK")]
    pub struct Chunk[24] {
        /// Offset in the source.
        source_offset: u64,
        /// Offset in the target.
        target_offset: u64,
        /// Length in bytes.
        length: u32,
    }
}

/// Input of FSCTL_SRV_COPYCHUNK and FSCTL_SRV_COPYCHUNK_WRITE, [MS-SMB2] 2.2.31.1.
#[doc(alias = "SRV_COPYCHUNK_COPY")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copychunk {
    /// The resume key of the source.
    pub source_key: [u8; 24],
    /// The ranges to copy.
    pub chunks: Vec<Chunk>,
}

impl Copychunk {
    /// Decodes the input buffer.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn decode(input: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(input);
        let source_key = r.array()?;
        let count = r.len32()?;
        r.skip(4)?;
        Ok(Self { source_key, chunks: list(&mut r, count, Chunk::LEN)? })
    }

    /// Appends the input buffer.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put(&self.source_key);
        out.put_u32(len_u32(self.chunks.len(), "Chunks")?);
        out.put_u32(0);
        self.chunks.iter().for_each(|chunk| chunk.encode_into(out));
        Ok(())
    }
}

fixed_struct! {
    /// Output of FSCTL_SRV_COPYCHUNK, [MS-SMB2] 2.2.32.1. With STATUS_INVALID_PARAMETER it contains the server's limits
    /// instead: chunks, bytes of a chunk, bytes in total.
    #[doc(alias = "SRV_COPYCHUNK_RESPONSE")]
    pub struct CopychunkResponse[12] {
        /// Chunks copied.
        chunks_written: u32,
        /// Bytes written of a chunk that was copied in part.
        chunk_bytes_written: u32,
        /// Bytes of all chunks.
        total_bytes_written: u32,
    }
}

/// Input of FSCTL_DFS_GET_REFERRALS, [MS-DFSC] 2.2.2.
#[doc(alias = "REQ_GET_DFS_REFERRAL")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DfsReferralRequest<'a> {
    /// The highest version of a referral that the client understands.
    pub max_referral_level: u16,
    /// The path.
    pub file_name: Utf16<'a>,
}

impl<'a> DfsReferralRequest<'a> {
    /// Decodes the input buffer.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Utf16`]; [`WireError::Invalid`] when the zero after the path is
    /// missing.
    pub fn decode(input: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(input);
        let max_referral_level = r.u16()?;
        let (units, _) = r.rest().as_chunks::<2>();
        let end =
            units.iter().position(|unit| *unit == [0, 0]).ok_or(WireError::Invalid("RequestFileName"))?;
        Ok(Self { max_referral_level, file_name: Utf16::from_wire(r.bytes(end.saturating_mul(2))?)? })
    }

    /// Appends the input buffer.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.put_u16(self.max_referral_level);
        self.file_name.encode_into(out);
        out.put_u16(0);
    }
}

fixed_struct! {
    /// Input of FSCTL_LMR_REQUEST_RESILIENCY, [MS-SMB2] 2.2.31.3.
    #[doc(alias = "NETWORK_RESILIENCY_REQUEST")]
    pub struct ResiliencyRequest[8] {
        /// How long the open survives a disconnection, in milliseconds.
        timeout_ms: u32,
    }
}

/// Input of FSCTL_PIPE_WAIT, [MS-FSCC] 2.3.49.
#[doc(alias = "FSCTL_PIPE_WAIT_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipeWait<'a> {
    /// How long to wait, in units of 100 nanoseconds; `None` leaves it to the server.
    pub timeout: Option<u64>,
    /// The pipe.
    pub name: Utf16<'a>,
}

impl<'a> PipeWait<'a> {
    /// Decodes the input buffer.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Utf16`].
    pub fn decode(input: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(input);
        let timeout = r.u64()?;
        let length = r.len32()?;
        let specified = r.u8()? != 0;
        r.skip(1)?;
        Ok(Self { timeout: specified.then_some(timeout), name: Utf16::from_wire(r.bytes(length)?)? })
    }

    /// Appends the input buffer.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u64(self.timeout.unwrap_or(0));
        out.put_u32(len_u32(self.name.byte_len(), "Name")?);
        out.put(&[self.timeout.is_some().into(), 0]);
        self.name.encode_into(out);
        Ok(())
    }
}

/// Output of FSCTL_SRV_ENUMERATE_SNAPSHOTS, [MS-SMB2] 2.2.32.2.
#[doc(alias = "SRV_SNAPSHOT_ARRAY")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotArray {
    /// The number of snapshots on the server.
    pub number_of_snapshots: u32,
    /// Bytes that the names of all snapshots take, including their zeros.
    pub snapshot_array_size: u32,
    /// `@GMT-YYYY.MM.DD-HH.MM.SS`, as many as were requested; none when the output is too short for all of them.
    pub snapshots: Vec<String>,
}

impl SnapshotArray {
    /// Decodes the output buffer.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Utf16`].
    pub fn decode(output: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(output);
        let (number_of_snapshots, returned) = (r.u32()?, r.u32()?);
        let snapshot_array_size = r.u32()?;
        let (units, _) = r.rest().as_chunks::<2>();
        let names = units.split(|unit| *unit == [0, 0]).take_while(|name| !name.is_empty());
        let snapshots: Vec<_> =
            names.map(|name| Utf16::from_wire(name.as_flattened())?.decode()).collect::<Result<_, _>>()?;
        if snapshots.len() != returned as usize {
            return Err(WireError::Invalid("NumberOfSnapShotsReturned"));
        }
        Ok(Self { number_of_snapshots, snapshot_array_size, snapshots })
    }

    /// Appends the output buffer.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u32(self.number_of_snapshots);
        out.put_u32(len_u32(self.snapshots.len(), "SnapShots")?);
        out.put_u32(self.snapshot_array_size);
        for name in &self.snapshots {
            Utf16::from(name.as_str()).encode_into(out);
            out.put_u16(0);
        }
        put_zeros(out, 2);
        Ok(())
    }
}

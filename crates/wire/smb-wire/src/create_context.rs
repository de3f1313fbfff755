//! Create contexts, [MS-SMB2] 2.2.13.2 (requests) and 2.2.14.2 (responses).

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError, len_u16, len_u32, pad_from, patch_u32, put_zeros, variable};
use crate::create::AccessMask;
use crate::dtyp::{FileId, FileTime, Guid};
use crate::ntstatus::NtStatus;

/// The names of create contexts.
pub mod name {
    /// SMB2_CREATE_EA_BUFFER
    pub const EA_BUFFER: &[u8] = b"ExtA";
    /// SMB2_CREATE_SD_BUFFER
    pub const SD_BUFFER: &[u8] = b"SecD";
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST
    pub const DURABLE_HANDLE_REQUEST: &[u8] = b"DHnQ";
    /// SMB2_CREATE_DURABLE_HANDLE_RECONNECT
    pub const DURABLE_HANDLE_RECONNECT: &[u8] = b"DHnC";
    /// SMB2_CREATE_ALLOCATION_SIZE
    pub const ALLOCATION_SIZE: &[u8] = b"AlSi";
    /// SMB2_CREATE_QUERY_MAXIMAL_ACCESS_REQUEST
    pub const QUERY_MAXIMAL_ACCESS: &[u8] = b"MxAc";
    /// SMB2_CREATE_TIMEWARP_TOKEN
    pub const TIMEWARP_TOKEN: &[u8] = b"TWrp";
    /// SMB2_CREATE_QUERY_ON_DISK_ID
    pub const QUERY_ON_DISK_ID: &[u8] = b"QFid";
    /// SMB2_CREATE_REQUEST_LEASE and SMB2_CREATE_REQUEST_LEASE_V2
    pub const REQUEST_LEASE: &[u8] = b"RqLs";
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2
    pub const DURABLE_HANDLE_REQUEST_V2: &[u8] = b"DH2Q";
    /// SMB2_CREATE_DURABLE_HANDLE_RECONNECT_V2
    pub const DURABLE_HANDLE_RECONNECT_V2: &[u8] = b"DH2C";
    /// SMB2_CREATE_APP_INSTANCE_ID
    pub const APP_INSTANCE_ID: &[u8] = b"\x45\xBC\xA6\x6A\xEF\xA7\xF7\x4A\x90\x08\xFA\x46\x2E\x14\x4D\x74";
    /// SMB2_CREATE_APP_INSTANCE_VERSION
    pub const APP_INSTANCE_VERSION: &[u8] =
        b"\xB9\x82\xD0\xB7\x3B\x56\x07\x4F\xA0\x7B\x52\x4A\x81\x16\xA0\x10";
    /// SVHDX_OPEN_DEVICE_CONTEXT
    pub const SVHDX_OPEN_DEVICE: &[u8] = b"\x9C\xCB\xCF\x9E\x04\xC1\xE6\x43\x98\x0E\x15\x8D\xA1\xF6\xEC\x83";
}

/// A create context in wire form.
#[doc(alias = "SMB2_CREATE_CONTEXT")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawContext<'a> {
    /// The name of the context ([`name`]).
    pub name: &'a [u8],
    /// Its data.
    pub data: &'a [u8],
}

bitflags! {
    /// What a lease lets the client cache.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct LeaseState: u32 {
        /// SMB2_LEASE_READ_CACHING
        const READ = 0x01;
        /// SMB2_LEASE_HANDLE_CACHING
        const HANDLE = 0x02;
        /// SMB2_LEASE_WRITE_CACHING
        const WRITE = 0x04;
        const _ = !0;
    }
}

bitflags! {
    /// `LeaseFlags`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct LeaseFlags: u32 {
        /// SMB2_LEASE_FLAG_BREAK_IN_PROGRESS (responses)
        const BREAK_IN_PROGRESS = 0x0000_0002;
        /// SMB2_LEASE_FLAG_PARENT_LEASE_KEY_SET (version 2)
        const PARENT_LEASE_KEY_SET = 0x0000_0004;
        const _ = !0;
    }
}

bitflags! {
    /// `Flags` of the durable handle contexts, version 2.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct DurableFlags: u32 {
        /// SMB2_DHANDLE_FLAG_PERSISTENT
        const PERSISTENT = 0x0000_0002;
        const _ = !0;
    }
}

/// A lease that is requested or granted; the same in requests and responses.
#[doc(alias = "SMB2_CREATE_REQUEST_LEASE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The key that the client chose for the lease.
    pub key: [u8; 16],
    /// What may be cached.
    pub state: LeaseState,
    /// The flags of the lease.
    pub flags: LeaseFlags,
    /// The fields that only version 2 (SMB 3.x) has.
    pub v2: Option<LeaseV2>,
}

/// The additional fields of a lease context of version 2.
#[doc(alias = "SMB2_CREATE_REQUEST_LEASE_V2")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseV2 {
    /// The lease of the file's parent directory; meaningful with [`LeaseFlags::PARENT_LEASE_KEY_SET`].
    pub parent_key: [u8; 16],
    /// Counts the changes of the lease's state.
    pub epoch: u16,
}

impl Lease {
    const V1_LEN: usize = 32;
    const V2_LEN: usize = 52;

    fn decode(data: &[u8]) -> Result<Self, WireError> {
        if data.len() != Self::V1_LEN && data.len() != Self::V2_LEN {
            return Err(WireError::Invalid("length of a lease context"));
        }
        let mut r = Reader::new(data);
        let key = r.array()?;
        let state = LeaseState::from_bits_retain(r.u32()?);
        let flags = LeaseFlags::from_bits_retain(r.u32()?);
        r.skip(8)?;
        let v2 = if r.is_empty() { None } else { Some(LeaseV2 { parent_key: r.array()?, epoch: r.u16()? }) };
        Ok(Self { key, state, flags, v2 })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put(&self.key);
        out.put_u32(self.state.bits());
        out.put_u32(self.flags.bits());
        out.put_u64(0);
        if let Some(v2) = self.v2 {
            out.put(&v2.parent_key);
            out.put_u16(v2.epoch);
            out.put_u16(0);
        }
    }
}

/// A context of a CREATE request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestContext<'a> {
    /// The extended attributes of a new file, a list of FILE_FULL_EA_INFORMATION ([`crate::fscc::ea`]).
    EaBuffer(&'a [u8]),
    /// The security descriptor of a new file ([`crate::security_descriptor`]).
    SdBuffer(&'a [u8]),
    /// Make the open durable.
    DurableHandleRequest,
    /// Reclaim a durable open.
    DurableHandleReconnect {
        /// The open.
        file_id: FileId,
    },
    /// The allocation size of a new file, in bytes.
    AllocationSize(u64),
    /// Return the maximal access, unless the file has not changed since the timestamp.
    QueryMaximalAccess {
        /// When the client last asked.
        timestamp: Option<FileTime>,
    },
    /// Open the snapshot of this time.
    TimewarpToken(FileTime),
    /// Return the identity of the file and the volume.
    QueryOnDiskId,
    /// Grant a lease.
    RequestLease(Lease),
    /// Make the open durable or persistent (SMB 3.x).
    DurableHandleRequestV2 {
        /// The timeout in milliseconds; 0 leaves it to the server.
        timeout_ms: u32,
        /// Whether the open is persistent.
        flags: DurableFlags,
        /// Identifies this CREATE, so that it can be replayed.
        create_guid: Guid,
    },
    /// Reclaim a durable or persistent open (SMB 3.x).
    DurableHandleReconnectV2 {
        /// The open.
        file_id: FileId,
        /// The CREATE that made it.
        create_guid: Guid,
        /// Whether the open is persistent.
        flags: DurableFlags,
    },
    /// The application that opens the file (SMB 3.x).
    AppInstanceId(Guid),
    /// The version of the application (SMB 3.1.1).
    AppInstanceVersion {
        /// The more significant half.
        high: u64,
        /// The less significant half.
        low: u64,
    },
    /// Any other context, to be ignored unless the server knows it ([`name::SVHDX_OPEN_DEVICE`] is among these).
    Other(RawContext<'a>),
}

impl<'a> RequestContext<'a> {
    /// Decodes a chain of contexts.
    ///
    /// # Errors
    /// [`WireError`] when the chain or one of its known contexts is malformed.
    pub fn decode_list(list: &'a [u8]) -> Result<Vec<Self>, WireError> {
        raw_contexts(list).map(|raw| Self::decode(raw?)).collect()
    }

    /// The chain of contexts.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_list(contexts: &[Self]) -> Result<Vec<u8>, WireError> {
        encode_chain(contexts.iter().map(|context| (context.name(), context.data())))
    }

    fn decode(raw: RawContext<'a>) -> Result<Self, WireError> {
        let data = raw.data;
        let mut r = Reader::new(data);
        Ok(match raw.name {
            name::EA_BUFFER => Self::EaBuffer(data),
            name::SD_BUFFER => Self::SdBuffer(data),
            name::DURABLE_HANDLE_REQUEST => {
                exactly(data, 16)?;
                Self::DurableHandleRequest
            }
            name::DURABLE_HANDLE_RECONNECT => {
                exactly(data, 16)?;
                Self::DurableHandleReconnect { file_id: FileId::read(&mut r)? }
            }
            name::ALLOCATION_SIZE => {
                exactly(data, 8)?;
                Self::AllocationSize(r.u64()?)
            }
            name::QUERY_MAXIMAL_ACCESS => {
                let timestamp = if data.is_empty() { None } else { Some(FileTime::read(&mut r)?) };
                Self::QueryMaximalAccess { timestamp }
            }
            name::TIMEWARP_TOKEN => {
                exactly(data, 8)?;
                Self::TimewarpToken(FileTime::read(&mut r)?)
            }
            name::QUERY_ON_DISK_ID => Self::QueryOnDiskId,
            name::REQUEST_LEASE => Self::RequestLease(Lease::decode(data)?),
            name::DURABLE_HANDLE_REQUEST_V2 => {
                exactly(data, 32)?;
                let (timeout_ms, flags) = (r.u32()?, DurableFlags::from_bits_retain(r.u32()?));
                r.skip(8)?;
                Self::DurableHandleRequestV2 { timeout_ms, flags, create_guid: Guid::read(&mut r)? }
            }
            name::DURABLE_HANDLE_RECONNECT_V2 => {
                exactly(data, 36)?;
                Self::DurableHandleReconnectV2 {
                    file_id: FileId::read(&mut r)?,
                    create_guid: Guid::read(&mut r)?,
                    flags: DurableFlags::from_bits_retain(r.u32()?),
                }
            }
            name::APP_INSTANCE_ID => {
                let mut r = r.structure_size(20)?;
                r.skip(2)?;
                Self::AppInstanceId(Guid::read(&mut r)?)
            }
            name::APP_INSTANCE_VERSION => {
                let mut r = r.structure_size(24)?;
                r.skip(6)?;
                Self::AppInstanceVersion { high: r.u64()?, low: r.u64()? }
            }
            _ => Self::Other(raw),
        })
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(&self) -> &'a [u8] {
        match self {
            Self::EaBuffer(_) => name::EA_BUFFER,
            Self::SdBuffer(_) => name::SD_BUFFER,
            Self::DurableHandleRequest => name::DURABLE_HANDLE_REQUEST,
            Self::DurableHandleReconnect { .. } => name::DURABLE_HANDLE_RECONNECT,
            Self::AllocationSize(_) => name::ALLOCATION_SIZE,
            Self::QueryMaximalAccess { .. } => name::QUERY_MAXIMAL_ACCESS,
            Self::TimewarpToken(_) => name::TIMEWARP_TOKEN,
            Self::QueryOnDiskId => name::QUERY_ON_DISK_ID,
            Self::RequestLease(_) => name::REQUEST_LEASE,
            Self::DurableHandleRequestV2 { .. } => name::DURABLE_HANDLE_REQUEST_V2,
            Self::DurableHandleReconnectV2 { .. } => name::DURABLE_HANDLE_RECONNECT_V2,
            Self::AppInstanceId(_) => name::APP_INSTANCE_ID,
            Self::AppInstanceVersion { .. } => name::APP_INSTANCE_VERSION,
            Self::Other(raw) => raw.name,
        }
    }

    fn data(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::EaBuffer(data) | Self::SdBuffer(data) => out.put(data),
            Self::DurableHandleRequest => put_zeros(&mut out, 16),
            Self::DurableHandleReconnect { file_id } => file_id.put(&mut out),
            Self::AllocationSize(bytes) => out.put_u64(*bytes),
            Self::QueryMaximalAccess { timestamp } => timestamp.iter().for_each(|time| time.put(&mut out)),
            Self::TimewarpToken(time) => time.put(&mut out),
            Self::QueryOnDiskId => {}
            Self::RequestLease(lease) => lease.encode(&mut out),
            Self::DurableHandleRequestV2 { timeout_ms, flags, create_guid } => {
                out.put_u32(*timeout_ms);
                out.put_u32(flags.bits());
                out.put_u64(0);
                create_guid.put(&mut out);
            }
            Self::DurableHandleReconnectV2 { file_id, create_guid, flags } => {
                file_id.put(&mut out);
                create_guid.put(&mut out);
                out.put_u32(flags.bits());
            }
            Self::AppInstanceId(guid) => {
                out.put_u16(20);
                out.put_u16(0);
                guid.put(&mut out);
            }
            Self::AppInstanceVersion { high, low } => {
                out.put_u16(24);
                put_zeros(&mut out, 6);
                out.put_u64(*high);
                out.put_u64(*low);
            }
            Self::Other(raw) => out.put(raw.data),
        }
        out
    }
}

/// A context of a CREATE response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseContext<'a> {
    /// The open is durable.
    DurableHandle,
    /// The maximal access of the user.
    MaximalAccess {
        /// Whether the access could be determined.
        query_status: NtStatus,
        /// The rights.
        maximal_access: AccessMask,
    },
    /// The identity of file and volume.
    OnDiskId {
        /// Identifies the file in its volume.
        disk_file_id: u64,
        /// Identifies the volume.
        volume_id: u64,
    },
    /// The lease that was granted.
    Lease(Lease),
    /// The open is durable or persistent (SMB 3.x).
    DurableHandleV2 {
        /// How long the open survives a disconnection, in milliseconds.
        timeout_ms: u32,
        /// Whether the open is persistent.
        flags: DurableFlags,
    },
    /// A context that is not decoded.
    Other(RawContext<'a>),
}

impl<'a> ResponseContext<'a> {
    /// Decodes a chain of contexts.
    ///
    /// # Errors
    /// [`WireError`] when the chain or one of its known contexts is malformed.
    pub fn decode_list(list: &'a [u8]) -> Result<Vec<Self>, WireError> {
        raw_contexts(list).map(|raw| Self::decode(raw?)).collect()
    }

    /// The chain of contexts.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_list(contexts: &[Self]) -> Result<Vec<u8>, WireError> {
        encode_chain(contexts.iter().map(|context| (context.name(), context.data())))
    }

    fn decode(raw: RawContext<'a>) -> Result<Self, WireError> {
        let mut r = Reader::new(raw.data);
        Ok(match raw.name {
            name::DURABLE_HANDLE_REQUEST => {
                exactly(raw.data, 8)?;
                Self::DurableHandle
            }
            name::QUERY_MAXIMAL_ACCESS => Self::MaximalAccess {
                query_status: NtStatus(r.u32()?),
                maximal_access: AccessMask::from_bits_retain(r.u32()?),
            },
            name::QUERY_ON_DISK_ID => {
                exactly(raw.data, 32)?;
                Self::OnDiskId { disk_file_id: r.u64()?, volume_id: r.u64()? }
            }
            name::REQUEST_LEASE => Self::Lease(Lease::decode(raw.data)?),
            name::DURABLE_HANDLE_REQUEST_V2 => {
                exactly(raw.data, 8)?;
                Self::DurableHandleV2 {
                    timeout_ms: r.u32()?,
                    flags: DurableFlags::from_bits_retain(r.u32()?),
                }
            }
            _ => Self::Other(raw),
        })
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(&self) -> &'a [u8] {
        match self {
            Self::DurableHandle => name::DURABLE_HANDLE_REQUEST,
            Self::MaximalAccess { .. } => name::QUERY_MAXIMAL_ACCESS,
            Self::OnDiskId { .. } => name::QUERY_ON_DISK_ID,
            Self::Lease(_) => name::REQUEST_LEASE,
            Self::DurableHandleV2 { .. } => name::DURABLE_HANDLE_REQUEST_V2,
            Self::Other(raw) => raw.name,
        }
    }

    fn data(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::DurableHandle => put_zeros(&mut out, 8),
            Self::MaximalAccess { query_status, maximal_access } => {
                out.put_u32(query_status.0);
                out.put_u32(maximal_access.bits());
            }
            Self::OnDiskId { disk_file_id, volume_id } => {
                out.put_u64(*disk_file_id);
                out.put_u64(*volume_id);
                put_zeros(&mut out, 16);
            }
            Self::Lease(lease) => lease.encode(&mut out),
            Self::DurableHandleV2 { timeout_ms, flags } => {
                out.put_u32(*timeout_ms);
                out.put_u32(flags.bits());
            }
            Self::Other(raw) => out.put(raw.data),
        }
        out
    }
}

fn exactly(data: &[u8], length: usize) -> Result<(), WireError> {
    if data.len() == length { Ok(()) } else { Err(WireError::Invalid("length of a create context")) }
}

const CONTEXT_FIXED_END: usize = 16;

/// The contexts of a chain; ends after the first error.
pub fn raw_contexts(list: &[u8]) -> impl Iterator<Item = Result<RawContext<'_>, WireError>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let context = split_context(rest);
        rest = context.map_or(&[][..], |(_, next)| next);
        Some(context.map(|(raw, _)| raw))
    })
}

/// The context at the start of `list`, and the rest of the list.
fn split_context(list: &[u8]) -> Result<(RawContext<'_>, &[u8]), WireError> {
    let mut r = Reader::new(list);
    let next = r.len32()?;
    let (name_offset, name_length) = (r.len16()?, r.len16()?);
    r.skip(2)?;
    let (data_offset, data_length) = (r.len16()?, r.len32()?);
    let (own, rest) = match next {
        0 => (list, &[][..]),
        _ if !next.is_multiple_of(8) => return Err(WireError::Misaligned("Next")),
        _ => list.split_at_checked(next).ok_or(WireError::OutOfBounds("Next"))?,
    };
    if name_length < 4 {
        return Err(WireError::Invalid("length of a create context's name"));
    }
    let name = variable(own, CONTEXT_FIXED_END, name_offset, name_length, "create context name")?;
    let data = variable(own, CONTEXT_FIXED_END, data_offset, data_length, "create context data")?;
    Ok((RawContext { name, data }, rest))
}

fn encode_chain<'a>(contexts: impl Iterator<Item = (&'a [u8], Vec<u8>)>) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::new();
    let mut previous = None;
    for (name, data) in contexts {
        pad_from(&mut out, 0, 8);
        let start = out.len();
        if let Some(previous) = previous.replace(start) {
            patch_u32(&mut out, previous, len_u32(start.saturating_sub(previous), "create context")?);
        }
        put_context(&mut out, name, &data)?;
    }
    Ok(out)
}

fn put_context(out: &mut Vec<u8>, name: &[u8], data: &[u8]) -> Result<(), WireError> {
    let start = out.len();
    let data_offset = crate::codec::aligned(name.len().saturating_add(CONTEXT_FIXED_END), 8);
    out.put_u32(0);
    out.put_u16(16);
    out.put_u16(len_u16(name.len(), "create context name")?);
    out.put_u16(0);
    out.put_u16(if data.is_empty() { 0 } else { len_u16(data_offset, "create context name")? });
    out.put_u32(len_u32(data.len(), "create context data")?);
    out.put(name);
    if !data.is_empty() {
        pad_from(out, start, 8);
        out.put(data);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Vec<u8> {
        RequestContext::encode_list(&[RequestContext::AllocationSize(7), RequestContext::QueryOnDiskId])
            .unwrap()
    }

    fn with(at: usize, bytes: &[u8]) -> Result<usize, WireError> {
        let mut list = list();
        list[at..at + bytes.len()].copy_from_slice(bytes);
        RequestContext::decode_list(&list).map(|contexts| contexts.len())
    }

    #[test]
    fn the_chain_is_checked() {
        // Next, NameOffset, NameLength, Reserved, DataOffset, DataLength; the second one starts at 32.
        assert_eq!(list()[..16], [32, 0, 0, 0, 16, 0, 4, 0, 0, 0, 24, 0, 8, 0, 0, 0]);
        assert_eq!(with(0, &[32]), Ok(2));
        assert_eq!(with(0, &[0]), Ok(1));
        assert_eq!(with(0, &[33]), Err(WireError::Misaligned("Next")));
        assert_eq!(with(0, &[56]), Err(WireError::OutOfBounds("Next")));
        assert_eq!(with(0, &[0xF8, 0xFF, 0xFF, 0xFF]), Err(WireError::OutOfBounds("Next")));
        // Too close: the context does not end before the next one starts.
        assert_eq!(with(0, &[8]), Err(WireError::OutOfBounds("create context name")));
    }

    #[test]
    fn name_and_data_are_checked() {
        assert_eq!(with(4, &[15]), Err(WireError::OutOfBounds("create context name")));
        assert_eq!(with(6, &[3]), Err(WireError::Invalid("length of a create context's name")));
        assert_eq!(with(6, &[0xFF, 0xFF]), Err(WireError::OutOfBounds("create context name")));
        assert_eq!(with(10, &[15]), Err(WireError::OutOfBounds("create context data")));
        assert_eq!(with(12, &[0xFF; 4]), Err(WireError::OutOfBounds("create context data")));
        assert_eq!(with(12, &[7]), Err(WireError::Invalid("length of a create context")));
    }

    #[test]
    fn a_lease_is_of_version_1_or_2() {
        for (length, version_2) in [(32, Some(false)), (52, Some(true)), (0, None), (33, None), (51, None)] {
            let lease = Lease::decode(&vec![0; length]).ok().map(|lease| lease.v2.is_some());
            assert_eq!(lease, version_2, "{length}");
        }
    }

    #[test]
    fn an_unknown_context_is_kept() {
        let raw = RawContext { name: name::SVHDX_OPEN_DEVICE, data: &[1, 2, 3] };
        let list = RequestContext::encode_list(&[RequestContext::Other(raw)]).unwrap();
        assert_eq!(RequestContext::decode_list(&list), Ok(vec![RequestContext::Other(raw)]));
    }
}

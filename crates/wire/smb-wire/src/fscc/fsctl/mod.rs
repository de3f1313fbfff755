//! FSCTL codes and the contents of their buffers: [MS-FSCC] 2.3, [MS-SMB2] 2.2.31 and 2.2.32.

mod file;
mod server;

pub use file::*;
pub use server::*;

use crate::codec::{Field, Reader, WireError};

wire_enum! {
    /// The operation of an IOCTL.
    pub enum Fsctl: u32 {
        /// FSCTL_DFS_GET_REFERRALS
        DfsGetReferrals = 0x0006_0194,
        /// FSCTL_DFS_GET_REFERRALS_EX
        DfsGetReferralsEx = 0x0006_01B0,
        /// FSCTL_PIPE_PEEK
        PipePeek = 0x0011_400C,
        /// FSCTL_PIPE_WAIT
        PipeWait = 0x0011_0018,
        /// FSCTL_PIPE_TRANSCEIVE
        PipeTransceive = 0x0011_C017,
        /// FSCTL_SRV_COPYCHUNK
        SrvCopychunk = 0x0014_40F2,
        /// FSCTL_SRV_COPYCHUNK_WRITE
        SrvCopychunkWrite = 0x0014_80F2,
        /// FSCTL_SRV_ENUMERATE_SNAPSHOTS
        SrvEnumerateSnapshots = 0x0014_4064,
        /// FSCTL_SRV_REQUEST_RESUME_KEY
        SrvRequestResumeKey = 0x0014_0078,
        /// FSCTL_SRV_READ_HASH
        SrvReadHash = 0x0014_41BB,
        /// FSCTL_LMR_REQUEST_RESILIENCY
        LmrRequestResiliency = 0x0014_01D4,
        /// FSCTL_QUERY_NETWORK_INTERFACE_INFO
        QueryNetworkInterfaceInfo = 0x0014_01FC,
        /// FSCTL_VALIDATE_NEGOTIATE_INFO
        ValidateNegotiateInfo = 0x0014_0204,
        /// FSCTL_IS_PATHNAME_VALID
        IsPathnameValid = 0x0009_002C,
        /// FSCTL_GET_COMPRESSION
        GetCompression = 0x0009_003C,
        /// FSCTL_SET_COMPRESSION
        SetCompression = 0x0009_C040,
        /// FSCTL_FILESYSTEM_GET_STATISTICS
        FilesystemGetStatistics = 0x0009_0060,
        /// FSCTL_GET_NTFS_VOLUME_DATA
        GetNtfsVolumeData = 0x0009_0064,
        /// FSCTL_GET_RETRIEVAL_POINTERS
        GetRetrievalPointers = 0x0009_0073,
        /// FSCTL_SET_OBJECT_ID
        SetObjectId = 0x0009_0098,
        /// FSCTL_GET_OBJECT_ID
        GetObjectId = 0x0009_009C,
        /// FSCTL_DELETE_OBJECT_ID
        DeleteObjectId = 0x0009_00A0,
        /// FSCTL_SET_REPARSE_POINT
        SetReparsePoint = 0x0009_00A4,
        /// FSCTL_GET_REPARSE_POINT
        GetReparsePoint = 0x0009_00A8,
        /// FSCTL_DELETE_REPARSE_POINT
        DeleteReparsePoint = 0x0009_00AC,
        /// FSCTL_CREATE_OR_GET_OBJECT_ID
        CreateOrGetObjectId = 0x0009_00C0,
        /// FSCTL_SET_SPARSE
        SetSparse = 0x0009_00C4,
        /// FSCTL_SET_ZERO_DATA
        SetZeroData = 0x0009_80C8,
        /// FSCTL_QUERY_ALLOCATED_RANGES
        QueryAllocatedRanges = 0x0009_40CF,
        /// FSCTL_SET_ENCRYPTION
        SetEncryption = 0x0009_00D7,
        /// FSCTL_READ_FILE_USN_DATA
        ReadFileUsnData = 0x0009_00EB,
        /// FSCTL_QUERY_ON_DISK_VOLUME_INFO
        QueryOnDiskVolumeInfo = 0x0009_013C,
        /// FSCTL_FILE_LEVEL_TRIM
        FileLevelTrim = 0x0009_8208,
        /// FSCTL_OFFLOAD_READ
        OffloadRead = 0x0009_4264,
        /// FSCTL_OFFLOAD_WRITE
        OffloadWrite = 0x0009_8268,
        /// FSCTL_GET_INTEGRITY_INFORMATION
        GetIntegrityInformation = 0x0009_027C,
        /// FSCTL_SET_INTEGRITY_INFORMATION
        SetIntegrityInformation = 0x0009_C280,
        /// FSCTL_QUERY_FILE_REGIONS
        QueryFileRegions = 0x0009_0284,
        /// FSCTL_QUERY_SHARED_VIRTUAL_DISK_SUPPORT
        QuerySharedVirtualDiskSupport = 0x0009_0300,
        /// FSCTL_SVHDX_SYNC_TUNNEL_REQUEST
        SvhdxSyncTunnelRequest = 0x0009_0304,
        /// FSCTL_DUPLICATE_EXTENTS_TO_FILE
        DuplicateExtentsToFile = 0x0009_8344,
        /// FSCTL_DUPLICATE_EXTENTS_TO_FILE_EX
        DuplicateExtentsToFileEx = 0x0009_83E8,
        /// FSCTL_SET_INTEGRITY_INFORMATION_EX
        SetIntegrityInformationEx = 0x0009_0380,
        /// FSCTL_REFS_STREAM_SNAPSHOT_MANAGEMENT
        RefsStreamSnapshotManagement = 0x0009_0440,
    }
}

/// `count` structures of `length` bytes each. All must be present before memory is allocated for them.
pub(super) fn list<T: Field>(r: &mut Reader<'_>, count: usize, length: usize) -> Result<Vec<T>, WireError> {
    let mut list = Reader::new(r.bytes(count.saturating_mul(length))?);
    let mut items = Vec::with_capacity(count);
    while !list.is_empty() {
        items.push(T::read(&mut list)?);
    }
    Ok(items)
}

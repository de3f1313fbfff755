//! Buffers of the FSCTLs that concern the file system: sparse files, ranges, object ids, integrity, clones.

use bitflags::bitflags;

use super::list;
use crate::codec::{Field, Put, Reader, WireError, len_u32};
use crate::dtyp::{FileId, Guid};

/// Input of FSCTL_SET_SPARSE, [MS-FSCC] 2.3.83: whether the file is sparse. No input means that it is.
#[must_use]
pub fn decode_set_sparse(input: &[u8]) -> bool {
    input.first().is_none_or(|byte| *byte != 0)
}

fixed_struct! {
    /// Input of FSCTL_SET_ZERO_DATA, [MS-FSCC] 2.3.85.
    #[doc(alias = "FILE_ZERO_DATA_INFORMATION")]
    pub struct ZeroData[16] {
        /// Offset of the first byte.
        file_offset: u64,
        /// Offset of the first byte after the range.
        beyond_final_zero: u64,
    }
}

fixed_struct! {
    /// Input of FSCTL_QUERY_ALLOCATED_RANGES and the entries of its output ([MS-FSCC] 2.3.51, 2.3.52).
    #[doc(alias = "FILE_ALLOCATED_RANGE_BUFFER")]
    pub struct AllocatedRange[16] {
        /// Offset of the first byte.
        file_offset: u64,
        /// Length in bytes.
        length: u64,
    }
}

impl AllocatedRange {
    /// Decodes the output buffer.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn decode_list(output: &[u8]) -> Result<Vec<Self>, WireError> {
        list(&mut Reader::new(output), output.len().div_ceil(Self::LEN), Self::LEN)
    }
}

fixed_struct! {
    /// Output of FSCTL_CREATE_OR_GET_OBJECT_ID and FSCTL_GET_OBJECT_ID, [MS-FSCC] 2.1.3.1.
    #[doc(alias = "FILE_OBJECTID_BUFFER")]
    pub struct ObjectId[64] {
        /// Identifies the file in its volume.
        object_id: Guid,
        /// The volume on which the file was created.
        birth_volume_id: Guid,
        /// The identifier that the file had there.
        birth_object_id: Guid,
        /// 0
        domain_id: Guid,
    }
}

fixed_struct! {
    /// A range of a [`FileLevelTrim`].
    #[doc(alias = "FILE_LEVEL_TRIM_RANGE")]
    pub struct TrimRange[16] {
        /// Offset of the first byte.
        offset: u64,
        /// Length in bytes.
        length: u64,
    }
}

/// Input of FSCTL_FILE_LEVEL_TRIM, [MS-FSCC] 2.3.13. The output is the number of ranges, four bytes.
#[doc(alias = "FILE_LEVEL_TRIM")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLevelTrim {
    /// The key of a byte-range lock; 0 over the network.
    pub key: u32,
    /// The ranges that are no longer needed.
    pub ranges: Vec<TrimRange>,
}

impl FileLevelTrim {
    /// Decodes the input buffer.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn decode(input: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(input);
        let key = r.u32()?;
        let count = r.len32()?;
        Ok(Self { key, ranges: list(&mut r, count, TrimRange::LEN)? })
    }

    /// Appends the input buffer.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u32(self.key);
        out.put_u32(len_u32(self.ranges.len(), "Ranges")?);
        self.ranges.iter().for_each(|range| range.encode_into(out));
        Ok(())
    }
}

fixed_struct! {
    /// Input of FSCTL_SET_COMPRESSION and output of FSCTL_GET_COMPRESSION, [MS-FSCC] 2.3.67 and 2.3.18.
    pub struct CompressionState[2] {
        /// 0 none, 1 the default, 2 LZNT1.
        compression_state: u16,
    }
}

bitflags! {
    /// `Flags` of the integrity structures.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct IntegrityFlags: u32 {
        /// FSCTL_INTEGRITY_FLAG_CHECKSUM_ENFORCEMENT_OFF
        const CHECKSUM_ENFORCEMENT_OFF = 0x0000_0001;
        const _ = !0;
    }
}

flags_field!(IntegrityFlags);

/// Output of FSCTL_GET_INTEGRITY_INFORMATION, [MS-FSCC] 2.3.20.
#[doc(alias = "FSCTL_GET_INTEGRITY_INFORMATION_BUFFER")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GetIntegrityInformation {
    /// 0 none, 1 CRC32, 2 CRC64.
    pub checksum_algorithm: u16,
    /// Whether checksums are enforced.
    pub flags: IntegrityFlags,
    /// Bytes of a checksummed chunk.
    pub checksum_chunk_size_bytes: u32,
    /// Bytes of a cluster.
    pub cluster_size_bytes: u32,
}

impl GetIntegrityInformation {
    /// Decodes the output buffer.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn decode(output: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(output);
        let checksum_algorithm = r.u16()?;
        r.skip(2)?;
        let flags = IntegrityFlags::read(&mut r)?;
        Ok(Self {
            checksum_algorithm,
            flags,
            checksum_chunk_size_bytes: r.u32()?,
            cluster_size_bytes: r.u32()?,
        })
    }

    /// Appends the output buffer.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.put_u16(self.checksum_algorithm);
        out.put_u16(0);
        out.put_u32(self.flags.bits());
        out.put_u32(self.checksum_chunk_size_bytes);
        out.put_u32(self.cluster_size_bytes);
    }
}

/// Input of FSCTL_SET_INTEGRITY_INFORMATION, [MS-FSCC] 2.3.73.
#[doc(alias = "FSCTL_SET_INTEGRITY_INFORMATION_BUFFER")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetIntegrityInformation {
    /// 0 none, 1 CRC32, 2 CRC64, 0xFFFF unchanged.
    pub checksum_algorithm: u16,
    /// Whether checksums are enforced.
    pub flags: IntegrityFlags,
}

impl SetIntegrityInformation {
    /// Decodes the input buffer.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn decode(input: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(input);
        let checksum_algorithm = r.u16()?;
        r.skip(2)?;
        Ok(Self { checksum_algorithm, flags: IntegrityFlags::read(&mut r)? })
    }

    /// Appends the input buffer.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.put_u16(self.checksum_algorithm);
        out.put_u16(0);
        out.put_u32(self.flags.bits());
    }
}

fixed_struct! {
    /// Input of FSCTL_DUPLICATE_EXTENTS_TO_FILE, [MS-FSCC] 2.3.7.
    #[doc(alias = "SMB2_DUPLICATE_EXTENTS_DATA")]
    pub struct DuplicateExtents[40] {
        /// The open of the source.
        source_file_id: FileId,
        /// Offset in the source.
        source_file_offset: u64,
        /// Offset in the target.
        target_file_offset: u64,
        /// Length in bytes.
        byte_count: u64,
    }
}

fixed_struct! {
    /// Input of FSCTL_QUERY_FILE_REGIONS, [MS-FSCC] 2.3.55; no input means the whole file.
    #[doc(alias = "FILE_REGION_INPUT")]
    pub struct FileRegionInput[24] {
        /// Offset of the first byte.
        file_offset: u64,
        /// Length in bytes.
        length: u64,
        /// 1: valid cached data, 2: valid non-cached data.
        desired_usage: u32,
    }
}

fixed_struct! {
    /// A region in the output of FSCTL_QUERY_FILE_REGIONS.
    #[doc(alias = "FILE_REGION_INFO")]
    pub struct FileRegion[24] {
        /// Offset of the first byte.
        file_offset: u64,
        /// Length in bytes.
        length: u64,
        /// As `desired_usage`.
        usage: u32,
    }
}

/// Output of FSCTL_QUERY_FILE_REGIONS, [MS-FSCC] 2.3.56.
#[doc(alias = "FILE_REGION_OUTPUT")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRegionOutput {
    /// The number of regions; more than in [`Self::regions`] when the output was too short for all of them.
    pub total_region_entry_count: u32,
    /// The regions.
    pub regions: Vec<FileRegion>,
}

impl FileRegionOutput {
    /// Decodes the output buffer.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn decode(output: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(output);
        r.skip(4)?;
        let total_region_entry_count = r.u32()?;
        let count = r.len32()?;
        r.skip(4)?;
        Ok(Self { total_region_entry_count, regions: list(&mut r, count, FileRegion::LEN)? })
    }

    /// Appends the output buffer.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u32(0);
        out.put_u32(self.total_region_entry_count);
        out.put_u32(len_u32(self.regions.len(), "Region")?);
        out.put_u32(0);
        self.regions.iter().for_each(|region| region.encode_into(out));
        Ok(())
    }
}

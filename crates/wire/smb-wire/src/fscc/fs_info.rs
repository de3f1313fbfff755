//! File system information classes, [MS-FSCC] 2.5.

use bitflags::bitflags;

use crate::codec::{Put, Reader, Utf16, WireError, len_u32};
use crate::dtyp::{FileTime, Guid};

/// FileFsVolumeInformation
#[doc(alias = "FileFsVolumeInformation")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume<'a> {
    /// When the volume was created.
    pub volume_creation_time: FileTime,
    /// The serial number of the volume.
    pub volume_serial_number: u32,
    /// Whether it supports object-oriented file system objects.
    pub supports_objects: bool,
    /// The label of the volume.
    pub volume_label: Utf16<'a>,
}

impl<'a> Volume<'a> {
    /// Bytes without the label.
    pub const FIXED_LEN: usize = 18;

    /// Decodes the structure.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Utf16`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let volume_creation_time = FileTime::read(&mut r)?;
        let volume_serial_number = r.u32()?;
        let length = r.len32()?;
        let supports_objects = r.u8()? != 0;
        r.skip(1)?;
        let volume_label = Utf16::from_wire(r.bytes(length)?)?;
        Ok(Self { volume_creation_time, volume_serial_number, supports_objects, volume_label })
    }

    /// Appends the structure.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        self.volume_creation_time.put(out);
        out.put_u32(self.volume_serial_number);
        out.put_u32(len_u32(self.volume_label.byte_len(), "VolumeLabel")?);
        out.put(&[self.supports_objects.into(), 0]);
        self.volume_label.encode_into(out);
        Ok(())
    }
}

fixed_struct! {
    /// FileFsSizeInformation
    #[doc(alias = "FileFsSizeInformation")]
    pub struct Size[24] {
        /// Allocation units of the volume, or of the user's quota if there is one.
        total_allocation_units: u64,
        /// Free allocation units available to the user.
        available_allocation_units: u64,
        /// Sectors per allocation unit.
        sectors_per_allocation_unit: u32,
        /// Bytes per sector.
        bytes_per_sector: u32,
    }
}

fixed_struct! {
    /// FileFsFullSizeInformation
    #[doc(alias = "FileFsFullSizeInformation")]
    pub struct FullSize[32] {
        /// Allocation units of the volume, or of the user's quota if there is one.
        total_allocation_units: u64,
        /// Free allocation units available to the user.
        caller_available_allocation_units: u64,
        /// Free allocation units of the volume.
        actual_available_allocation_units: u64,
        /// Sectors per allocation unit.
        sectors_per_allocation_unit: u32,
        /// Bytes per sector.
        bytes_per_sector: u32,
    }
}

/// FILE_DEVICE_DISK
pub const DEVICE_DISK: u32 = 0x0000_0007;

bitflags! {
    /// `Characteristics` of FileFsDeviceInformation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Characteristics: u32 {
        /// FILE_REMOVABLE_MEDIA
        const REMOVABLE_MEDIA = 0x0000_0001;
        /// FILE_READ_ONLY_DEVICE
        const READ_ONLY_DEVICE = 0x0000_0002;
        /// FILE_WRITE_ONCE_MEDIA
        const WRITE_ONCE_MEDIA = 0x0000_0008;
        /// FILE_REMOTE_DEVICE
        const REMOTE_DEVICE = 0x0000_0010;
        /// FILE_DEVICE_IS_MOUNTED
        const DEVICE_IS_MOUNTED = 0x0000_0020;
        /// FILE_VIRTUAL_VOLUME
        const VIRTUAL_VOLUME = 0x0000_0040;
        const _ = !0;
    }
}
flags_field!(Characteristics, FileSystemAttributes, SectorSizeFlags);

fixed_struct! {
    /// FileFsDeviceInformation
    #[doc(alias = "FileFsDeviceInformation")]
    pub struct Device[8] {
        /// [`DEVICE_DISK`]
        device_type: u32,
        /// What kind of disk.
        characteristics: Characteristics,
    }
}

bitflags! {
    /// The capabilities of a file system, [MS-FSCC] 2.5.1.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct FileSystemAttributes: u32 {
        /// FILE_CASE_SENSITIVE_SEARCH
        const CASE_SENSITIVE_SEARCH = 0x0000_0001;
        /// FILE_CASE_PRESERVED_NAMES
        const CASE_PRESERVED_NAMES = 0x0000_0002;
        /// FILE_UNICODE_ON_DISK
        const UNICODE_ON_DISK = 0x0000_0004;
        /// FILE_PERSISTENT_ACLS
        const PERSISTENT_ACLS = 0x0000_0008;
        /// FILE_FILE_COMPRESSION
        const FILE_COMPRESSION = 0x0000_0010;
        /// FILE_VOLUME_QUOTAS
        const VOLUME_QUOTAS = 0x0000_0020;
        /// FILE_SUPPORTS_SPARSE_FILES
        const SUPPORTS_SPARSE_FILES = 0x0000_0040;
        /// FILE_SUPPORTS_REPARSE_POINTS
        const SUPPORTS_REPARSE_POINTS = 0x0000_0080;
        /// FILE_SUPPORTS_REMOTE_STORAGE
        const SUPPORTS_REMOTE_STORAGE = 0x0000_0100;
        /// FILE_RETURNS_CLEANUP_RESULT_INFO
        const RETURNS_CLEANUP_RESULT_INFO = 0x0000_0200;
        /// FILE_SUPPORTS_POSIX_UNLINK_RENAME
        const SUPPORTS_POSIX_UNLINK_RENAME = 0x0000_0400;
        /// FILE_VOLUME_IS_COMPRESSED
        const VOLUME_IS_COMPRESSED = 0x0000_8000;
        /// FILE_SUPPORTS_OBJECT_IDS
        const SUPPORTS_OBJECT_IDS = 0x0001_0000;
        /// FILE_SUPPORTS_ENCRYPTION
        const SUPPORTS_ENCRYPTION = 0x0002_0000;
        /// FILE_NAMED_STREAMS
        const NAMED_STREAMS = 0x0004_0000;
        /// FILE_READ_ONLY_VOLUME
        const READ_ONLY_VOLUME = 0x0008_0000;
        /// FILE_SEQUENTIAL_WRITE_ONCE
        const SEQUENTIAL_WRITE_ONCE = 0x0010_0000;
        /// FILE_SUPPORTS_TRANSACTIONS
        const SUPPORTS_TRANSACTIONS = 0x0020_0000;
        /// FILE_SUPPORTS_HARD_LINKS
        const SUPPORTS_HARD_LINKS = 0x0040_0000;
        /// FILE_SUPPORTS_EXTENDED_ATTRIBUTES
        const SUPPORTS_EXTENDED_ATTRIBUTES = 0x0080_0000;
        /// FILE_SUPPORTS_OPEN_BY_FILE_ID
        const SUPPORTS_OPEN_BY_FILE_ID = 0x0100_0000;
        /// FILE_SUPPORTS_USN_JOURNAL
        const SUPPORTS_USN_JOURNAL = 0x0200_0000;
        /// FILE_SUPPORT_INTEGRITY_STREAMS
        const SUPPORTS_INTEGRITY_STREAMS = 0x0400_0000;
        /// FILE_SUPPORTS_BLOCK_REFCOUNTING
        const SUPPORTS_BLOCK_REFCOUNTING = 0x0800_0000;
        /// FILE_SUPPORTS_SPARSE_VDL
        const SUPPORTS_SPARSE_VDL = 0x1000_0000;
        const _ = !0;
    }
}

/// FileFsAttributeInformation
#[doc(alias = "FileFsAttributeInformation")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The capabilities of the file system.
    pub file_system_attributes: FileSystemAttributes,
    /// The most characters of a name between two backslashes.
    pub maximum_component_name_length: u32,
    /// The name of the file system. Clients check for `NTFS`.
    pub file_system_name: Utf16<'a>,
}

impl<'a> Attribute<'a> {
    /// Bytes without the name.
    pub const FIXED_LEN: usize = 12;

    /// Decodes the structure.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Utf16`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let file_system_attributes = FileSystemAttributes::from_bits_retain(r.u32()?);
        let maximum_component_name_length = r.u32()?;
        let length = r.len32()?;
        let file_system_name = Utf16::from_wire(r.bytes(length)?)?;
        Ok(Self { file_system_attributes, maximum_component_name_length, file_system_name })
    }

    /// Appends the structure.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u32(self.file_system_attributes.bits());
        out.put_u32(self.maximum_component_name_length);
        out.put_u32(len_u32(self.file_system_name.byte_len(), "FileSystemName")?);
        self.file_system_name.encode_into(out);
        Ok(())
    }
}

fixed_struct! {
    /// FileFsControlInformation: quotas of the volume.
    #[doc(alias = "FileFsControlInformation")]
    pub struct Control[48] {
        /// Not used; 0.
        free_space_start_filtering: u64,
        /// Not used; 0.
        free_space_threshold: u64,
        /// Not used; 0.
        free_space_stop_filtering: u64,
        /// Bytes at which a user is warned; `u64::MAX` for no warning.
        default_quota_threshold: u64,
        /// The most bytes of a user; `u64::MAX` for no limit.
        default_quota_limit: u64,
        /// FILE_VC_*; 0 without quotas.
        file_system_control_flags: u32,
    }
}

fixed_struct! {
    /// FileFsObjectIdInformation
    #[doc(alias = "FileFsObjectIdInformation")]
    pub struct ObjectId[64] {
        /// Identifies the volume.
        object_id: Guid,
        /// Additional data of the file system.
        extended_info: [u8; 48],
    }
}

bitflags! {
    /// `Flags` of FileFsSectorSizeInformation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SectorSizeFlags: u32 {
        /// SSINFO_FLAGS_ALIGNED_DEVICE
        const ALIGNED_DEVICE = 0x0000_0001;
        /// SSINFO_FLAGS_PARTITION_ALIGNED_ON_DEVICE
        const PARTITION_ALIGNED_ON_DEVICE = 0x0000_0002;
        /// SSINFO_FLAGS_NO_SEEK_PENALTY
        const NO_SEEK_PENALTY = 0x0000_0004;
        /// SSINFO_FLAGS_TRIM_ENABLED
        const TRIM_ENABLED = 0x0000_0008;
        const _ = !0;
    }
}

fixed_struct! {
    /// FileFsSectorSizeInformation; all in bytes.
    #[doc(alias = "FileFsSectorSizeInformation")]
    pub struct SectorSize[28] {
        /// `LogicalBytesPerSector`
        logical_bytes_per_sector: u32,
        /// `PhysicalBytesPerSectorForAtomicity`
        physical_bytes_per_sector_for_atomicity: u32,
        /// `PhysicalBytesPerSectorForPerformance`
        physical_bytes_per_sector_for_performance: u32,
        /// `FileSystemEffectivePhysicalBytesPerSectorForAtomicity`
        effective_physical_bytes_per_sector_for_atomicity: u32,
        /// Properties of the device.
        flags: SectorSizeFlags,
        /// `ByteOffsetForSectorAlignment`
        byte_offset_for_sector_alignment: u32,
        /// `ByteOffsetForPartitionAlignment`
        byte_offset_for_partition_alignment: u32,
    }
}

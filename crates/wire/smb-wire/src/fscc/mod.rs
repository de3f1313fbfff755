//! [MS-FSCC]: the structures inside QUERY_INFO, SET_INFO, QUERY_DIRECTORY, IOCTL and CHANGE_NOTIFY buffers.

use bitflags::bitflags;

pub mod directory_info;
pub mod ea;
pub mod file_info;
pub mod fs_info;
pub mod fsctl;
pub mod next_entry;
pub mod notify;
pub mod quota;
pub mod reparse;

bitflags! {
    /// File attributes, [MS-FSCC] 2.6.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct FileAttributes: u32 {
        /// FILE_ATTRIBUTE_READONLY
        const READONLY = 0x0000_0001;
        /// FILE_ATTRIBUTE_HIDDEN
        const HIDDEN = 0x0000_0002;
        /// FILE_ATTRIBUTE_SYSTEM
        const SYSTEM = 0x0000_0004;
        /// FILE_ATTRIBUTE_DIRECTORY
        const DIRECTORY = 0x0000_0010;
        /// FILE_ATTRIBUTE_ARCHIVE
        const ARCHIVE = 0x0000_0020;
        /// FILE_ATTRIBUTE_NORMAL: no other attribute is set.
        const NORMAL = 0x0000_0080;
        /// FILE_ATTRIBUTE_TEMPORARY
        const TEMPORARY = 0x0000_0100;
        /// FILE_ATTRIBUTE_SPARSE_FILE
        const SPARSE_FILE = 0x0000_0200;
        /// FILE_ATTRIBUTE_REPARSE_POINT
        const REPARSE_POINT = 0x0000_0400;
        /// FILE_ATTRIBUTE_COMPRESSED
        const COMPRESSED = 0x0000_0800;
        /// FILE_ATTRIBUTE_OFFLINE
        const OFFLINE = 0x0000_1000;
        /// FILE_ATTRIBUTE_NOT_CONTENT_INDEXED
        const NOT_CONTENT_INDEXED = 0x0000_2000;
        /// FILE_ATTRIBUTE_ENCRYPTED
        const ENCRYPTED = 0x0000_4000;
        /// FILE_ATTRIBUTE_INTEGRITY_STREAM
        const INTEGRITY_STREAM = 0x0000_8000;
        /// FILE_ATTRIBUTE_NO_SCRUB_DATA
        const NO_SCRUB_DATA = 0x0002_0000;
        /// FILE_ATTRIBUTE_RECALL_ON_OPEN
        const RECALL_ON_OPEN = 0x0004_0000;
        /// FILE_ATTRIBUTE_PINNED
        const PINNED = 0x0008_0000;
        /// FILE_ATTRIBUTE_UNPINNED
        const UNPINNED = 0x0010_0000;
        /// FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS
        const RECALL_ON_DATA_ACCESS = 0x0040_0000;
        const _ = !0;
    }
}

wire_enum! {
    /// File information classes, [MS-FSCC] 2.4.
    pub enum FileInfoClass: u8 {
        /// FileDirectoryInformation
        Directory = 1,
        /// FileFullDirectoryInformation
        FullDirectory = 2,
        /// FileBothDirectoryInformation
        BothDirectory = 3,
        /// FileBasicInformation
        Basic = 4,
        /// FileStandardInformation
        Standard = 5,
        /// FileInternalInformation
        Internal = 6,
        /// FileEaInformation
        Ea = 7,
        /// FileAccessInformation
        Access = 8,
        /// FileNameInformation
        Name = 9,
        /// FileRenameInformation
        Rename = 10,
        /// FileLinkInformation
        Link = 11,
        /// FileNamesInformation
        Names = 12,
        /// FileDispositionInformation
        Disposition = 13,
        /// FilePositionInformation
        Position = 14,
        /// FileFullEaInformation
        FullEa = 15,
        /// FileModeInformation
        Mode = 16,
        /// FileAlignmentInformation
        Alignment = 17,
        /// FileAllInformation
        All = 18,
        /// FileAllocationInformation
        Allocation = 19,
        /// FileEndOfFileInformation
        EndOfFile = 20,
        /// FileAlternateNameInformation
        AlternateName = 21,
        /// FileStreamInformation
        Stream = 22,
        /// FilePipeInformation
        Pipe = 23,
        /// FilePipeLocalInformation
        PipeLocal = 24,
        /// FilePipeRemoteInformation
        PipeRemote = 25,
        /// FileCompressionInformation
        Compression = 28,
        /// FileObjectIdInformation
        ObjectId = 29,
        /// FileQuotaInformation
        Quota = 32,
        /// FileReparsePointInformation
        ReparsePoint = 33,
        /// FileNetworkOpenInformation
        NetworkOpen = 34,
        /// FileAttributeTagInformation
        AttributeTag = 35,
        /// FileIdBothDirectoryInformation
        IdBothDirectory = 37,
        /// FileIdFullDirectoryInformation
        IdFullDirectory = 38,
        /// FileValidDataLengthInformation
        ValidDataLength = 39,
        /// FileShortNameInformation
        ShortName = 40,
        /// FileHardLinkInformation
        HardLink = 46,
        /// FileNormalizedNameInformation
        NormalizedName = 48,
        /// FileStandardLinkInformation
        StandardLink = 54,
        /// FileIdInformation
        Id = 59,
        /// FileIdExtdDirectoryInformation
        IdExtdDirectory = 60,
        /// FileIdExtdBothDirectoryInformation, from the Windows headers
        IdExtdBothDirectory = 63,
        /// FileDispositionInformationEx
        DispositionEx = 64,
        /// FileRenameInformationEx
        RenameEx = 65,
        /// FileLinkInformationEx, from the Windows headers
        LinkEx = 72,
        /// FileId64ExtdDirectoryInformation
        Id64ExtdDirectory = 78,
        /// FileId64ExtdBothDirectoryInformation
        Id64ExtdBothDirectory = 79,
        /// FileIdAllExtdDirectoryInformation
        IdAllExtdDirectory = 80,
        /// FileIdAllExtdBothDirectoryInformation
        IdAllExtdBothDirectory = 81,
    }
}

wire_enum! {
    /// File system information classes, [MS-FSCC] 2.5.
    pub enum FsInfoClass: u8 {
        /// FileFsVolumeInformation
        Volume = 1,
        /// FileFsLabelInformation
        Label = 2,
        /// FileFsSizeInformation
        Size = 3,
        /// FileFsDeviceInformation
        Device = 4,
        /// FileFsAttributeInformation
        Attribute = 5,
        /// FileFsControlInformation
        Control = 6,
        /// FileFsFullSizeInformation
        FullSize = 7,
        /// FileFsObjectIdInformation
        ObjectId = 8,
        /// FileFsDriverPathInformation
        DriverPath = 9,
        /// FileFsVolumeFlagsInformation
        VolumeFlags = 10,
        /// FileFsSectorSizeInformation
        SectorSize = 11,
    }
}

flags_field!(FileAttributes);

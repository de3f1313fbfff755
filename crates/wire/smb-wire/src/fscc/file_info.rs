//! File information classes, [MS-FSCC] 2.4. The directory classes are in [`super::directory_info`], extended
//! attributes in [`super::ea`].

use bitflags::bitflags;

use super::FileAttributes;
use super::next_entry::{DoesNotFit, Entries, EntryWriter};
use crate::codec::{Field, Put, Reader, Utf16, WireError, len_u32};
use crate::create::AccessMask;
use crate::dtyp::FileTime;

flags_field!(AccessMask, DispositionFlags);

fixed_struct! {
    /// FileBasicInformation: times and attributes. In a SET_INFO, times and attributes that are 0 are left unchanged;
    /// see [`FileTime::SUSPEND_UPDATES`] and [`FileTime::RESUME_UPDATES`] for other special values.
    #[doc(alias = "FileBasicInformation")]
    pub struct Basic[40] {
        /// When the file was created.
        creation_time: FileTime,
        /// When the data was last read.
        last_access_time: FileTime,
        /// When the data was last written.
        last_write_time: FileTime,
        /// When data or attributes were last changed.
        change_time: FileTime,
        /// The file's attributes.
        file_attributes: FileAttributes,
    }
}

fixed_struct! {
    /// FileStandardInformation
    #[doc(alias = "FileStandardInformation")]
    pub struct Standard[24] {
        /// Bytes allocated on disk.
        allocation_size: u64,
        /// Size of the file in bytes.
        end_of_file: u64,
        /// The number of hard links.
        number_of_links: u32,
        /// Whether the file is deleted when its last open closes.
        delete_pending: bool,
        /// Whether the file is a directory.
        directory: bool,
    }
}

fixed_struct! {
    /// FileInternalInformation
    #[doc(alias = "FileInternalInformation")]
    pub struct Internal[8] {
        /// Identifies the file in its volume.
        index_number: u64,
    }
}

fixed_struct! {
    /// FileEaInformation
    #[doc(alias = "FileEaInformation")]
    pub struct Ea[4] {
        /// Bytes of the extended attributes.
        ea_size: u32,
    }
}

fixed_struct! {
    /// FileAccessInformation
    #[doc(alias = "FileAccessInformation")]
    pub struct Access[4] {
        /// The access of the open.
        access_flags: AccessMask,
    }
}

fixed_struct! {
    /// FilePositionInformation
    #[doc(alias = "FilePositionInformation")]
    pub struct Position[8] {
        /// The position of the open.
        current_byte_offset: u64,
    }
}

fixed_struct! {
    /// FileModeInformation
    #[doc(alias = "FileModeInformation")]
    pub struct Mode[4] {
        /// Bits of [`crate::create::CreateOptions`]: write-through, sequential, unbuffered, synchronous,
        /// delete on close.
        mode: u32,
    }
}

fixed_struct! {
    /// FileAlignmentInformation
    #[doc(alias = "FileAlignmentInformation")]
    pub struct Alignment[4] {
        /// The alignment that the device requires, minus one; 0 for bytes.
        alignment_requirement: u32,
    }
}

fixed_struct! {
    /// FileNetworkOpenInformation
    #[doc(alias = "FileNetworkOpenInformation")]
    pub struct NetworkOpen[56] {
        /// When the file was created.
        creation_time: FileTime,
        /// When the data was last read.
        last_access_time: FileTime,
        /// When the data was last written.
        last_write_time: FileTime,
        /// When data or attributes were last changed.
        change_time: FileTime,
        /// Bytes allocated on disk.
        allocation_size: u64,
        /// Size of the file in bytes.
        end_of_file: u64,
        /// The file's attributes.
        file_attributes: FileAttributes,
    }
}

fixed_struct! {
    /// FileAttributeTagInformation
    #[doc(alias = "FileAttributeTagInformation")]
    pub struct AttributeTag[8] {
        /// The file's attributes.
        file_attributes: FileAttributes,
        /// The reparse tag, or 0.
        reparse_tag: u32,
    }
}

fixed_struct! {
    /// FileCompressionInformation
    #[doc(alias = "FileCompressionInformation")]
    pub struct Compression[16] {
        /// Bytes of the compressed file.
        compressed_file_size: u64,
        /// 0 for none, 2 for LZNT1.
        compression_format: u16,
        /// Log2 of the number of bytes that are compressed together.
        compression_unit_shift: u8,
        /// Log2 of the bytes of a chunk.
        chunk_shift: u8,
        /// Log2 of the bytes of a cluster.
        cluster_shift: u8,
    }
}

fixed_struct! {
    /// FileIdInformation
    #[doc(alias = "FileIdInformation")]
    pub struct Id[24] {
        /// Identifies the volume.
        volume_serial_number: u64,
        /// Identifies the file in its volume.
        file_id: u128,
    }
}

fixed_struct! {
    /// FileStandardLinkInformation
    #[doc(alias = "FileStandardLinkInformation")]
    pub struct StandardLink[12] {
        /// Hard links that are not about to be deleted.
        number_of_accessible_links: u32,
        /// All hard links.
        total_number_of_links: u32,
        /// Whether the file is deleted when its last open closes.
        delete_pending: bool,
        /// Whether the file is a directory.
        directory: bool,
    }
}

fixed_struct! {
    /// FilePipeInformation
    #[doc(alias = "FilePipeInformation")]
    pub struct Pipe[8] {
        /// 0 byte stream, 1 messages.
        read_mode: u32,
        /// 0 waits, 1 does not.
        completion_mode: u32,
    }
}

fixed_struct! {
    /// FilePipeLocalInformation
    #[doc(alias = "FilePipeLocalInformation")]
    pub struct PipeLocal[40] {
        /// 0 byte stream, 1 messages.
        named_pipe_type: u32,
        /// 0 inbound, 1 outbound, 2 both.
        named_pipe_configuration: u32,
        /// The most instances; `u32::MAX` for no limit.
        maximum_instances: u32,
        /// Instances.
        current_instances: u32,
        /// Bytes of the inbound buffer.
        inbound_quota: u32,
        /// Bytes to be read.
        read_data_available: u32,
        /// Bytes of the outbound buffer.
        outbound_quota: u32,
        /// Bytes that can be written.
        write_quota_available: u32,
        /// 1 disconnected, 2 listening, 3 connected, 4 closing.
        named_pipe_state: u32,
        /// 0 client, 1 server.
        named_pipe_end: u32,
    }
}

fixed_struct! {
    /// FileEndOfFileInformation: truncate or extend.
    #[doc(alias = "FileEndOfFileInformation")]
    pub struct EndOfFile[8] {
        /// Size of the file in bytes.
        end_of_file: u64,
    }
}

fixed_struct! {
    /// FileAllocationInformation
    #[doc(alias = "FileAllocationInformation")]
    pub struct Allocation[8] {
        /// Bytes allocated on disk.
        allocation_size: u64,
    }
}

fixed_struct! {
    /// FileValidDataLengthInformation
    #[doc(alias = "FileValidDataLengthInformation")]
    pub struct ValidDataLength[8] {
        /// Bytes that count as written (the valid data length).
        valid_data_length: u64,
    }
}

fixed_struct! {
    /// FileDispositionInformation
    #[doc(alias = "FileDispositionInformation")]
    pub struct Disposition[1] {
        /// Whether the file is to be deleted when its last open closes.
        delete_pending: bool,
    }
}

bitflags! {
    /// `Flags` of FileDispositionInformationEx.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct DispositionFlags: u32 {
        /// FILE_DISPOSITION_DELETE
        const DELETE = 0x0000_0001;
        /// FILE_DISPOSITION_POSIX_SEMANTICS: remove the name at once.
        const POSIX_SEMANTICS = 0x0000_0002;
        /// FILE_DISPOSITION_FORCE_IMAGE_SECTION_CHECK
        const FORCE_IMAGE_SECTION_CHECK = 0x0000_0004;
        /// FILE_DISPOSITION_ON_CLOSE
        const ON_CLOSE = 0x0000_0008;
        /// FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE
        const IGNORE_READONLY_ATTRIBUTE = 0x0000_0010;
        const _ = !0;
    }
}

fixed_struct! {
    /// FileDispositionInformationEx
    #[doc(alias = "FileDispositionInformationEx")]
    pub struct DispositionEx[4] {
        /// How to delete.
        flags: DispositionFlags,
    }
}

/// A name that follows its length: FileNameInformation, FileAlternateNameInformation, FileNormalizedNameInformation.
#[doc(alias = "FileNameInformation")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// The name.
    pub name: Utf16<'a>,
}

impl<'a> Name<'a> {
    /// Bytes without the name.
    pub const FIXED_LEN: usize = 4;

    /// Decodes the structure.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Utf16`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let length = r.len32()?;
        Ok(Self { name: Utf16::from_wire(r.bytes(length)?)? })
    }

    /// Appends the structure.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u32(len_u32(self.name.byte_len(), "FileName")?);
        self.name.encode_into(out);
        Ok(())
    }
}

/// FileAllInformation
#[doc(alias = "FileAllInformation")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct All<'a> {
    /// FileBasicInformation
    pub basic: Basic,
    /// FileStandardInformation
    pub standard: Standard,
    /// FileInternalInformation
    pub internal: Internal,
    /// FileEaInformation
    pub ea: Ea,
    /// FileAccessInformation
    pub access: Access,
    /// FilePositionInformation
    pub position: Position,
    /// FileModeInformation
    pub mode: Mode,
    /// FileAlignmentInformation
    pub alignment: Alignment,
    /// FileNameInformation
    pub name: Name<'a>,
}

impl<'a> All<'a> {
    /// Bytes without the name.
    pub const FIXED_LEN: usize = 100;

    /// Decodes the structure.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Utf16`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        Ok(Self {
            basic: Field::read(&mut r)?,
            standard: Field::read(&mut r)?,
            internal: Field::read(&mut r)?,
            ea: Field::read(&mut r)?,
            access: Field::read(&mut r)?,
            position: Field::read(&mut r)?,
            mode: Field::read(&mut r)?,
            alignment: Field::read(&mut r)?,
            name: Name::decode(r.rest())?,
        })
    }

    /// Appends the structure.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        self.basic.encode_into(out);
        self.standard.encode_into(out);
        self.internal.encode_into(out);
        self.ea.encode_into(out);
        self.access.encode_into(out);
        self.position.encode_into(out);
        self.mode.encode_into(out);
        self.alignment.encode_into(out);
        self.name.encode_into(out)
    }
}

/// A stream of FileStreamInformation.
#[doc(alias = "FileStreamInformation")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream<'a> {
    /// Bytes of the stream.
    pub stream_size: u64,
    /// Bytes allocated on disk.
    pub stream_allocation_size: u64,
    /// `:name:$DATA`; `::$DATA` for the file itself.
    pub name: Utf16<'a>,
}

/// Starts a list of streams of at most `limit` bytes at the end of `out`. Entries are aligned to 8 bytes.
pub const fn stream_writer(out: &mut Vec<u8>, limit: usize) -> EntryWriter<'_> {
    EntryWriter::new(out, limit, 8)
}

impl<'a> Stream<'a> {
    /// Appends the stream to a list.
    ///
    /// # Errors
    /// [`DoesNotFit`]; the server then answers STATUS_BUFFER_OVERFLOW.
    pub fn push(&self, list: &mut EntryWriter<'_>) -> Result<(), DoesNotFit> {
        let name_length = u32::try_from(self.name.byte_len()).map_err(|_| DoesNotFit)?;
        list.push(|out| {
            out.put_u32(name_length);
            out.put_u64(self.stream_size);
            out.put_u64(self.stream_allocation_size);
            self.name.encode_into(out);
        })
    }

    /// The streams of a list.
    pub fn list(list: &'a [u8]) -> impl Iterator<Item = Result<Self, WireError>> {
        Entries::new(list).map(|entry| {
            let mut r = Reader::new(entry?);
            r.skip(4)?;
            let length = r.len32()?;
            let (stream_size, stream_allocation_size) = (r.u64()?, r.u64()?);
            Ok(Self { stream_size, stream_allocation_size, name: Utf16::from_wire(r.bytes(length)?)? })
        })
    }
}

bitflags! {
    /// `Flags` of FileRenameInformationEx and FileLinkInformationEx.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct RenameFlags: u32 {
        /// Replace an object with the new name. FileRenameInformation and FileLinkInformation have only this flag, as
        /// `ReplaceIfExists`.
        const REPLACE_IF_EXISTS = 0x0000_0001;
        /// Remove the name of the replaced file at once.
        const POSIX_SEMANTICS = 0x0000_0002;
        /// Do not inherit the pin state of the new directory.
        const SUPPRESS_PIN_STATE_INHERITANCE = 0x0000_0004;
        /// Also replace a read-only file.
        const IGNORE_READONLY_ATTRIBUTE = 0x0000_0040;
        const _ = !0;
    }
}

/// A new name: FileRenameInformation and FileLinkInformation of SMB2, and their Ex forms.
#[doc(alias = "FileRenameInformation")]
#[doc(alias = "FileLinkInformation")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rename<'a> {
    /// How to rename or link.
    pub flags: RenameFlags,
    /// Always 0 over the network.
    pub root_directory: u64,
    /// The path from the root of the share, or `:stream` to rename a stream.
    pub name: Utf16<'a>,
}

impl<'a> Rename<'a> {
    /// Bytes without the name.
    pub const FIXED_LEN: usize = 20;

    /// Decodes FileRenameInformation or FileLinkInformation.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Utf16`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (replace, rest) = bytes.split_first().ok_or(WireError::Truncated)?;
        let flags = if *replace == 0 { RenameFlags::empty() } else { RenameFlags::REPLACE_IF_EXISTS };
        Self::decode_rest(flags, rest.get(7..).ok_or(WireError::Truncated)?)
    }

    /// Decodes FileRenameInformationEx or FileLinkInformationEx.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Utf16`].
    pub fn decode_ex(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let flags = RenameFlags::from_bits_retain(r.u32()?);
        r.skip(4)?;
        Self::decode_rest(flags, r.rest())
    }

    fn decode_rest(flags: RenameFlags, bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let root_directory = r.u64()?;
        let length = r.len32()?;
        Ok(Self { flags, root_directory, name: Utf16::from_wire(r.bytes(length)?)? })
    }

    /// Appends FileRenameInformation or FileLinkInformation.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u64(self.flags.contains(RenameFlags::REPLACE_IF_EXISTS).into());
        self.encode_rest(out)
    }

    /// Appends FileRenameInformationEx or FileLinkInformationEx.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_ex_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u64(self.flags.bits().into());
        self.encode_rest(out)
    }

    fn encode_rest(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u64(self.root_directory);
        out.put_u32(len_u32(self.name.byte_len(), "FileName")?);
        self.name.encode_into(out);
        Ok(())
    }
}

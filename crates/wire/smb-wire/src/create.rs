//! CREATE, [MS-SMB2] 2.2.13 and 2.2.14. The access masks of all messages (2.2.13.1) are those of [MS-DTYP] 2.4.3.

pub use acl::AccessMask;
use bitflags::bitflags;

use crate::codec::{Put, Reader, Utf16, WireError, aligned, len_u16, len_u32, put_zeros, variable};
use crate::create_context::{RequestContext, ResponseContext};
use crate::dtyp::{FileId, FileTime};
use crate::fscc::FileAttributes;

wire_enum! {
    /// What a client may cache.
    pub enum OplockLevel: u8 {
        /// Nothing.
        None = 0x00,
        /// Reads.
        LevelII = 0x01,
        /// Reads and writes.
        Exclusive = 0x08,
        /// Reads, writes and the open itself.
        Batch = 0x09,
        /// A lease context specifies it.
        Lease = 0xFF,
    }
}

wire_enum! {
    /// How far the server may act as the user.
    pub enum ImpersonationLevel: u32 {
        /// Anonymous
        Anonymous = 0x0000_0000,
        /// Identification
        Identification = 0x0000_0001,
        /// Impersonation
        Impersonation = 0x0000_0002,
        /// Delegate
        Delegate = 0x0000_0003,
    }
}

wire_enum! {
    /// What to do when the file exists, and when it does not.
    pub enum CreateDisposition: u32 {
        /// Replace it, or create it.
        Supersede = 0x0000_0000,
        /// Open it, or fail.
        Open = 0x0000_0001,
        /// Fail, or create it.
        Create = 0x0000_0002,
        /// Open it, or create it.
        OpenIf = 0x0000_0003,
        /// Overwrite it, or fail.
        Overwrite = 0x0000_0004,
        /// Overwrite it, or create it.
        OverwriteIf = 0x0000_0005,
    }
}

wire_enum! {
    /// What a CREATE did.
    pub enum CreateAction: u32 {
        /// Replaced an existing file.
        Superseded = 0x0000_0000,
        /// Opened an existing file.
        Opened = 0x0000_0001,
        /// Created a file.
        Created = 0x0000_0002,
        /// Overwrote an existing file.
        Overwritten = 0x0000_0003,
    }
}

bitflags! {
    /// What other opens may do meanwhile.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ShareAccess: u32 {
        /// FILE_SHARE_READ
        const READ = 0x0000_0001;
        /// FILE_SHARE_WRITE
        const WRITE = 0x0000_0002;
        /// FILE_SHARE_DELETE
        const DELETE = 0x0000_0004;
        const _ = !0;
    }
}

bitflags! {
    /// `CreateOptions`
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct CreateOptions: u32 {
        /// FILE_DIRECTORY_FILE: it must be a directory.
        const DIRECTORY_FILE = 0x0000_0001;
        /// FILE_WRITE_THROUGH
        const WRITE_THROUGH = 0x0000_0002;
        /// FILE_SEQUENTIAL_ONLY
        const SEQUENTIAL_ONLY = 0x0000_0004;
        /// FILE_NO_INTERMEDIATE_BUFFERING
        const NO_INTERMEDIATE_BUFFERING = 0x0000_0008;
        /// FILE_SYNCHRONOUS_IO_ALERT
        const SYNCHRONOUS_IO_ALERT = 0x0000_0010;
        /// FILE_SYNCHRONOUS_IO_NONALERT
        const SYNCHRONOUS_IO_NONALERT = 0x0000_0020;
        /// FILE_NON_DIRECTORY_FILE: it must not be a directory.
        const NON_DIRECTORY_FILE = 0x0000_0040;
        /// FILE_COMPLETE_IF_OPLOCKED
        const COMPLETE_IF_OPLOCKED = 0x0000_0100;
        /// FILE_NO_EA_KNOWLEDGE
        const NO_EA_KNOWLEDGE = 0x0000_0200;
        /// FILE_RANDOM_ACCESS
        const RANDOM_ACCESS = 0x0000_0800;
        /// FILE_DELETE_ON_CLOSE
        const DELETE_ON_CLOSE = 0x0000_1000;
        /// FILE_OPEN_BY_FILE_ID
        const OPEN_BY_FILE_ID = 0x0000_2000;
        /// FILE_OPEN_FOR_BACKUP_INTENT
        const OPEN_FOR_BACKUP_INTENT = 0x0000_4000;
        /// FILE_NO_COMPRESSION
        const NO_COMPRESSION = 0x0000_8000;
        /// FILE_OPEN_REMOTE_INSTANCE
        const OPEN_REMOTE_INSTANCE = 0x0000_0400;
        /// FILE_OPEN_REQUIRING_OPLOCK
        const OPEN_REQUIRING_OPLOCK = 0x0001_0000;
        /// FILE_DISALLOW_EXCLUSIVE
        const DISALLOW_EXCLUSIVE = 0x0002_0000;
        /// FILE_RESERVE_OPFILTER
        const RESERVE_OPFILTER = 0x0010_0000;
        /// FILE_OPEN_REPARSE_POINT: open the link itself.
        const OPEN_REPARSE_POINT = 0x0020_0000;
        /// FILE_OPEN_NO_RECALL
        const OPEN_NO_RECALL = 0x0040_0000;
        /// FILE_OPEN_FOR_FREE_SPACE_QUERY
        const OPEN_FOR_FREE_SPACE_QUERY = 0x0080_0000;
        const _ = !0;
    }
}

bitflags! {
    /// `Flags` of the response (SMB 3.x).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ResponseFlags: u8 {
        /// SMB2_CREATE_FLAG_REPARSEPOINT: the last part of the path is a link.
        const REPARSEPOINT = 0x01;
        const _ = !0;
    }
}

const REQUEST_FIXED_END: usize = 64 + 56;

/// A CREATE request.
#[doc(alias = "SMB2_CREATE_REQUEST")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// The caching that the client asks for.
    pub requested_oplock_level: OplockLevel,
    /// How far the server may act as the user.
    pub impersonation_level: ImpersonationLevel,
    /// The access that the client asks for.
    pub desired_access: AccessMask,
    /// Attributes of a new file.
    pub file_attributes: FileAttributes,
    /// What other opens may do meanwhile.
    pub share_access: ShareAccess,
    /// What to do when the file exists, and when it does not.
    pub create_disposition: CreateDisposition,
    /// Further options.
    pub create_options: CreateOptions,
    /// The path from the root of the share, with backslashes, but without a leading one; empty for the root.
    pub name: Utf16<'a>,
    /// The create contexts.
    pub contexts: Vec<RequestContext<'a>>,
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError`] for a malformed body or create context. In both cases [MS-SMB2] 3.3.5.9 requires
    /// STATUS_INVALID_PARAMETER.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<56>(message, 57)?;
        r.skip(1)?;
        let requested_oplock_level = OplockLevel::from(r.u8()?);
        let impersonation_level = ImpersonationLevel::from(r.u32()?);
        r.skip(16)?;
        let desired_access = AccessMask::from_bits_retain(r.u32()?);
        let file_attributes = FileAttributes::from_bits_retain(r.u32()?);
        let share_access = ShareAccess::from_bits_retain(r.u32()?);
        let create_disposition = CreateDisposition::from(r.u32()?);
        let create_options = CreateOptions::from_bits_retain(r.u32()?);
        let (name_offset, name_length) = (r.len16()?, r.len16()?);
        let (contexts_offset, contexts_length) = (r.len32()?, r.len32()?);
        let name = variable(message, REQUEST_FIXED_END, name_offset, name_length, "Name")?;
        let contexts = contexts(message, REQUEST_FIXED_END, contexts_offset, contexts_length)?;
        Ok(Self {
            requested_oplock_level,
            impersonation_level,
            desired_access,
            file_attributes,
            share_access,
            create_disposition,
            create_options,
            name: Utf16::from_wire(name)?,
            contexts: RequestContext::decode_list(contexts)?,
        })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let name_length = self.name.byte_len();
        let name_end = REQUEST_FIXED_END.saturating_add(name_length);
        let contexts = RequestContext::encode_list(&self.contexts)?;
        let contexts_offset = if contexts.is_empty() { 0 } else { aligned(name_end, 8) };
        out.put_u16(57);
        out.put_u8(0);
        out.put_u8(self.requested_oplock_level.into());
        out.put_u32(self.impersonation_level.into());
        put_zeros(out, 16);
        out.put_u32(self.desired_access.bits());
        out.put_u32(self.file_attributes.bits());
        out.put_u32(self.share_access.bits());
        out.put_u32(self.create_disposition.into());
        out.put_u32(self.create_options.bits());
        out.put_u16(len_u16(REQUEST_FIXED_END, "NameOffset")?);
        out.put_u16(len_u16(name_length, "Name")?);
        out.put_u32(len_u32(contexts_offset, "CreateContextsOffset")?);
        out.put_u32(len_u32(contexts.len(), "CreateContexts")?);
        self.name.encode_into(out);
        put_zeros(out, contexts_offset.saturating_sub(name_end));
        out.put(&contexts);
        if self.name.is_empty() && contexts.is_empty() {
            // [MS-SMB2] 2.2.13: "In the request, the Buffer field MUST be at least one byte in length."
            out.put_u8(0);
        }
        Ok(())
    }
}

fn contexts(message: &[u8], fixed_end: usize, offset: usize, length: usize) -> Result<&[u8], WireError> {
    if length != 0 && !offset.is_multiple_of(8) {
        return Err(WireError::Misaligned("CreateContextsOffset"));
    }
    variable(message, fixed_end, offset, length, "CreateContexts")
}

const RESPONSE_FIXED_END: usize = 64 + 88;

/// A CREATE response.
#[doc(alias = "SMB2_CREATE_RESPONSE")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response<'a> {
    /// What the client may cache.
    pub oplock_level: OplockLevel,
    /// Whether the path ends in a link.
    pub flags: ResponseFlags,
    /// The operation that was performed.
    pub create_action: CreateAction,
    /// When the file was created.
    pub creation_time: FileTime,
    /// When the data was last read.
    pub last_access_time: FileTime,
    /// When the data was last written.
    pub last_write_time: FileTime,
    /// When data or attributes were last changed.
    pub change_time: FileTime,
    /// Bytes allocated on disk.
    pub allocation_size: u64,
    /// Size of the file in bytes.
    pub end_of_file: u64,
    /// The file's attributes.
    pub file_attributes: FileAttributes,
    /// The identifier of the open.
    pub file_id: FileId,
    /// Answers to create contexts.
    pub contexts: Vec<ResponseContext<'a>>,
}

impl<'a> Response<'a> {
    /// The response to an open of something that is no file of a store: it has no times, no data and no caching.
    #[must_use]
    pub fn of_no_file(file_id: FileId, allocation_size: u64, file_attributes: FileAttributes) -> Self {
        Self {
            oplock_level: OplockLevel::None,
            flags: ResponseFlags::empty(),
            create_action: CreateAction::Opened,
            creation_time: FileTime::UNSET,
            last_access_time: FileTime::UNSET,
            last_write_time: FileTime::UNSET,
            change_time: FileTime::UNSET,
            allocation_size,
            end_of_file: 0,
            file_attributes,
            file_id,
            contexts: Vec::new(),
        }
    }

    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError`] for a malformed body or create context.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<88>(message, 89)?;
        let oplock_level = OplockLevel::from(r.u8()?);
        let flags = ResponseFlags::from_bits_retain(r.u8()?);
        let create_action = CreateAction::from(r.u32()?);
        let creation_time = FileTime::read(&mut r)?;
        let last_access_time = FileTime::read(&mut r)?;
        let last_write_time = FileTime::read(&mut r)?;
        let change_time = FileTime::read(&mut r)?;
        let (allocation_size, end_of_file) = (r.u64()?, r.u64()?);
        let file_attributes = FileAttributes::from_bits_retain(r.u32()?);
        r.skip(4)?;
        let file_id = FileId::read(&mut r)?;
        let (offset, length) = (r.len32()?, r.len32()?);
        let contexts = contexts(message, RESPONSE_FIXED_END, offset, length)?;
        Ok(Self {
            oplock_level,
            flags,
            create_action,
            creation_time,
            last_access_time,
            last_write_time,
            change_time,
            allocation_size,
            end_of_file,
            file_attributes,
            file_id,
            contexts: ResponseContext::decode_list(contexts)?,
        })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let contexts = ResponseContext::encode_list(&self.contexts)?;
        let contexts_offset = if contexts.is_empty() { 0 } else { RESPONSE_FIXED_END };
        out.put_u16(89);
        out.put_u8(self.oplock_level.into());
        out.put_u8(self.flags.bits());
        out.put_u32(self.create_action.into());
        self.creation_time.put(out);
        self.last_access_time.put(out);
        self.last_write_time.put(out);
        self.change_time.put(out);
        out.put_u64(self.allocation_size);
        out.put_u64(self.end_of_file);
        out.put_u32(self.file_attributes.bits());
        out.put_u32(0);
        self.file_id.put(out);
        out.put_u32(len_u32(contexts_offset, "CreateContextsOffset")?);
        out.put_u32(len_u32(contexts.len(), "CreateContexts")?);
        out.put(&contexts);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: Utf16<'_>) -> Vec<u8> {
        let request = Request {
            requested_oplock_level: OplockLevel::None,
            impersonation_level: ImpersonationLevel::Impersonation,
            desired_access: AccessMask::READ_DATA,
            file_attributes: FileAttributes::empty(),
            share_access: ShareAccess::READ,
            create_disposition: CreateDisposition::Open,
            create_options: CreateOptions::empty(),
            name,
            contexts: vec![RequestContext::QueryOnDiskId],
        };
        let mut message = vec![0; 64];
        request.encode(&mut message).unwrap();
        message
    }

    fn with(message: &[u8], at: usize, bytes: &[u8]) -> Result<usize, WireError> {
        let mut message = message.to_vec();
        message[at..at + bytes.len()].copy_from_slice(bytes);
        Request::decode(&message).map(|request| request.name.byte_len())
    }

    #[test]
    fn offsets_and_lengths_are_checked() {
        let message = request(Utf16::from("ab"));
        assert_eq!(with(&message, 64, &[57]), Ok(4));
        assert_eq!(with(&message, 64, &[56]), Err(WireError::StructureSize { expected: 57, found: 56 }));
        // NameOffset at 108, NameLength at 110, CreateContextsOffset at 112, CreateContextsLength at 116
        assert_eq!(with(&message, 108, &[119, 0]), Err(WireError::OutOfBounds("Name")));
        assert_eq!(with(&message, 110, &[3, 0]), Err(WireError::Utf16));
        assert_eq!(with(&message, 110, &[0xFE, 0xFF]), Err(WireError::OutOfBounds("Name")));
        assert_eq!(with(&message, 112, &[129, 0, 0, 0]), Err(WireError::Misaligned("CreateContextsOffset")));
        assert_eq!(with(&message, 112, &[112, 0, 0, 0]), Err(WireError::OutOfBounds("CreateContexts")));
        assert_eq!(with(&message, 116, &[0xFF; 4]), Err(WireError::OutOfBounds("CreateContexts")));
        assert_eq!(with(&message, 116, &[0; 4]), Ok(4));
    }

    #[test]
    fn what_the_server_judges_is_kept() {
        let message = request(Utf16::EMPTY);
        let mut other = message.clone();
        other[67] = 0x77;
        other[68..72].copy_from_slice(&9_u32.to_le_bytes());
        other[100..104].copy_from_slice(&6_u32.to_le_bytes());
        let request = Request::decode(&other).unwrap();
        assert_eq!(request.requested_oplock_level, OplockLevel::Unknown(0x77));
        assert_eq!(request.impersonation_level, ImpersonationLevel::Unknown(9));
        assert_eq!(request.create_disposition, CreateDisposition::Unknown(6));
    }

    #[test]
    fn the_root_has_an_empty_name_and_a_byte_for_it() {
        let mut message = vec![0; 64];
        let with_context = request(Utf16::EMPTY);
        let request = Request { contexts: Vec::new(), ..Request::decode(&with_context).unwrap() };
        request.encode(&mut message).unwrap();
        assert_eq!(message.len(), 64 + 57);
        assert!(Request::decode(&message).unwrap().name.is_empty());
    }
}

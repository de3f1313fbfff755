//! The requests that operations consist of, as bodies without headers.

use smb_wire::close::{self, CloseFlags};
use smb_wire::create::{
    self, CreateDisposition, CreateOptions, ImpersonationLevel, OplockLevel, ShareAccess,
};
use smb_wire::fscc::FileInfoClass;
use smb_wire::query_directory::{self, QueryDirectoryFlags};
use smb_wire::query_info::{self, InfoType, QueryInfoFlags};
use smb_wire::{AccessMask, Command, FileAttributes, FileId, WireError, read};

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    MakeFile,
    UseFile,
    MakeDirectory,
    ListDirectory,
    DeleteFile,
    DeleteDirectory,
}

const FILE_READ_WRITE: u32 = 0x0012_019F;
const DIRECTORY_LIST: u32 = 0x0012_0089;
const DELETE_AND_SYNCHRONIZE: u32 = 0x0011_0080;

/// A CREATE.
pub(super) fn create(path: &str, purpose: Purpose, out: &mut Vec<u8>) -> Result<Command, WireError> {
    use Purpose::{DeleteDirectory, DeleteFile, ListDirectory, MakeDirectory, MakeFile, UseFile};
    let (access, disposition, options) = match purpose {
        MakeFile => (FILE_READ_WRITE, CreateDisposition::Create, CreateOptions::NON_DIRECTORY_FILE),
        UseFile => (FILE_READ_WRITE, CreateDisposition::Open, CreateOptions::NON_DIRECTORY_FILE),
        MakeDirectory => (DIRECTORY_LIST, CreateDisposition::Create, CreateOptions::DIRECTORY_FILE),
        ListDirectory => (DIRECTORY_LIST, CreateDisposition::Open, CreateOptions::DIRECTORY_FILE),
        DeleteFile => (
            DELETE_AND_SYNCHRONIZE,
            CreateDisposition::Open,
            CreateOptions::NON_DIRECTORY_FILE | CreateOptions::DELETE_ON_CLOSE,
        ),
        DeleteDirectory => (
            DELETE_AND_SYNCHRONIZE,
            CreateDisposition::Open,
            CreateOptions::DIRECTORY_FILE | CreateOptions::DELETE_ON_CLOSE,
        ),
    };
    let request = create::Request {
        requested_oplock_level: OplockLevel::None,
        impersonation_level: ImpersonationLevel::Impersonation,
        desired_access: AccessMask::from_bits_retain(access),
        file_attributes: FileAttributes::NORMAL,
        share_access: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
        create_disposition: disposition,
        create_options: options,
        name: path.into(),
        contexts: Vec::new(),
    };
    request.encode(out)?;
    Ok(Command::Create)
}

/// A CLOSE.
pub(super) fn close(file_id: FileId, out: &mut Vec<u8>) -> Result<Command, WireError> {
    close::Request { flags: CloseFlags::empty(), file_id }.encode(out);
    Ok(Command::Close)
}

/// All names of a directory that go into 64 KiB.
pub(super) fn list(file_id: FileId, out: &mut Vec<u8>) -> Result<Command, WireError> {
    let request = query_directory::Request {
        file_information_class: FileInfoClass::FullDirectory,
        flags: QueryDirectoryFlags::RESTART_SCANS,
        file_index: 0,
        file_id,
        file_name: "*".into(),
        output_buffer_length: 65536,
    };
    request.encode(out)?;
    Ok(Command::QueryDirectory)
}

/// The attributes of an open: FileNetworkOpenInformation ([MS-FSCC] 2.4.34).
pub(super) fn stat(file_id: FileId, out: &mut Vec<u8>) -> Result<Command, WireError> {
    let request = query_info::Request {
        info_type: InfoType::File,
        info_class: FileInfoClass::NetworkOpen.into(),
        output_buffer_length: 56,
        additional_information: 0,
        flags: QueryInfoFlags::empty(),
        file_id,
        input_buffer: &[],
    };
    request.encode(out)?;
    Ok(Command::QueryInfo)
}

/// A READ.
pub(super) fn read(
    file_id: FileId,
    offset: u64,
    length: u32,
    out: &mut Vec<u8>,
) -> Result<Command, WireError> {
    let request = read::Request {
        padding: 0x50,
        flags: read::RequestFlags::empty(),
        length,
        offset,
        file_id,
        minimum_count: 0,
        channel: read::Channel::None,
        remaining_bytes: 0,
        channel_info: &[],
    };
    request.encode(out)?;
    Ok(Command::Read)
}

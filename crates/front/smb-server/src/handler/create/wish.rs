//! The client's wish: a CREATE request that has passed all checks that do not involve the file. [MS-SMB2] 2.2.13,
//! 3.3.5.9.

use share::{Access, Sharing};
use smb_wire::create::{
    CreateDisposition, CreateOptions, ImpersonationLevel, OplockLevel, Request, ShareAccess,
};
use smb_wire::{FileAttributes, NtStatus};
use storage::FileFlags;

use super::access::Desired;
use super::contexts::Asked;
use crate::attributes;
use crate::name::{Path, StreamPart};

/// Options that are not defined.
const OPTIONS_INVALID: u32 = 0xFF00_0000;
/// FILE_CREATE_TREE_CONNECTION, FILE_OPEN_BY_FILE_ID and FILE_RESERVE_OPFILTER: "the server MUST fail the request with
/// STATUS_NOT_SUPPORTED if this bit is set" (2.2.13).
const OPTIONS_NOT_SUPPORTED: u32 = 0x0010_2080;
/// The attributes of [MS-FSCC] 2.6 that a client may give when it creates a file. These exclude volumes, devices, and
/// attributes that only the file system can set.
const ATTRIBUTES_VALID: FileAttributes = FileAttributes::from_bits_retain(0x7FB7);

/// The object that a client wants to open, and how.
pub(super) struct Wish {
    pub(super) path: Path,
    pub(super) desired: Desired,
    pub(super) sharing: Sharing,
    pub(super) disposition: CreateDisposition,
    pub(super) options: CreateOptions,
    /// The flags of the file, if it is created or overwritten.
    pub(super) flags: FileFlags,
    pub(super) oplock_level: OplockLevel,
    pub(super) asked: Asked,
}

impl Wish {
    /// Checks the request.
    ///
    /// # Errors
    /// Those that [MS-SMB2] 3.3.5.9 and [MS-FSA] 2.1.5.1 require for invalid combinations.
    pub(super) fn of(request: &Request<'_>, asked: Asked) -> Result<Self, NtStatus> {
        let path = Path::parse(&request.name)?;
        let desired = Desired::of(request.desired_access)?;
        check_options(request)?;
        check_delete_on_close(request, desired)?;
        if path.names_directory && request.create_options.contains(CreateOptions::NON_DIRECTORY_FILE) {
            return Err(NtStatus::OBJECT_NAME_INVALID);
        }
        check_stream(&path, request.create_options)?;
        Ok(Self {
            path,
            desired,
            sharing: sharing(request.share_access)?,
            disposition: request.create_disposition,
            options: request.create_options,
            flags: attributes::file_flags(request.file_attributes),
            // What never changes needs no grant to be cached.
            oplock_level: if asked.at.is_some() { OplockLevel::None } else { request.requested_oplock_level },
            asked,
        })
    }

    /// The same wish, if the client's paths begin in this directory of the share.
    pub(super) fn below(self, home: Option<&[u8]>) -> Self {
        Self { path: self.path.below(home), ..self }
    }

    /// Whether the object must be new.
    pub(super) fn must_make(&self) -> bool {
        self.disposition == CreateDisposition::Create
    }

    /// Whether an existing object loses its data.
    pub(super) fn overwrites(&self) -> bool {
        matches!(
            self.disposition,
            CreateDisposition::Supersede | CreateDisposition::Overwrite | CreateDisposition::OverwriteIf
        )
    }

    /// Whether only a directory is acceptable.
    pub(super) fn wants_directory(&self) -> bool {
        self.path.names_directory || self.options.contains(CreateOptions::DIRECTORY_FILE)
    }

    pub(super) fn delete_on_close(&self) -> bool {
        self.options.contains(CreateOptions::DELETE_ON_CLOSE)
    }
}

/// Refuses combinations that make no sense. [MS-SMB2] 2.2.13, [MS-FSA] 2.1.5.1 phase 1.
fn check_options(request: &Request<'_>) -> Result<(), NtStatus> {
    let options = request.create_options;
    if options.bits() & OPTIONS_INVALID != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if options.bits() & OPTIONS_NOT_SUPPORTED != 0 {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    let keeps = match request.create_disposition {
        CreateDisposition::Open | CreateDisposition::Create | CreateDisposition::OpenIf => true,
        CreateDisposition::Supersede | CreateDisposition::Overwrite | CreateDisposition::OverwriteIf => false,
        CreateDisposition::Unknown(_) => return Err(NtStatus::INVALID_PARAMETER),
    };
    let directory = options.contains(CreateOptions::DIRECTORY_FILE);
    let temporary = request.file_attributes.contains(FileAttributes::TEMPORARY);
    let senseless = directory && (!keeps || temporary || options.contains(CreateOptions::NON_DIRECTORY_FILE));
    if senseless || !ATTRIBUTES_VALID.contains(request.file_attributes) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    Ok(())
}

/// [MS-SMB2] 3.3.5.9: a request to delete a file must include the right to delete it; [MS-FSA] 2.1.5.1: the file must
/// not be one that cannot be deleted.
fn check_delete_on_close(request: &Request<'_>, desired: Desired) -> Result<(), NtStatus> {
    if !request.create_options.contains(CreateOptions::DELETE_ON_CLOSE) {
        return Ok(());
    }
    if !desired.includes(Access::DELETE) {
        return Err(NtStatus::ACCESS_DENIED);
    }
    let makes = request.create_disposition != CreateDisposition::Open;
    if makes && request.file_attributes.contains(FileAttributes::READONLY) {
        return Err(NtStatus::CANNOT_DELETE);
    }
    Ok(())
}

/// [MS-FSA] 2.1.5.1 phase 7: a data stream is not a directory.
fn check_stream(path: &Path, options: CreateOptions) -> Result<(), NtStatus> {
    let is_data = matches!(path.stream, StreamPart::Data | StreamPart::Named(_));
    if is_data && options.contains(CreateOptions::DIRECTORY_FILE) {
        return Err(NtStatus::NOT_A_DIRECTORY);
    }
    Ok(())
}

fn sharing(access: ShareAccess) -> Result<Sharing, NtStatus> {
    let bits = u8::try_from(access.bits()).ok();
    bits.and_then(Sharing::from_bits).ok_or(NtStatus::INVALID_PARAMETER)
}

/// [MS-SMB2] 3.3.5.9: checks that the impersonation level is defined.
///
/// # Errors
/// STATUS_BAD_IMPERSONATION_LEVEL.
pub(super) fn check_impersonation(request: &Request<'_>) -> Result<(), NtStatus> {
    match request.impersonation_level {
        ImpersonationLevel::Unknown(_) => Err(NtStatus::BAD_IMPERSONATION_LEVEL),
        _ => Ok(()),
    }
}

//! Persistent opens of one file, as an SMB client asks for them. [MS-SMB2] 3.2.4.3, 3.2.4.4

use smb_wire::create::{
    CreateDisposition, CreateOptions, ImpersonationLevel, OplockLevel, Request, Response, ShareAccess,
};
use smb_wire::create_context::{DurableFlags, RequestContext, ResponseContext};
use smb_wire::lock::{LockElement, LockFlags};
use smb_wire::{AccessMask, Command, FileAttributes, FileId, Guid, NtStatus, header, lock};

use crate::raw::Client;

const CREATE: Guid = Guid([0x11; 16]);
pub(crate) const EXCLUSIVE: LockFlags = LockFlags::EXCLUSIVE_LOCK.union(LockFlags::FAIL_IMMEDIATELY);

/// Opens `f`, or makes it: its identifier, and whether it is persistent.
pub(crate) fn open(
    client: &mut Client,
    contexts: Vec<RequestContext<'static>>,
) -> Result<(FileId, bool), NtStatus> {
    let request = Request {
        requested_oplock_level: OplockLevel::None,
        impersonation_level: ImpersonationLevel::Impersonation,
        desired_access: AccessMask::from_bits_retain(0x0012_019F),
        file_attributes: FileAttributes::NORMAL,
        share_access: ShareAccess::READ | ShareAccess::WRITE,
        create_disposition: CreateDisposition::OpenIf,
        create_options: CreateOptions::empty(),
        name: "f".into(),
        contexts,
    };
    // Offsets and padding count from the header.
    let mut body = vec![0; header::LEN];
    request.encode(&mut body).unwrap();
    let reply = client.call(Command::Create, &body[header::LEN..]).ok()?;
    let response = Response::decode(&reply.message).unwrap();
    let is_persistent = response.contexts.iter().any(|context| {
        matches!(context, ResponseContext::DurableHandleV2 { flags, .. } if flags.contains(DurableFlags::PERSISTENT))
    });
    Ok((response.file_id, is_persistent))
}

pub(crate) fn open_persistent(client: &mut Client) -> FileId {
    let asking = RequestContext::DurableHandleRequestV2 {
        timeout_ms: 0,
        flags: DurableFlags::PERSISTENT,
        create_guid: CREATE,
    };
    let (file, is_persistent) = open(client, vec![asking]).unwrap();
    assert!(is_persistent);
    file
}

pub(crate) fn reclaim(client: &mut Client, file_id: FileId) -> Result<FileId, NtStatus> {
    let flags = DurableFlags::PERSISTENT;
    let asking = RequestContext::DurableHandleReconnectV2 { file_id, create_guid: CREATE, flags };
    open(client, vec![asking]).map(|(file, _)| file)
}

pub(crate) fn lock(client: &mut Client, file_id: FileId, flags: LockFlags) -> NtStatus {
    let locks = vec![LockElement { offset: 0, length: 10, flags }];
    let request = lock::Request { lock_sequence_number: 0, lock_sequence_index: 0, file_id, locks };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    client.call(Command::Lock, &body).status()
}

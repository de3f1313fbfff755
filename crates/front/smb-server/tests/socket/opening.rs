//! CREATE as a test wishes it, and what it gives.

use smb_wire::create::{
    CreateAction, CreateDisposition, CreateOptions, ImpersonationLevel, OplockLevel, Request, Response,
    ShareAccess,
};
use smb_wire::create_context::{RequestContext, ResponseContext};
use smb_wire::{AccessMask, Command, FileAttributes, FileId, NtStatus, header};

use crate::client::Client;

pub(crate) const SHARE_ALL: ShareAccess =
    ShareAccess::READ.union(ShareAccess::WRITE).union(ShareAccess::DELETE);
pub(crate) const ALL: AccessMask = AccessMask::from_bits_retain(0x001F_01FF);

/// A CREATE; the default opens what is there, to do anything, and shares everything.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) impersonation: ImpersonationLevel,
    pub(crate) access: AccessMask,
    pub(crate) attributes: FileAttributes,
    pub(crate) sharing: ShareAccess,
    pub(crate) disposition: CreateDisposition,
    pub(crate) options: CreateOptions,
    pub(crate) contexts: Vec<RequestContext<'static>>,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            impersonation: ImpersonationLevel::Impersonation,
            access: ALL,
            attributes: FileAttributes::NORMAL,
            sharing: SHARE_ALL,
            disposition: CreateDisposition::Open,
            options: CreateOptions::empty(),
            contexts: Vec::new(),
        }
    }
}

/// What a CREATE has given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) id: FileId,
    pub(crate) action: CreateAction,
    pub(crate) attributes: FileAttributes,
    pub(crate) end_of_file: u64,
    pub(crate) allocation_size: u64,
    pub(crate) maximal_access: Option<(NtStatus, AccessMask)>,
    pub(crate) on_disk_id: Option<(u64, u64)>,
}

impl Opening {
    /// Opens with this disposition.
    pub(crate) fn with(disposition: CreateDisposition) -> Self {
        Self { disposition, ..Self::default() }
    }

    /// Makes a directory.
    pub(crate) fn directory() -> Self {
        Self { options: CreateOptions::DIRECTORY_FILE, ..Self::with(CreateDisposition::Create) }
    }

    pub(crate) fn body(&self, name: &str) -> Vec<u8> {
        let request = Request {
            requested_oplock_level: OplockLevel::None,
            impersonation_level: self.impersonation,
            desired_access: self.access,
            file_attributes: self.attributes,
            share_access: self.sharing,
            create_disposition: self.disposition,
            create_options: self.options,
            name: name.into(),
            contexts: self.contexts.clone(),
        };
        // Offsets and padding count from the header.
        let mut out = vec![0; header::LEN];
        request.encode(&mut out).unwrap();
        out.split_off(header::LEN)
    }

    pub(crate) fn send(&self, client: &mut Client, name: &str) -> Result<Opened, NtStatus> {
        let reply = client.call(Command::Create, &self.body(name)).ok()?;
        let response = Response::decode(&reply.message).unwrap();
        let (mut maximal, mut on_disk_id) = (None, None);
        for context in &response.contexts {
            match *context {
                ResponseContext::MaximalAccess { query_status, maximal_access } => {
                    maximal = Some((query_status, maximal_access));
                }
                ResponseContext::OnDiskId { disk_file_id, volume_id } => {
                    on_disk_id = Some((disk_file_id, volume_id));
                }
                _ => panic!("not asked for: {context:?}"),
            }
        }
        Ok(Opened {
            id: response.file_id,
            action: response.create_action,
            attributes: response.file_attributes,
            end_of_file: response.end_of_file,
            allocation_size: response.allocation_size,
            maximal_access: maximal,
            on_disk_id,
        })
    }

    /// Opens and closes again: what was done.
    pub(crate) fn try_out(&self, client: &mut Client, name: &str) -> Result<CreateAction, NtStatus> {
        let opened = self.send(client, name)?;
        client.close(opened.id).unwrap();
        Ok(opened.action)
    }
}

/// Makes a file with this content.
pub(crate) fn make_file(client: &mut Client, name: &str, data: &[u8]) {
    let opened = Opening::with(CreateDisposition::Create).send(client, name).unwrap();
    if !data.is_empty() {
        client.write(opened.id, 0, data).unwrap();
    }
    client.close(opened.id).unwrap();
}

/// Deletes a file or directory.
pub(crate) fn delete(client: &mut Client, name: &str) -> Result<(), NtStatus> {
    let options = CreateOptions::DELETE_ON_CLOSE | CreateOptions::OPEN_REPARSE_POINT;
    let opened = Opening { access: AccessMask::DELETE, options, ..Opening::default() }.send(client, name)?;
    client.close(opened.id)
}

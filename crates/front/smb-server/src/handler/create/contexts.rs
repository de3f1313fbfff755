//! Create contexts: the parts of a CREATE besides its name, and the replies to them. [MS-SMB2] 2.2.13.2, 2.2.14.2.

use acl::SecurityDescriptor;
use share::{Access, ExtendedAttribute};
use smb_wire::create_context::{DurableFlags, Lease, RequestContext, ResponseContext};
use smb_wire::{AccessMask, FileId, FileTime, Guid, NtStatus};

use crate::extended_attributes;

/// The requests in the create contexts. Contexts that this server does not know are ignored (3.3.5.9).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// Return the user's maximal access, unless the file has not changed since this time.
    maximal_access: Option<Option<FileTime>>,
    /// Return the identity of the file and the volume.
    on_disk_id: bool,
    /// The extended attributes of a new file.
    pub(super) extended_attributes: Vec<ExtendedAttribute>,
    /// Bytes to allocate for a new file; 0 for none.
    pub(super) allocation_size: u64,
    /// The security descriptor of a new file.
    pub(super) security_descriptor: Option<SecurityDescriptor>,
    /// A lease, of either version.
    pub(super) lease: Option<Lease>,
    /// Requests about opens that outlive their connection.
    pub(super) durable: Durable,
    /// The application that opens the file: its earlier opens of the file are closed.
    pub(super) app_instance: Option<Guid>,
    /// The time of the snapshot to open.
    pub(super) at: Option<FileTime>,
    /// The version of the application, the more significant half first.
    pub(super) app_instance_version: Option<(u64, u64)>,
}

/// Requests about opens that outlive their connection, as received. The valid combinations are decided when the
/// requests are carried out.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Durable {
    /// DHnQ: make the open durable.
    pub(super) request: bool,
    /// DHnC: reclaim this open.
    pub(super) reconnect: Option<FileId>,
    /// DH2Q: make the open durable or persistent.
    pub(super) request_v2: Option<DurableV2>,
    /// DH2C: reclaim this open.
    pub(super) reconnect_v2: Option<ReconnectV2>,
}

/// SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DurableV2 {
    /// The timeout in milliseconds; 0 leaves it to the server.
    pub(super) timeout_ms: u32,
    /// Whether the open is to be persistent.
    pub(super) flags: DurableFlags,
    /// Identifies this CREATE, so that it can be replayed.
    pub(super) create_guid: Guid,
}

/// SMB2_CREATE_DURABLE_HANDLE_RECONNECT_V2
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReconnectV2 {
    /// The open.
    pub(super) file_id: FileId,
    /// The CREATE that made it.
    pub(super) create_guid: Guid,
    /// Whether the open is persistent.
    pub(super) flags: DurableFlags,
}

impl Asked {
    /// Decodes the contexts.
    ///
    /// # Errors
    /// STATUS_INVALID_PARAMETER for a malformed security descriptor.
    pub(super) fn of(contexts: &[RequestContext<'_>]) -> Result<Self, NtStatus> {
        let mut asked = Self::default();
        for context in contexts {
            match context {
                RequestContext::QueryMaximalAccess { timestamp } => asked.maximal_access = Some(*timestamp),
                RequestContext::QueryOnDiskId => asked.on_disk_id = true,
                RequestContext::EaBuffer(list) => {
                    asked.extended_attributes = extended_attributes::decode(list)?
                }
                RequestContext::SdBuffer(bytes) => {
                    let given = SecurityDescriptor::decode(bytes).map_err(|_| NtStatus::INVALID_PARAMETER)?;
                    asked.security_descriptor = Some(given);
                }
                RequestContext::TimewarpToken(time) => asked.at = Some(*time),
                RequestContext::AllocationSize(bytes) => asked.allocation_size = *bytes,
                RequestContext::RequestLease(lease) => asked.lease = Some(*lease),
                RequestContext::DurableHandleRequest => asked.durable.request = true,
                RequestContext::DurableHandleReconnect { file_id } => {
                    asked.durable.reconnect = Some(*file_id);
                }
                &RequestContext::DurableHandleRequestV2 { timeout_ms, flags, create_guid } => {
                    asked.durable.request_v2 = Some(DurableV2 { timeout_ms, flags, create_guid });
                }
                &RequestContext::DurableHandleReconnectV2 { file_id, create_guid, flags } => {
                    asked.durable.reconnect_v2 = Some(ReconnectV2 { file_id, create_guid, flags });
                }
                RequestContext::AppInstanceId(guid) => asked.app_instance = Some(*guid),
                RequestContext::AppInstanceVersion { high, low } => {
                    asked.app_instance_version = Some((*high, *low));
                }
                RequestContext::Other(_) => {}
            }
        }
        Ok(asked)
    }

    /// The same without what a file of a snapshot never has: leases, and opens that outlive their connection.
    pub(super) fn of_snapshot(self) -> Self {
        Self { lease: None, durable: Durable::default(), app_instance: None, ..self }
    }

    /// The replies to contexts that apply to any file.
    pub(super) fn answers(&self, object: &Answerable) -> Vec<ResponseContext<'static>> {
        let mut answers = Vec::new();
        if let Some(timestamp) = self.maximal_access {
            // 3.3.5.9.5
            let (query_status, maximal) = if timestamp.is_some_and(|time| time == object.last_write_time) {
                (NtStatus::NONE_MAPPED, Access::empty())
            } else {
                (NtStatus::SUCCESS, object.maximal_access)
            };
            let maximal_access = AccessMask::from_bits_retain(maximal.bits());
            answers.push(ResponseContext::MaximalAccess { query_status, maximal_access });
        }
        if self.on_disk_id {
            let (disk_file_id, volume_id) = (object.file_number, object.volume_number);
            answers.push(ResponseContext::OnDiskId { disk_file_id, volume_id });
        }
        answers
    }
}

/// The object that the replies describe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answerable {
    pub(super) maximal_access: Access,
    pub(super) last_write_time: FileTime,
    pub(super) file_number: u64,
    pub(super) volume_number: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use smb_wire::create_context::RawContext;

    const OBJECT: Answerable = Answerable {
        maximal_access: Access::READ_DATA,
        last_write_time: FileTime(77),
        file_number: 5,
        volume_number: 6,
    };

    #[test]
    fn what_is_known_is_answered_and_the_rest_ignored() {
        let raw = RawContext { name: b"FooO", data: &[] };
        let asked = Asked::of(&[
            RequestContext::Other(raw),
            RequestContext::QueryOnDiskId,
            RequestContext::QueryMaximalAccess { timestamp: None },
            RequestContext::DurableHandleRequest,
        ]);
        let maximal_access = AccessMask::READ_DATA;
        assert_eq!(
            asked.unwrap().answers(&OBJECT),
            [
                ResponseContext::MaximalAccess { query_status: NtStatus::SUCCESS, maximal_access },
                ResponseContext::OnDiskId { disk_file_id: 5, volume_id: 6 },
            ]
        );
        assert_eq!(Asked::of(&[]).unwrap().answers(&OBJECT), []);
    }

    #[test]
    fn maximal_access_is_not_told_twice() {
        let timestamp = Some(FileTime(77));
        let asked = Asked::of(&[RequestContext::QueryMaximalAccess { timestamp }]).unwrap();
        let told = asked.answers(&OBJECT);
        assert!(matches!(
            told[..],
            [ResponseContext::MaximalAccess { query_status: NtStatus::NONE_MAPPED, .. }]
        ));
    }

    #[test]
    fn a_file_of_a_snapshot_has_nothing_to_keep() {
        let asked = [RequestContext::TimewarpToken(FileTime(7)), RequestContext::DurableHandleRequest];
        let asked = Asked::of(&asked).unwrap();
        assert!(asked.durable.request);
        let then = asked.of_snapshot();
        assert_eq!(then, Asked { at: Some(FileTime(7)), ..Asked::default() });
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert_eq!(Asked::of(&[RequestContext::SdBuffer(&[1])]), Err(NtStatus::INVALID_PARAMETER));
    }
}

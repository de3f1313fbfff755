//! QUERY_INFO and SET_INFO as a test wishes them.

use smb_wire::fscc::FileInfoClass;
use smb_wire::query_info::{self, InfoType, QueryInfoFlags, SecurityInformation};
use smb_wire::{Command, FileId, NtStatus, set_info};

use crate::client::{Client, Reply};

/// A QUERY_INFO.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query {
    pub(crate) info_type: InfoType,
    pub(crate) class: u8,
    pub(crate) additional: u32,
    pub(crate) limit: u32,
}

impl Query {
    pub(crate) fn file(class: FileInfoClass) -> Self {
        Self { info_type: InfoType::File, class: class.into(), additional: 0, limit: 65536 }
    }

    pub(crate) fn security(parts: SecurityInformation) -> Self {
        Self { info_type: InfoType::Security, class: 0, additional: parts.bits(), limit: 65536 }
    }

    pub(crate) fn body(self, file_id: FileId) -> Vec<u8> {
        let request = query_info::Request {
            info_type: self.info_type,
            info_class: self.class,
            output_buffer_length: self.limit,
            additional_information: self.additional,
            flags: QueryInfoFlags::empty(),
            file_id,
            input_buffer: &[],
        };
        let mut body = Vec::new();
        request.encode(&mut body).unwrap();
        body
    }

    pub(crate) fn ask(self, client: &mut Client, file_id: FileId) -> Reply {
        client.call(Command::QueryInfo, &self.body(file_id))
    }

    /// The status, and the answer where there is one.
    pub(crate) fn send(self, client: &mut Client, file_id: FileId) -> (NtStatus, Vec<u8>) {
        let reply = self.ask(client, file_id);
        let status = reply.status();
        if status.is_error() {
            return (status, Vec::new());
        }
        (status, query_info::Response::decode(&reply.message).unwrap().output_buffer.to_vec())
    }

    pub(crate) fn get(self, client: &mut Client, file_id: FileId) -> Result<Vec<u8>, NtStatus> {
        match self.send(client, file_id) {
            (NtStatus::SUCCESS, data) => Ok(data),
            (status, _) => Err(status),
        }
    }
}

/// What a file says about itself.
pub(crate) fn query(client: &mut Client, file_id: FileId, class: FileInfoClass) -> Result<Vec<u8>, NtStatus> {
    Query::file(class).get(client, file_id)
}

fn any_body(
    file_id: FileId,
    (info_type, info_class, additional_information): (InfoType, u8, u32),
    buffer: &[u8],
) -> Vec<u8> {
    let mut body = Vec::new();
    let request = set_info::Request { info_type, info_class, additional_information, file_id, buffer };
    request.encode(&mut body).unwrap();
    body
}

/// A request that sets something of a file.
pub(crate) fn set_body(file_id: FileId, class: FileInfoClass, buffer: &[u8]) -> Vec<u8> {
    any_body(file_id, (InfoType::File, class.into(), 0), buffer)
}

pub(crate) fn set_any(
    client: &mut Client,
    file_id: FileId,
    what: (InfoType, u8, u32),
    buffer: &[u8],
) -> Result<(), NtStatus> {
    let reply = client.call(Command::SetInfo, &any_body(file_id, what, buffer)).ok()?;
    set_info::Response::decode(&reply.message).unwrap();
    Ok(())
}

/// Sets something of a file.
pub(crate) fn set(
    client: &mut Client,
    file_id: FileId,
    class: FileInfoClass,
    buffer: &[u8],
) -> Result<(), NtStatus> {
    set_any(client, file_id, (InfoType::File, class.into(), 0), buffer)
}

//! QUERY_INFO. [MS-SMB2] 3.3.5.20.

mod file;
mod filesystem;
mod quota;
mod security;

pub use self::quota::{QUOTA_LIST_BYTES_MAX, QUOTA_ROWS_MAX};

use net::Buffer;
use smb_wire::fscc::FileInfoClass;
use smb_wire::query_info::{InfoType, Request, Response, SecurityInformation};
use smb_wire::{Command, NtStatus};

use crate::context::OnShare;
use crate::front;
use crate::operation::{Needs, Operation};
use crate::status::Failure;

/// The reply of an information class: the complete data, and how much of it must fit.
pub(crate) struct Information {
    data: Vec<u8>,
    /// The fewest bytes that the reply must have.
    fixed: usize,
}

impl Information {
    /// Information of fixed length.
    fn fixed(encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut data = Vec::new();
        encode(&mut data);
        Self { fixed: data.len(), data }
    }

    /// Information whose part after `fixed` bytes may be cut off.
    fn variable(
        fixed: usize,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), smb_wire::WireError>,
    ) -> Result<Self, Failure> {
        let mut data = Vec::new();
        encode(&mut data).map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
        Ok(Self { data, fixed })
    }
}

/// The properties of QUERY_INFO.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::QueryInfo, "QueryInfo")),
    needs: Needs::Open,
    answer_bytes: 8,
    ..Operation::of(Command::QueryInfo)
};

/// Answers the request.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request<'_>) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let ctx = &ctx.of(&open);
    if request.output_buffer_length > ctx.io_bytes_max() {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    let limit = usize::try_from(request.output_buffer_length).unwrap_or(usize::MAX);
    if may_be_large(&request) {
        ctx.room_for(limit).await;
    }
    let information = match request.info_type {
        InfoType::File => file::query(ctx, &open, &request).await?,
        InfoType::FileSystem => filesystem::query(ctx, &open, request.info_class).await?,
        InfoType::Security => {
            let parts = SecurityInformation::from_bits_retain(request.additional_information);
            return security_reply(ctx, limit, security::query(ctx, &open, parts).await?);
        }
        InfoType::Quota => {
            return reply(ctx, &quota::query(ctx, &open, request.input_buffer, limit).await?);
        }
        _ => return Err(NtStatus::INVALID_PARAMETER.into()),
    };
    if limit < information.fixed {
        return Err(NtStatus::INFO_LENGTH_MISMATCH.into());
    }
    let mut data = information.data;
    if data.len() > limit {
        data.truncate(limit);
        ctx.set_status(NtStatus::BUFFER_OVERFLOW);
    }
    reply(ctx, &data)
}

/// Whether a reply may have many KiB: a list, or a path. All others have some hundred bytes at most.
fn may_be_large(request: &Request<'_>) -> bool {
    match request.info_type {
        InfoType::File => matches!(
            FileInfoClass::from(request.info_class),
            FileInfoClass::All
                | FileInfoClass::NormalizedName
                | FileInfoClass::Stream
                | FileInfoClass::FullEa
        ),
        InfoType::Security | InfoType::Quota => true,
        _ => false,
    }
}

/// [MS-SMB2] 3.3.5.20.3: a descriptor that does not fit is not cut. The reply says how much room it needs.
fn security_reply(ctx: &OnShare<'_>, limit: usize, data: Vec<u8>) -> Result<Buffer, Failure> {
    if data.len() > limit {
        let needed = u32::try_from(data.len()).unwrap_or(u32::MAX);
        return Err(Failure::with_data(NtStatus::BUFFER_TOO_SMALL, &needed.to_le_bytes()));
    }
    reply(ctx, &data)
}

fn reply(ctx: &OnShare<'_>, data: &[u8]) -> Result<Buffer, Failure> {
    let mut buffer = ctx.reply_with(data.len());
    buffer
        .append_with(|out, _| Response { output_buffer: data }.encode(out))
        .map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
    Ok(buffer)
}

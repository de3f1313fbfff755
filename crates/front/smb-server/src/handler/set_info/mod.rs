//! SET_INFO. [MS-SMB2] 3.3.5.21.

mod disposition;
mod file;
mod quota;
mod rename;
mod security;

use std::pin::pin;

use net::Buffer;
use share::Kind;
use smb_wire::fscc::{FileInfoClass, FsInfoClass};
use smb_wire::query_info::{InfoType, SecurityInformation};
use smb_wire::set_info::{Request, Response};
use smb_wire::{AccessMask, Command, NtStatus, WireError};

use crate::context::OnShare;
use crate::front;
use crate::operation::{Effect, Needs, Operation};
use crate::state::open::Open;
use crate::status::Failure;

/// The properties of SET_INFO.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::SetInfo, "SetInfo")),
    needs: Needs::Open,
    effect: Effect::Guarded,
    answer_bytes: 2,
    ..Operation::of(Command::SetInfo)
};

/// Answers the request.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request<'_>) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let ctx = &ctx.of(&open);
    if u32::try_from(request.buffer.len()).map_or(true, |length| length > ctx.io_bytes_max()) {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    match request.info_type {
        InfoType::File => {
            let set = ctx.patiently(pin!(set_file(ctx, &open, &request))).await;
            set.inspect_err(|_| tell_refused(ctx, &open, kind_of(request.info_class)))?;
        }
        InfoType::FileSystem => set_filesystem(ctx, &open, &request).await?,
        InfoType::Security => {
            let parts = SecurityInformation::from_bits_retain(request.additional_information);
            let set = security::set(ctx, &open, parts, request.buffer).await;
            set.inspect_err(|_| tell_refused(ctx, &open, Some(Kind::Permission)))?;
        }
        InfoType::Quota => quota::set(ctx, &open, request.buffer).await?,
        InfoType::Unknown(_) => return Err(NtStatus::INVALID_PARAMETER.into()),
    }
    let mut reply = ctx.reply();
    reply.append_with(|out, _| Response.encode(out));
    Ok(reply)
}

/// What a request of this class would have done, for the access log.
fn kind_of(class: u8) -> Option<Kind> {
    match FileInfoClass::from(class) {
        FileInfoClass::Disposition | FileInfoClass::DispositionEx => Some(Kind::Delete),
        FileInfoClass::Rename | FileInfoClass::RenameEx => Some(Kind::Rename),
        FileInfoClass::Link | FileInfoClass::LinkEx => Some(Kind::Create),
        _ => None,
    }
}

fn tell_refused(ctx: &OnShare<'_>, open: &Open, kind: Option<Kind>) {
    if let (Some(kind), Ok(open)) = (kind, open.file()) {
        ctx.share.note_refused(ctx.call, kind, open);
    }
}

/// [MS-SMB2] 3.3.5.21.1.
async fn set_file(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>) -> Result<(), Failure> {
    let buffer = request.buffer;
    match FileInfoClass::from(request.info_class) {
        FileInfoClass::Basic => file::basic(ctx, open, buffer).await,
        FileInfoClass::EndOfFile => file::end_of_file(ctx, open, buffer).await,
        FileInfoClass::Allocation => file::allocation(ctx, open, buffer).await,
        FileInfoClass::ValidDataLength => file::valid_data_length(open, buffer),
        FileInfoClass::Position => file::position(open, buffer),
        FileInfoClass::Mode => file::mode(open, buffer),
        FileInfoClass::Disposition => disposition::set(ctx, open, buffer).await,
        FileInfoClass::DispositionEx => disposition::set_ex(ctx, open, buffer).await,
        FileInfoClass::Rename => rename::rename(ctx, open, &rename::decode(buffer)?).await,
        FileInfoClass::RenameEx => rename::rename(ctx, open, &rename::decode_ex(buffer)?).await,
        FileInfoClass::Link => rename::link(ctx, open, &rename::decode(buffer)?).await,
        FileInfoClass::LinkEx => rename::link(ctx, open, &rename::decode_ex(buffer)?).await,
        FileInfoClass::FullEa => file::extended_attributes(ctx, open, buffer).await,
        // Short names are not stored. The other classes are those of [MS-FSCC] 2.4 for local use.
        FileInfoClass::ShortName | FileInfoClass::Pipe | FileInfoClass::PipeRemote | FileInfoClass::Quota => {
            Err(NtStatus::NOT_SUPPORTED.into())
        }
        _ => Err(NtStatus::INVALID_INFO_CLASS.into()),
    }
}

/// [MS-SMB2] 3.3.5.21.2: of the properties of a file system, only quotas can be set through a share.
async fn set_filesystem(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>) -> Result<(), Failure> {
    match FsInfoClass::from(request.info_class) {
        FsInfoClass::Control if open.quotas().is_ok() => quota::set_control(ctx, open, request.buffer).await,
        FsInfoClass::Label | FsInfoClass::Control | FsInfoClass::ObjectId => {
            Err(NtStatus::NOT_SUPPORTED.into())
        }
        _ => Err(NtStatus::INVALID_INFO_CLASS.into()),
    }
}

/// Refuses an operation that the open was not granted.
fn require(open: &Open, access: AccessMask) -> Result<(), Failure> {
    if open.granted_access.contains(access) { Ok(()) } else { Err(NtStatus::ACCESS_DENIED.into()) }
}

/// [MS-FSA] 2.1.5.15: the input buffer is too short for its class.
fn length_mismatch(_: WireError) -> NtStatus {
    NtStatus::INFO_LENGTH_MISMATCH
}

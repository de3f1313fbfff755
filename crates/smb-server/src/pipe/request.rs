//! The SMB commands on IPC$: a pipe is opened, written, read and closed, and that is all.

use std::sync::Arc;

use net::Buffer;
use parking_lot::Mutex;
use smb_wire::create::{CreateAction, OplockLevel, ResponseFlags};
use smb_wire::{Command, FileAttributes, FileTime, NtStatus, close, create, flush, ioctl, read, write};

use super::{Message, Pipe};
use crate::context::RequestContext;
use crate::handler;
use crate::open::{Open, Target};
use crate::status::Failure;

/// Bytes that a pipe claims to occupy, as Windows has it.
const ALLOCATION_SIZE: u64 = 4096;
/// FILE_GENERIC_READ and FILE_GENERIC_WRITE
const ACCESS: smb_wire::AccessMask = smb_wire::AccessMask::from_bits_retain(0x0012_019F);

/// Answers a request on IPC$.
pub(crate) async fn dispatch(ctx: &RequestContext) -> Result<Buffer, Failure> {
    let message: &[u8] = &ctx.message;
    match ctx.header.command {
        Command::Create => open(ctx, &create::Request::decode(message)?),
        Command::Close => close(ctx, &close::Request::decode(message)?).await,
        Command::Read => read(ctx, &read::Request::decode(message)?),
        Command::Write => write(ctx, &write::Request::decode(message)?),
        Command::Flush => {
            let _ = ctx.open(flush::Request::decode(message)?.file_id)?;
            let mut reply = ctx.reply(4);
            reply.append_with(|bytes, _| flush::Response.encode(bytes));
            Ok(reply)
        }
        Command::Ioctl => handler::ioctl::handle(ctx, ioctl::Request::decode(message)?).await,
        Command::TreeDisconnect => {
            handler::tree_disconnect::handle(ctx, smb_wire::tree_disconnect::Request::decode(message)?).await
        }
        _ => Err(NtStatus::INVALID_DEVICE_REQUEST.into()),
    }
}

/// CREATE. [MS-SMB2] 3.3.5.9: for a pipe the server "MUST attempt to open the named pipe".
fn open(ctx: &RequestContext, request: &create::Request<'_>) -> Result<Buffer, Failure> {
    let name = request.name.decode().map_err(|_| NtStatus::OBJECT_NAME_INVALID)?;
    let pipe = Pipe::named(&name).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    let open = Open::new(
        ctx.server.file_id(),
        Arc::clone(ctx.tree()?),
        Target::Pipe(Mutex::new(pipe)),
        ACCESS,
        name,
        request.create_options,
        false,
    );
    ctx.add_open(&open)?;
    let response = create::Response {
        oplock_level: OplockLevel::None,
        flags: ResponseFlags::empty(),
        create_action: CreateAction::Opened,
        creation_time: FileTime::UNSET,
        last_access_time: FileTime::UNSET,
        last_write_time: FileTime::UNSET,
        change_time: FileTime::UNSET,
        allocation_size: ALLOCATION_SIZE,
        end_of_file: 0,
        file_attributes: FileAttributes::NORMAL,
        file_id: open.id,
        contexts: Vec::new(),
    };
    let mut reply = ctx.reply(96);
    reply.append_with(|bytes, _| response.encode(bytes))?;
    Ok(reply)
}

async fn close(ctx: &RequestContext, request: &close::Request) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    ctx.session()?.remove_open(open.id).ok_or(NtStatus::FILE_CLOSED)?;
    open.close().await?;
    let mut reply = ctx.reply(64);
    reply.append_with(|bytes, _| close::Response::default().encode(bytes));
    Ok(reply)
}

/// The pipe of a request.
pub(crate) fn pipe_of(open: &Open) -> Result<&Mutex<Pipe>, Failure> {
    match &open.target {
        Target::Pipe(pipe) => Ok(pipe),
        Target::File(_) => Err(NtStatus::INVALID_DEVICE_REQUEST.into()),
    }
}

fn write(ctx: &RequestContext, request: &write::Request<'_>) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    pipe_of(&open)?.lock().write(&ctx.server, request.data)?;
    let count = u32::try_from(request.data.len()).unwrap_or(u32::MAX);
    let mut reply = ctx.reply(16);
    reply.append_with(|bytes, _| write::Response { count }.encode(bytes));
    Ok(reply)
}

/// READ: the next message, or as much of it as the client asks for.
fn read(ctx: &RequestContext, request: &read::Request<'_>) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    if request.length > ctx.io_bytes_max() {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    let count = usize::try_from(request.length).unwrap_or(usize::MAX);
    let Message { bytes, more } = pipe_of(&open)?.lock().read(count).ok_or(NtStatus::PIPE_EMPTY)?;
    if more {
        ctx.set_status(NtStatus::BUFFER_OVERFLOW);
    }
    let response = read::Response { data_remaining: 0, flags: read::ResponseFlags::empty(), data: &bytes };
    let mut reply = ctx.reply(bytes.len().saturating_add(16));
    reply.append_with(|out, _| response.encode(out))?;
    Ok(reply)
}

//! The SMB commands on IPC$: a pipe can be opened, written, read and closed.

use std::sync::Arc;

use net::Buffer;
use parking_lot::Mutex;
use smb_wire::{FileAttributes, NtStatus, close, create, flush, read, write};

use crate::context::Admitted;
use crate::pipe::{self, Message, Pipe};
use crate::state::open::{Open, OpenTarget};
use crate::status::Failure;

/// Bytes that a pipe claims to occupy, as in Windows.
const ALLOCATION_SIZE: u64 = 4096;
/// FILE_GENERIC_READ and FILE_GENERIC_WRITE
const ACCESS: smb_wire::AccessMask = smb_wire::AccessMask::from_bits_retain(0x0012_019F);

/// CREATE. [MS-SMB2] 3.3.5.9: for a pipe the server "MUST attempt to open the named pipe".
pub(crate) fn open(ctx: &Admitted<'_>, request: &create::Request<'_>) -> Result<Buffer, Failure> {
    let name = request.name.decode().map_err(|_| NtStatus::OBJECT_NAME_INVALID)?;
    let pipe = Pipe::named(&name).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    let open = Open::new(
        ctx.server.file_id(),
        Arc::clone(ctx.tree),
        OpenTarget::Pipe(Mutex::new(pipe)),
        ACCESS,
        name,
        request.create_options,
        false,
    );
    ctx.add_open(&open)?;
    let response = create::Response::of_no_file(open.id, ALLOCATION_SIZE, FileAttributes::NORMAL);
    let mut reply = ctx.reply();
    reply.append_with(|bytes, _| response.encode(bytes))?;
    Ok(reply)
}

/// CLOSE.
pub(crate) async fn close(ctx: &Admitted<'_>, request: &close::Request) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    ctx.session.remove_open(open.id).ok_or(NtStatus::FILE_CLOSED)?;
    open.close_unasked().await?;
    let mut reply = ctx.reply();
    reply.append_with(|bytes, _| close::Response::default().encode(bytes));
    Ok(reply)
}

/// WRITE of a message.
pub(crate) async fn write(ctx: &Admitted<'_>, request: &write::Request<'_>) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    pipe::write(open.pipe()?, &ctx.server.host(ctx.login), request.data).await?;
    let count = u32::try_from(request.data.len()).unwrap_or(u32::MAX);
    let mut reply = ctx.reply();
    reply.append_with(|bytes, _| write::Response { count }.encode(bytes));
    Ok(reply)
}

/// READ: the next message, or as much of it as the client asks for.
pub(crate) fn read(ctx: &Admitted<'_>, request: &read::Request<'_>) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    if request.length > ctx.io_bytes_max() {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    let count = usize::try_from(request.length).unwrap_or(usize::MAX);
    let Message { bytes, more } = open.pipe()?.lock().read(count).ok_or(NtStatus::PIPE_EMPTY)?;
    if more {
        ctx.set_status(NtStatus::BUFFER_OVERFLOW);
    }
    let response = read::Response { data_remaining: 0, flags: read::ResponseFlags::empty(), data: &bytes };
    let mut reply = ctx.reply_with(bytes.len());
    reply.append_with(|out, _| response.encode(out))?;
    Ok(reply)
}

/// FLUSH: nothing is buffered.
pub(crate) fn flush(ctx: &Admitted<'_>, request: &flush::Request) -> Result<Buffer, Failure> {
    let _ = ctx.open(request.file_id)?;
    let mut reply = ctx.reply();
    reply.append_with(|bytes, _| flush::Response.encode(bytes));
    Ok(reply)
}

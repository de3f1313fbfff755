//! Which handler answers which command; nothing else.

use std::pin::pin;

use net::{Buffer, turn_clock};
use share::{Api, Measure, Protocol, timings};
use smb_proto::sequence_window::check_charge;
use smb_wire::{Command, NtStatus};

use crate::context::RequestContext;
use crate::status::Failure;
use crate::tree::Target;
use crate::{handler, pipe, status};

/// Answers a request that was admitted. Those about a share are counted there.
pub(crate) async fn dispatch(ctx: &RequestContext) -> Result<Buffer, Failure> {
    timings::scope(pin!(dispatch_counted(ctx))).await
}

async fn dispatch_counted(ctx: &RequestContext) -> Result<Buffer, Failure> {
    let now = turn_clock::now();
    let measure = api(ctx.header.command).map(|api| Measure::begin(api, Protocol::Smb, now));
    if let Some(measure) = &measure {
        ctx.connection.endpoint.note_request(measure.begun());
    }
    let outcome = dispatch_target(ctx).await;
    if let (Some(measure), Some(Target::Disk(share))) = (measure, ctx.tree.get().map(|tree| &tree.target)) {
        let counted = outcome.as_ref().map_or_else(Failure::outcome, |_| status::outcome(ctx.status()));
        let measure = measure.over(ctx.connection.endpoint.round_trip.time());
        let client = ctx.caller().map(|caller| caller.machine).unwrap_or_default();
        let (bytes, accounts) = (ctx.payload_bytes(), &ctx.connection.accounts);
        accounts.end(share, client, &measure, turn_clock::read, bytes, counted);
    }
    outcome
}

async fn dispatch_target(ctx: &RequestContext) -> Result<Buffer, Failure> {
    match ctx.tree.get().map(|tree| &tree.target) {
        Some(Target::Disk(share)) => {
            if share.asks_for_turns()
                && let Some(api) = api(ctx.header.command)
            {
                let caller = ctx.caller()?;
                let turn = async {
                    share.take_turn(caller, api).await;
                    Ok(())
                };
                ctx.until_cancelled(turn).await?;
            }
            dispatch_file(ctx).await
        }
        Some(Target::Pipe) => pipe::dispatch(ctx).await,
        None => dispatch_connection(ctx).await,
    }
}

/// What the accounting calls a command about a share.
fn api(command: Command) -> Option<Api> {
    Some(match command {
        Command::Create => Api::Create,
        Command::Close => Api::Close,
        Command::Read => Api::Read,
        Command::Write => Api::Write,
        Command::Flush => Api::Flush,
        Command::Lock => Api::Lock,
        Command::Ioctl => Api::Ioctl,
        Command::QueryDirectory => Api::QueryDirectory,
        Command::ChangeNotify => Api::ChangeNotify,
        Command::QueryInfo => Api::QueryInfo,
        Command::SetInfo => Api::SetInfo,
        Command::OplockBreak => Api::OplockBreak,
        Command::TreeConnect => Api::TreeConnect,
        Command::TreeDisconnect => Api::TreeDisconnect,
        _ => return None,
    })
}

/// Decodes a request about files and hands it to its handler.
async fn dispatch_file(ctx: &RequestContext) -> Result<Buffer, Failure> {
    let message: &[u8] = &ctx.message;
    match ctx.header.command {
        Command::Read => {
            let request = smb_wire::read::Request::decode(message)?;
            check_payload(ctx, 0, request.length)?;
            handler::read::handle(ctx, request).await
        }
        Command::Write => {
            let request = smb_wire::write::Request::decode(message)?;
            check_payload(ctx, request.data.len(), 0)?;
            handler::write::handle(ctx, request).await
        }
        Command::Create => handler::create::handle(ctx, smb_wire::create::Request::decode(message)?).await,
        Command::Close => handler::close::handle(ctx, smb_wire::close::Request::decode(message)?).await,
        Command::QueryInfo => {
            let request = smb_wire::query_info::Request::decode(message)?;
            check_payload(ctx, request.input_buffer.len(), request.output_buffer_length)?;
            handler::query_info::handle(ctx, request).await
        }
        Command::SetInfo => {
            let request = smb_wire::set_info::Request::decode(message)?;
            check_payload(ctx, request.buffer.len(), 0)?;
            handler::set_info::handle(ctx, request).await
        }
        Command::QueryDirectory => {
            let request = smb_wire::query_directory::Request::decode(message)?;
            check_payload(ctx, 0, request.output_buffer_length)?;
            handler::query_directory::handle(ctx, request).await
        }
        Command::ChangeNotify => {
            let request = smb_wire::change_notify::Request::decode(message)?;
            check_payload(ctx, 0, request.output_buffer_length)?;
            handler::change_notify::handle(ctx, request).await
        }
        Command::Ioctl => {
            let request = smb_wire::ioctl::Request::decode(message)?;
            let sent = request.input.len().saturating_add(request.output_count as usize);
            let expected = request.max_input_response.saturating_add(request.max_output_response);
            check_payload(ctx, sent, expected)?;
            handler::ioctl::handle(ctx, request).await
        }
        Command::Flush => handler::flush::handle(ctx, smb_wire::flush::Request::decode(message)?).await,
        Command::Lock => handler::lock::handle(ctx, smb_wire::lock::Request::decode(message)?).await,
        Command::OplockBreak => {
            handler::oplock_break::handle(ctx, smb_wire::oplock_break::Request::decode(message)?).await
        }
        Command::TreeDisconnect => {
            handler::tree_disconnect::handle(ctx, smb_wire::tree_disconnect::Request::decode(message)?).await
        }
        _ => Err(NtStatus::INVALID_PARAMETER.into()),
    }
}

/// The commands about connections and sessions.
async fn dispatch_connection(ctx: &RequestContext) -> Result<Buffer, Failure> {
    let message: &[u8] = &ctx.message;
    match ctx.header.command {
        Command::Negotiate => {
            handler::negotiate::handle(ctx, smb_wire::negotiate::Request::decode(message)?).await
        }
        Command::SessionSetup => {
            handler::session_setup::handle(ctx, smb_wire::session_setup::Request::decode(message)?).await
        }
        Command::Logoff => handler::logoff::handle(ctx, smb_wire::logoff::Request::decode(message)?).await,
        Command::TreeConnect => {
            handler::tree_connect::handle(ctx, smb_wire::tree_connect::Request::decode(message)?).await
        }
        Command::Echo => handler::echo::handle(ctx, smb_wire::echo::Request::decode(message)?).await,
        _ => Err(NtStatus::INVALID_PARAMETER.into()),
    }
}

/// Whether the request's CreditCharge pays for what it carries and may be answered with. [MS-SMB2] 3.3.5.2.5.
fn check_payload(ctx: &RequestContext, sent: usize, expected: u32) -> Result<(), Failure> {
    if !ctx.connection.negotiated.get().is_some_and(|negotiated| negotiated.supports_multi_credit) {
        return Ok(());
    }
    let sent = u32::try_from(sent).unwrap_or(u32::MAX);
    check_charge(ctx.header.credit_charge, sent, expected).map_err(|_| NtStatus::INVALID_PARAMETER.into())
}

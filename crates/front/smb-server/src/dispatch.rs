//! Dispatches commands to their handlers, and does nothing else.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use net::{Buffer, turn_clock};
use share::{Call, Ending, Outcome, Replied, Share, as_of_one_moment};
use smb_proto::sequence_window::check_charge;
use smb_wire::{Command, NtStatus};

use crate::context::{Admitted, InSession, OnShare, RequestContext, Subject};
use crate::receive::request::check_tree;
use crate::state::session::Session;
use crate::status::Failure;
use crate::tree::{Tree, TreeTarget};
use crate::{handler, logged, status};

/// Answers an admitted request. Requests about a share are counted there.
pub(crate) async fn dispatch(ctx: &mut RequestContext, subject: &Subject) -> Result<Buffer, Failure> {
    let moment = Rc::clone(&ctx.connection.moment);
    as_of_one_moment(&moment, pin!(dispatch_counted(ctx, subject))).await
}

async fn dispatch_counted(ctx: &mut RequestContext, subject: &Subject) -> Result<Buffer, Failure> {
    let begun = turn_clock::now();
    if ctx.operation.on_share.is_some() {
        ctx.connection.endpoint.note_request(begun);
    }
    match subject {
        Subject::Connection(named) => Box::pin(dispatch_connection(ctx, named.as_ref())).await,
        Subject::Session(session, login) => {
            let of_session = InSession::new(ctx, session, login);
            let answered = Box::pin(dispatch_session(&of_session)).await;
            let (reply, tree) =
                answered.inspect_err(|failure| logged::refused_tree_connect(&of_session, begun, failure))?;
            if let Some(tree) = &tree {
                ctx.envelope.tree_id = Some(tree.id);
                count_tree_connect(&InSession::new(ctx, session, login), tree, begun);
            }
            Ok(reply)
        }
        Subject::Tree(session, login, tree) => {
            let ctx = InSession::new(ctx, session, login).on_tree(tree);
            match (&tree.target, &ctx.operation.on_share) {
                (TreeTarget::Disk(share), Some(operation)) => {
                    let caller = ctx.caller().clone().in_role(tree.admitted.admission.role);
                    let call = Call::new(operation, caller, begun).within(&ctx.connection.moment);
                    let answered = dispatch_share(&OnShare::new(ctx, share, &call)).await;
                    let succeeded = |_: &Buffer| status::outcome(ctx.status());
                    let outcome = answered.as_ref().map_or_else(Failure::outcome, succeeded);
                    let status = answered.as_ref().map_or_else(|failure| failure.status, |_| ctx.status());
                    count(&ctx, share, &call, (outcome, status));
                    answered
                }
                (TreeTarget::Disk(_), None) => Err(NtStatus::INVALID_PARAMETER.into()),
                (TreeTarget::Pipe, _) => Box::pin(dispatch_pipe(&ctx)).await,
            }
        }
    }
}

/// Counts a TREE_CONNECT that has succeeded, if it was to a share.
fn count_tree_connect(ctx: &InSession<'_>, tree: &Tree, begun: Instant) {
    if let (TreeTarget::Disk(share), Some(operation)) = (&tree.target, &ctx.operation.on_share) {
        let call = Call::new(operation, ctx.caller().clone(), begun);
        call.needs_no_turn();
        count(ctx, share, &call, (status::outcome(ctx.status()), ctx.status()));
    }
}

/// Counts a request about a share that has ended, and tells the access log.
fn count(ctx: &InSession<'_>, share: &Share, call: &Call, (outcome, status): (Outcome, NtStatus)) {
    share.count(&ctx.connection.accounts, call, || Ending {
        at: turn_clock::read(),
        round_trip: ctx.connection.endpoint.round_trip.time(),
        bytes: ctx.payload_bytes(),
        outcome,
    });
    share.log(call, || Replied {
        from: ctx.connection.peer.address,
        outcome,
        status: status.name().map_or_else(|| status.to_string().into(), Into::into),
    });
}

async fn dispatch_share(ctx: &OnShare<'_>) -> Result<Buffer, Failure> {
    // A request that is refused here uses none of the share's budget.
    check_tree(ctx).await.inspect_err(|_| ctx.call.needs_no_turn())?;
    let turn = pin!(async {
        ctx.share.take_turn(ctx.call).await;
        Ok(())
    });
    if ctx.takes_turns {
        Box::pin(ctx.until_cancelled(turn)).await?
    } else {
        turn.await?
    }
    dispatch_file(ctx).await
}

/// Decodes a request about files and passes it to its handler. All handlers but READ's run in separate boxes, so that a
/// READ's future needs no room for theirs.
async fn dispatch_file(ctx: &OnShare<'_>) -> Result<Buffer, Failure> {
    let message: &[u8] = &ctx.message;
    match ctx.operation.command {
        Command::Read => {
            let request = smb_wire::read::Request::decode(message)?;
            check_payload(ctx, 0, request.length)?;
            handler::read::handle(ctx, request).await
        }
        Command::Write => {
            let request = smb_wire::write::Request::decode(message)?;
            check_payload(ctx, request.data.len(), 0)?;
            Box::pin(handler::write::handle(ctx, request)).await
        }
        Command::Create => {
            Box::pin(handler::create::handle(ctx, smb_wire::create::Request::decode(message)?)).await
        }
        Command::Close => {
            Box::pin(handler::close::handle(ctx, smb_wire::close::Request::decode(message)?)).await
        }
        Command::QueryInfo => {
            let request = smb_wire::query_info::Request::decode(message)?;
            check_payload(ctx, request.input_buffer.len(), request.output_buffer_length)?;
            Box::pin(handler::query_info::handle(ctx, request)).await
        }
        Command::SetInfo => {
            let request = smb_wire::set_info::Request::decode(message)?;
            check_payload(ctx, request.buffer.len(), 0)?;
            Box::pin(handler::set_info::handle(ctx, request)).await
        }
        Command::QueryDirectory => {
            let request = smb_wire::query_directory::Request::decode(message)?;
            check_payload(ctx, 0, request.output_buffer_length)?;
            Box::pin(handler::query_directory::handle(ctx, request)).await
        }
        Command::ChangeNotify => {
            let request = smb_wire::change_notify::Request::decode(message)?;
            check_payload(ctx, 0, request.output_buffer_length)?;
            Box::pin(handler::change_notify::handle(ctx, request)).await
        }
        Command::Ioctl => {
            let request = smb_wire::ioctl::Request::decode(message)?;
            let sent = request.input.len().saturating_add(request.output_count as usize);
            let expected = request.max_input_response.saturating_add(request.max_output_response);
            check_payload(ctx, sent, expected)?;
            Box::pin(handler::ioctl::handle(ctx, Some(ctx), request)).await
        }
        Command::Flush => {
            Box::pin(handler::flush::handle(ctx, smb_wire::flush::Request::decode(message)?)).await
        }
        Command::Lock => {
            Box::pin(handler::lock::handle(ctx, smb_wire::lock::Request::decode(message)?)).await
        }
        Command::OplockBreak => {
            Box::pin(handler::oplock_break::handle(ctx, smb_wire::oplock_break::Request::decode(message)?))
                .await
        }
        Command::TreeDisconnect => {
            let request = smb_wire::tree_disconnect::Request::decode(message)?;
            Box::pin(handler::tree_disconnect::handle(ctx, request)).await
        }
        _ => Err(NtStatus::INVALID_PARAMETER.into()),
    }
}

/// Dispatches the commands on IPC$: a pipe can only be opened, written, read and closed.
async fn dispatch_pipe(ctx: &Admitted<'_>) -> Result<Buffer, Failure> {
    let message: &[u8] = &ctx.message;
    match ctx.operation.command {
        Command::Create => handler::pipe::open(ctx, &smb_wire::create::Request::decode(message)?),
        Command::Close => handler::pipe::close(ctx, &smb_wire::close::Request::decode(message)?).await,
        Command::Read => handler::pipe::read(ctx, &smb_wire::read::Request::decode(message)?),
        Command::Write => handler::pipe::write(ctx, &smb_wire::write::Request::decode(message)?).await,
        Command::Flush => handler::pipe::flush(ctx, &smb_wire::flush::Request::decode(message)?),
        Command::Ioctl => handler::ioctl::handle(ctx, None, smb_wire::ioctl::Request::decode(message)?).await,
        Command::TreeDisconnect => {
            handler::tree_disconnect::handle(ctx, smb_wire::tree_disconnect::Request::decode(message)?).await
        }
        _ => Err(NtStatus::INVALID_DEVICE_REQUEST.into()),
    }
}

/// Dispatches the commands about sessions. TREE_CONNECT also returns its tree connect.
async fn dispatch_session(ctx: &InSession<'_>) -> Result<(Buffer, Option<Arc<Tree>>), Failure> {
    let message: &[u8] = &ctx.message;
    match ctx.operation.command {
        Command::Logoff => {
            let request = smb_wire::logoff::Request::decode(message)?;
            Ok((handler::logoff::handle(ctx, request).await?, None))
        }
        Command::TreeConnect => {
            let request = smb_wire::tree_connect::Request::decode(message)?;
            let (reply, tree) = handler::tree_connect::handle(ctx, request).await?;
            Ok((reply, Some(tree)))
        }
        _ => Err(NtStatus::INVALID_PARAMETER.into()),
    }
}

/// Dispatches the commands about connections. SESSION_SETUP also decides what its reply says of the session.
async fn dispatch_connection(
    ctx: &mut RequestContext,
    named: Option<&Arc<Session>>,
) -> Result<Buffer, Failure> {
    let message = ctx.message.clone();
    match ctx.operation.command {
        Command::Negotiate => {
            handler::negotiate::handle(ctx, smb_wire::negotiate::Request::decode(&message)?).await
        }
        Command::SessionSetup => {
            let request = smb_wire::session_setup::Request::decode(&message)?;
            handler::session_setup::handle(ctx, named, request).await
        }
        Command::Echo => handler::echo::handle(ctx, smb_wire::echo::Request::decode(&message)?).await,
        _ => Err(NtStatus::INVALID_PARAMETER.into()),
    }
}

/// Checks that the request's CreditCharge covers its payload and that of the reply. [MS-SMB2] 3.3.5.2.5.
fn check_payload(ctx: &RequestContext, sent: usize, expected: u32) -> Result<(), Failure> {
    if !ctx.connection.supports_multi_credit() {
        return Ok(());
    }
    let sent = u32::try_from(sent).unwrap_or(u32::MAX);
    check_charge(ctx.header.credit_charge, sent, expected).map_err(|_| NtStatus::INVALID_PARAMETER.into())
}

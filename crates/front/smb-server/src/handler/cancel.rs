//! CANCEL. [MS-SMB2] 3.3.5.16.

use smb_proto::request::CancelTarget;
use smb_wire::{Command, Target};

use crate::context::RequestContext;
use crate::operation::Operation;

/// The properties of CANCEL.
pub(crate) const OPERATION: Operation = Operation::of(Command::Cancel);

/// Signals the request that the CANCEL names to stop. That request's own handler answers it. CANCEL itself has no
/// response.
pub(crate) fn handle(ctx: &RequestContext) {
    let target = match ctx.header.target {
        Target::Async { async_id } => CancelTarget::Async(async_id),
        Target::Sync { .. } => CancelTarget::Message(ctx.header.message_id),
    };
    if let Some(cancel) = ctx.connection.requests.borrow().find(target) {
        cancel.notify_one();
    }
}

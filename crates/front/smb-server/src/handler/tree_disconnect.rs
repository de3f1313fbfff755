//! TREE_DISCONNECT. [MS-SMB2] 3.3.5.8.

use net::Buffer;
use share::Turn;
use smb_wire::tree_disconnect::{Request, Response};
use smb_wire::{Command, NtStatus};

use crate::context::Admitted;
use crate::front;
use crate::operation::{Effect, Needs, Operation};
use crate::status::Failure;

/// The properties of TREE_DISCONNECT.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::TreeDisconnect, "TreeDisconnect").with(Turn::Charged)),
    needs: Needs::Tree,
    effect: Effect::Finished,
    answer_bytes: 4,
    ..Operation::of(Command::TreeDisconnect)
};

/// Ends the tree connect, and closes everything that is open through it.
pub(crate) async fn handle(ctx: &Admitted<'_>, _request: Request) -> Result<Buffer, Failure> {
    if !ctx.session.disconnect_tree(ctx.tree).await {
        return Err(NtStatus::NETWORK_NAME_DELETED.into());
    }
    let mut reply = ctx.reply();
    reply.append_with(|bytes, _| Response.encode(bytes));
    Ok(reply)
}

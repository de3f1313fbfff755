//! LOGOFF. [MS-SMB2] 3.3.5.6.

use net::Buffer;
use smb_wire::Command;
use smb_wire::logoff::{Request, Response};

use crate::context::InSession;
use crate::logged::Ended;
use crate::operation::{Effect, Needs, Operation};
use crate::status::Failure;

/// The properties of LOGOFF.
pub(crate) const OPERATION: Operation = Operation {
    needs: Needs::Session,
    serves_expired: true,
    effect: Effect::Finished,
    answer_bytes: 4,
    ..Operation::of(Command::Logoff)
};

/// Ends the session, and closes everything that it has open.
pub(crate) async fn handle(ctx: &InSession<'_>, _request: Request) -> Result<Buffer, Failure> {
    let session = ctx.session;
    ctx.server.remove_session(session.id, Ended::Logoff);
    ctx.connection.remove_session(session.id);
    session.end(&ctx.server.durable).await;
    let mut reply = ctx.reply();
    reply.append_with(|bytes, _| Response.encode(bytes));
    Ok(reply)
}

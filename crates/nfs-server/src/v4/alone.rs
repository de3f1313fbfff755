//! The operations that may stand alone in a COMPOUND: those that make and end what SEQUENCE needs (RFC 8881 18.46.3).

use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::status::Status;

use super::compound::Reply;
use super::{bind_conn_to_session, create_session, destroy_clientid, destroy_session, exchange_id};
use crate::rpc_dispatch::Request;

/// Runs an operation without a session. `only`: there is no other one in the COMPOUND.
pub(super) async fn run(
    request: &Request<'_>,
    minor_version: u32,
    operation: ArgOp<'_>,
    only: bool,
    reply: &mut Reply,
) {
    let number = operation.operation();
    let stands_alone = matches!(
        operation,
        ArgOp::ExchangeId(_)
            | ArgOp::CreateSession(_)
            | ArgOp::BindConnToSession(_)
            | ArgOp::DestroySession(_)
            | ArgOp::DestroyClientId(_)
    );
    if stands_alone && !only {
        return reply.fail(number, Status::NotOnlyOp);
    }
    match operation {
        ArgOp::ExchangeId(args) => reply.end(number, &exchange_id::handle(request, &args).await),
        ArgOp::CreateSession(args) => {
            reply.end(number, &create_session::handle(request, minor_version, &args).await);
        }
        ArgOp::BindConnToSession(args) => reply.end(number, &bind_conn_to_session::handle(request, args)),
        ArgOp::DestroySession(args) => reply.end(number, &destroy_session::handle(request, args, None)),
        ArgOp::DestroyClientId(args) => reply.end(number, &destroy_clientid::handle(request, args).await),
        // RFC 8881 18.46.3: "Such operations MUST yield the error NFS4ERR_OP_NOT_IN_SESSION".
        _ => reply.fail(number, Status::OpNotInSession),
    }
}

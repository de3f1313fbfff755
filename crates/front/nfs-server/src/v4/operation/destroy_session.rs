//! DESTROY_SESSION, RFC 8881 18.37.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::destroy_session::Args;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::SessionId;

use crate::call::Request;
use crate::operation::{Needs, Operation};

/// The session in which a request runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Within {
    pub(super) session: SessionId,
    /// Whether no operation follows.
    pub(super) is_last: bool,
}

pub(super) const OPERATION: Operation<Number> =
    Operation { needs: Needs::Nothing, ..Operation::v4_of_no_share(Number::DestroySession) };

/// Runs the operation, in a session or without one.
pub(super) fn handle(request: &Request<'_>, args: Args, within: Option<Within>) -> Result<(), Status> {
    let connection = request.connection;
    let state = &connection.server.v4;
    let session = state.session(args.session_id).ok_or(Status::BadSession)?;
    state.check_manager(&session, &request.credential())?;
    // 18.37.3: in its own session "DESTROY_SESSION MUST be the final operation".
    if within.is_some_and(|within| within.session == args.session_id && !within.is_last) {
        return Err(Status::NotOnlyOp);
    }
    // "DESTROY_SESSION MUST be invoked on a connection that is associated with the session being destroyed."
    if !connection.v4.is_of(args.session_id) {
        return Err(Status::ConnNotBoundToSession);
    }
    state.end_session(&session);
    Ok(())
}

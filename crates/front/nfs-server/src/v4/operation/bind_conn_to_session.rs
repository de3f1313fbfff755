//! BIND_CONN_TO_SESSION, RFC 8881 18.34: associates a connection with a session's channels.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::bind_conn_to_session::{Args, ResOk};
use nfs_wire::v4::status::Status;

use crate::call::Request;
use crate::operation::{Needs, Operation};

pub(super) const OPERATION: Operation<Number> =
    Operation { needs: Needs::Nothing, ..Operation::v4_of_no_share(Number::BindConnToSession) };

/// Runs the operation.
pub(super) fn handle(request: &Request<'_>, args: Args) -> Result<ResOk, Status> {
    let connection = request.connection;
    let state = &connection.server.v4;
    let session = state.session(args.session_id).ok_or(Status::BadSession)?;
    state.check_manager(&session, &request.credential())?;
    let channels = session.associate(&connection.v4.link, |connections, number| {
        connections.bind(number, args.direction, &state.sessions)
    })?;
    connection.v4.remember(&session);
    Ok(ResOk { session_id: args.session_id, direction: channels.direction(), use_rdma: false })
}

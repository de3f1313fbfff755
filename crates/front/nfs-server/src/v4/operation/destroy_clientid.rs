//! DESTROY_CLIENTID, RFC 8881 18.50.

use std::time::Instant;

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::destroy_clientid::Args;
use nfs_wire::v4::status::Status;

use crate::call::Request;
use crate::operation::{Needs, Operation};

pub(super) const OPERATION: Operation<Number> =
    Operation { needs: Needs::Nothing, ..Operation::v4_of_no_share(Number::DestroyClientId) };

/// Runs the operation, in a session or without one. In a session of the same client, the client is busy with that
/// session.
pub(super) async fn handle(request: &Request<'_>, args: Args) -> Result<(), Status> {
    let state = &request.connection.server.v4;
    let gone = state.destroy_client(args.client_id, &request.credential(), Instant::now())?;
    gone.leave(&state.recovery).await;
    Ok(())
}

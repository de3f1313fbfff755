//! SETCLIENTID_CONFIRM, RFC 7530 16.34: a client of NFSv4.0 has received its client ID.

use std::time::Instant;

use nfs_proto::v4::client::set_client_id::Introduced;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::setclientid_confirm::Args;
use nfs_wire::v4::status::Status;

use crate::call::Request;
use crate::logged;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::SetClientIdConfirm);

pub(super) async fn handle(request: &Request<'_>, args: Args) -> Result<(), Status> {
    let begun = Instant::now();
    let confirmed = confirm(request, args).await;
    logged::logon(request, "SetClientIdConfirm", begun, confirmed.err());
    confirmed
}

async fn confirm(request: &Request<'_>, args: Args) -> Result<(), Status> {
    let connection = request.connection;
    let state = &connection.server.v4;
    let introduced = Introduced { client: args.client_id, confirm: args.confirm };
    // "the server MUST remove client x's relevant leased client state" of its earlier incarnation.
    state.confirm_client_id(introduced, &request.principal())?.end().await;
    connection.v4.client(state, args.client_id).map(|_| ())
}

//! SETCLIENTID, RFC 7530 16.33: a client of NFSv4.0 introduces itself. This server makes no callbacks to it.

use std::time::Instant;

use net::Origin;
use nfs_proto::v4::client::set_client_id::SetClientId;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::setclientid::{Args, Failure, ResOk};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{NetAddr, Text};

use crate::call::Request;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::SetClientId);

/// The client that has the name. Who it is does not concern the one that wanted it.
const ANOTHER: NetAddr<'static> = NetAddr { netid: Text(b""), address: Text(b"") };

pub(super) async fn handle(request: &Request<'_>, args: &Args<'_>) -> Result<ResOk, Failure<'static>> {
    let introduction = SetClientId {
        name: args.client.owner_id.0,
        verifier: args.client.verifier,
        principal: request.principal(),
        origin: Origin::from(request.connection.client).address(),
    };
    let introduced = request.connection.server.v4.set_client_id(introduction, Instant::now());
    let (introduced, gone) = introduced.map_err(|status| match status {
        Status::ClidInUse => Failure::InUse(ANOTHER),
        status => Failure::Status(status),
    })?;
    gone.end().await;
    Ok(ResOk { client_id: introduced.client, confirm: introduced.confirm })
}

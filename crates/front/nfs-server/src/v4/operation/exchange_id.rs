//! EXCHANGE_ID, RFC 8881 18.35: a client and this server identify themselves to each other.

use std::time::Instant;

use net::Origin;
use nfs_proto::v4::client::ExchangeId;
use nfs_proto::v4::client::protection::StateProtection;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::exchange_id::{Args, Flags, ImplementationId, ResOk, ServerOwner};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{OwnerId, Text, Time};

use crate::call::Request;
use crate::operation::{Needs, Operation};

const DOMAIN: &str = "anabranch";
const NAME: &str = concat!("Anabranch ", env!("CARGO_PKG_VERSION"));

pub(super) const OPERATION: Operation<Number> =
    Operation { needs: Needs::Nothing, ..Operation::v4_of_no_share(Number::ExchangeId) };

/// Runs the operation, in a session or without one.
pub(super) async fn handle<'a>(
    request: &'a Request<'_>,
    minor_version: u32,
    args: &Args<'_>,
) -> Result<ResOk<'a>, Status> {
    // 18.35.3: "If any other bit is set ... NFS4ERR_INVAL".
    if !args.flags.may_be_sent(minor_version) {
        return Err(Status::Inval);
    }
    let by = request.credential();
    let protection = StateProtection::grant(&args.state_protect, &by)?;
    let state = &request.connection.server.v4;
    let (exchanged, gone) = state.exchange_id(
        ExchangeId {
            owner: args.client_owner.owner_id.0,
            verifier: args.client_owner.verifier,
            by,
            protection,
            origin: Origin::from(request.connection.client).address(),
            update: args.flags.contains(Flags::UPD_CONFIRMED_REC_A),
        },
        Instant::now(),
    )?;
    gone.end().await;
    if exchanged.protection != StateProtection::None {
        let (peer, client) = (request.connection.peer(), args.client_owner.owner_id.0.escape_ascii());
        tracing::debug!(%peer, %client, "the client's state is protected by its machine credential");
    }
    let mut flags = Flags::USE_NON_PNFS;
    flags.set(Flags::CONFIRMED_R, exchanged.confirmed);
    let owner = OwnerId(&state.server_owner);
    Ok(ResOk {
        client_id: exchanged.client,
        sequence_id: exchanged.sequence,
        flags,
        state_protect: exchanged.protection.told(),
        // The same over every address: sessions and client IDs may be trunked (2.10.5).
        server_owner: ServerOwner { minor_id: 0, major_id: owner },
        server_scope: owner,
        implementation: Some(ImplementationId {
            domain: Text(DOMAIN.as_bytes()),
            name: Text(NAME.as_bytes()),
            date: Time::default(),
        }),
    })
}

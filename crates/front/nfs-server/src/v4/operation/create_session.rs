//! CREATE_SESSION, RFC 8881 18.36: a session, and the confirmation of its client.

use std::sync::Arc;
use std::time::Instant;

use nfs_proto::v4::session::{Channels, back_channel, fore_channel};
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::create_session::{Args, Flags, ResOk};
use nfs_wire::v4::status::Status;

use crate::call::Request;
use crate::logged;
use crate::operation::{Needs, Operation};
use crate::v4::callback::{BackChannel, Credential};
use crate::v4::state::Session;

pub(super) const OPERATION: Operation<Number> =
    Operation { needs: Needs::Nothing, ..Operation::v4_of_no_share(Number::CreateSession) };

/// Runs the operation, in a session or without one, and tells the access log.
pub(super) async fn handle(
    request: &Request<'_>,
    minor_version: u32,
    args: &Args<'_>,
) -> Result<ResOk, Status> {
    let begun = Instant::now();
    let created = create(request, minor_version, args).await;
    logged::logon(request, "CreateSession", begun, created.as_ref().err().copied());
    created
}

async fn create(request: &Request<'_>, minor_version: u32, args: &Args<'_>) -> Result<ResOk, Status> {
    if !args.flags.is_defined() {
        return Err(Status::Inval);
    }
    let connection = request.connection;
    let state = &connection.server.v4;
    let now = Instant::now();
    // Replies are not kept over a restart, and there is no RDMA: neither flag is granted.
    let flags = args.flags.intersection(Flags::CONN_BACK_CHAN);
    let (outcome, gone) = state.create_session(
        args.client_id,
        args.sequence_id,
        &request.credential(),
        |client, new, reserved| {
            let fore = fore_channel(&args.fore_channel, &state.sessions, reserved)?;
            let back = back_channel(&args.back_channel)?;
            let credential = Credential::choose(&args.callback_security);
            let channel = BackChannel::new(back, minor_version, args.callback_program, credential);
            let session = Arc::new(Session::new(new, client, fore, channel, now));
            let answer = ResOk {
                session_id: new.id,
                sequence_id: args.sequence_id,
                flags,
                fore_channel: fore,
                back_channel: back,
            };
            Ok((session, answer))
        },
    );
    // "Byte-range locks and share reservations should be released immediately" (18.35.4, case 5).
    gone.end().await;
    let (answer, created) = outcome?;
    if let Some(session) = created {
        let channels = if flags.contains(Flags::CONN_BACK_CHAN) { Channels::BOTH } else { Channels::FORE };
        session.associate(&connection.v4.link, |connections, number| {
            connections.created(number, channels, &state.sessions);
            Ok(channels)
        })?;
        connection.v4.remember(&session);
        if channels.back {
            probe(request, session);
        }
    }
    Ok(answer)
}

/// Finds out, after the reply, whether the client can be called.
fn probe(request: &Request<'_>, session: Arc<Session>) {
    let server = Arc::clone(&request.connection.server);
    tokio::task::spawn_local(async move {
        if let Err(error) = server.v4.callbacks.probe(&session).await {
            tracing::debug!(client = session.client.shown(), "back channel: {error}");
        }
    });
}

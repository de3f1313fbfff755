//! Finds the procedure of a call, and runs it.

use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use net::Buffer;
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Call, Denied, Reply, ReplyBody, flavor};
use nfs_wire::xdr::Reader;
use nfs_wire::{mount as mount_wire, nlm as nlm_wire, nsm as nsm_wire, v3 as v3_wire, v4 as v4_wire};
use share::as_of_one_moment;

use crate::call::{CallError, Request};
use crate::connection::Connection;
use crate::received::Received;
use crate::reply::{Encoded, reply, success};
use crate::traffic::Traffic;
use crate::{credentials, mount, nlm, nsm, v3, v4};

/// Runs a call, and reports its end to `ended`. There always is a reply; [`net::Later`] allows none.
///
/// The end is reported here and not in a future around this one. This future is large: it would be copied into the
/// outer one, or need a second box.
pub(crate) async fn answer(
    connection: Rc<Connection>,
    received: Received,
    ended: fn(&Traffic),
) -> Option<Buffer> {
    let (call, arguments) = (received.call(), received.arguments());
    let answer = match admitted(&connection, &received.record, &call) {
        Ok(Some(request)) if call.program == v3_wire::PROGRAM => {
            as_of_one_moment(&connection.moment, pin!(v3::run::dispatch(&request, arguments))).await
        }
        Ok(Some(request)) if call.program == nsm_wire::PROGRAM => monitor(&request, arguments),
        Ok(Some(request)) => {
            as_of_one_moment(&connection.moment, pin!(mount::run::dispatch(&request, arguments))).await
        }
        Ok(None) => Ok(success(call.xid, &())),
        Err(not_run) => Err(not_run),
    };
    ended(&connection.traffic);
    Some(reply_of(&call, answer))
}

/// Like [`answer`], for a call of NFSv4. The future of such a call is larger than those of other calls, which would be
/// copied with it.
pub(crate) async fn answer_v4(
    connection: Rc<Connection>,
    received: Received,
    ended: fn(&Traffic),
) -> Option<Buffer> {
    let (call, arguments) = (received.call(), received.arguments());
    let answer = match admitted(&connection, &received.record, &call) {
        Ok(Some(request)) => {
            as_of_one_moment(&connection.moment, pin!(v4::run::dispatch(&request, arguments))).await
        }
        Ok(None) => Ok(success(call.xid, &())),
        Err(not_run) => Err(not_run),
    };
    ended(&connection.traffic);
    Some(reply_of(&call, answer))
}

/// Like [`answer`], for a call of NLM.
pub(crate) async fn answer_nlm(
    connection: Rc<Connection>,
    received: Received,
    ended: fn(&Traffic),
) -> Option<Buffer> {
    let (call, arguments) = (received.call(), received.arguments());
    let answer = match (admitted(&connection, &received.record, &call), &connection.server.nlm) {
        (Ok(Some(request)), Some(nlm)) => {
            as_of_one_moment(&connection.moment, pin!(nlm::run::dispatch(&request, nlm, arguments))).await
        }
        (Ok(_), _) => Ok(success(call.xid, &())),
        (Err(not_run), _) => Err(not_run),
    };
    ended(&connection.traffic);
    Some(reply_of(&call, answer))
}

/// Runs a call of NSM.
fn monitor(request: &Request<'_>, arguments: Reader<'_>) -> Result<Buffer, CallError> {
    let procedure = nsm_wire::Procedure::try_from(request.call.procedure);
    let procedure = procedure.map_err(|_| AcceptStatus::ProcedureUnavailable)?;
    let connection = request.connection;
    let result = nsm::answer(&connection.server, connection.client, procedure, arguments)?;
    Ok(request.success(&Encoded(result)))
}

fn reply_of(call: &Call<'_>, answer: Result<Buffer, CallError>) -> Buffer {
    answer.unwrap_or_else(|not_run| {
        let body = match not_run {
            CallError::Accepted(status) => ReplyBody::accepted(status),
            CallError::Denied(status) => ReplyBody::Denied(Denied::AuthError(status)),
        };
        reply(&Reply { xid: call.xid, body }, &())
    })
}

/// The request, if the call is for a program of this server and not NULL.
fn admitted<'a>(
    connection: &'a Connection,
    record: &'a Bytes,
    call: &'a Call<'a>,
) -> Result<Option<Request<'a>>, CallError> {
    let (low, high) = match call.program {
        v3_wire::PROGRAM => (v3_wire::VERSION, v4_wire::VERSION),
        mount_wire::PROGRAM => (mount_wire::VERSION, mount_wire::VERSION),
        nlm_wire::PROGRAM if connection.server.nlm.is_some() => (nlm_wire::VERSION, nlm_wire::VERSION),
        nsm_wire::PROGRAM if connection.server.nlm.is_some() => (nsm_wire::VERSION, nsm_wire::VERSION),
        _ => return Err(AcceptStatus::ProgramUnavailable.into()),
    };
    if !(low..=high).contains(&call.version) {
        return Err(AcceptStatus::ProgramMismatch { low, high }.into());
    }
    if call.procedure == 0 {
        // NULL does nothing, for all callers (RFC 1813 3.3.0, RFC 8881 16.1). With RPCSEC_GSS it would begin a context
        // (RFC 2203 5.2.2), and a client that is answered with success would find no context in the reply.
        return match call.credential.flavor {
            flavor::RPCSEC_GSS => Err(AuthStatus::RejectedCredential.into()),
            _ => Ok(None),
        };
    }
    let stated = credentials::stated(&call.credential)?;
    Ok(Some(Request { connection, record, call, stated }))
}

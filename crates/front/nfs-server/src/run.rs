//! Finds the procedure of a call, and runs it.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;

use net::Buffer;
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Call, Denied, Reply, ReplyBody};
use nfs_wire::xdr::Reader;
use nfs_wire::{
    mount as mount_wire, nlm as nlm_wire, nsm as nsm_wire, rquota as rquota_wire, v3 as v3_wire,
    v4 as v4_wire,
};
use share::{Share, as_of_one_moment};

use crate::call::{CallError, Request};
use crate::connection::Connection;
use crate::credentials::Sender;
use crate::groups::KnownGroups;
use crate::gss::{Flavor, Protected};
use crate::received::Received;
use crate::reply::{Encoded, reply, success};
use crate::traffic::Traffic;
use crate::{credentials, mount, nlm, nsm, rquota, v3, v4};

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
    let answer = match admitted(&connection, &received, &call) {
        Ok(Some(request)) if call.program == v3_wire::PROGRAM => {
            let ran =
                as_of_one_moment(&connection.moment, pin!(v3::run::dispatch(&request, arguments))).await;
            if request.is_too_weak.get() { Err(AuthStatus::TooWeak.into()) } else { ran }
        }
        Ok(Some(request)) if call.program == nsm_wire::PROGRAM => monitor(&request, arguments),
        Ok(Some(request)) if call.program == rquota_wire::PROGRAM => quota(&request, arguments),
        Ok(Some(request)) => {
            as_of_one_moment(&connection.moment, pin!(mount::run::dispatch(&request, arguments))).await
        }
        Ok(None) => Ok(success(call.xid, &())),
        Err(not_run) => Err(not_run),
    };
    ended(&connection.traffic);
    Some(answer.unwrap_or_else(|why| not_run(call.xid, why)))
}

/// Like [`answer`], for a call of NFSv4. The future of such a call is larger than those of other calls, which would be
/// copied with it.
pub(crate) async fn answer_v4(
    connection: Rc<Connection>,
    received: Received,
    ended: fn(&Traffic),
) -> Option<Buffer> {
    let (call, arguments) = (received.call(), received.arguments());
    let answer = match admitted(&connection, &received, &call) {
        Ok(Some(request)) => {
            as_of_one_moment(&connection.moment, pin!(v4::run::dispatch(&request, arguments))).await
        }
        Ok(None) => Ok(success(call.xid, &())),
        Err(not_run) => Err(not_run),
    };
    ended(&connection.traffic);
    Some(answer.unwrap_or_else(|why| not_run(call.xid, why)))
}

/// Like [`answer`], for a call of NLM.
pub(crate) async fn answer_nlm(
    connection: Rc<Connection>,
    received: Received,
    ended: fn(&Traffic),
) -> Option<Buffer> {
    let (call, arguments) = (received.call(), received.arguments());
    let admitted = admitted(&connection, &received, &call);
    let answer = match (admitted, &connection.server.nlm) {
        (Ok(Some(request)), Some(nlm)) => {
            as_of_one_moment(&connection.moment, pin!(nlm::run::dispatch(&request, nlm, arguments))).await
        }
        (Ok(_), _) => Ok(success(call.xid, &())),
        (Err(not_run), _) => Err(not_run),
    };
    ended(&connection.traffic);
    Some(answer.unwrap_or_else(|why| not_run(call.xid, why)))
}

/// Runs a call of NSM.
fn monitor(request: &Request<'_>, arguments: Reader<'_>) -> Result<Buffer, CallError> {
    let procedure = nsm_wire::Procedure::try_from(request.call.procedure);
    let procedure = procedure.map_err(|_| AcceptStatus::ProcedureUnavailable)?;
    let connection = request.connection;
    let result = nsm::answer(&connection.server, connection.client, procedure, arguments)?;
    Ok(request.success(&Encoded(result)))
}

/// Runs a call of the program of `rquotad`.
fn quota(request: &Request<'_>, arguments: Reader<'_>) -> Result<Buffer, CallError> {
    let asker = |share: &Share| request.caller_so_far(share);
    let result = rquota::answer(&request.connection.server, &asker, request.call, arguments)?;
    Ok(request.success(&Encoded(result)))
}

/// The reply to a call that did not run.
pub(crate) fn not_run(xid: u32, why: CallError) -> Buffer {
    let body = match why {
        CallError::Accepted(status) => ReplyBody::accepted(status),
        CallError::Denied(status) => ReplyBody::Denied(Denied::AuthError(status)),
    };
    reply(&Reply { xid, body }, &())
}

/// Checks that this server has the program in this version.
pub(crate) fn check_program(connection: &Connection, program: u32, version: u32) -> Result<(), CallError> {
    let (low, high) = match program {
        v3_wire::PROGRAM => (v3_wire::VERSION, v4_wire::VERSION),
        mount_wire::PROGRAM => (mount_wire::VERSION, mount_wire::VERSION),
        nlm_wire::PROGRAM if connection.server.nlm.is_some() => (nlm_wire::VERSION, nlm_wire::VERSION),
        nsm_wire::PROGRAM if connection.server.nlm.is_some() => (nsm_wire::VERSION, nsm_wire::VERSION),
        rquota_wire::PROGRAM => rquota::VERSIONS,
        _ => return Err(AcceptStatus::ProgramUnavailable.into()),
    };
    if (low..=high).contains(&version) {
        Ok(())
    } else {
        Err(AcceptStatus::ProgramMismatch { low, high }.into())
    }
}

/// The request, if the call is for a program of this server and not NULL.
fn admitted<'a>(
    connection: &'a Connection,
    received: &'a Received,
    call: &'a Call<'a>,
) -> Result<Option<Request<'a>>, CallError> {
    check_program(connection, call.program, call.version)?;
    if call.procedure == 0 {
        // NULL does nothing, for all callers (RFC 1813 3.3.0, RFC 8881 16.1).
        return Ok(None);
    }
    if connection.lacks_tls() {
        return Err(AuthStatus::TooWeak.into());
    }
    let protected = received.protected.as_ref();
    let sender = match protected {
        Some(protected) => Sender::Proved(&protected.context),
        None => credentials::stated(&call.credential)?,
    };
    let flavor = protected.map_or(Flavor::Sys, Protected::flavor);
    connection.traffic.note_flavor(flavor);
    Ok(Some(Request {
        connection,
        record: &received.record,
        call,
        sender,
        groups: KnownGroups::default(),
        flavor,
        is_too_weak: Cell::new(false),
    }))
}

//! From a call to its procedure.

use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use net::Buffer;
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Call, Denied, Reply, ReplyBody, flavor};
use nfs_wire::xdr::Reader;
use nfs_wire::{mount as mount_wire, v3 as v3_wire, v4 as v4_wire};
use share::as_of_one_moment;

use crate::call::{CallError, Request};
use crate::connection::Connection;
use crate::reply::{reply, success};
use crate::traffic::Traffic;
use crate::{credentials, mount, v3, v4};

/// Runs the call in `record`, and tells `ended` that it has. `None` if there is no call, which the connection has already
/// noticed.
///
/// What follows the call is told here and not in a future around this one, which is large: it would be copied into that,
/// or need a second box.
pub(crate) async fn answer(connection: Rc<Connection>, record: Bytes, ended: fn(&Traffic)) -> Option<Buffer> {
    let mut arguments = Reader::new(&record);
    let call = Call::decode(&mut arguments).ok()?;
    let answer = as_of_one_moment(pin!(dispatch(&connection, &record, &call, arguments))).await;
    ended(&connection.traffic);
    Some(answer.unwrap_or_else(|not_run| {
        let body = match not_run {
            CallError::Accepted(status) => ReplyBody::accepted(status),
            CallError::Denied(status) => ReplyBody::Denied(Denied::AuthError(status)),
        };
        reply(&Reply { xid: call.xid, body }, &())
    }))
}

async fn dispatch(
    connection: &Connection,
    record: &Bytes,
    call: &Call<'_>,
    arguments: Reader<'_>,
) -> Result<Buffer, CallError> {
    let (low, high) = match call.program {
        v3_wire::PROGRAM => (v3_wire::VERSION, v4_wire::VERSION),
        mount_wire::PROGRAM => (mount_wire::VERSION, mount_wire::VERSION),
        _ => return Err(AcceptStatus::ProgramUnavailable.into()),
    };
    if !(low..=high).contains(&call.version) {
        return Err(AcceptStatus::ProgramMismatch { low, high }.into());
    }
    if call.procedure == 0 {
        // NULL does nothing, for anybody (RFC 1813 3.3.0, RFC 8881 16.1). With RPCSEC_GSS it would begin a context (RFC 2203
        // 5.2.2): who is told that it has succeeded takes nothing for the answer.
        return match call.credential.flavor {
            flavor::RPCSEC_GSS => Err(AuthStatus::RejectedCredential.into()),
            _ => Ok(success(call.xid, &())),
        };
    }
    let stated = credentials::stated(&call.credential)?;
    let request = Request { connection, record, call, stated };
    match (call.program, call.version) {
        (v4_wire::PROGRAM, v4_wire::VERSION) => v4::run::dispatch(&request, arguments).await,
        (v3_wire::PROGRAM, _) => v3::run::dispatch(&request, arguments).await,
        _ => mount::run::dispatch(&request, arguments).await,
    }
}

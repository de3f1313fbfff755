//! From a call to its procedure, and from a result to its reply.

use std::cell::OnceCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use net::{Buffer, turn_clock};
use nfs_wire::auth_sys::AuthSys;
use nfs_wire::record_mark::Mark;
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Call, Denied, Reply, ReplyBody};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};
use nfs_wire::{mount as mount_wire, v3 as v3_wire, v4 as v4_wire};
use share::{Api, Client, Measure, Outcome, Protocol, Share, timings};

use crate::connection::Connection;
use crate::{credentials, mount, v3, v4};

/// What most replies fit into, in bytes.
const REPLY_BYTES: usize = 512;

/// Bytes of the header of a reply to a call that ran (RFC 5531 section 9): xid, REPLY, accepted, AUTH_NONE, success.
pub(crate) const REPLY_HEADER_BYTES: usize = 24;

/// A call under way.
pub(crate) struct Request<'a> {
    pub(crate) connection: &'a Connection,
    /// The record, which `call` and the arguments borrow from.
    pub(crate) record: &'a Bytes,
    pub(crate) call: &'a Call<'a>,
    /// What the credential states; `None` is AUTH_NONE.
    pub(crate) stated: Option<AuthSys<'a>>,
    /// What it is counted as, once that is known.
    pub(crate) api: Option<Api>,
    /// The share that the call turned out to be for, which counts it.
    pub(crate) share: OnceCell<Arc<Share>>,
}

/// Why a call did not run.
pub(crate) enum NotRun {
    /// It was accepted, but.
    Accepted(AcceptStatus),
    /// Its caller was not.
    Denied(AuthStatus),
}

impl From<AcceptStatus> for NotRun {
    fn from(status: AcceptStatus) -> Self {
        Self::Accepted(status)
    }
}

impl From<AuthStatus> for NotRun {
    fn from(status: AuthStatus) -> Self {
        Self::Denied(status)
    }
}

/// Runs the call that `record` holds. `None` if it holds none, which the connection has found out before.
pub(crate) async fn answer(connection: Rc<Connection>, record: Bytes) -> Option<Buffer> {
    let mut arguments = Reader::new(&record);
    let call = Call::decode(&mut arguments).ok()?;
    let answer = timings::scope(pin!(dispatch(&connection, &record, &call, arguments))).await;
    Some(answer.unwrap_or_else(|not_run| {
        let body = match not_run {
            NotRun::Accepted(status) => ReplyBody::accepted(status),
            NotRun::Denied(status) => ReplyBody::Denied(Denied::AuthError(status)),
        };
        reply(&Reply { xid: call.xid, body }, &())
    }))
}

async fn dispatch(
    connection: &Connection,
    record: &Bytes,
    call: &Call<'_>,
    arguments: Reader<'_>,
) -> Result<Buffer, NotRun> {
    let (low, high) = match call.program {
        v3_wire::PROGRAM => (v3_wire::VERSION, v4_wire::VERSION),
        mount_wire::PROGRAM => (mount_wire::VERSION, mount_wire::VERSION),
        _ => return Err(AcceptStatus::ProgramUnavailable.into()),
    };
    if !(low..=high).contains(&call.version) {
        return Err(AcceptStatus::ProgramMismatch { low, high }.into());
    }
    if call.procedure == 0 {
        // NULL does nothing, for anybody (RFC 1813 3.3.0, RFC 8881 16.1).
        return Ok(success(call.xid, &()));
    }
    let stated = credentials::stated(&call.credential)?;
    let api = match (call.program, call.version) {
        (v4_wire::PROGRAM, v4_wire::VERSION) => None, // each operation has its own
        (v3_wire::PROGRAM, _) => v3::api_of(call.procedure),
        _ => Some(Api::Mount),
    };
    let request = Request { connection, record, call, stated, api, share: OnceCell::new() };
    match (call.program, call.version) {
        (v4_wire::PROGRAM, v4_wire::VERSION) => v4::dispatch(&request, arguments).await,
        (v3_wire::PROGRAM, _) => v3::dispatch(&request, arguments).await,
        _ => mount::dispatch(&request, arguments).await,
    }
}

/// The arguments of a procedure.
pub(crate) fn decode<'a, T: Decode<'a>>(mut arguments: Reader<'a>) -> Result<T, NotRun> {
    let decoded = T::decode(&mut arguments).and_then(|value| arguments.finish().map(|()| value));
    decoded.map_err(|_| AcceptStatus::GarbageArgs.into())
}

impl Request<'_> {
    /// Counts the call for its share, if it found one.
    pub(crate) fn count(&self, measure: &Measure, bytes: u64, outcome: Outcome) {
        if let Some(share) = self.share.get() {
            let (client, accounts) = (Client::Address(self.connection.client), &self.connection.accounts);
            let measure = measure.over(self.connection.traffic.round_trip.time());
            accounts.end(share, client, &measure, turn_clock::read, bytes, outcome);
        }
    }

    /// Starts the clock of a call.
    pub(crate) fn measure(api: Api) -> Measure {
        Measure::begin(api, Protocol::Nfs3, turn_clock::now())
    }

    /// The reply of a call that ran.
    pub(crate) fn success(&self, result: &impl Encode) -> Buffer {
        success(self.call.xid, result)
    }
}

fn success(xid: u32, result: &impl Encode) -> Buffer {
    reply(&Reply { xid, body: ReplyBody::accepted(AcceptStatus::Success) }, result)
}

/// A reply with its record mark.
pub(crate) fn reply(header: &Reply<'_>, result: &impl Encode) -> Buffer {
    let mut buffer = Buffer::with_capacity(REPLY_BYTES);
    buffer.append_with(|bytes, _| {
        let mut writer = Writer::new(bytes);
        header.encode(&mut writer);
        result.encode(&mut writer);
    });
    mark(buffer)
}

/// Puts the record mark in front of a whole reply.
pub(crate) fn mark(mut reply: Buffer) -> Buffer {
    let mark = Mark::whole_record(reply.len());
    reply.prepend(&mark.to_bytes());
    reply
}

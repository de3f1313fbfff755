//! The back channel: requests that the server sends to its clients, over connections that the clients opened (RFC 8881
//! 2.10.3.1, 20).
//!
//! A call takes a slot of a session's back channel and is sent through the mailbox of one of its connections. Its reply
//! arrives there among the client's calls. If that connection ends first, the same call is sent over another one
//! (2.10.6.2: "The server can re-send the request over another connection").

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use net::Buffer;
use nfs_proto::v4::backchannel::{BackSlots, Ended, Ticket};
use nfs_proto::v4::session::ConnectionNumber;
use nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::v4::callback::{self, ArgOp, CompoundRes, ReferringCalls, ResOp, SequenceArgs};
use nfs_wire::v4::create_session::ChannelAttributes;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::SecurityParameters;
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::link::Link;
use super::state::{Client, Session};
use crate::reply::mark;

/// A connection is closed if the client's system does not even acknowledge a call on it for this long.
const ACKNOWLEDGE_PATIENCE: Duration = Duration::from_secs(3);
/// Room for a call with one operation, in bytes.
const CALL_BYTES: usize = 512;

/// Why a client has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallbackError {
    /// The client has no back channel: nothing was sent.
    #[error("no connection of a back channel")]
    PathDown,
    /// The client may have received the call. The connections over which it could answer are gone, and no other
    /// connection came in time.
    #[error("the connection was lost")]
    Lost,
    /// The client has received the call, as far as is known, and does not answer.
    #[error("no answer in time")]
    TimedOut,
    /// The client refuses the call.
    #[error("refused ({0:?})")]
    Refused(Status),
    /// The client's answer is malformed.
    #[error("a malformed answer")]
    Malformed,
}

/// The calls under way to all clients.
#[derive(Debug)]
pub(crate) struct Callbacks {
    next_xid: AtomicU32,
    /// How long a client may take to answer.
    timeout: Duration,
    /// Guards which tasks wait for which reply.
    waiting: Mutex<HashMap<u32, Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    /// The connection of the call. A reply counts only if it arrives there.
    connection: ConnectionNumber,
    /// Takes the reply; dropped when the connection has ended.
    reply: oneshot::Sender<Bytes>,
}

/// The back channel of one session.
#[derive(Debug)]
pub(crate) struct BackChannel {
    minor_version: u32,
    /// Set when a call could not be sent, or was not answered because its connection was lost; cleared when a
    /// connection comes.
    is_down: AtomicBool,
    is_faulty: AtomicBool,
    /// Guards the client's program and credential, the connections, and the slots.
    ways: Mutex<Ways>,
    /// Notified when a slot is free.
    slot_freed: Notify,
    /// Notified when a connection has come, and when the session has ended.
    link_added: Notify,
}

#[derive(Debug)]
struct Ways {
    program: u32,
    credential: Credential,
    links: Vec<Link>,
    slots: BackSlots,
    /// Calls that were given up: their replies may still arrive.
    in_doubt: Vec<(u32, Ticket)>,
    /// Whether the session has ended: no connection will come.
    is_shut: bool,
}

/// The credential of calls, which the client chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    flavor: u32,
    body: Vec<u8>,
}

impl Credential {
    /// The first credential that this server can use.
    pub(crate) fn choose(offered: &[SecurityParameters<'_>]) -> Self {
        let usable = offered.iter().find_map(|parameters| match parameters {
            SecurityParameters::None => Some(Self::none()),
            SecurityParameters::Sys(auth) => {
                Some(Self { flavor: flavor::AUTH_SYS, body: auth.encode_to_vec() })
            }
            SecurityParameters::Gss(_) => None,
        });
        usable.unwrap_or_else(Self::none)
    }

    fn none() -> Self {
        Self { flavor: flavor::AUTH_NONE, body: Vec::new() }
    }
}

/// A reply of a client, for an operation that may have failed.
#[derive(Debug, Clone)]
pub(crate) struct Answered {
    body: Bytes,
}

impl Answered {
    /// The result of the operation after CB_SEQUENCE.
    ///
    /// # Errors
    /// [`CallbackError::Malformed`].
    pub(crate) fn result(&self) -> Result<ResOp<'_>, CallbackError> {
        let results = CompoundRes::from_bytes(&self.body).map_err(|_| CallbackError::Malformed)?.results;
        results.into_iter().nth(1).ok_or(CallbackError::Malformed)
    }

    /// The status of that operation.
    ///
    /// # Errors
    /// [`CallbackError::Malformed`]; [`CallbackError::Refused`] if it failed.
    pub(crate) fn ok(&self) -> Result<(), CallbackError> {
        self.result()?.status().map_err(CallbackError::Refused)
    }
}

/// Why a client is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The client has something to do. Without a connection, its SEQUENCE reports SEQ4_STATUS_CB_PATH_DOWN_SESSION.
    Call,
    /// The server wants to know whether the client answers.
    Probe,
}

impl Callbacks {
    /// Starts without calls under way. The first call has the number `first_xid`: clients that remember calls of an
    /// earlier run of the server must not take a call of this run for a repetition.
    pub(crate) fn new(first_xid: u32, timeout: Duration) -> Self {
        Self { next_xid: AtomicU32::new(first_xid), timeout, waiting: Mutex::default() }
    }

    /// Calls a client over any of its sessions that has a working back channel.
    ///
    /// # Errors
    /// [`CallbackError`]. [`CallbackError::Refused`] refers to CB_SEQUENCE; the operation's own failure is in the
    /// answer.
    pub(crate) async fn call(
        &self,
        client: &Client,
        operation: &ArgOp<'_>,
    ) -> Result<Answered, CallbackError> {
        self.call_about(client, operation, &[]).await
    }

    /// Like [`Callbacks::call`], about something that the client learns from the replies to these requests of its own.
    /// The replies may not have reached the client yet (RFC 8881 2.10.6.3).
    ///
    /// # Errors
    /// As [`Callbacks::call`].
    pub(crate) async fn call_about(
        &self,
        client: &Client,
        operation: &ArgOp<'_>,
        requests: &[ReferringCalls],
    ) -> Result<Answered, CallbackError> {
        let session = client.sessions().into_iter().find(|session| session.back.is_open());
        let session = session.ok_or(CallbackError::PathDown)?;
        self.call_over(&session, operation, requests).await
    }

    /// Calls a client over a session.
    ///
    /// # Errors
    /// As [`Callbacks::call`].
    pub(super) async fn call_over(
        &self,
        session: &Session,
        operation: &ArgOp<'_>,
        requests: &[ReferringCalls],
    ) -> Result<Answered, CallbackError> {
        let back = &session.back;
        let ticket = back.take_slot(self.timeout).await?;
        let xid = self.xid();
        let sequence = ArgOp::Sequence(SequenceArgs {
            session_id: session.id,
            sequence_id: ticket.sequence,
            slot_id: ticket.slot,
            highest_slot_id: ticket.highest_slot,
            cache_this: false,
            referring_calls: requests.to_vec(),
        });
        let operations = [sequence, operation.clone()];
        let frame = back.frame(xid, callback::PROCEDURE_COMPOUND, |writer| {
            callback::encode_compound(writer, back.minor_version, &operations);
        });
        let answer = self.send_until_answered(back, xid, &frame, Need::Call).await;
        let answer = answer.and_then(|reply| accepted(&reply));
        back.end(xid, ticket, &answer);
        answer.and_then(|answered| match first_status(&answered)? {
            Ok(()) => Ok(answered),
            Err(status) => Err(CallbackError::Refused(status)),
        })
    }

    /// CB_NULL: checks whether the client answers at all.
    ///
    /// # Errors
    /// As [`Callbacks::call`].
    pub(crate) async fn probe(&self, session: &Session) -> Result<(), CallbackError> {
        let xid = self.xid();
        let frame = session.back.frame(xid, callback::PROCEDURE_NULL, |_| {});
        let reply = self.send_until_answered(&session.back, xid, &frame, Need::Probe).await?;
        accepted(&reply).map(|_| ())
    }

    fn xid(&self) -> u32 {
        self.next_xid.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a call over one connection after the other until one brings the reply. When the last connection is lost,
    /// SEQUENCE reports that to the client. The client then brings another connection, and gets the call again over it.
    /// RFC 8881 18.46.3: "per rules on request retry, the server MUST retry the callback operation over the same
    /// session".
    async fn send_until_answered(
        &self,
        back: &BackChannel,
        xid: u32,
        frame: &[u8],
        need: Need,
    ) -> Result<Bytes, CallbackError> {
        let mut tried = Vec::new();
        let mut was_sent = false;
        let answered = async {
            loop {
                let more = back.link_added.notified();
                let Some(link) = back.link(&tried) else {
                    back.is_down.fetch_or(need == Need::Call, Ordering::Relaxed);
                    if !was_sent || back.ways.lock().is_shut {
                        return None;
                    }
                    more.await;
                    continue;
                };
                tried.push(link.number);
                let (sender, reply) = oneshot::channel();
                let waiting = Waiting { connection: link.number, reply: sender };
                self.waiting.lock().insert(xid, waiting);
                if link.mailbox.post_urgently(Buffer::from(frame), ACKNOWLEDGE_PATIENCE).is_err() {
                    continue;
                }
                was_sent = true;
                if let Ok(reply) = reply.await {
                    back.is_down.store(false, Ordering::Relaxed);
                    return Some(reply);
                }
            }
        };
        let answer = tokio::time::timeout(self.timeout, answered).await;
        self.waiting.lock().remove(&xid);
        match answer {
            Ok(Some(reply)) => Ok(reply),
            _ if !was_sent => Err(CallbackError::PathDown),
            _ if back.is_needed_and_down() => Err(CallbackError::Lost),
            _ => Err(CallbackError::TimedOut),
        }
    }

    /// Passes on a reply that has arrived over a connection. Returns false if no call waits for it.
    pub(crate) fn replied(&self, connection: ConnectionNumber, record: &Bytes) -> bool {
        let Ok(xid) = Reader::new(record).u32() else { return false };
        let mut waiting = self.waiting.lock();
        let awaited = waiting.get(&xid).is_some_and(|waiting| waiting.connection == connection);
        let taken = if awaited { waiting.remove(&xid) } else { None };
        drop(waiting);
        taken.is_some_and(|waiting| waiting.reply.send(record.clone()).is_ok())
    }

    /// Handles the end of a connection: calls that wait for a reply there are sent over another one.
    pub(crate) fn connection_ended(&self, connection: ConnectionNumber) {
        self.waiting.lock().retain(|_, waiting| waiting.connection != connection);
    }
}

/// The reply to a call, if the client accepted the call.
fn accepted(record: &Bytes) -> Result<Answered, CallbackError> {
    let mut reader = Reader::new(record);
    let reply = Reply::decode(&mut reader).map_err(|_| CallbackError::Malformed)?;
    match reply.body {
        ReplyBody::Accepted { status: AcceptStatus::Success, .. } => {
            Ok(Answered { body: record.slice_ref(reader.rest()) })
        }
        ReplyBody::Accepted { .. } | ReplyBody::Denied(_) => Err(CallbackError::Malformed),
    }
}

/// The status of CB_SEQUENCE.
fn first_status(answered: &Answered) -> Result<Result<(), Status>, CallbackError> {
    let results = CompoundRes::from_bytes(&answered.body).map_err(|_| CallbackError::Malformed)?.results;
    Ok(results.first().ok_or(CallbackError::Malformed)?.status())
}

impl BackChannel {
    pub(crate) fn new(
        attributes: ChannelAttributes,
        minor_version: u32,
        program: u32,
        credential: Credential,
    ) -> Self {
        let slots = BackSlots::new(attributes.requests_max);
        Self {
            minor_version,
            is_down: AtomicBool::new(false),
            is_faulty: AtomicBool::new(false),
            ways: Mutex::new(Ways {
                program,
                credential,
                links: Vec::new(),
                slots,
                in_doubt: Vec::new(),
                is_shut: false,
            }),
            slot_freed: Notify::new(),
            link_added: Notify::new(),
        }
    }

    /// BACKCHANNEL_CTL.
    pub(crate) fn change(&self, program: u32, credential: Credential) {
        let mut ways = self.ways.lock();
        ways.program = program;
        ways.credential = credential;
    }

    /// Whether there is a connection for calls.
    pub(crate) fn is_open(&self) -> bool {
        !self.ways.lock().links.is_empty()
    }

    /// Whether a call could not be sent since the last connection was added.
    pub(super) fn is_needed_and_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    pub(super) fn is_faulty(&self) -> bool {
        self.is_faulty.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, link: &Link, client: &Client) {
        self.ways.lock().links.push(link.clone());
        self.is_down.store(false, Ordering::Relaxed);
        client.count_back_connections(1, 0);
        self.link_added.notify_waiters();
    }

    pub(super) fn remove(&self, connection: ConnectionNumber, client: &Client) {
        let mut ways = self.ways.lock();
        let before = ways.links.len();
        ways.links.retain(|link| link.number != connection);
        let fewer = before.saturating_sub(ways.links.len());
        drop(ways);
        client.count_back_connections(0, u32::try_from(fewer).unwrap_or(u32::MAX));
    }

    /// The session has ended.
    pub(super) fn shut(&self, client: &Client) {
        let links = {
            let mut ways = self.ways.lock();
            ways.is_shut = true;
            std::mem::take(&mut ways.links)
        };
        client.count_back_connections(0, u32::try_from(links.len()).unwrap_or(u32::MAX));
        self.slot_freed.notify_waiters();
        self.link_added.notify_waiters();
    }

    /// A connection that was not tried yet: the newest one, which is the most likely to work.
    fn link(&self, tried: &[ConnectionNumber]) -> Option<Link> {
        let ways = self.ways.lock();
        ways.links.iter().rev().find(|link| !tried.contains(&link.number)).cloned()
    }

    async fn take_slot(&self, timeout: Duration) -> Result<Ticket, CallbackError> {
        let taken = async {
            loop {
                let freed = self.slot_freed.notified();
                let ticket = {
                    let mut ways = self.ways.lock();
                    if ways.links.is_empty() {
                        return Err(CallbackError::PathDown);
                    }
                    ways.slots.begin()
                };
                if let Some(ticket) = ticket {
                    return Ok(ticket);
                }
                freed.await;
            }
        };
        tokio::time::timeout(timeout, taken).await.unwrap_or(Err(CallbackError::TimedOut))
    }

    /// Ends a call.
    fn end(&self, xid: u32, ticket: Ticket, answer: &Result<Answered, CallbackError>) {
        let status = answer.as_ref().map(first_status);
        let ended = match &status {
            // The client has carried the call out, whatever the results are.
            Ok(Ok(Ok(())) | Err(_)) => Ended::Answered,
            Ok(Ok(Err(_))) | Err(CallbackError::PathDown | CallbackError::Malformed) => Ended::NotBegun,
            Err(_) => Ended::Unanswered,
        };
        let mut ways = self.ways.lock();
        ways.slots.end(ticket, ended);
        if ended == Ended::Unanswered {
            ways.in_doubt.push((xid, ticket));
        }
        self.is_faulty.store(ways.slots.is_faulty(), Ordering::Relaxed);
        drop(ways);
        self.slot_freed.notify_one();
    }

    /// Handles the reply to a call that was given up. Returns whether there is such a call.
    pub(crate) fn answered_late(&self, xid: u32) -> bool {
        let mut ways = self.ways.lock();
        let Some(place) = ways.in_doubt.iter().position(|(given_up, _)| *given_up == xid) else {
            return false;
        };
        let (_, ticket) = ways.in_doubt.swap_remove(place);
        ways.slots.end(ticket, Ended::Answered);
        self.is_faulty.store(ways.slots.is_faulty(), Ordering::Relaxed);
        drop(ways);
        self.slot_freed.notify_one();
        true
    }

    /// A call, with its record mark.
    fn frame(&self, xid: u32, procedure: u32, arguments: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let ways = self.ways.lock();
        let Credential { flavor, body } = &ways.credential;
        let call = Call {
            xid,
            program: ways.program,
            version: callback::VERSION,
            procedure,
            credential: OpaqueAuth { flavor: *flavor, body },
            verifier: OpaqueAuth::NONE,
        };
        let mut buffer = Buffer::with_capacity(CALL_BYTES);
        buffer.append_with(|bytes, _| {
            let mut writer = Writer::new(bytes);
            call.encode(&mut writer);
            arguments(&mut writer);
        });
        mark(buffer).to_vec()
    }
}

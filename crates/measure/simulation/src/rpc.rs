//! Calls of an NFS client over one connection at a time (RFC 5531). A call is sent again when the connection ends or
//! after a time.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use nfs_wire::auth_sys::{AuthSys, Groups, MachineName};
use nfs_wire::record_mark::{MARK_BYTES, Mark};
use nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};

use crate::machine;
use crate::pipe::ClientEnd;
use crate::servers::Front;
use crate::world::{PATIENCE, World};

/// How long a client waits for a reply before it sends a call again, as Linux does over TCP (nfs(5), `timeo`).
const SEND_AGAIN: Duration = Duration::from_secs(60);

/// One in this many waits for replies ends with the loss of the connection.
const CUTS_ONE_IN: u64 = 40;

/// A record with a call: the xid of the call and the bytes of the record.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) xid: u32,
    bytes: Vec<u8>,
}

/// A record that has arrived.
pub(crate) enum Came {
    /// The reply to a call: its bytes, and where the results begin.
    Reply { xid: u32, message: Vec<u8>, results: usize },
    /// A call from the server, over the backchannel.
    Call(Vec<u8>),
    /// The connection has ended.
    End,
}

/// The procedure of a call.
#[derive(Clone, Copy)]
pub(crate) struct Procedure {
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) number: u32,
}

/// The connection of a client.
pub(crate) struct Rpc {
    pub(crate) world: Rc<World>,
    pub(crate) client: u32,
    end: Option<ClientEnd>,
    next: u32,
    /// Whether any call of the last [`Rpc::ask`] was sent again.
    pub(crate) sent_again: bool,
    /// Calls that were sent again over the same connection. Such a call may be answered once for each time that it was
    /// sent.
    repeated: HashSet<u32>,
    /// The call that is sent first over each new connection. Its reply says nothing that the replies to other calls do
    /// not say.
    pub(crate) greeting: Option<Asked>,
}

/// How a client answers a call from the server: the xid of the call, and the results.
pub(crate) type OnCall<'a> = &'a mut dyn FnMut(&[u8]) -> Option<(u32, Vec<u8>)>;

impl Rpc {
    pub(crate) fn new(world: Rc<World>, client: u32) -> Self {
        Self {
            world,
            client,
            end: None,
            next: client << 24,
            sent_again: false,
            repeated: HashSet::new(),
            greeting: None,
        }
    }

    /// Builds a record with a call whose arguments `body` appends.
    pub(crate) fn call(&mut self, procedure: Procedure, body: impl FnOnce(&mut Writer<'_>)) -> Asked {
        self.next = self.next.wrapping_add(1);
        let credential = AuthSys {
            stamp: 0,
            machine_name: MachineName(b"simulated"),
            uid: 0,
            gid: 0,
            groups: Groups::new(&[]).unwrap_or_default(),
        };
        let credential = credential.encode_to_vec();
        let call = Call {
            xid: self.next,
            program: procedure.program,
            version: procedure.version,
            procedure: procedure.number,
            credential: OpaqueAuth { flavor: flavor::AUTH_SYS, body: &credential },
            verifier: OpaqueAuth::NONE,
        };
        Asked {
            xid: self.next,
            bytes: record(|w| {
                call.encode(w);
                body(w);
            }),
        }
    }

    /// Whether there is a connection that has not ended.
    pub(crate) fn is_connected(&self) -> bool {
        self.end.as_ref().is_some_and(|end| !end.is_over())
    }

    /// Whether anything is on its way to the client.
    pub(crate) fn has_more(&self) -> bool {
        self.end.as_ref().is_none_or(ClientEnd::has_more)
    }

    /// Ends the connection.
    pub(crate) fn hang_up(&mut self) {
        if let Some(end) = self.end.take() {
            end.cut();
        }
    }

    /// Connects, if the servers run.
    pub(crate) fn connect(&mut self) -> bool {
        if !self.is_connected() {
            self.end = self.world.connect(Front::Nfs, self.client);
            if let Some(greeting) = &self.greeting {
                self.send(greeting);
            }
        }
        self.end.is_some()
    }

    pub(crate) fn send(&self, asked: &Asked) {
        if let Some(end) = &self.end {
            end.send(&asked.bytes);
        }
    }

    /// The next record.
    pub(crate) async fn next(&self) -> Came {
        let Some(end) = &self.end else { return Came::End };
        let Some(record) = end.message(whole).await else { return Came::End };
        let message = record.get(MARK_BYTES..).unwrap_or_default().to_vec();
        if message.get(4..8) == Some(&[0; 4]) {
            return Came::Call(message);
        }
        let mut reader = Reader::new(&message);
        let results = match Reply::decode(&mut reader) {
            Ok(Reply { xid, body: ReplyBody::Accepted { status: AcceptStatus::Success, .. } }) => {
                (xid, message.len() - reader.rest().len())
            }
            other => {
                self.world.fail(self.client, format!("an answer that no call has asked for: {other:?}"));
                return Came::End;
            }
        };
        Came::Reply { xid: results.0, results: results.1, message }
    }

    /// Answers a call from the server.
    fn answer(&self, call: &[u8], on_call: OnCall<'_>) {
        let Some((xid, results)) = on_call(call) else {
            return self.world.fail(self.client, "a call that cannot be decoded".to_owned());
        };
        let reply = Reply { xid, body: ReplyBody::accepted(AcceptStatus::Success) };
        let record = record(|w| {
            reply.encode(w);
            w.opaque_fixed(&results);
        });
        if let Some(end) = &self.end {
            end.send(&record);
        }
    }

    /// Sends nothing for at most `most` milliseconds, or until a call from the server has been answered.
    pub(crate) async fn idle(&mut self, most: u64, on_call: OnCall<'_>) {
        let until = tokio::time::Instant::now() + Duration::from_millis(self.world.below(most + 1));
        while self.is_connected() {
            match tokio::time::timeout_at(until, self.next()).await {
                Err(_) => return,
                Ok(Came::End) => self.end = None,
                Ok(Came::Call(call)) => return self.answer(&call, on_call),
                Ok(Came::Reply { xid, .. }) if self.is_expected(xid) => {}
                Ok(Came::Reply { xid, .. }) => {
                    return self.world.fail(self.client, format!("call {xid:#x} was answered twice"));
                }
            }
        }
        tokio::time::sleep_until(until).await;
    }

    /// Whether a reply that no caller waits for is legitimate.
    fn is_expected(&self, xid: u32) -> bool {
        self.repeated.contains(&xid) || self.greeting.as_ref().is_some_and(|greeting| greeting.xid == xid)
    }

    /// Makes calls side by side and returns their results, in the order of the calls. Calls without a reply are sent
    /// again, over another connection if necessary. `None`: the simulation is over.
    pub(crate) async fn ask(&mut self, calls: &[Asked], on_call: OnCall<'_>) -> Option<Vec<Vec<u8>>> {
        let begun = machine::elapsed();
        let mut answers: HashMap<u32, Vec<u8>> = HashMap::new();
        let mut sent = 0;
        while answers.len() < calls.len() {
            if self.world.is_over() {
                return None;
            }
            if machine::elapsed().saturating_sub(begun) > PATIENCE {
                self.world.fail(self.client, "a call was never answered".to_owned());
                return None;
            }
            if !self.connect() {
                self.world.pause(2000).await;
                continue;
            }
            sent += 1;
            self.sent_again = sent > 1;
            for call in calls.iter().filter(|call| !answers.contains_key(&call.xid)) {
                self.send(call);
            }
            if self.world.once_in(CUTS_ONE_IN) {
                self.world.pause(10).await;
                self.hang_up();
                continue;
            }
            self.gather(calls, &mut answers, begun, on_call).await;
        }
        calls.iter().map(|call| answers.remove(&call.xid)).collect()
    }

    /// Takes replies until all are there, the connection has ended, or it is time to send the calls again.
    async fn gather(
        &mut self,
        calls: &[Asked],
        answers: &mut HashMap<u32, Vec<u8>>,
        begun: Duration,
        on_call: OnCall<'_>,
    ) {
        while answers.len() < calls.len() {
            let Ok(came) = tokio::time::timeout(SEND_AGAIN, self.next()).await else {
                self.repeated.extend(calls.iter().map(|call| call.xid));
                return;
            };
            match came {
                Came::End => return self.end = None,
                Came::Call(call) => self.answer(&call, on_call),
                Came::Reply { xid, .. }
                    if self.is_expected(xid)
                        && (answers.contains_key(&xid) || calls.iter().all(|call| call.xid != xid)) => {}
                Came::Reply { xid, message, results } => {
                    let is_asked = calls.iter().any(|call| call.xid == xid);
                    let results = message.get(results..).unwrap_or_default().to_vec();
                    if !is_asked || answers.insert(xid, results).is_some() {
                        self.world.fail(self.client, format!("call {xid:#x} was answered twice"));
                        return;
                    }
                    if self.sent_again {
                        self.world.count();
                    } else {
                        self.world.answered(self.client, begun);
                    }
                }
            }
        }
    }
}

/// Answers for a client that gives the server no reason to call it.
pub(crate) fn uncalled(_: &[u8]) -> Option<(u32, Vec<u8>)> {
    None
}

/// A record of one fragment.
fn record(body: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = vec![0; MARK_BYTES];
    body(&mut Writer::new(&mut bytes));
    let mark = Mark::whole_record(bytes.len() - MARK_BYTES).to_bytes();
    bytes.iter_mut().zip(mark).for_each(|(to, from)| *to = from);
    bytes
}

/// The length of the record that begins here, its mark included.
fn whole(received: &[u8]) -> Option<usize> {
    let mark = received.first_chunk::<MARK_BYTES>()?;
    Some(MARK_BYTES + (u32::from_be_bytes(*mark) & 0x7fff_ffff) as usize)
}

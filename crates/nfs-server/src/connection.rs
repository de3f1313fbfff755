//! One connection: records in, replies out.

use std::cell::Cell;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use net::{Answer, Outbox, Peer, Prefix, PrefixError, Protocol};
use nfs_proto::duplicate_request::{self, Key};
use nfs_wire::record_mark::{MARK_BYTES, Mark};
use nfs_wire::rpc::{Call, CallError};
use nfs_wire::xdr::Reader;
use nfs_wire::{v3, v4 as v4_wire};
use share::{Accounts, ShareView};

use crate::credentials::CallerCache;
use crate::traffic::Traffic;
use crate::{ServerState, repeated, rpc_dispatch, v4};

/// The state of one connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) server: Arc<ServerState>,
    pub(crate) client: IpAddr,
    pub(crate) callers: CallerCache,
    /// What it counts of each share.
    pub(crate) accounts: Accounts,
    /// The shares there are now.
    pub(crate) shares: ShareView,
    pub(crate) v4: v4::connection::Connection,
    /// Whether it has sent a call.
    has_called: Cell<bool>,
    pub(crate) traffic: Arc<Traffic>,
}

impl Connection {
    pub(crate) fn new(server: Arc<ServerState>, peer: Peer, outbox: &Outbox) -> Self {
        let v4 = v4::connection::Connection::new(&server.v4, outbox);
        let traffic = server.connections.enter(peer, v4.link.number.0, outbox.round_trip().clone());
        let client = peer.address.ip().to_canonical();
        Self {
            shares: ShareView::new(&server.exports.shares),
            v4,
            server,
            client,
            callers: CallerCache::new(client),
            accounts: Accounts::default(),
            has_called: Cell::new(false),
            traffic,
        }
    }
}

impl Protocol for Connection {
    /// RFC 5531 section 11. The length is checked against [`net::Limits::frame_bytes`].
    fn prefix(&self, prefix: [u8; MARK_BYTES]) -> Result<Prefix, PrefixError> {
        let mark = Mark::from_bytes(prefix);
        let length = usize::try_from(mark.length).unwrap_or(usize::MAX);
        Ok(Prefix { length, last: mark.last })
    }

    /// Clients connect when they have something to send.
    fn is_welcome(&self) -> bool {
        self.has_called.get()
    }

    fn answer(self: Rc<Self>, frame: BytesMut) -> Answer {
        let frame = frame.freeze(); // what is written is taken from where it was received
        let mut reader = Reader::new(&frame);
        let once = match Call::decode(&mut reader) {
            Ok(call) => {
                self.traffic.begin(&call);
                if (call.program, call.version) == (v4_wire::PROGRAM, v4_wire::VERSION) {
                    return self.answer_v4(frame);
                }
                is_kept(&call).then(|| Key::new(self.client, &call, reader.rest()))
            }
            Err(CallError::Rejected(reply)) => return Answer::Now(rpc_dispatch::reply(&reply, &())),
            Err(CallError::Unanswerable) if self.v4.replied(&self.server.v4, &frame) => {
                return Answer::Nothing;
            }
            Err(CallError::Unanswerable) => return Answer::Close("a message that is no RPC call".to_owned()),
        };
        self.has_called.set(true);
        let calls = Arc::clone(&self.server.repeated);
        let traffic = Arc::clone(&self.traffic);
        let reply = rpc_dispatch::answer(self, frame);
        let reply = async move {
            let reply = match once {
                Some(key) => repeated::once(calls, key, reply).await,
                None => reply.await,
            };
            traffic.end();
            reply
        };
        Answer::Later(Box::pin(reply))
    }

    fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        self.server.connections.leave(&self.traffic);
        self.v4.ended(&self.server.v4);
        Box::pin(std::future::ready(()))
    }
}

impl Connection {
    /// An NFSv4 call goes on to its end even if its connection ends: the client sends it again over another one, into the
    /// same slot, and must find it either running or answered.
    fn answer_v4(self: Rc<Self>, frame: Bytes) -> Answer {
        self.has_called.set(true);
        let traffic = Arc::clone(&self.traffic);
        let reply = rpc_dispatch::answer(self, frame);
        Answer::Certainly(Box::pin(async move {
            let reply = reply.await;
            traffic.end();
            reply
        }))
    }
}

/// Whether a repetition of this call must not run again.
fn is_kept(call: &Call<'_>) -> bool {
    call.program == v3::PROGRAM
        && call.version == v3::VERSION
        && v3::Procedure::try_from(call.procedure).is_ok_and(duplicate_request::is_kept)
}

#[cfg(test)]
mod tests {
    use net::{Outbox, Service};

    use super::*;
    use crate::{Config, ExportRules, NfsServer};

    #[test]
    fn who_has_sent_a_call_may_stay() {
        let server = NfsServer::new(Config::new(Arc::default(), ExportRules::default(), [0; 16], [0; 8]));
        let address = ([127, 0, 0, 1], 700).into();
        let connection = server.connected(Peer { address, local: address, shard: 0 }, Outbox::new(1));
        let nonsense = Rc::clone(&connection).answer(BytesMut::from(&b"nonsense"[..]));
        assert!(matches!(nonsense, Answer::Close(_)) && !connection.is_welcome());
        let null = [1_u32, 0, 2, v3::PROGRAM, v3::VERSION, 0, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
        assert!(matches!(Rc::clone(&connection).answer(BytesMut::from(&null[..])), Answer::Later(_)));
        assert!(connection.is_welcome());
        let reports = server.connections();
        assert!(reports.len() == 1 && reports[0].calls == 1 && reports[0].in_flight == 1, "{reports:?}");
        drop(connection.closed());
        assert!(server.connections().is_empty());
    }
}

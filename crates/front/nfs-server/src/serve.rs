//! One connection: records in, replies out.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use net::{Answer, Later, Prefix, PrefixError, Protocol, Secured};
use nfs_proto::duplicate_request::Key;
use nfs_wire::record_mark::{MARK_BYTES, Mark};
use nfs_wire::rpc::{Call, CallError, flavor};
use nfs_wire::{nlm as nlm_wire, v3 as v3_wire, v4 as v4_wire};

use crate::connection::Connection;
use crate::received::Received;
use crate::repeated::{self, RepeatedCalls};
use crate::traffic::Traffic;
use crate::{gss, reply, run, v3};

impl Protocol for Connection {
    /// RFC 5531 section 11. The length is checked against [`net::Limits::frame_bytes`].
    fn prefix(&self, prefix: [u8; MARK_BYTES]) -> Result<Prefix, PrefixError> {
        let mark = Mark::from_bytes(prefix);
        let length = usize::try_from(mark.length).unwrap_or(usize::MAX);
        Ok(Prefix { length, last: mark.last })
    }

    /// RFC 5531 section 9: a message begins with a transaction id, then CALL (0) or REPLY (1). An SMB client on the
    /// wrong port sends bytes that look like the mark of a further fragment, and would wait for a reply.
    fn can_begin(&self, fragment: &[u8]) -> bool {
        fragment.get(4..8).is_none_or(|kind| matches!(kind, [0, 0, 0, 0 | 1]))
    }

    fn secured(&self, with: Secured) {
        self.encrypted(with);
    }

    fn is_known(&self) -> bool {
        self.has_used_share.get() || self.v4.has_client() && self.is_admitted()
    }

    /// Clients connect when they have something to send.
    fn is_welcome(&self) -> bool {
        self.has_called.get()
    }

    /// Clients of NFSv3 connect again when they have something to send. A connection of an NFSv4 client has state.
    fn may_be_silent(&self) -> bool {
        self.v4.has_client()
    }

    fn answer(self: Rc<Self>, frame: BytesMut) -> Answer {
        if gss::arrive::is_meant(&frame) {
            return self.answer_protected(frame);
        }
        let frame = frame.freeze(); // data to write is taken from the buffer into which it was received
        let received = match Received::decode(&frame) {
            Ok(received) => received,
            Err(CallError::Rejected(reply)) => return Answer::Now(reply::reply(&reply, &())),
            Err(CallError::Unanswerable) if self.v4.replied(&self.server.v4, &frame) => {
                return Answer::Nothing;
            }
            Err(CallError::Unanswerable) => return Answer::Close("a message that is no RPC call".to_owned()),
        };
        self.has_called.set(true);
        self.answer_call(received)
    }

    fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        self.server.connections.leave(&self.traffic);
        self.v4.ended(&self.server.v4);
        Box::pin(std::future::ready(()))
    }
}

impl Connection {
    /// Opens a call with RPCSEC_GSS, and protects its reply, whoever makes that.
    fn answer_protected(self: Rc<Self>, frame: BytesMut) -> Answer {
        let received = match gss::arrive::open(&self, frame) {
            Ok(received) => received,
            Err(answer) => return answer,
        };
        let Some(protected) = received.protected.clone() else { return Answer::Nothing };
        let closed = |reply: Later| -> Later {
            Box::pin(async move { reply.await.map(|reply| protected.close(reply)) })
        };
        match self.answer_call(received) {
            Answer::Later(reply) => Answer::Later(closed(reply)),
            Answer::Certainly(reply) => Answer::Certainly(closed(reply)),
            Answer::Now(_) | Answer::StartTls(..) | Answer::Nothing | Answer::Close(_) => Answer::Nothing,
        }
    }

    fn answer_call(self: Rc<Self>, received: Received) -> Answer {
        let call = received.call();
        if call.credential.flavor == flavor::AUTH_TLS {
            return self.probed(&call);
        }
        self.traffic.begin(&call);
        if (call.program, call.version) == (v4_wire::PROGRAM, v4_wire::VERSION) {
            return self.answer_v4(received);
        }
        if call.program == nlm_wire::PROGRAM {
            // What a host holds is entered in several steps. Locking and unlocking twice does no harm.
            return Answer::Certainly(Box::pin(run::answer_nlm(self, received, Traffic::end)));
        }
        if !is_kept(&call) {
            return Answer::Later(Box::pin(run::answer(self, received, Traffic::end)));
        }
        let calls = self.kept_calls(&call);
        let principal = received.protected.as_ref().map(|protected| &*protected.context.name);
        let key = Key::new(self.client, &call, principal, received.arguments().rest());
        let traffic = Arc::clone(&self.traffic);
        // Boxed before it is put into other futures: it is large, and each of them would copy it.
        let reply = Box::pin(run::answer(self, received, |_| ()));
        Answer::Later(Box::pin(async move {
            let reply = repeated::once(calls, key, reply).await;
            traffic.end();
            reply
        }))
    }

    /// Where the replies to such calls are kept.
    fn kept_calls(&self, call: &Call<'_>) -> Arc<RepeatedCalls> {
        let is_write = call.procedure == v3_wire::Procedure::Write as u32;
        Arc::clone(if is_write { &self.server.repeated_writes } else { &self.server.repeated })
    }

    /// An NFSv4 call runs to its end even if its connection ends. The client sends the call again over another
    /// connection, into the same slot, and must find it either running or answered.
    fn answer_v4(self: Rc<Self>, received: Received) -> Answer {
        Answer::Certainly(Box::pin(run::answer_v4(self, received, Traffic::end)))
    }
}

/// Whether a repetition of this call must not run again.
fn is_kept(call: &Call<'_>) -> bool {
    call.program == v3_wire::PROGRAM
        && call.version == v3_wire::VERSION
        && v3::operation(call.procedure).is_some_and(|operation| operation.is_kept)
}

#[cfg(test)]
mod tests {
    use net::{Outbox, Peer, Service};

    use super::*;
    use crate::{Config, NfsServer, Squashing};

    #[test]
    fn a_client_of_smb_is_known_by_its_first_fragment() {
        let server = NfsServer::new(Config::new(Arc::default(), Squashing::default(), [0; 16], [0; 8]));
        let address = ([127, 0, 0, 1], 700).into();
        let connection = server.connected(
            Peer { address, local: address, shard: 0, transport: net::Transport::Tcp },
            Outbox::new(1),
        );
        assert!(!connection.can_begin(b"\xfeSMB\x40\0\0\0") && !connection.can_begin(b"\xffSMBr\0\0\0"));
        assert!(
            connection.can_begin(&[1, 2, 3, 4, 0, 0, 0, 0, 9])
                && connection.can_begin(&[1, 2, 3, 4, 0, 0, 0, 1])
        );
        assert!(
            connection.can_begin(b"") && connection.can_begin(b"\xfeSMB"),
            "the kind may come with the next one"
        );
    }

    #[test]
    fn who_has_sent_a_call_may_stay() {
        let server = NfsServer::new(Config::new(Arc::default(), Squashing::default(), [0; 16], [0; 8]));
        let address = ([127, 0, 0, 1], 700).into();
        let connection = server.connected(
            Peer { address, local: address, shard: 0, transport: net::Transport::Tcp },
            Outbox::new(1),
        );
        let nonsense = Rc::clone(&connection).answer(BytesMut::from(&b"nonsense"[..]));
        assert!(matches!(nonsense, Answer::Close(_)) && !connection.is_welcome());
        let null =
            [1_u32, 0, 2, v3_wire::PROGRAM, v3_wire::VERSION, 0, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
        assert!(matches!(Rc::clone(&connection).answer(BytesMut::from(&null[..])), Answer::Later(_)));
        assert!(connection.is_welcome() && !connection.is_known() && !connection.may_be_silent());
        connection.has_used_share.set(true);
        assert!(connection.is_known() && !connection.may_be_silent());
        let reports = server.connections();
        assert!(reports.len() == 1 && reports[0].calls == 1 && reports[0].in_flight == 1, "{reports:?}");
        drop(connection.closed());
        assert!(server.connections().is_empty());
    }
}

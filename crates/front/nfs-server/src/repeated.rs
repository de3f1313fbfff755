//! Runs a call that must not run twice, or returns the reply of its first run.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use net::Buffer;
use nfs_proto::duplicate_request::{CallCacheLimits, DuplicateRequests, Key, Seen};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The duplicate request cache of all connections.
#[derive(Debug)]
pub(crate) struct RepeatedCalls {
    /// Guards the cache; held only for a lookup.
    cache: Mutex<DuplicateRequests>,
    /// Notified when a call has ended, for repetitions that wait for it.
    ended: Notify,
}

impl RepeatedCalls {
    pub(crate) fn new(limits: CallCacheLimits) -> Self {
        Self { cache: Mutex::new(DuplicateRequests::new(limits)), ended: Notify::new() }
    }
}

/// What a call is.
pub(crate) enum Begun {
    /// A new one, which is to run.
    Run(Running),
    /// A repetition: the reply of the first run.
    Done(Buffer),
}

/// Begins a call, unless it is a repetition. In that case returns the reply of the first run, once there is one.
pub(crate) async fn begin(calls: Arc<RepeatedCalls>, key: Key) -> Begun {
    loop {
        let ended = calls.ended.notified(); // registered before the lookup, so that no notification is missed
        let seen = calls.cache.lock().begin(key, Instant::now());
        match seen {
            Seen::New => break,
            Seen::InProgress => ended.await,
            Seen::Done(reply) => return Begun::Done(Buffer::from(&*reply)),
        }
    }
    Begun::Run(Running { calls, key, reply: None })
}

/// Runs `call`, unless it is a repetition. In that case returns the reply of the first run, once there is one.
pub(crate) async fn once(
    calls: Arc<RepeatedCalls>,
    key: Key,
    call: impl Future<Output = Option<Buffer>> + 'static,
) -> Option<Buffer> {
    let running = match begin(calls, key).await {
        Begun::Run(running) => running,
        Begun::Done(reply) => return Some(reply),
    };
    let mut run = Box::pin(async move {
        let reply = call.await;
        running.end(reply.as_deref());
        reply
    });
    // Once begun, a call goes on even if its connection ends, since the client will repeat it over another one.
    match poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await {
        Poll::Ready(reply) => reply,
        Poll::Pending => tokio::task::spawn_local(run).await.ok().flatten(),
    }
}

/// A call under way. Dropping it ends the call: with its reply, or without one if the server has gone.
pub(crate) struct Running {
    calls: Arc<RepeatedCalls>,
    key: Key,
    reply: Option<Arc<[u8]>>,
}

impl Running {
    /// The call has run, and has this reply.
    pub(crate) fn end(mut self, reply: Option<&[u8]>) {
        self.reply = reply.map(Arc::from);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut cache = self.calls.cache.lock();
        match self.reply.take() {
            Some(reply) => cache.finish(&self.key, reply),
            None => cache.forget(&self.key),
        }
        drop(cache);
        self.calls.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use nfs_wire::rpc::{Call, OpaqueAuth};
    use nfs_wire::v3;
    use tokio::task::{LocalSet, spawn_local};

    fn calls() -> Arc<RepeatedCalls> {
        Arc::new(RepeatedCalls::new(CallCacheLimits::default()))
    }

    fn key() -> Key {
        let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
        let (program, version, procedure) = (v3::PROGRAM, v3::VERSION, v3::Procedure::Remove as u32);
        let call = Call { xid: 1, program, version, procedure, credential, verifier };
        Key::new(Ipv4Addr::LOCALHOST.into(), &call, None, b"")
    }

    /// A call that takes a moment, and counts how often it has run.
    async fn slow(runs: Rc<Cell<u32>>) -> Option<Buffer> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        runs.set(runs.get() + 1);
        Some(Buffer::from(&b"reply"[..]))
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        LocalSet::new().block_on(&runtime, test);
    }

    #[test]
    fn a_repetition_waits_for_the_call_under_way() {
        run(async {
            let (calls, runs) = (calls(), Rc::new(Cell::new(0)));
            let first = spawn_local(once(Arc::clone(&calls), key(), slow(Rc::clone(&runs))));
            let second = spawn_local(once(calls, key(), slow(Rc::clone(&runs))));
            for reply in [first, second] {
                assert_eq!(reply.await.unwrap().as_deref(), Some(&b"reply"[..]));
            }
            assert_eq!(runs.get(), 1);
        });
    }

    #[test]
    fn a_call_goes_on_when_its_connection_ends() {
        run(async {
            let (calls, runs) = (calls(), Rc::new(Cell::new(0)));
            let first = spawn_local(once(Arc::clone(&calls), key(), slow(Rc::clone(&runs))));
            tokio::task::yield_now().await;
            first.abort();
            let second = once(calls, key(), slow(Rc::clone(&runs))).await;
            assert_eq!(second.as_deref(), Some(&b"reply"[..]));
            assert_eq!(runs.get(), 1);
        });
    }

    #[test]
    fn a_call_without_a_reply_runs_again() {
        run(async {
            let (calls, runs) = (calls(), Rc::new(Cell::new(0)));
            assert!(once(Arc::clone(&calls), key(), async { None }).await.is_none());
            assert!(once(calls, key(), slow(Rc::clone(&runs))).await.is_some());
            assert_eq!(runs.get(), 1);
        });
    }
}

//! Before an open is refused for lack of room, clients that keep their opens only by courtesy lose them.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::caching::Answering;
use crate::{Error, Result, ShareId};

/// How long the hosts are not asked again after they had no late client, so that repeated refusals cost little.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A front that lets silent clients keep their opens until another client needs the room.
pub trait Courtesy: Send + Sync {
    /// Makes all late clients with opens of this share lose what they hold. None when there are none; otherwise what to wait
    /// for.
    fn end_late(self: Arc<Self>, share: ShareId) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>>;
}

/// How a share reaches these servers, and whether it has asked them.
#[derive(Default)]
pub(super) struct Courtesies {
    /// Guards the servers to ask.
    hosts: Mutex<Option<Weak<dyn Courtesy>>>,
    /// Guards the state of the question.
    asked: Mutex<Asked>,
    ended: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Asked {
    at: Option<Instant>,
    is_under_way: bool,
}

impl Courtesies {
    /// Registers a server whose clients are about to open files.
    pub(super) fn of<C: Courtesy + 'static>(&self, host: &Arc<C>) {
        let mut hosts = self.hosts.lock();
        if hosts.as_ref().is_none_or(|known| known.strong_count() == 0) {
            let host: Weak<C> = Arc::downgrade(host);
            *hosts = Some(host);
        }
    }

    /// Has late clients of this share lose their opens. Returns what to wait for before another open is tried, at most this
    /// long.
    ///
    /// # Errors
    /// [`Error::LimitReached`] when there is nothing to wait for.
    pub(super) fn take_back(self: &Arc<Self>, share: ShareId, timeout: Duration) -> Result<Answering> {
        let refused = Error::LimitReached("opens");
        let now = Instant::now();
        let answering = Answering::new(Arc::clone(&self.ended).notified_owned(), now + timeout);
        {
            let mut asked = self.asked.lock();
            if asked.is_under_way {
                return Ok(answering);
            }
            if asked.at.is_some_and(|at| now.saturating_duration_since(at) < AGAIN_AFTER) {
                return Err(refused);
            }
            *asked = Asked { at: Some(now), is_under_way: true };
        }
        let host = self.hosts.lock().as_ref().and_then(Weak::upgrade);
        let Some(ending) = host.and_then(|host| host.end_late(share)) else {
            self.end();
            return Err(refused);
        };
        let courtesies = Arc::clone(self);
        tokio::spawn(async move {
            ending.await;
            courtesies.end();
        });
        Ok(answering)
    }

    /// Records that no client is late any more.
    fn end(&self) {
        self.asked.lock().is_under_way = false;
        self.ended.notify_waiters();
    }
}

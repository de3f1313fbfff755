//! Before an open is refused for lack of room, clients that keep their opens only by courtesy lose them (RFC 8881 8.4.3).

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::agreement::caching::Answering;
use crate::agreement::openers::Openers;
use crate::{Call, Error, Result, Share, ShareId};

/// How long the hosts are not asked again after they had no late client, so that repeated refusals cost little.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A server that lets clients keep opens after their lease time, until another client needs room: the NFSv4 server.
pub trait Courtesy: Send + Sync {
    /// Makes all late clients with opens of this share lose what they hold. None when there are none; otherwise what to wait
    /// for.
    fn end_late(self: Arc<Self>, share: ShareId) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>>;
}

/// How a share reaches these servers, and whether it has asked them.
#[derive(Default)]
pub(crate) struct Courtesies {
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

impl Share {
    /// Registers a server whose clients are about to open files. It is asked to end its late clients before any open is
    /// refused.
    pub fn open_by_courtesy_of<C: Courtesy + 'static>(&self, host: &Arc<C>) {
        let mut hosts = self.courtesies.hosts.lock();
        if hosts.as_ref().is_none_or(|known| known.strong_count() == 0) {
            let host: Weak<C> = Arc::downgrade(host);
            *hosts = Some(host);
        }
    }

    /// Whether these openers may have one more open. Returns what to wait for before asking again, if anything.
    ///
    /// # Errors
    /// [`Error::LimitReached`].
    pub fn room_for_open(self: &Arc<Self>, openers: Openers) -> Result<Option<Answering>> {
        if self.opens.has_room(openers) { Ok(None) } else { self.take_back_opens().map(Some) }
    }

    /// Waits until the caller may have one more open, as long as the call's front waits.
    ///
    /// # Errors
    /// [`Error::LimitReached`], [`Error::Delayed`].
    pub async fn wait_for_open(self: &Arc<Self>, call: &Call) -> Result<()> {
        self.settled(call, || Ok(((), self.room_for_open(call.caller.openers)?))).await
    }

    /// There is no room for one more open. Returns what to wait for before trying again.
    ///
    /// # Errors
    /// [`Error::LimitReached`] when there is nothing to wait for.
    pub(crate) fn take_back_opens(self: &Arc<Self>) -> Result<Answering> {
        let refused = Error::LimitReached("opens");
        let now = Instant::now();
        let answering = Answering::new(
            Arc::clone(&self.courtesies.ended).notified_owned(),
            now + self.settings.break_timeout,
        );
        {
            let mut asked = self.courtesies.asked.lock();
            if asked.is_under_way {
                return Ok(answering);
            }
            if asked.at.is_some_and(|at| now.saturating_duration_since(at) < AGAIN_AFTER) {
                return Err(refused);
            }
            *asked = Asked { at: Some(now), is_under_way: true };
        }
        let host = self.courtesies.hosts.lock().as_ref().and_then(Weak::upgrade);
        let Some(ending) = host.and_then(|host| host.end_late(self.id())) else {
            self.courtesies.end();
            return Err(refused);
        };
        let share = Arc::clone(self);
        tokio::spawn(async move {
            ending.await;
            share.courtesies.end();
        });
        Ok(answering)
    }
}

impl Courtesies {
    /// Records that no client is late any more.
    fn end(&self) {
        self.asked.lock().is_under_way = false;
        self.ended.notify_waiters();
    }
}

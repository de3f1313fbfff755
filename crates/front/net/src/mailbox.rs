//! Sends messages to a connection from any thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use planted::Fault;
use tokio::sync::Notify;

use crate::Buffer;

/// Puts unsolicited messages, already framed, into the outbox of a connection, which may live on another shard. Clones
/// name the same connection; a mailbox does not keep its connection alive.
#[derive(Debug, Clone)]
pub struct Mailbox(Arc<Post>);

/// Why a message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The connection has ended, or is ending.
    #[error("the connection has ended")]
    Gone,
    /// The most messages that may wait are waiting ([`crate::Limits::posted_frames`]): the peer is not receiving.
    #[error("too many messages wait for the peer")]
    Full,
}

#[derive(Debug)]
pub(crate) struct Post {
    /// Whether `letters` is not empty. A busy connection checks only this.
    waiting: AtomicBool,
    /// Guards everything that other threads have posted.
    letters: Mutex<Letters>,
    /// Wakes the connection's loop, also for messages from its own shard.
    pub(crate) ready: Notify,
}

#[derive(Debug)]
struct Letters {
    frames: VecDeque<Buffer>,
    frames_max: usize,
    urgent: Option<Duration>,
    close: bool,
    gone: bool,
}

/// The posts from other threads.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) frames: VecDeque<Buffer>,
    /// The patience of the most urgent message, if one is urgent.
    pub(crate) urgent: Option<Duration>,
    /// Whether the connection is to end.
    pub(crate) close: bool,
}

/// The mailbox of a connection that has ended.
impl Default for Mailbox {
    fn default() -> Self {
        let post = Post::new(0);
        post.end();
        Self(post)
    }
}

impl Mailbox {
    /// Sends a framed message after those that already wait, in the order of the calls.
    ///
    /// # Errors
    /// [`PostError`]: nothing is sent. An accepted message is lost if the connection ends before it is sent.
    pub fn post(&self, frame: Buffer) -> Result<(), PostError> {
        self.put(frame, None)
    }

    /// Like [`Mailbox::post`], for a message that others wait for: the connection ends if the peer's system has not
    /// acknowledged the message after `patience`, although it was retransmitted, and nothing has arrived from the peer
    /// meanwhile.
    ///
    /// # Errors
    /// As [`Mailbox::post`].
    pub fn post_urgently(&self, frame: Buffer, patience: Duration) -> Result<(), PostError> {
        self.put(frame, Some(patience))
    }

    fn put(&self, frame: Buffer, urgent: Option<Duration>) -> Result<(), PostError> {
        let mut letters = self.0.letters.lock();
        if letters.gone || letters.close {
            return Err(PostError::Gone);
        }
        if letters.frames.len() >= letters.frames_max {
            return Err(PostError::Full);
        }
        letters.frames.push_back(frame);
        letters.urgent = letters.urgent.into_iter().chain(urgent).min();
        drop(letters);
        self.0.announce();
        Ok(())
    }

    /// Ends the connection once everything is sent.
    pub fn close(&self) {
        self.0.letters.lock().close = true;
        self.0.announce();
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.letters.lock().gone
    }

    pub(crate) fn of(post: &Arc<Post>) -> Self {
        Self(Arc::clone(post))
    }
}

impl Post {
    pub(crate) fn new(frames_max: usize) -> Arc<Self> {
        let letters =
            Letters { frames: VecDeque::new(), frames_max, urgent: None, close: false, gone: false };
        Arc::new(Self { waiting: AtomicBool::new(false), letters: Mutex::new(letters), ready: Notify::new() })
    }

    fn announce(&self) {
        self.waiting.store(true, Ordering::Release);
        if !planted::strikes(Fault::LostWakeUp) {
            self.ready.notify_one();
        }
    }

    /// Takes everything that was posted.
    pub(crate) fn collect(&self) -> Option<Collected> {
        if !self.waiting.load(Ordering::Relaxed) || !self.waiting.swap(false, Ordering::Acquire) {
            return None;
        }
        let mut letters = self.letters.lock();
        Some(Collected {
            frames: std::mem::take(&mut letters.frames),
            urgent: std::mem::take(&mut letters.urgent),
            close: letters.close,
        })
    }

    /// Ends the mailbox with its connection: no message is accepted any more.
    pub(crate) fn end(&self) {
        let mut letters = self.letters.lock();
        letters.gone = true;
        letters.frames = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URGENT_PATIENCE: Duration = Duration::from_secs(2);

    #[test]
    fn messages_wait_in_order_and_not_without_end() {
        let post = Post::new(2);
        let mailbox = Mailbox::of(&post);
        assert!(post.collect().is_none());
        assert_eq!(mailbox.post(Buffer::from(&b"1"[..])), Ok(()));
        assert_eq!(mailbox.clone().post_urgently(Buffer::from(&b"2"[..]), URGENT_PATIENCE), Ok(()));
        assert_eq!(mailbox.post(Buffer::from(&b"3"[..])), Err(PostError::Full));
        let Collected { frames, urgent, close } = post.collect().unwrap();
        assert_eq!(frames.iter().map(|frame| frame.to_vec()).collect::<Vec<_>>(), [b"1", b"2"]);
        assert!(urgent == Some(URGENT_PATIENCE) && !close && post.collect().is_none());
        mailbox.close();
        assert_eq!(mailbox.post(Buffer::default()), Err(PostError::Gone));
        let last = post.collect().unwrap();
        assert!(last.close && last.urgent.is_none() && !mailbox.is_gone());
    }

    #[test]
    fn what_has_ended_takes_nothing() {
        let post = Post::new(2);
        let mailbox = Mailbox::of(&post);
        post.end();
        assert_eq!(mailbox.post(Buffer::default()), Err(PostError::Gone));
        assert!(mailbox.is_gone());
    }
}

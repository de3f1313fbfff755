//! Requests that wait: interim responses, and how to stop such requests. [MS-SMB2] 3.3.4.2, 3.3.5.16.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use smb_wire::NtStatus;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::context::RequestContext;
use crate::reply;
use crate::status::Failure;

/// Resolves when the client cancels the request. Dropping it changes nothing.
#[derive(Debug)]
pub(crate) struct Cancelled(Pin<Box<OwnedNotified>>);

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

/// A request that takes longer than this is answered with an interim response first.
const INTERIM_AFTER: Duration = Duration::from_millis(500);

impl RequestContext {
    /// Carries out work that may have to wait for another client to give up a caching grant. If that takes a while,
    /// this client gets an interim response. A CANCEL has no effect, since half of the work may be done.
    ///
    /// # Errors
    /// Those of the work.
    pub(crate) async fn patiently<T>(
        &self,
        mut work: Pin<&mut impl Future<Output = Result<T, Failure>>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = tokio::time::sleep(INTERIM_AFTER) => {}
        }
        // If the interim response cannot be sent, the request waits anyway.
        if let Err(failure) = self.linger() {
            tracing::debug!("a request waits without an interim response: {}", failure.status);
        }
        work.await
    }

    /// Waits for the budget of a share and then reads, or does any other work that changes nothing. Like
    /// [`RequestContext::patiently`], but a CANCEL ends it.
    ///
    /// # Errors
    /// Those of the work; STATUS_CANCELLED.
    pub(crate) async fn until_cancelled<T>(
        &self,
        mut work: Pin<&mut impl Future<Output = Result<T, Failure>>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = tokio::time::sleep(INTERIM_AFTER) => {}
        }
        let Ok(cancelled) = self.linger() else { return work.await };
        tokio::select! {
            biased;
            outcome = work => outcome,
            () = cancelled => Err(NtStatus::CANCELLED.into()),
        }
    }

    /// Like [`RequestContext::go_async`], for a request that must not fail if it has to wait inside a compound: there
    /// it waits without an interim response, and cannot be cancelled.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES when too many requests of the connection are waiting.
    pub(crate) fn linger(&self) -> Result<Cancelled, Failure> {
        if self.header.next_command != 0 {
            return Ok(Cancelled(Box::pin(Arc::new(Notify::new()).notified_owned())));
        }
        self.go_async()
    }

    /// Like [`RequestContext::announce`], for a request that must not wait inside a compound.
    ///
    /// # Errors
    /// STATUS_INTERNAL_ERROR inside a compound, where the later requests would wait too: 3.3.5.2.7 "The server MAY fail
    /// requests in a compound chain which require asynchronous processing", and Windows does, with this status.
    /// STATUS_INSUFFICIENT_RESOURCES when too many requests of the connection are waiting.
    pub(crate) fn go_async(&self) -> Result<Cancelled, Failure> {
        if self.header.next_command != 0 {
            return Err(NtStatus::INTERNAL_ERROR.into());
        }
        self.announce()
    }

    /// Announces that the reply will take time: sends the interim response with STATUS_PENDING at the first call, and
    /// lets CANCEL find the request.
    ///
    /// In a compound, the replies before this one are sent at once, ahead of the interim response. Those after it wait
    /// too, and are sent together with the reply (Windows does so for a CREATE that waits for a break).
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES when too many requests of the connection are waiting.
    pub(crate) fn announce(&self) -> Result<Cancelled, Failure> {
        let cancel = Arc::new(Notify::new());
        if self.connection.endpoint.ended.is_set() {
            // The waiting requests have been cancelled already. This request follows one that ran to its end, so
            // nothing else cancels it.
            cancel.notify_one();
        }
        let first = self.async_id.get().is_none();
        let async_id = {
            let mut requests = self.connection.requests.borrow_mut();
            if first {
                requests.insert(self.header.message_id, Arc::clone(&cancel));
            }
            requests.make_async(self.header.message_id).map_err(|_| {
                requests.remove(self.header.message_id);
                Failure::from(NtStatus::INSUFFICIENT_RESOURCES)
            })?
        };
        if first {
            self.async_id.set(Some(async_id));
            reply::send_interim(self, async_id);
        }
        Ok(Cancelled(Box::pin(cancel.notified_owned())))
    }
}

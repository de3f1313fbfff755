//! Data that a client with a caching grant for writing has not written to the store yet. When others ask for the attributes
//! of the file, the server asks the client for the file's size, and whether the client has changed the file. Without an
//! answer, the grant is broken.

use std::sync::Arc;

use file_state::Operation;
use storage::{Attributes, NodeRef, SetAttributes, SetTime, Want};

use crate::schedule::Work;
use crate::{Call, Error, ListingEntry, Result, Share, Unwritten};

impl Share {
    /// The attributes of an object, including changes that another client has not sent yet.
    ///
    /// # Errors
    /// The store's; [`Error::Delayed`] if the other client takes longer than the call's front waits.
    pub async fn present_attributes(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        want: Want,
    ) -> Result<Attributes> {
        let attributes = self.attributes(call, node, want).await?;
        if !self.agreement.asks_writers(&attributes) {
            return Ok(attributes);
        }
        Box::pin(self.as_written(call, node, attributes, want)).await
    }

    /// Adds to attributes that were just read the changes that another client has not sent yet.
    ///
    /// # Errors
    /// As [`Share::present_attributes`].
    pub async fn as_written(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        attributes: Attributes,
        want: Want,
    ) -> Result<Attributes> {
        if !self.agreement.asks_writers(&attributes) {
            return Ok(attributes);
        }
        let writer = self.agreement.writer(node.id(), call.caller.client);
        let Some(asked) = writer.and_then(|writer| writer.ask()) else { return Ok(attributes) };
        match tokio::time::timeout(self.agreement.retry_after(), asked).await {
            Ok(Some(unwritten)) => self.together(call, node, attributes, unwritten, want).await,
            Ok(None) | Err(_) => {
                let ask =
                    || Ok(((), self.agreement.take_back(node.id(), call.caller.client, Operation::Read)));
                self.agreement.settled(call, ask).await?;
                self.attributes(call, node, want).await
            }
        }
    }

    /// "If the server determines that the file is currently modified, it will respond to the second client's GETATTR as if
    /// the file had been modified locally at the server": the times become the present time and are stored, so that they and
    /// the change attribute never go back. The size is the client's, and is not stored.
    async fn together(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        attributes: Attributes,
        unwritten: Unwritten,
        want: Want,
    ) -> Result<Attributes> {
        if !unwritten.is_modified && unwritten.size == attributes.size {
            return Ok(attributes);
        }
        let set = SetAttributes { mtime: Some(SetTime::Now), ..SetAttributes::default() };
        let touched = Arc::clone(node);
        self.run(call, Work::Metadata, move |_, may| Ok(touched.set_attributes(&set, may)?)).await?;
        let attributes = self.attributes(call, node, want).await?;
        Ok(Attributes { size: unwritten.size, ..attributes })
    }

    /// As [`Share::as_written`], for the entries of a listing.
    ///
    /// # Errors
    /// As [`Share::present_attributes`]; an entry that has just vanished keeps the attributes that were read.
    pub(crate) async fn list_as_written(
        self: &Arc<Self>,
        call: &Call,
        entries: &mut [ListingEntry],
        want: Want,
    ) -> Result<()> {
        if !self.agreement.has_writers() {
            return Ok(());
        }
        for (node, attributes) in entries.iter_mut().filter_map(|entry| entry.node.as_mut()) {
            match self.as_written(call, node, *attributes, want).await {
                Ok(present) => *attributes = present,
                Err(Error::Storage(storage::Error::Stale | storage::Error::NotFound)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

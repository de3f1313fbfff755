//! Files that grow: room is made before, and the length counted after.

use std::sync::Arc;

use storage::{MayWait, NodeRef};

use crate::{Call, Result, Share};

/// A growing file whose growth is counted. It has grown when this is dropped.
#[derive(Debug)]
pub(crate) struct Growth {
    share: Arc<Share>,
    node: NodeRef,
}

impl Drop for Growth {
    fn drop(&mut self) {
        let node = Arc::clone(&self.node);
        self.share.afterwards(move |share, may| share.budget.capacity().grown(&node, may));
    }
}

impl Share {
    /// As [`Share::grow`], but does not block if the store may stop answering.
    ///
    /// # Errors
    /// Those of [`Share::grow`].
    pub(crate) async fn make_room(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        end: u64,
    ) -> Result<Option<Growth>> {
        if self.budget.capacity().lets_grow(end) {
            return Ok(None);
        }
        let node = Arc::clone(node);
        self.consult(call, move |share, may| share.grow(&node, end, may)).await
    }

    /// Prepares the growth of a file up to `end`. Refuses if the file or the share would become too large. Keep the result
    /// until the write has ended.
    ///
    /// # Errors
    /// [`storage::Error::TooLarge`], [`Error::PlanFull`](crate::Error::PlanFull), the store's.
    pub(crate) fn grow(
        self: &Arc<Self>,
        node: &NodeRef,
        end: u64,
        may: MayWait<'_>,
    ) -> Result<Option<Growth>> {
        let is_counted = self.budget.capacity().grow(node, end, may)?;
        Ok(is_counted.then(|| Growth { share: Arc::clone(self), node: Arc::clone(node) }))
    }
}

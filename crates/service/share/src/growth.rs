//! Files that grow: room is made before, and the length counted after.

use std::sync::Arc;

use storage::{MayWait, NodeRef};

use crate::charges::Charge;
use crate::{Call, File, Result, Share};

/// A growing file whose growth is counted. It has grown when this is dropped.
#[derive(Debug)]
pub(crate) struct Growth {
    share: Arc<Share>,
    node: NodeRef,
}

/// Room for a write: in the share, and in the quotas of the file's owners.
#[derive(Debug)]
pub(crate) struct Room {
    /// It ends when this is dropped.
    _growth: Option<Growth>,
    charge: Option<Charge>,
}

impl Room {
    /// The store has allocated all bytes from `start` to `end`.
    pub(crate) fn allocated(&self, range: (u64, u64)) {
        if let Some(charge) = &self.charge {
            charge.allocated(range);
        }
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        let node = Arc::clone(&self.node);
        self.share.afterwards(move |share, may| share.budget.capacity().grown(&node, may));
    }
}

impl Share {
    /// Makes room for bytes of a file from `start` to `end`. Does not block if the store may stop answering. Keep the result until
    /// they are written.
    ///
    /// # Errors
    /// Those of [`Share::grow`] and [`Share::charge`].
    pub(crate) async fn make_room(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        (start, end): (u64, u64),
    ) -> Result<Option<Room>> {
        let has_size = !self.budget.capacity().lets_grow(end);
        if !has_size && !self.quotas().is_on() {
            return Ok(None);
        }
        let growth = if has_size {
            let node = Arc::clone(file.node());
            self.consult(call, move |share, may| share.grow(&node, end, may)).await?
        } else {
            None
        };
        Ok(Some(Room { _growth: growth, charge: self.charge(call, file, (start, end)).await? }))
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

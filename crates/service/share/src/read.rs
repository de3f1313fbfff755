//! Reading the data of files.

use std::sync::Arc;
use std::time::Instant;

use accounting::TracedData;
use file_state::{ByteRange, Operation};
use storage::{Wait, Want};

use crate::schedule::Work;
use crate::{Call, File, Result, Share, provision};

impl Share {
    /// Reads from `offset` and fills `into`. Returns the buffer with the count, which is short only at the end of the file.
    ///
    /// # Errors
    /// [`Error::AccessDenied`], [`Error::RangeLocked`], [`Error::SharingViolation`], the store's.
    pub async fn read<B: AsMut<[u8]> + Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        mut into: B,
    ) -> Result<(B, usize)> {
        call.takes_turn();
        call.uses(file.used());
        if !self.asks_for_turns() {
            return self.read_now(call, file, offset, into).await;
        }
        let length = into.as_mut().len();
        self.permit(call, file, Operation::Read).await?;
        let arrived = Instant::now();
        let operation = provision::read(file.node(), length as u64);
        self.pass(call, operation).await;
        let outcome = self.read_now(call, file, offset, into).await;
        let moved = outcome.as_ref().map_or(0, |(_, count)| *count);
        self.put_back(call, operation, length.saturating_sub(moved));
        let data = TracedData { file: file.node().id().number, offset, bytes: moved as u64 };
        self.note(call, Some(arrived), Some(data));
        outcome
    }

    /// Reads without regard to the budget.
    async fn read_now<B: AsMut<[u8]> + Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        file: &File,
        offset: u64,
        mut into: B,
    ) -> Result<(B, usize)> {
        let length = into.as_mut().len();
        let range = || ByteRange::new(offset, length as u64);
        self.admitted(call, file, range, Operation::Read).await?;
        let node = file.node();
        let at_hand = match node.read(offset, into.as_mut(), Wait::Never) {
            Ok(count) if count == into.as_mut().len() => return Ok((into, count)),
            // A short count means the end of the file, or of what is available without waiting.
            Ok(count) => count,
            Err(storage::Error::WouldBlock) => 0,
            Err(e) => return Err(e.into()),
        };
        let end = offset.saturating_add(at_hand as u64);
        if at_hand > 0 && node.attributes(Want::empty(), Wait::Never).is_ok_and(|a| a.size <= end) {
            return Ok((into, at_hand));
        }
        let node = Arc::clone(node);
        self.run(call, Work::Blocking, move |_| {
            let rest = into.as_mut().get_mut(at_hand..).unwrap_or_default();
            let count = node.read(end, rest, Wait::May)?;
            Ok((into, at_hand + count))
        })
        .await
    }
}

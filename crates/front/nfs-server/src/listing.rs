//! Reads parts of a directory, for a listing that is filled entry by entry.

use std::ops::Deref;

use share::{Call, Listing, Result};
use storage::Want;

use crate::object::ObjectOf;

/// Most entries asked of the share at a time.
const BATCH_MAX: usize = 4096;

/// How many entries to ask of the share at a time, if each takes about this many bytes.
pub(crate) fn batch(bytes_max: usize, entry_bytes: usize) -> usize {
    (bytes_max / entry_bytes.max(1)).clamp(1, BATCH_MAX)
}

/// The entries after a position. The result is empty only at the end of the directory.
pub(crate) async fn next_part(
    dir: &ObjectOf<impl Deref<Target = Call> + Clone>,
    position: u64,
    batch: usize,
    want: Option<Want>,
) -> Result<Listing> {
    let mut count = batch;
    loop {
        let part = dir.share.list(&dir.call, &dir.node, position, count, want).await?;
        if part.end || !part.entries.is_empty() {
            return Ok(part);
        }
        count = count.saturating_mul(2); // all of them have just been removed
    }
}

//! Files of the destination that are complete, but perhaps not on stable storage yet.
//!
//! A note says that a file is complete, so that an attempt after an interruption leaves the file alone. Should the machine lose power,
//! the note must not be there without the data: the replica would be wrong for good, and nobody would know. So the notes of many
//! files are written together, after one call that has put everything before it on stable storage. What was not noted by then is
//! taken over again. Clients have nothing to do with that: they see a snapshot, and a store takes one of what is on stable storage, or
//! puts it there.

use storage::{Handle, MayWait, SetAttributes, Storage, Timestamp, Wait, is_nowhere};

use crate::failure::Result;
use crate::note::Note;

/// So many files are noted together.
const FILES_MAX: usize = 4096;
/// With so many bytes of data, or one file more.
const BYTES_MAX: u64 = 256 << 20;

/// The files that are not noted yet.
#[derive(Default)]
pub(crate) struct Unsettled {
    files: Vec<(Handle, Note, Option<Timestamp>)>,
    bytes: u64,
}

impl Unsettled {
    /// Adds one, with the change time that clients are to see and the size in bytes.
    pub(crate) fn enter(&mut self, file: Handle, note: Note, shown: Option<Timestamp>, bytes: u64) {
        self.files.push((file, note, shown));
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Whether no more should be added before these are noted.
    pub(crate) fn are_many(&self) -> bool {
        self.files.len() >= FILES_MAX || self.bytes >= BYTES_MAX
    }

    /// Notes that these files are complete.
    pub(crate) fn settle(&mut self, store: &dyn Storage, may: MayWait<'_>) -> Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        store.sync(may)?;
        self.bytes = 0;
        for (file, note, shown) in self.files.drain(..) {
            let node = match store.by_handle(&file, Wait::May(may)) {
                Err(e) if is_nowhere(e) => continue,
                found => found?,
            };
            note.set(&node, may)?;
            if shown.is_some() {
                // It counts until the next change, and the note is one.
                let shown = SetAttributes { ctime: shown, ..SetAttributes::default() };
                node.set_attributes(&shown, may)?;
            }
        }
        Ok(())
    }
}

//! FILE_NOTIFY_INFORMATION, [MS-FSCC] 2.7.1: the changes reported by a CHANGE_NOTIFY response.

use super::next_entry::{DoesNotFit, Entries, EntryWriter};
use crate::codec::{Put, Reader, Utf16, WireError};

wire_enum! {
    /// The kind of change.
    pub enum Action: u32 {
        /// FILE_ACTION_ADDED
        Added = 0x0000_0001,
        /// FILE_ACTION_REMOVED
        Removed = 0x0000_0002,
        /// FILE_ACTION_MODIFIED
        Modified = 0x0000_0003,
        /// FILE_ACTION_RENAMED_OLD_NAME
        RenamedOldName = 0x0000_0004,
        /// FILE_ACTION_RENAMED_NEW_NAME
        RenamedNewName = 0x0000_0005,
        /// FILE_ACTION_ADDED_STREAM
        AddedStream = 0x0000_0006,
        /// FILE_ACTION_REMOVED_STREAM
        RemovedStream = 0x0000_0007,
        /// FILE_ACTION_MODIFIED_STREAM
        ModifiedStream = 0x0000_0008,
        /// FILE_ACTION_REMOVED_BY_DELETE
        RemovedByDelete = 0x0000_0009,
        /// FILE_ACTION_ID_NOT_TUNNELLED
        IdNotTunnelled = 0x0000_000A,
        /// FILE_ACTION_TUNNELLED_ID_COLLISION
        TunnelledIdCollision = 0x0000_000B,
    }
}

/// One change.
#[doc(alias = "FILE_NOTIFY_INFORMATION")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// The kind of change.
    pub action: Action,
    /// The path from the watched directory.
    pub name: Utf16<'a>,
}

/// Starts a list of changes of at most `limit` bytes at the end of `out`. Entries are aligned to 4 bytes.
pub const fn writer(out: &mut Vec<u8>, limit: usize) -> EntryWriter<'_> {
    EntryWriter::new(out, limit, 4)
}

impl<'a> Change<'a> {
    /// Appends the change to a list.
    ///
    /// # Errors
    /// [`DoesNotFit`]; the server then answers STATUS_NOTIFY_ENUM_DIR.
    pub fn push(&self, list: &mut EntryWriter<'_>) -> Result<(), DoesNotFit> {
        let name_length = u32::try_from(self.name.byte_len()).map_err(|_| DoesNotFit)?;
        list.push(|out| {
            out.put_u32(self.action.into());
            out.put_u32(name_length);
            self.name.encode_into(out);
        })
    }

    /// The changes of a list.
    pub fn list(list: &'a [u8]) -> impl Iterator<Item = Result<Self, WireError>> {
        Entries::new(list).map(|entry| {
            let mut r = Reader::new(entry?);
            r.skip(4)?;
            let action = Action::from(r.u32()?);
            let length = r.len32()?;
            Ok(Self { action, name: Utf16::from_wire(r.bytes(length)?)? })
        })
    }
}

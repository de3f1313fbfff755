//! What is noted with an object of the destination: which object of the source it is, and as of when it is complete.

use replica_wire::{Number, Time, Version};
use storage::{Error, MayWait, Node, NodeRef};

use crate::failure::Result;

/// The first byte.
const VERSION: u8 = 1;

/// The note. It counts for one replication only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    /// Which replication.
    pub(crate) replication: u64,
    /// Which object of the source.
    pub(crate) number: Number,
    /// As of when all that belongs to it was taken over; None: not all was. Directories have none.
    pub(crate) complete: Option<Version>,
}

impl Note {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.replication.to_le_bytes());
        bytes.extend_from_slice(&self.number.fs.to_le_bytes());
        bytes.extend_from_slice(&self.number.number.to_le_bytes());
        if let Some(Version { ctime, state }) = self.complete {
            bytes.extend_from_slice(&ctime.secs.to_le_bytes());
            bytes.extend_from_slice(&ctime.nanos.to_le_bytes());
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[VERSION], rest) = bytes.split_first_chunk()? else { return None };
        let (replication, rest) = rest.split_first_chunk()?;
        let (fs, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let complete = if rest.is_empty() { None } else { Some(version(rest)?) };
        let number = Number { fs: u32::from_le_bytes(*fs), number: u64::from_le_bytes(*number) };
        Some(Self { replication: u64::from_le_bytes(*replication), number, complete })
    }

    /// The note of an object, if it has one of this replication.
    pub(crate) fn of(node: &dyn Node, replication: u64, may: MayWait<'_>) -> Result<Option<Self>> {
        match node.note(may) {
            Ok(bytes) => Ok(bytes
                .and_then(|bytes| Self::decode(&bytes))
                .filter(|note| note.replication == replication)),
            Err(Error::WrongKind) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    pub(crate) fn set(self, node: &NodeRef, may: MayWait<'_>) -> Result<()> {
        Ok(node.set_note(Some(&self.encode()), may)?)
    }
}

fn version(bytes: &[u8]) -> Option<Version> {
    let (secs, rest) = bytes.split_first_chunk()?;
    let (nanos, rest) = rest.split_first_chunk()?;
    let ctime = Time { secs: i64::from_le_bytes(*secs), nanos: u32::from_le_bytes(*nanos) };
    Some(Version { ctime, state: u64::from_le_bytes(rest.try_into().ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_written() {
        let number = Number { fs: 1, number: u64::MAX };
        let note = Note {
            replication: 7,
            number,
            complete: Some(Version { ctime: Time { secs: -1, nanos: 5 }, state: 9 }),
        };
        assert_eq!(Note::decode(&note.encode()), Some(note));
        let part = Note { complete: None, ..note };
        assert_eq!(Note::decode(&part.encode()), Some(part));
        let bytes = note.encode();
        for damaged in [&bytes[..bytes.len() - 1], &[&bytes[..], &[0]].concat(), &[], &[2], &bytes[..20]] {
            assert_eq!(Note::decode(damaged), None);
        }
    }
}

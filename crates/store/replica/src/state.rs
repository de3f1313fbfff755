//! What tells states of an object apart that have the same change time.
//!
//! The change time of an object does not tell changes of its named streams. Nor does it tell what was written before a snapshot from
//! what was written after it, if one call writes both: Btrfs sets the times when the call begins (`btrfs_write_check`), and the
//! snapshot has a part of the data, and perhaps of the size.

use std::time::Duration;

use storage::{Attributes, Error, FileKind, MayWait, Node, SnapshotId, StreamName, Timestamp, Wait, Want};

use crate::failure::Result;

/// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// How long one call may write: at most 2 GiB (write(2)), from a program of the source to a slow disk. Of a file that changed less than
/// that before a snapshot, both sides of the next comparison are read.
const CALL_MAX: Duration = Duration::from_secs(60);

/// When a snapshot was taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) id: SnapshotId,
    /// Not before this, since 1970. None: change times tell all changes apart.
    pub(crate) taken: Option<Duration>,
}

impl Moment {
    /// A number that is another one, with the same change time, after any change.
    pub(crate) fn state(self, node: &dyn Node, known: &Attributes, may: MayWait<'_>) -> Result<u64> {
        let (mut sum, mut is_settled) = (BASIS, self.is_settled(known.ctime));
        if known.kind == FileKind::Regular {
            add(&mut sum, &known.size.to_le_bytes());
        }
        for (name, stream) in streams(node, may)? {
            is_settled &= self.is_settled(stream.ctime);
            add(&mut sum, &name);
            add(&mut sum, &[0]);
            add(&mut sum, &stream.id.number.to_le_bytes());
            add(&mut sum, &stream.size.to_le_bytes());
            add(&mut sum, &stream.ctime.secs.to_le_bytes());
            add(&mut sum, &stream.ctime.nanos.to_le_bytes());
        }
        if !is_settled {
            add(&mut sum, &self.id.0.to_le_bytes());
        }
        Ok(sum)
    }

    /// Whether any change after the snapshot has another change time.
    fn is_settled(self, ctime: Timestamp) -> bool {
        self.taken.is_none_or(|taken| ctime.is_settled_at(taken.saturating_sub(CALL_MAX)))
    }
}

/// The named streams, in order.
fn streams(node: &dyn Node, may: MayWait<'_>) -> Result<Vec<(Vec<u8>, Attributes)>> {
    if !matches!(node.kind(), FileKind::Regular | FileKind::Directory) {
        return Ok(Vec::new());
    }
    let mut streams = match node.streams(may) {
        Err(Error::NotSupported) => return Ok(Vec::new()),
        streams => streams?,
    };
    streams.sort_by(|a, b| a.name.cmp(&b.name));
    let known = |stream: storage::StreamEntry| {
        let data = node.stream(StreamName::new(&stream.name)?, may)?;
        Ok((stream.name, data.attributes(Want::empty(), Wait::May(may))?))
    };
    streams.into_iter().map(known).collect()
}

fn add(sum: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *sum = (*sum ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
}

//! What tells states of an object apart that have the same change time.
//!
//! The change time of an object does not tell changes of its named streams. Nor does it tell a change right after a snapshot from one
//! right before it: the clock of a store ticks.

use std::time::Duration;

use storage::{Error, FileKind, MayWait, Node, SnapshotId, StreamName, Timestamp, Wait, Want};

use crate::failure::Result;

/// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// When a snapshot was taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) id: SnapshotId,
    /// Not before this, since 1970. None: change times tell all changes apart.
    pub(crate) taken: Option<Duration>,
}

impl Moment {
    /// A number that is another one, with the same change time, after any change.
    pub(crate) fn state(self, node: &dyn Node, ctime: Timestamp, may: MayWait<'_>) -> Result<u64> {
        let mut sum = streams(node, may)?;
        if self.taken.is_some_and(|taken| !ctime.is_settled_at(taken)) {
            add(&mut sum, &self.id.0.to_le_bytes());
        }
        Ok(sum)
    }
}

/// Another number after each change of the streams.
fn streams(node: &dyn Node, may: MayWait<'_>) -> Result<u64> {
    if !matches!(node.kind(), FileKind::Regular | FileKind::Directory) {
        return Ok(BASIS);
    }
    let mut streams = match node.streams(may) {
        Err(Error::NotSupported) => return Ok(BASIS),
        streams => streams?,
    };
    streams.sort_by(|a, b| a.name.cmp(&b.name));
    let mut sum = BASIS;
    for stream in streams {
        let data = node.stream(StreamName::new(&stream.name)?, may)?;
        let known = data.attributes(Want::empty(), Wait::May(may))?;
        add(&mut sum, &stream.name);
        add(&mut sum, &[0]);
        add(&mut sum, &known.id.number.to_le_bytes());
        add(&mut sum, &known.size.to_le_bytes());
        add(&mut sum, &known.ctime.secs.to_le_bytes());
        add(&mut sum, &known.ctime.nanos.to_le_bytes());
    }
    Ok(sum)
}

fn add(sum: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *sum = (*sum ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
}

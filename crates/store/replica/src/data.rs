//! The data of a file or a stream of a snapshot, said by the source: all of it, or what is different from an earlier snapshot.

use replica_wire::{DATA_BYTES_MAX, Record};
use storage::{Error, MayWait, Node, SeekTo, Wait, Want};

use crate::failure::Result;

/// The unit in which data is compared, in bytes: that of most file systems.
const BLOCK: u64 = 4096;

/// A part of a file that is all data, or all a hole.
#[derive(Debug, Clone, Copy)]
struct Part {
    end: u64,
    is_data: bool,
}

/// The part that begins here, which is before the size.
fn part(node: &dyn Node, at: u64, size: u64, may: MayWait<'_>) -> Result<Part> {
    let start = match node.seek(at, SeekTo::Data, may) {
        Ok(found) => found.unwrap_or(size).min(size),
        Err(Error::NotSupported) => at,
        Err(e) => return Err(e.into()),
    };
    if start > at {
        return Ok(Part { end: start, is_data: false });
    }
    match node.seek(at, SeekTo::Hole, may) {
        Ok(Some(end)) => Ok(Part { end: end.min(size), is_data: true }),
        Ok(None) | Err(Error::NotSupported) => Ok(Part { end: size, is_data: true }),
        Err(e) => Err(e.into()),
    }
}

/// Says what is not a hole.
pub(crate) fn write_data(
    node: &dyn Node,
    size: u64,
    may: MayWait<'_>,
    say: &mut dyn FnMut(&Record) -> Result<()>,
) -> Result<()> {
    let mut at = 0;
    while at < size {
        let Part { end, is_data } = part(node, at, size, may)?;
        while is_data && at < end {
            let bytes = read(node, at, end, may)?;
            let length = bytes.len() as u64;
            say(&Record::Data { offset: at, bytes })?;
            at += length;
        }
        at = end;
    }
    Ok(())
}

/// Says what is not as it was before: data, and where there is a hole now.
pub(crate) fn write_differences(
    now: &dyn Node,
    then: &dyn Node,
    size: u64,
    may: MayWait<'_>,
    say: &mut dyn FnMut(&Record) -> Result<()>,
) -> Result<()> {
    say(&Record::Differences)?;
    let before = then.attributes(Want::empty(), Wait::May(may))?.size;
    let mut at = 0;
    while at < size {
        say(&Record::Alive)?;
        let here = part(now, at, size, may)?;
        let there = if at < before { Some(part(then, at, before, may)?) } else { None };
        let end = there.map_or(here.end, |there| there.end.min(here.end));
        let was_data = there.is_some_and(|there| there.is_data);
        match (here.is_data, was_data) {
            (false, true) => say(&Record::Hole { offset: at, length: end - at })?,
            (false, false) => {}
            (true, _) => write_changed(now, was_data.then_some(then), (at, end), may, say)?,
        }
        at = end;
    }
    Ok(())
}

/// Says what is different of data that was data before, or all of it.
fn write_changed(
    now: &dyn Node,
    then: Option<&dyn Node>,
    (mut at, end): (u64, u64),
    may: MayWait<'_>,
    say: &mut dyn FnMut(&Record) -> Result<()>,
) -> Result<()> {
    while at < end {
        say(&Record::Alive)?;
        let bytes = read(now, at, end, may)?;
        let length = bytes.len() as u64;
        let was = match then {
            Some(then) => read(then, at, at + length, may)?,
            None => Vec::new(),
        };
        for (offset, bytes) in changed(at, &bytes, &was) {
            say(&Record::Data { offset, bytes: bytes.to_vec() })?;
        }
        at += length;
    }
    Ok(())
}

/// The runs of blocks that are different, where each begins.
fn changed<'a>(at: u64, now: &'a [u8], then: &[u8]) -> Vec<(u64, &'a [u8])> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut start = 0;
    while start < now.len() {
        let to_next = BLOCK - (at + start as u64) % BLOCK;
        let end = usize::try_from(to_next).map_or(now.len(), |length| (start + length).min(now.len()));
        if now.get(start..end) != then.get(start..end) {
            match runs.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => runs.push((start, end)),
            }
        }
        start = end;
    }
    runs.into_iter().filter_map(|(start, end)| Some((at + start as u64, now.get(start..end)?))).collect()
}

/// Some of the data from here to an end.
fn read(node: &dyn Node, at: u64, end: u64, may: MayWait<'_>) -> Result<Vec<u8>> {
    let room = usize::try_from(end - at).unwrap_or(DATA_BYTES_MAX).min(DATA_BYTES_MAX);
    let mut bytes = vec![0; room];
    let count = node.read(at, &mut bytes, Wait::May(may))?;
    if count == 0 {
        // It is shorter than it was said to be, which a snapshot cannot be.
        return Err(Error::Stale.into());
    }
    bytes.truncate(count);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_blocks_that_are_different() {
        let block = usize::try_from(BLOCK).unwrap();
        let (then, mut now) = (vec![0; 5 * block], vec![0; 5 * block + 10]);
        now[block] = 1;
        now[3 * block - 1] = 1;
        let found = |at, now, then| {
            changed(at, now, then).iter().map(|(at, bytes)| (*at, bytes.len())).collect::<Vec<_>>()
        };
        assert_eq!(found(0, &now, &then), [(BLOCK, 2 * block), (5 * BLOCK, 10)]);
        assert_eq!(found(BLOCK - 6, &now[..7], &then[..7]), []);
        assert_eq!(found(0, &now, &[]), [(0, now.len())]);
        // A piece that begins within a block ends with it.
        assert_eq!(found(100, &[1, 2, 3], &[1, 2, 4]), [(100, 3)]);
        assert_eq!(found(BLOCK - 1, &[1, 2], &[1, 0]), [(BLOCK, 1)]);
        // What was read is shorter.
        assert_eq!(found(0, &[0; 8192], &[0; 8191]), [(BLOCK, block)]);
    }
}

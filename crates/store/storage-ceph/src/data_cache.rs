//! Data of files in memory, so that what is read again needs no call to the cluster.
//!
//! This is for stores that nobody else changes: the gateway has locked their directory (`claim.rs`). What a call changes is forgotten before
//! the change is sent, and nothing that is read meanwhile is kept: so nobody reads old data after somebody has read new data.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// How much data is kept for all files of a cluster, in bytes.
const BYTES_MAX: usize = 64 << 20;
/// How much data is read and kept as one, in bytes. The cluster takes hardly longer for it than for 4 KiB.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
const BLOCK: u64 = BLOCK_BYTES as u64;
/// What a block takes beside its data, in bytes: about so much, so that empty files are not kept without end.
const BLOCK_OVERHEAD: usize = 256;

/// A file of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileKey {
    /// [`DataCache::new_store`]
    pub(crate) store: u64,
    /// The number of the inode.
    pub(crate) number: u64,
}

/// The data of files, for all threads.
#[derive(Debug)]
pub(crate) struct DataCache {
    bytes_max: usize,
    /// How many stores have been opened.
    stores: AtomicU64,
    /// Not held while data is copied or read.
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    files: HashMap<FileKey, File>,
    /// The blocks in the order in which they came, each with its [`Block::number`]. Some are not there any longer.
    order: VecDeque<(FileKey, u64, u64)>,
    /// The bytes that all blocks take.
    bytes: usize,
    /// The blocks that there are.
    blocks: usize,
    /// The number of the last block that came.
    last: u64,
}

/// A file of which something is known, or which is read or changed at the moment.
#[derive(Debug, Default)]
struct File {
    blocks: HashMap<u64, Block>,
    /// The block with which the data ends, if that is known: a change beyond it may make the data longer.
    end: Option<u64>,
    /// Counts the changes.
    changes: u64,
    /// Changes that are under way.
    changing: usize,
    /// Reads of the cluster that are under way.
    filling: usize,
}

#[derive(Debug)]
struct Block {
    data: Data,
    number: u64,
    /// Whether it was read since its turn to go came last.
    is_used: bool,
}

/// What of a read was here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// How many bytes.
    pub(crate) count: usize,
    /// Whether that is all that the file has there.
    pub(crate) is_whole: bool,
}

impl Default for DataCache {
    fn default() -> Self {
        Self { bytes_max: BYTES_MAX, stores: AtomicU64::new(0), kept: Mutex::default() }
    }
}

/// The data of a block.
#[derive(Debug, Clone)]
struct Data {
    bytes: Arc<[u8]>,
    /// Whether the data of the file ends with it.
    is_end: bool,
}

impl Block {
    fn takes(&self) -> usize {
        self.data.bytes.len() + BLOCK_OVERHEAD
    }
}

impl DataCache {
    /// The number of a store that is opened. Between two stores of one directory, others may have changed the files.
    pub(crate) fn new_store(&self) -> u64 {
        self.stores.fetch_add(1, Ordering::Relaxed)
    }

    /// Reads what is here from `offset` on, as of one moment. None: nothing is.
    pub(crate) fn read(&self, file: FileKey, offset: u64, into: &mut [u8]) -> Option<Found> {
        let wanted = into.len();
        let blocks = self.blocks(file, offset / BLOCK, offset.saturating_add(wanted as u64).div_ceil(BLOCK));
        let mut begin = usize::try_from(offset % BLOCK).unwrap_or(BLOCK_BYTES);
        let mut room = into;
        for block in &blocks {
            let here = block.bytes.get(begin..).unwrap_or_default();
            let count = here.len().min(room.len());
            let (now, later) = std::mem::take(&mut room).split_at_mut(count);
            now.copy_from_slice(here.get(..count).unwrap_or_default());
            (room, begin) = (later, 0);
        }
        let is_end = blocks.last()?.is_end;
        Some(Found { count: wanted - room.len(), is_whole: room.is_empty() || is_end })
    }

    /// The blocks from the first one on, up to `end`, as far as they are here one after the other.
    fn blocks(&self, file: FileKey, first: u64, end: u64) -> Vec<Data> {
        let mut kept = self.kept.lock();
        let Some(file) = kept.files.get_mut(&file) else { return Vec::new() };
        let block = |index| {
            let block = file.blocks.get_mut(&index)?;
            block.is_used = true;
            Some(block.data.clone())
        };
        (first..end).map_while(block).collect()
    }

    /// To be called before the cluster is asked for data that is to be kept.
    pub(crate) fn fill(&self, file: FileKey) -> Fill<'_> {
        let mut kept = self.kept.lock();
        let entry = kept.files.entry(file).or_default();
        entry.filling += 1;
        Fill { cache: self, file, changes: (entry.changing == 0).then_some(entry.changes) }
    }

    /// To be called before data from `offset` on is changed, and kept until that is done. `length`: how much; None: all, as when the size
    /// is set.
    pub(crate) fn change(&self, file: FileKey, offset: u64, length: Option<u64>) -> Change<'_> {
        let mut kept = self.kept.lock();
        let entry = kept.files.entry(file).or_default();
        entry.changing += 1;
        entry.changes = entry.changes.wrapping_add(1);
        let first = offset / BLOCK;
        let last = length.map_or(u64::MAX, |length| offset.saturating_add(length).saturating_sub(1) / BLOCK);
        let end = entry.end.take();
        let gone: Vec<Block> = if last - first < entry.blocks.len() as u64 {
            (first..=last).chain(end).filter_map(|index| entry.blocks.remove(&index)).collect()
        } else {
            let is_gone = |index: &u64, _: &mut Block| (first..=last).contains(index) || end == Some(*index);
            entry.blocks.extract_if(is_gone).map(|(_, block)| block).collect()
        };
        kept.without(&gone);
        drop(kept);
        Change { cache: self, file }
    }
}

impl Kept {
    fn keep(&mut self, id: FileKey, index: u64, data: &[u8], is_end: bool, bytes_max: usize) {
        let Some(file) = self.files.get_mut(&id) else { return };
        self.last = self.last.wrapping_add(1);
        let data = Data { bytes: Arc::from(data), is_end };
        let block = Block { data, number: self.last, is_used: false };
        if is_end {
            debug_assert!(file.end.is_none_or(|end| end == index), "data ends once");
            file.end = Some(index);
        }
        self.bytes += block.takes();
        let before = file.blocks.insert(index, block);
        self.blocks += 1;
        self.order.push_back((id, index, self.last));
        self.without(before.as_slice());
        while self.bytes > bytes_max && self.make_room() {}
        if self.order.len() > 2 * self.blocks + 64 {
            let files = &self.files;
            self.order.retain(|(id, index, number)| {
                files
                    .get(id)
                    .and_then(|file| file.blocks.get(index))
                    .is_some_and(|block| block.number == *number)
            });
        }
    }

    /// The data of a file ends with this block, if that is here and full.
    fn end_with(&mut self, id: FileKey, index: u64) {
        let Some(file) = self.files.get_mut(&id) else { return };
        if let Some(block) = file.blocks.get_mut(&index)
            && block.data.bytes.len() == BLOCK_BYTES
        {
            block.data.is_end = true;
            file.end = Some(index);
        }
    }

    /// Forgets the block whose turn it is, unless it was read since it had its turn last. False: there is none.
    fn make_room(&mut self) -> bool {
        let Some((id, index, number)) = self.order.pop_front() else { return false };
        let Some(file) = self.files.get_mut(&id) else { return true };
        match file.blocks.get_mut(&index) {
            Some(block) if block.number != number => {}
            Some(block) if block.is_used => {
                block.is_used = false;
                self.order.push_back((id, index, number));
            }
            Some(_) => {
                let gone = file.blocks.remove(&index);
                file.end.take_if(|end| *end == index);
                self.without(gone.as_slice());
                self.forget_unused(id);
            }
            None => {}
        }
        true
    }

    /// These blocks are not there any longer.
    fn without(&mut self, gone: &[Block]) {
        self.bytes -= gone.iter().map(Block::takes).sum::<usize>();
        self.blocks -= gone.len();
    }

    /// Forgets a file of which nothing is here, and which nobody reads or changes.
    fn forget_unused(&mut self, id: FileKey) {
        let is_unused = |file: &File| file.blocks.is_empty() && file.changing == 0 && file.filling == 0;
        if self.files.get(&id).is_some_and(is_unused) {
            self.files.remove(&id);
        }
    }
}

/// A read of the cluster.
#[derive(Debug)]
pub(crate) struct Fill<'a> {
    cache: &'a DataCache,
    file: FileKey,
    /// The changes before it began; None: one was under way.
    changes: Option<u64>,
}

impl Fill<'_> {
    /// Keeps what was read from a block's begin on, unless the file was changed since the read began. `is_end`: the data ends there.
    pub(crate) fn keep(&self, offset: u64, data: &[u8], is_end: bool) {
        debug_assert!(offset.is_multiple_of(BLOCK), "a read begins with a block");
        let mut kept = self.cache.kept.lock();
        let is_as_before = |file: &File| self.changes == Some(file.changes);
        if !kept.files.get(&self.file).is_some_and(is_as_before) {
            return;
        }
        let first = offset / BLOCK;
        // Where nothing is, no block is kept: the one before ends the data, unless the file is empty.
        let blocks =
            data.chunks(BLOCK_BYTES).chain((is_end && offset == 0 && data.is_empty()).then_some(data));
        let mut blocks = (first..).zip(blocks).peekable();
        if is_end && blocks.peek().is_none() {
            kept.end_with(self.file, first.wrapping_sub(1));
        }
        while let Some((index, block)) = blocks.next() {
            kept.keep(self.file, index, block, is_end && blocks.peek().is_none(), self.cache.bytes_max);
        }
    }
}

impl Drop for Fill<'_> {
    fn drop(&mut self) {
        let mut kept = self.cache.kept.lock();
        if let Some(file) = kept.files.get_mut(&self.file) {
            file.filling -= 1;
        }
        kept.forget_unused(self.file);
    }
}

/// A change of data that is under way.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    cache: &'a DataCache,
    file: FileKey,
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let mut kept = self.cache.kept.lock();
        if let Some(file) = kept.files.get_mut(&self.file) {
            file.changing -= 1;
        }
        kept.forget_unused(self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileKey = FileKey { store: 0, number: 7 };

    fn small(blocks: usize) -> DataCache {
        DataCache { bytes_max: blocks * (BLOCK_BYTES + BLOCK_OVERHEAD), ..DataCache::default() }
    }

    /// A block of a file's contents, and whether these end there.
    fn block_of(contents: &[u8], block: usize) -> (&[u8], bool) {
        let begin = (block * BLOCK_BYTES).min(contents.len());
        let end = (begin + BLOCK_BYTES).min(contents.len());
        (&contents[begin..end], end < (block + 1) * BLOCK_BYTES)
    }

    /// Reads as a store does.
    fn fill(cache: &DataCache, file: FileKey, contents: &[u8], block: usize) {
        let (data, is_end) = block_of(contents, block);
        cache.fill(file).keep((block * BLOCK_BYTES) as u64, data, is_end);
    }

    fn read(cache: &DataCache, file: FileKey, offset: usize, count: usize) -> Option<(Vec<u8>, bool)> {
        let mut into = vec![0; count];
        let found = cache.read(file, offset as u64, &mut into)?;
        into.truncate(found.count);
        Some((into, found.is_whole))
    }

    #[test]
    fn what_was_read_is_here_until_it_changes() {
        let cache = small(16);
        let contents: Vec<u8> = (0..=250).cycle().take(BLOCK_BYTES * 2 + 100).collect();
        assert_eq!(read(&cache, FILE, 0, 10), None);
        fill(&cache, FILE, &contents, 0);
        let at = BLOCK_BYTES - 5;
        assert_eq!(read(&cache, FILE, 3, 10), Some((contents[3..13].to_vec(), true)));
        assert_eq!(read(&cache, FILE, at, 10), Some((contents[at..BLOCK_BYTES].to_vec(), false)), "a part");
        fill(&cache, FILE, &contents, 1);
        fill(&cache, FILE, &contents, 2);
        assert_eq!(read(&cache, FILE, at, 10), Some((contents[at..at + 10].to_vec(), true)));
        assert_eq!(
            read(&cache, FILE, 9, contents.len()),
            Some((contents[9..].to_vec(), true)),
            "up to the end"
        );
        assert_eq!(read(&cache, FILE, contents.len() + 7, 10), Some((Vec::new(), true)), "beyond the end");
        assert_eq!(
            read(&cache, FileKey { store: 1, number: 7 }, 0, 10),
            None,
            "the file of a store that was opened again"
        );
        drop(cache.change(FILE, BLOCK, Some(1)));
        assert!(read(&cache, FILE, 0, 10).is_some() && read(&cache, FILE, BLOCK_BYTES, 1).is_none());
        assert_eq!(read(&cache, FILE, 2 * BLOCK_BYTES, 1), None, "the file may be longer now");
        drop(cache.change(FILE, 0, None));
        assert_eq!(read(&cache, FILE, 0, 10), None);
        let kept = cache.kept.lock();
        assert_eq!((kept.files.len(), kept.bytes, kept.blocks), (0, 0, 0));
    }

    #[test]
    fn a_file_that_ends_with_a_block_has_its_end() {
        let cache = small(16);
        let contents = vec![1; BLOCK_BYTES];
        fill(&cache, FILE, &contents, 0);
        assert_eq!(read(&cache, FILE, 1, BLOCK_BYTES), Some((vec![1; BLOCK_BYTES - 1], false)));
        fill(&cache, FILE, &contents, 1);
        assert_eq!(read(&cache, FILE, 1, BLOCK_BYTES), Some((vec![1; BLOCK_BYTES - 1], true)));
        assert_eq!(read(&cache, FILE, BLOCK_BYTES, 1), None, "there is no block");
    }

    #[test]
    fn a_look_beyond_the_end_does_not_move_it() {
        let cache = small(16);
        let mut contents = vec![1; BLOCK_BYTES * 5 + 100];
        fill(&cache, FILE, &contents, 5);
        fill(&cache, FILE, &contents, 10);
        let change = cache.change(FILE, (BLOCK_BYTES * 7) as u64, Some(1));
        contents.resize(BLOCK_BYTES * 7 + 1, 0);
        drop(change);
        assert_eq!(read(&cache, FILE, BLOCK_BYTES * 5, BLOCK_BYTES), None, "it is longer now");
        fill(&cache, FILE, &contents, 5);
        let whole = Some((contents[BLOCK_BYTES * 5..BLOCK_BYTES * 6].to_vec(), true));
        assert_eq!(read(&cache, FILE, BLOCK_BYTES * 5, BLOCK_BYTES), whole);
    }

    #[test]
    fn files_without_data_take_room_too() {
        let cache = small(1);
        for number in 0..10_000 {
            fill(&cache, FileKey { store: 0, number }, &[], 0);
            fill(&cache, FILE, &[1], 1_000 + usize::try_from(number).unwrap());
        }
        let kept = cache.kept.lock();
        assert!(kept.bytes <= cache.bytes_max && kept.files.len() <= 1000, "{} files", kept.files.len());
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for_and_what_is_used_stays() {
        let cache = small(4);
        let contents = vec![3; BLOCK_BYTES * 40];
        for block in 0..40 {
            fill(&cache, FILE, &contents, block);
            assert!(read(&cache, FILE, 0, 1).is_some(), "block 0 is read again and again");
            let kept = cache.kept.lock();
            assert!(kept.bytes <= cache.bytes_max && kept.blocks <= 4 && kept.order.len() <= 72);
        }
        assert!(read(&cache, FILE, BLOCK_BYTES, 1).is_none());
        for round in 0..1000 {
            drop(cache.change(FILE, 0, Some(1)));
            fill(&cache, FILE, &contents, 0);
            assert!(cache.kept.lock().order.len() <= 80, "round {round}");
        }
    }

    /// A read of the cluster that is under way, and what it has brought.
    struct Reading<'a> {
        fill: Fill<'a>,
        block: usize,
        brought: Option<(Vec<u8>, bool)>,
    }

    /// A change that is under way: of bytes, or (`length` 0) of the size.
    struct Changing<'a> {
        _change: Change<'a>,
        offset: usize,
        length: usize,
        is_done: bool,
    }

    impl Changing<'_> {
        fn apply(&mut self, contents: &mut Vec<u8>, byte: u8) {
            let Self { offset, length, .. } = *self;
            if std::mem::replace(&mut self.is_done, true) {
                return;
            }
            if length == 0 {
                contents.resize(offset, 0);
            } else {
                contents.resize(contents.len().max(offset + length), 0);
                contents[offset..offset + length].fill(byte);
            }
        }
    }

    /// Numbers below a limit, from a seed.
    fn picking(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        }
    }

    /// Reads and changes that overlap in any order: what is here is what the file has.
    #[test]
    fn what_is_here_is_never_old() {
        for seed in 1..300 {
            let mut pick = picking(seed);
            let cache = small(3);
            let mut contents = vec![0_u8; BLOCK_BYTES * 2 + pick(BLOCK_BYTES)];
            let (mut readings, mut changings) = (Vec::<Reading<'_>>::new(), Vec::<Changing<'_>>::new());
            for step in 0..120 {
                match pick(7) {
                    0 => readings.push(Reading { fill: cache.fill(FILE), block: pick(5), brought: None }),
                    1 if !readings.is_empty() => {
                        let number = pick(readings.len());
                        let (data, is_end) = block_of(&contents, readings[number].block);
                        readings[number].brought = Some((data.to_vec(), is_end));
                    }
                    2 if !readings.is_empty() => {
                        let Reading { fill, block, brought } = readings.swap_remove(pick(readings.len()));
                        if let Some((data, is_end)) = brought {
                            fill.keep((block * BLOCK_BYTES) as u64, &data, is_end);
                        }
                    }
                    3 => {
                        let (offset, is_size) = (pick(BLOCK_BYTES * 4), pick(4) == 0);
                        let length = if is_size { 0 } else { 1 + pick(BLOCK_BYTES) };
                        let change = cache.change(FILE, offset as u64, (!is_size).then_some(length as u64));
                        changings.push(Changing { _change: change, offset, length, is_done: false });
                    }
                    4 if !changings.is_empty() => {
                        let number = pick(changings.len());
                        changings[number].apply(&mut contents, step);
                    }
                    5 if !changings.is_empty() => drop(changings.swap_remove(pick(changings.len()))),
                    _ => {
                        let (offset, count) = (pick(contents.len() + 100), 1 + pick(BLOCK_BYTES * 2));
                        let Some((found, is_whole)) = read(&cache, FILE, offset, count) else { continue };
                        let from = offset.min(contents.len());
                        let there = &contents[from..(offset + count).min(contents.len()).max(from)];
                        assert_eq!(found, there[..found.len()], "seed {seed}, step {step}");
                        assert!(!is_whole || found.len() == there.len(), "seed {seed}, step {step}: the end");
                    }
                }
            }
            drop((readings, changings));
            let mut kept = cache.kept.lock();
            let left: usize = kept.files.values().map(|file| file.blocks.len()).sum();
            assert_eq!(kept.blocks, left, "seed {seed}");
            while kept.make_room() {}
            assert_eq!((kept.files.len(), kept.bytes, kept.blocks), (0, 0, 0), "seed {seed}");
        }
    }
}

//! Pooled buffers with room in front.
//!
//! A reply is built after [`HEADROOM`] bytes, so that a prefix (a length, an encryption header) can be put in front
//! without moving the reply. Memory stays initialised while it is pooled, so growing a pooled buffer needs neither
//! zeroing nor `unsafe`.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Bytes kept free in front of every buffer: a frame prefix (4), an encryption header (52) and some reserve.
pub const HEADROOM: usize = 128;

/// Pooled sizes in bytes, including headroom and protocol headers, and how many buffers of each a thread keeps.
const CLASSES: [(usize, usize); 4] =
    [(1024, 256), (8 * 1024, 256), (72 * 1024, 64), ((1 << 20) + 8 * 1024, 16)];

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool::EMPTY) };
}

/// The memory that a thread keeps for its next buffers.
struct Pool {
    kept: [Vec<Vec<u8>>; CLASSES.len()],
    /// For each class, the number of buffers that were not needed since the last [`trim_pool`].
    unused: [usize; CLASSES.len()],
}

impl Pool {
    const EMPTY: Self = Self { kept: [const { Vec::new() }; CLASSES.len()], unused: [0; CLASSES.len()] };

    fn take(&mut self, class: usize) -> Option<Vec<u8>> {
        let memory = self.kept[class].pop();
        self.unused[class] = self.unused[class].min(self.kept[class].len());
        memory
    }

    fn keep(&mut self, class: usize, memory: Vec<u8>) {
        if self.kept[class].len() < CLASSES[class].1 {
            self.kept[class].push(memory);
        }
    }

    fn trim(&mut self) -> bool {
        let mut has_freed = false;
        for (kept, unused) in self.kept.iter_mut().zip(&mut self.unused) {
            has_freed |= *unused > 0;
            kept.drain(..*unused);
            *unused = kept.len();
        }
        has_freed
    }
}

/// Frees the buffers that this thread has not needed since the last call. Returns whether there were any.
pub(crate) fn trim_pool() -> bool {
    POOL.with_borrow_mut(Pool::trim)
}

/// A growing run of bytes with room in front. Its memory goes back to the thread's pool when the buffer is dropped.
///
/// [`AsMut`] gives the part from [`Buffer::mark`] on, for a storage read to fill.
#[derive(Debug, Default)]
pub struct Buffer {
    /// Initialised throughout; at least `end` long.
    memory: Vec<u8>,
    start: usize,
    end: usize,
    mark: usize,
}

impl Buffer {
    /// An empty buffer that can take about `capacity` bytes without moving.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let needed = capacity.saturating_add(HEADROOM);
        let memory = match class_of(needed) {
            Some(class) => POOL
                .with_borrow_mut(|pool| pool.take(class))
                .unwrap_or_else(|| Vec::with_capacity(CLASSES[class].0)),
            None => Vec::with_capacity(needed),
        };
        let mut buffer = Self { memory, start: HEADROOM, end: HEADROOM, mark: HEADROOM };
        buffer.initialise(HEADROOM);
        buffer
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        let at = self.end;
        self.grow(bytes.len());
        self.memory[at..self.end].copy_from_slice(bytes);
    }

    /// Makes the buffer `count` bytes longer. The value of the new bytes is unspecified (earlier data of this server):
    /// the caller must overwrite them or cut them off again with [`Buffer::truncate`].
    pub fn grow(&mut self, count: usize) {
        self.end += count;
        self.initialise(self.end);
    }

    /// Keeps the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.end = self.end.min(self.start + length);
        self.mark = self.mark.min(self.end);
    }

    /// Puts bytes in front of the others.
    ///
    /// # Panics
    /// If the headroom is used up: a fault of the program, never of a client.
    pub fn prepend(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.start, "headroom of {HEADROOM} bytes exceeded");
        self.start -= bytes.len();
        self.memory[self.start..self.start + bytes.len()].copy_from_slice(bytes);
    }

    /// Removes the first bytes. Their place becomes room in front.
    ///
    /// # Panics
    /// If there are fewer: a fault of the program, never of a client.
    pub fn cut_front(&mut self, count: usize) {
        assert!(count <= self.len(), "{count} bytes cut from a buffer of {}", self.len());
        self.start += count;
        self.mark = self.mark.max(self.start);
    }

    /// Marks the current end: [`AsMut`] and [`Buffer::marked`] begin there.
    pub fn mark(&mut self) {
        self.mark = self.end;
    }

    /// The bytes from the mark on.
    #[must_use]
    pub fn marked(&self) -> &[u8] {
        &self.memory[self.mark..self.end]
    }

    /// Lets `write` append to the buffer as to a vector. `write` also gets the index in the vector at which this
    /// buffer's bytes begin.
    pub fn append_with<T>(&mut self, write: impl FnOnce(&mut Vec<u8>, usize) -> T) -> T {
        self.memory.truncate(self.end);
        let result = write(&mut self.memory, self.start);
        self.end = self.memory.len().max(self.start);
        self.initialise(self.end);
        result
    }

    /// Bytes of memory that the buffer occupies.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory.capacity()
    }

    fn initialise(&mut self, length: usize) {
        if self.memory.len() < length {
            self.memory.resize(length, 0);
        }
    }
}

fn class_of(size: usize) -> Option<usize> {
    CLASSES.iter().position(|(class, _)| size <= *class)
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        // The largest class that this memory can serve. A thread that is ending no longer has a pool.
        let class = CLASSES.iter().rposition(|(size, _)| memory.capacity() >= *size);
        if let Some(class) = class.filter(|c| memory.capacity() < 2 * CLASSES[*c].0) {
            let _ = POOL.try_with(|pool| pool.borrow_mut().keep(class, memory));
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.end]
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.mark..self.end]
    }
}

impl From<&[u8]> for Buffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::with_capacity(bytes.len());
        buffer.append(bytes);
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_behind_and_in_front() {
        let mut b = Buffer::with_capacity(16);
        b.append(b"head");
        b.mark();
        b.grow(4);
        b.as_mut().copy_from_slice(b"data");
        b.prepend(b"<<");
        assert_eq!(&*b, b"<<headdata");
        assert_eq!(b.marked(), b"data");
        b.truncate(6);
        assert_eq!(&*b, b"<<head");
        b.cut_front(4);
        assert_eq!(&*b, b"ad");
        b.prepend(b"<<he");
        let index = b.append_with(|v, start| {
            v.extend_from_slice(b"more");
            start
        });
        assert_eq!(&*b, b"<<headmore");
        assert_eq!(index, HEADROOM - 2);
    }

    #[test]
    fn memory_is_used_again_and_grows_past_its_class() {
        let mut b = Buffer::with_capacity(60_000);
        b.grow(60_000);
        b.as_mut().fill(1);
        let place = b.memory.as_ptr();
        drop(b);
        let b = Buffer::with_capacity(60_000);
        assert_eq!(b.memory.as_ptr(), place);
        assert!(b.is_empty());
        let mut big = Buffer::with_capacity(10);
        big.append(&[7; 3 << 20]);
        assert_eq!(big.len(), 3 << 20);
    }

    #[test]
    fn what_was_not_needed_for_a_while_is_freed() {
        let kept = || POOL.with_borrow(|pool| pool.kept[2].len());
        let buffers = |count: usize| (0..count).map(|_| Buffer::with_capacity(60_000)).collect::<Vec<_>>();
        drop(buffers(10));
        assert_eq!((kept(), trim_pool(), kept()), (10, false, 10), "all were needed");
        drop(buffers(3));
        assert_eq!((kept(), trim_pool(), kept()), (10, true, 3));
        assert_eq!((trim_pool(), kept(), trim_pool()), (true, 0, false));
    }

    #[test]
    #[should_panic(expected = "headroom")]
    fn headroom_is_bounded() {
        Buffer::with_capacity(0).prepend(&[0; HEADROOM + 1]);
    }
}

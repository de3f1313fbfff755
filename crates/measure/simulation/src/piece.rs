//! Pieces of files that clients read and write.

use std::ops::Range;

use crate::world::{BLOCK_BYTES, BLOCKS, FILES, World};

/// The most blocks that one request moves.
const BLOCKS_MAX: u64 = 3;

/// Some blocks of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) file: usize,
    pub(crate) first: u64,
    pub(crate) blocks: u32,
}

/// The operation on a piece: a read of the blocks, or a write with a stamp.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Doing {
    Read(Piece),
    Write(Piece, u64),
}

impl Piece {
    /// Chooses a random piece.
    pub(crate) fn by(world: &World) -> Self {
        let (file, first) = (world.pick(FILES), world.below(BLOCKS));
        let blocks = 1 + u32::try_from(world.below((BLOCKS - first).min(BLOCKS_MAX))).unwrap_or(0);
        Self { file, first, blocks }
    }

    /// The file, the first block and the number of blocks, for the trace.
    pub(crate) fn numbers(self) -> [u64; 3] {
        [self.file as u64, self.first, self.blocks.into()]
    }

    /// The offset of the piece in bytes.
    pub(crate) fn offset(self) -> u64 {
        self.first * u64::from(BLOCK_BYTES)
    }

    /// Its length in bytes.
    pub(crate) fn bytes(self) -> u32 {
        self.blocks * BLOCK_BYTES
    }

    /// The numbers of its blocks.
    pub(crate) fn range(self) -> Range<u64> {
        self.first..self.first + u64::from(self.blocks)
    }

    /// The data of a write of this piece with this stamp.
    pub(crate) fn stamped(self, stamp: u64) -> Vec<u8> {
        stamp.to_le_bytes().repeat(self.bytes() as usize / 8)
    }
}

impl Doing {
    /// Whether the operation writes this block.
    pub(crate) fn writes(self, file: usize, block: u64) -> bool {
        matches!(self, Self::Write(piece, _) if piece.file == file && piece.range().contains(&block))
    }
}

/// A random range of bytes to lock: some blocks of a file.
pub(crate) fn lockable(world: &World) -> Range<u64> {
    let first = world.below(BLOCKS);
    let blocks = 1 + world.below(BLOCKS - first);
    first * u64::from(BLOCK_BYTES)..(first + blocks) * u64::from(BLOCK_BYTES)
}

/// The blocks in the data of a read, from the first block of the piece on, each with the stamp that the whole block
/// has.
pub(crate) fn stamps(piece: Piece, data: &[u8]) -> impl Iterator<Item = (u64, Option<u64>)> {
    (piece.first..).zip(data.chunks(BLOCK_BYTES as usize)).map(|(number, block)| (number, stamp_of(block)))
}

fn stamp_of(block: &[u8]) -> Option<u64> {
    let (words, rest) = block.as_chunks::<8>();
    let first = *words.first()?;
    (rest.is_empty() && words.iter().all(|word| *word == first)).then(|| u64::from_le_bytes(first))
}

//! Checks of reading and writing.

use crate::conformance::MAY;
use std::io::IoSlice;

use super::{Subject, attributes_of, file, has, name, read, write};
use crate::{Capabilities, Error, SetAttributes, Stability, Wait};

/// The largest size of a file on Linux.
const SIZE_MAX: u64 = i64::MAX.unsigned_abs();

fn set_size(node: &dyn crate::Node, size: u64) -> crate::Result<crate::Attributes> {
    node.set_attributes(&SetAttributes { size: Some(size), ..SetAttributes::default() }, MAY)
}

/// Data can be written at any offset, over existing data.
pub fn reads_what_was_written(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    let mut expected = vec![0; 70_000];
    for (offset, length, byte) in [(0, 10, 1), (4090, 20, 2), (65_536, 4464, 3), (5, 4096, 4), (8191, 2, 5)] {
        write(&*node, offset, &vec![byte; length]);
        let from = usize::try_from(offset).unwrap();
        expected[from..from + length].fill(byte);
    }
    assert_eq!(read(&*node, 0, 70_000), expected);
    for offset in [0, 1, 4095, 4096, 4097, 65_535, 69_999] {
        let from = usize::try_from(offset).unwrap();
        let end = expected.len().min(from + 4100);
        assert_eq!(read(&*node, offset, 4100), expected[from..end], "at {offset}");
    }
    assert_eq!(attributes_of(&*node).size, 70_000);
}

/// Reads end at the end of the data.
pub fn ends_at_the_size(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    assert_eq!(read(&*node, 0, 10), b"");
    write(&*node, 0, b"0123456789");
    assert_eq!(read(&*node, 8, 10), b"89");
    for offset in [10, 11, 1 << 40, SIZE_MAX, u64::MAX] {
        assert_eq!(read(&*node, offset, 10), b"", "at {offset}");
    }
}

/// A file can be cut off, and extended with zeroes.
pub fn changes_the_size(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    write(&*node, 0, &[7; 10_000]);
    assert_eq!(set_size(&*node, 5000).unwrap().size, 5000);
    assert_eq!(set_size(&*node, 9000).unwrap().size, 9000);
    let mut expected = vec![7; 5000];
    expected.resize(9000, 0);
    assert_eq!(read(&*node, 0, 10_000), expected, "what was cut off does not return");
    assert_eq!(set_size(&*node, 0).unwrap().size, 0);
    assert_eq!(read(&*node, 0, 10), b"");
    assert_eq!(set_size(&*node, 1 << 33).unwrap().size, 1 << 33);
}

/// A write of many slices is one write.
pub fn many_slices(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    let pieces: Vec<Vec<u8>> = (0..3000_usize).map(|n| vec![u8::try_from(n % 251).unwrap(); n % 7]).collect();
    let slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let whole = pieces.concat();
    assert_eq!(node.write(3, &slices, Stability::Unstable, Wait::May(MAY)), Ok(whole.len()));
    assert_eq!(read(&*node, 3, 20_000), whole);
}

/// Data reads the same whatever stability it was written with.
pub fn every_stability(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    for (offset, stability) in [(0, Stability::Unstable), (1, Stability::Data), (2, Stability::File)] {
        assert_eq!(node.write(offset, &[IoSlice::new(b"x")], stability, Wait::May(MAY)), Ok(1));
    }
    assert_eq!(read(&*node, 0, 9), b"xxx");
    assert_eq!(node.commit(MAY), Ok(()));
    assert_eq!(root.commit(MAY), Ok(()), "names are safe then");
}

/// No file can grow beyond the system's limit.
pub fn beyond_the_largest(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    for offset in [SIZE_MAX, SIZE_MAX + 1, u64::MAX] {
        let written = node.write(offset, &[IoSlice::new(b"x")], Stability::Unstable, Wait::May(MAY));
        assert_eq!(written, Err(Error::TooLarge), "at {offset}");
    }
    assert_eq!(set_size(&*node, SIZE_MAX + 1), Err(Error::TooLarge));
    assert_eq!(set_size(&*node, u64::MAX), Err(Error::TooLarge));
    assert_eq!(attributes_of(&*node).size, 0);
}

/// Empty reads and writes succeed and do nothing.
pub fn empty_calls(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    assert_eq!(node.write(100, &[], Stability::Unstable, Wait::May(MAY)), Ok(0));
    assert_eq!(node.write(100, &[IoSlice::new(b"")], Stability::File, Wait::May(MAY)), Ok(0));
    assert_eq!(attributes_of(&*node).size, 0);
    assert_eq!(node.read(0, &mut [], Wait::May(MAY)), Ok(0));
}

/// Ranges can be copied inside the store.
pub fn copies_ranges(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (from, to) = (file(&root, "from"), file(&root, "to"));
    let data: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
    write(&*from, 0, &data);
    let mut copied = 0;
    while copied < 90_000 {
        let count = from.copy_range(5 + copied, &*to, 7 + copied, 90_000 - copied, MAY).unwrap();
        assert!(count > 0 && count <= 90_000 - copied);
        copied += count;
    }
    assert_eq!(read(&*to, 7, 200_000), data[5..90_005]);
    assert_eq!(read(&*to, 0, 7), [0; 7]);
    assert_eq!(from.copy_range(99_990, &*to, 0, 50, MAY), Ok(10), "no more than there is");
    assert_eq!(from.copy_range(100_000, &*to, 0, 50, MAY), Ok(0));
    assert_eq!(from.copy_range(u64::MAX, &*to, 0, 50, MAY), Ok(0));
    assert_eq!(from.copy_range(0, &*from, 10, 20, MAY), Err(Error::InvalidArgument), "onto itself");
    assert_eq!(from.copy_range(0, &*from, 200_000, 20, MAY), Ok(20));
    assert_eq!(read(&*from, 200_000, 99), data[..20]);
}

/// Clones share blocks; at least whole files can be cloned.
pub fn clones_ranges(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let (from, to) = (file(&root, "from"), file(&root, "to"));
    write(&*from, 0, &[9; 10_000]);
    let cloned = from.clone_range(0, &*to, 0, 0, MAY);
    if !has(subject, Capabilities::CLONE) {
        assert_eq!(cloned, Err(Error::NotSupported));
        return;
    }
    assert_eq!(cloned, Ok(()));
    assert_eq!(read(&*to, 0, 20_000), [9; 10_000]);
    write(&*to, 0, &[8; 10]);
    assert_eq!(read(&*from, 0, 10), [9; 10], "a write to the one is not seen in the other");
    assert_eq!(from.clone_range(1, &*to, 0, 100, MAY), Err(Error::InvalidArgument), "whole blocks only");
    root.remove_file(name("from"), MAY).unwrap();
    assert_eq!(read(&*to, 10, 9990), [9; 9990]);
}

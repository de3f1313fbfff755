//! Checks of holes. The store decides how large a hole must be: these checks use large ones.

use super::{Subject, attributes_of, file, has, read, write};
use crate::conformance::MAY;
use crate::{Capabilities, Error, Node, SeekTo, SetAttributes};

const MIB: u64 = 1 << 20;

/// Seeks data or a hole from an offset.
fn seeks(node: &dyn Node, from: u64, to: SeekTo) -> Option<u64> {
    node.seek(from, to, MAY).unwrap()
}

/// Whether the store knows holes.
fn is_sparse(subject: &dyn Subject, node: &dyn Node) -> bool {
    let sparse = has(subject, Capabilities::SPARSE);
    if !sparse {
        assert_eq!(node.seek(0, SeekTo::Hole, MAY), Err(Error::NotSupported));
    }
    sparse
}

/// Seeking finds the next data and the next hole. The end of the data counts as a hole.
pub fn finds_holes(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    if !is_sparse(subject, &*node) {
        return;
    }
    assert_eq!((seeks(&*node, 0, SeekTo::Data), seeks(&*node, 0, SeekTo::Hole)), (None, None));
    write(&*node, 2 * MIB, &[1; 1 << 20]);
    write(&*node, 6 * MIB, &[1; 100]);
    assert_eq!(seeks(&*node, 0, SeekTo::Data), Some(2 * MIB));
    assert_eq!(seeks(&*node, 0, SeekTo::Hole), Some(0));
    assert_eq!(seeks(&*node, 2 * MIB + 5, SeekTo::Data), Some(2 * MIB + 5));
    assert_eq!(seeks(&*node, 2 * MIB + 5, SeekTo::Hole), Some(3 * MIB));
    assert_eq!(seeks(&*node, 3 * MIB, SeekTo::Data), Some(6 * MIB));
    assert_eq!(seeks(&*node, 6 * MIB, SeekTo::Hole), Some(6 * MIB + 100), "the end");
    assert_eq!(seeks(&*node, 6 * MIB + 100, SeekTo::Hole), None);
    assert_eq!(seeks(&*node, 6 * MIB + 100, SeekTo::Data), None);
    assert_eq!(seeks(&*node, u64::MAX, SeekTo::Data), None);
}

/// Punched ranges read as zeroes and occupy no space.
pub fn punches_holes(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    if !has(subject, Capabilities::PUNCH_HOLE) {
        assert_eq!(node.punch_hole(0, 1, MAY), Err(Error::NotSupported));
        return;
    }
    let is_sparse = is_sparse(subject, &*node);
    write(&*node, 0, &vec![1; 4 << 20]);
    node.commit(MAY).unwrap();
    let before = attributes_of(&*node);
    node.punch_hole(MIB, 2 * MIB, MAY).unwrap();
    node.punch_hole(10, 20, MAY).unwrap();
    node.commit(MAY).unwrap();
    let after = attributes_of(&*node);
    assert_eq!(after.size, 4 * MIB);
    if is_sparse {
        let (before, after) = (before.allocated, after.allocated);
        assert!(after + 2 * MIB <= before, "{after} of {before}");
        assert_eq!(seeks(&*node, 100, SeekTo::Hole), Some(MIB));
        assert_eq!(seeks(&*node, MIB, SeekTo::Data), Some(3 * MIB));
    }
    assert_eq!(read(&*node, 0, 40), [&[1; 10][..], &[0; 20], &[1; 10]].concat());
    assert_eq!(read(&*node, MIB - 5, 10), [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(read(&*node, 3 * MIB - 5, 10), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    node.punch_hole(3 * MIB, 100 * MIB, MAY).unwrap();
    assert_eq!(attributes_of(&*node).size, 4 * MIB, "the size stays");
    assert_eq!(read(&*node, 4 * MIB - 10, 99), [0; 10]);
    assert_eq!(node.punch_hole(0, 0, MAY), Err(Error::InvalidArgument));
    assert_eq!(node.punch_hole(u64::MAX, 1, MAY), Err(Error::TooLarge));
}

/// Reserving takes space and keeps the contents; the size grows only when asked.
pub fn reserves_space(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    write(&*node, 0, b"data");
    if node.allocate(0, 2 * MIB, false, MAY) == Err(Error::NotSupported) {
        return;
    }
    let attributes = attributes_of(&*node);
    assert_eq!(attributes.size, 4);
    assert!(attributes.allocated >= 2 * MIB);
    node.allocate(MIB, MIB, true, MAY).unwrap();
    assert_eq!(attributes_of(&*node).size, 2 * MIB);
    assert_eq!(read(&*node, 0, 8), b"data\0\0\0\0");
    assert_eq!(node.allocate(0, 0, true, MAY), Err(Error::InvalidArgument));
    assert_eq!(node.allocate(u64::MAX, 1, true, MAY), Err(Error::TooLarge));
}

/// A file that is extended by setting its size occupies no space for the extension.
pub fn extends_with_holes(subject: &mut dyn Subject) {
    let node = file(&subject.store().root(), "f");
    node.set_attributes(&SetAttributes { size: Some(64 * MIB), ..SetAttributes::default() }, MAY).unwrap();
    assert_eq!(read(&*node, 63 * MIB, 100), [0; 100]);
    if is_sparse(subject, &*node) {
        assert!(attributes_of(&*node).allocated < MIB);
        write(&*node, 32 * MIB, b"x");
        let data = seeks(&*node, 0, SeekTo::Data).unwrap();
        assert!(data > 31 * MIB && data <= 32 * MIB, "data at {data}");
    }
}

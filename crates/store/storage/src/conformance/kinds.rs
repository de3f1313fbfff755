//! Checks of the kinds of objects.

use crate::conformance::MAY;
use std::io::IoSlice;

use super::{Subject, attributes_of, directory, file, find, name, new, read, write};
use crate::{Device, Error, FileKind, NewKind, SeekTo, Stability, View, Wait, Want};

/// Each object has the kind with which it was created.
pub fn every_kind(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let device = Device { major: 1, minor: 3 };
    let kinds = [
        (NewKind::Regular, FileKind::Regular),
        (NewKind::Directory, FileKind::Directory),
        (NewKind::Symlink(b"to"), FileKind::Symlink),
        (NewKind::Fifo, FileKind::Fifo),
        (NewKind::Socket, FileKind::Socket),
        (NewKind::BlockDevice(device), FileKind::BlockDevice),
        (NewKind::CharDevice(device), FileKind::CharDevice),
    ];
    for (number, (kind, expected)) in kinds.into_iter().enumerate() {
        let at = format!("k{number}");
        let node = match root.create(name(&at), &new(kind), MAY) {
            // Making devices requires privileges.
            Err(Error::NotPermitted) if matches!(kind, NewKind::BlockDevice(_) | NewKind::CharDevice(_)) => {
                continue;
            }
            other => other.unwrap(),
        };
        let attributes = attributes_of(&*node);
        assert_eq!((node.kind(), attributes.kind, attributes.id), (expected, expected, node.id()));
        assert_eq!(find(&root, &at).unwrap().kind(), expected);
        if matches!(kind, NewKind::BlockDevice(_) | NewKind::CharDevice(_)) {
            assert_eq!(attributes.device, device);
        }
        let mut listed = None;
        root.read_dir(0, MAY, &mut |entry| {
            listed = if entry.name == at.as_bytes() { entry.kind } else { listed };
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        assert!(listed.is_none_or(|kind| kind == expected), "{listed:?}");
    }
}

/// A symbolic link is an object of its own, wherever it leads.
pub fn symlinks_are_not_followed(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let target = file(&root, "target");
    write(&*target, 0, b"data");
    directory(&root, "d");
    for (number, text) in ["target", "d", "/", "/etc", "..", "../..", ".", "l0", "none"].iter().enumerate() {
        let at = format!("l{number}");
        let made = root.create(name(&at), &new(NewKind::Symlink(text.as_bytes())), MAY).unwrap();
        let link = find(&root, &at).unwrap();
        assert_eq!((link.id(), link.kind()), (made.id(), FileKind::Symlink));
        assert_eq!(link.read_link(MAY).unwrap(), text.as_bytes());
        assert_eq!(find(&link, "passwd").err(), Some(Error::NotDirectory));
        assert_eq!(link.create(name("x"), &new(NewKind::Regular), MAY).err(), Some(Error::NotDirectory));
        assert_eq!(root.create(name(&at), &new(NewKind::Regular), MAY).err(), Some(Error::Exists));
        assert_eq!(root.remove_dir(name(&at), MAY), Err(Error::NotDirectory));
        assert_eq!(link.read(0, &mut [0; 4], Wait::May(MAY)), Err(Error::WrongKind));
    }
    for number in 0..9 {
        root.remove_file(name(&format!("l{number}")), MAY).unwrap();
    }
    assert_eq!(read(&*target, 0, 10), b"data");
}

/// The text of a symbolic link may be any bytes, but not empty.
pub fn symlink_texts(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let long = [b'x'; 1000];
    for text in [&b"\xff\xfe/ \n"[..], &long] {
        let link = root.create(name("l"), &new(NewKind::Symlink(text)), MAY).unwrap();
        assert_eq!(link.read_link(MAY).unwrap(), text);
        assert_eq!(attributes_of(&*link).size, text.len() as u64);
        root.remove_file(name("l"), MAY).unwrap();
    }
    for (text, error) in [
        (&b""[..], Error::InvalidArgument),
        (b"a\0b", Error::InvalidArgument),
        (&[b'x'; 5000], Error::NameTooLong),
    ] {
        assert_eq!(root.create(name("l"), &new(NewKind::Symlink(text)), MAY).err(), Some(error));
        assert_eq!(find(&root, "l").err(), Some(Error::NotFound));
    }
}

/// Only files have data.
pub fn data_calls_need_data(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let regular = file(&root, "f");
    let others = [
        (directory(&root, "d"), Error::IsDirectory),
        (root.create(name("l"), &new(NewKind::Symlink(b"f")), MAY).unwrap(), Error::WrongKind),
        (root.create(name("p"), &new(NewKind::Fifo), MAY).unwrap(), Error::WrongKind),
        (root.create(name("s"), &new(NewKind::Socket), MAY).unwrap(), Error::WrongKind),
    ];
    assert_eq!(regular.read_link(MAY), Err(Error::WrongKind));
    for (node, error) in &others {
        let data = [IoSlice::new(b"x")];
        for wait in [Wait::May(MAY), Wait::Never(View::FRESH)] {
            assert_eq!(node.read(0, &mut [0; 4], wait), Err(*error));
            assert_eq!(node.write(0, &data, Stability::Unstable, wait), Err(*error));
        }
        assert_eq!(node.allocate(0, 1, true, MAY), Err(*error));
        assert_eq!(node.punch_hole(0, 1, MAY), Err(*error));
        assert_eq!(node.seek(0, SeekTo::Data, MAY), Err(*error));
        assert_eq!(node.copy_range(0, &*regular, 0, 1, MAY), Err(*error));
        assert_eq!(regular.copy_range(0, &**node, 0, 1, MAY), Err(*error));
        assert_eq!(node.commit(MAY), Ok(()), "attributes can always be made safe");
    }
}

/// Calls with `Wait::Never` return the same data as calls that wait.
pub fn wait_never(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let node = file(&root, "f");
    write(&*node, 0, b"0123456789");
    if let Some(found) = at_hand(root.lookup(name("f"), Wait::Never(View::FRESH))) {
        assert_eq!(found.id(), node.id());
    }
    assert!(matches!(
        root.lookup(name("x"), Wait::Never(View::FRESH)).err(),
        Some(Error::NotFound | Error::WouldBlock)
    ));
    if let Some(attributes) = at_hand(node.attributes(Want::all(), Wait::Never(View::FRESH))) {
        assert_eq!(attributes, attributes_of(&*node));
    }
    let mut into = [0; 20];
    if let Some(count) = at_hand(node.read(4, &mut into, Wait::Never(View::FRESH))) {
        assert!(count > 0);
        assert!(b"456789".starts_with(&into[..count]));
    }
    let data = [IoSlice::new(b"abc"), IoSlice::new(b"def")];
    if let Some(count) = at_hand(node.write(10, &data, Stability::Unstable, Wait::Never(View::FRESH))) {
        assert_eq!(read(&*node, 10, 20), b"abcdef"[..count]);
    }
}

fn at_hand<T>(result: crate::Result<T>) -> Option<T> {
    match result {
        Err(Error::WouldBlock) => None,
        other => Some(other.unwrap()),
    }
}

//! All that is in a store, to be compared with another one.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use storage::conformance::MAY;
use storage::{
    Attributes, FileFlags, FileKind, Name, Node, NodeRef, ObjectId, SeekTo, Storage, StreamName, Timestamp,
    Wait, Want,
};

/// The names in a directory.
pub(crate) fn names(dir: &NodeRef) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    dir.read_dir(0, MAY, &mut |entry| {
        names.push(entry.name.to_vec());
        ControlFlow::Continue(())
    })
    .unwrap();
    names.sort();
    names
}

/// What is at each path. Two stores with the same picture hold the same.
pub(crate) fn picture(store: &dyn Storage) -> BTreeMap<String, String> {
    let (mut all, mut first) = (BTreeMap::new(), HashMap::new());
    enter(&store.root(), "", &mut all, &mut first);
    all
}

fn enter(
    node: &NodeRef,
    path: &str,
    all: &mut BTreeMap<String, String>,
    first: &mut HashMap<ObjectId, String>,
) {
    let attributes = node.attributes(Want::all(), Wait::May(MAY)).unwrap();
    let same_as = first.entry(node.id()).or_insert_with(|| path.to_owned()).clone();
    all.insert(path.to_owned(), format!("{same_as} {}", describe(&**node, &attributes)));
    if node.kind() == FileKind::Directory {
        for name in names(node) {
            let child = node.lookup(Name::new(&name).unwrap(), Wait::May(MAY)).unwrap();
            enter(&child, &format!("{path}/{}", String::from_utf8_lossy(&name)), all, first);
        }
    }
}

fn describe(node: &dyn Node, known: &Attributes) -> String {
    let kept = Attributes {
        id: ObjectId::live(0),
        size: if known.kind == FileKind::Directory { 0 } else { known.size },
        links: if known.kind == FileKind::Directory { 0 } else { known.links },
        allocated: 0,
        // Looking changes it.
        atime: Timestamp::default(),
        ctime: Timestamp::default(),
        // What clients see if none were set.
        flags: known.flags.or(Some(match known.kind {
            FileKind::Directory => FileFlags::empty(),
            _ => FileFlags::ARCHIVE,
        })),
        // It counts until the next change, and a further name is one.
        ctime_set: None,
        btime: known.btime.filter(|_| matches!(known.kind, FileKind::Regular | FileKind::Directory)),
        ..*known
    };
    let mut text = format!("{kept:?}");
    if known.kind == FileKind::Symlink {
        text += &String::from_utf8_lossy(&node.read_link(MAY).unwrap());
    }
    if known.kind == FileKind::Regular {
        text += &data(node, known.size);
    }
    if matches!(known.kind, FileKind::Regular | FileKind::Directory) {
        let mut xattrs: Vec<_> = node
            .xattrs(MAY)
            .unwrap()
            .into_iter()
            .map(|name| (node.xattr(&name, MAY).unwrap(), name))
            .collect();
        xattrs.sort();
        let mut streams: Vec<_> = node.streams(MAY).unwrap().into_iter().map(|stream| stream.name).collect();
        streams.sort();
        let streams: Vec<_> = streams
            .iter()
            .map(|name| {
                let stream = node.stream(StreamName::new(name).unwrap(), MAY).unwrap();
                let size = stream.attributes(Want::empty(), Wait::May(MAY)).unwrap().size;
                (name, data(&*stream, size))
            })
            .collect();
        text += &format!(" {xattrs:?} {streams:?} {:?}", node.security(known, Wait::May(MAY)).unwrap());
    }
    text
}

/// The data, and where there is some.
fn data(node: &dyn Node, size: u64) -> String {
    let (mut text, mut at) = (String::new(), 0);
    while let Ok(Some(start)) = node.seek(at, SeekTo::Data, MAY) {
        let end = node.seek(start, SeekTo::Hole, MAY).unwrap().unwrap_or(size);
        let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
        let count = node.read(start, &mut bytes, Wait::May(MAY)).unwrap();
        assert_eq!(count, bytes.len());
        let sum = bytes.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        text += &format!(" {start}-{end}:{sum:x}");
        at = end;
    }
    text
}

//! What objects of a snapshot consist of, said by the source.

use replica_wire::{DATA_BYTES_MAX, Kind, Record, VALUE_BYTES_MAX, Wanted};
use storage::{Attributes, Error, Handle, MayWait, Node, NodeRef, SeekTo, Storage, StreamName, Wait, Want};

use crate::attributes::{is_plain, object};
use crate::failure::Result;

/// Says what these objects of a snapshot consist of.
///
/// # Errors
/// Those of `say`, and of the store.
pub fn write_objects(
    store: &dyn Storage,
    wanted: &Wanted,
    may: MayWait<'_>,
    say: &mut dyn FnMut(&Record) -> Result<()>,
) -> Result<()> {
    for handle in &wanted.handles {
        let found = Handle::new(handle).and_then(|handle| store.by_handle(&handle, Wait::May(may)));
        match found {
            Ok(node) => write(&node, may, say)?,
            Err(Error::Stale | Error::BadHandle | Error::NotFound) => say(&Record::Gone)?,
            Err(e) => return Err(e.into()),
        }
    }
    say(&Record::End)
}

fn write(node: &NodeRef, may: MayWait<'_>, say: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
    let attributes = node.attributes(Want::FLAGS, Wait::May(may))?;
    let mut said = object(&attributes);
    if said.kind == Kind::Symlink {
        said.link = node.read_link(may)?;
    }
    if is_plain(said.kind) {
        said.descriptor = descriptor(&**node, &attributes, may)?;
    }
    say(&Record::Object(said.clone()))?;
    if is_plain(said.kind) {
        write_xattrs(&**node, may, say)?;
    }
    if said.kind == Kind::Regular {
        write_data(&**node, said.size, may, say)?;
    }
    if is_plain(said.kind) {
        write_streams(&**node, may, say)?;
    }
    say(&Record::ObjectEnd)
}

fn descriptor(node: &dyn Node, attributes: &Attributes, may: MayWait<'_>) -> Result<Option<Vec<u8>>> {
    let Some(descriptor) = node.security(attributes, Wait::May(may))? else { return Ok(None) };
    let mut bytes = Vec::new();
    descriptor.encode_into(&mut bytes).map_err(|_| Error::AttributeTooLarge)?;
    if bytes.len() > VALUE_BYTES_MAX { Err(Error::AttributeTooLarge.into()) } else { Ok(Some(bytes)) }
}

fn write_xattrs(node: &dyn Node, may: MayWait<'_>, say: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
    let names = match node.xattrs(may) {
        Err(Error::NotSupported) => return Ok(()),
        names => names?,
    };
    for name in names {
        let value = node.xattr(&name, may)?;
        say(&Record::Xattr { name, value })?;
    }
    Ok(())
}

fn write_streams(
    node: &dyn Node,
    may: MayWait<'_>,
    say: &mut dyn FnMut(&Record) -> Result<()>,
) -> Result<()> {
    let streams = match node.streams(may) {
        Err(Error::NotSupported) => return Ok(()),
        streams => streams?,
    };
    for stream in streams {
        let data = node.stream(StreamName::new(&stream.name)?, may)?;
        say(&Record::Stream { name: stream.name, size: stream.size })?;
        write_data(&*data, stream.size, may, say)?;
    }
    Ok(())
}

/// Says what is not a hole.
fn write_data(
    node: &dyn Node,
    size: u64,
    may: MayWait<'_>,
    say: &mut dyn FnMut(&Record) -> Result<()>,
) -> Result<()> {
    let mut at = 0;
    while at < size {
        let start = match node.seek(at, SeekTo::Data, may) {
            Ok(found) => found.unwrap_or(size),
            Err(Error::NotSupported) => at,
            Err(e) => return Err(e.into()),
        };
        let end = match node.seek(start, SeekTo::Hole, may) {
            Ok(Some(end)) => end.min(size),
            Ok(None) | Err(Error::NotSupported) => size,
            Err(e) => return Err(e.into()),
        };
        at = start;
        while at < end {
            let room = usize::try_from(end - at).unwrap_or(DATA_BYTES_MAX).min(DATA_BYTES_MAX);
            let mut bytes = vec![0; room];
            let count = node.read(at, &mut bytes, Wait::May(may))?;
            if count == 0 {
                // It is shorter than it was said to be, which a snapshot cannot be.
                return Err(Error::Stale.into());
            }
            bytes.truncate(count);
            say(&Record::Data { offset: at, bytes })?;
            at += count as u64;
        }
    }
    Ok(())
}

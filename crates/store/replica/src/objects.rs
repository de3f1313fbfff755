//! What objects of a snapshot consist of, said by the source.

use replica_wire::{Kind, Record, VALUE_BYTES_MAX, Wanted, WantedObject};
use storage::{Attributes, Error, MayWait, Node, NodeRef, StreamName, Wait, Want};

use crate::attributes::{is_plain, object};
use crate::changes::Compared;
use crate::data::{write_data, write_differences};
use crate::failure::Result;

/// The size in bytes from which only what is different of a file's data is said: less costs no more than a look at what was there.
const DIFFERENCES_FROM: u64 = 16 << 10;

/// Says what these objects of the later snapshot consist of. Of the data of a file that the destination has as it is in the earlier
/// snapshot, only what is different is said.
///
/// # Errors
/// Those of `say`, and of the store.
pub fn write_objects(
    compared: &Compared,
    wanted: &Wanted,
    may: MayWait<'_>,
    say: &mut dyn FnMut(&Record) -> Result<()>,
) -> Result<()> {
    for WantedObject { handle, has } in &wanted.objects {
        match compared.by_handle(handle, may) {
            Ok(node) => write(&node, has.and_then(|has| compared.with_version(&node, has, may)), may, say)?,
            Err(Error::Stale | Error::BadHandle | Error::NotFound) => say(&Record::Gone)?,
            Err(e) => return Err(e.into()),
        }
    }
    say(&Record::End)
}

fn write(
    node: &NodeRef,
    before: Option<NodeRef>,
    may: MayWait<'_>,
    say: &mut dyn FnMut(&Record) -> Result<()>,
) -> Result<()> {
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
        match before.filter(|_| said.size >= DIFFERENCES_FROM) {
            Some(before) => write_differences(&**node, &*before, said.size, may, say)?,
            None => write_data(&**node, said.size, may, say)?,
        }
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

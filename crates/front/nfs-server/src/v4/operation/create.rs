//! CREATE, RFC 8881 18.4: objects that are not regular files.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::create::{Args, ResOk, What};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{SpecData, Text};
use share::Kind;
use storage::{Device, FileKind};

use super::directory;
use super::new_object::{NewObject, make};
use crate::operation::Operation;
use crate::v4::attributes;
use crate::v4::compound::Compound;
use crate::v4::set_attributes::{AttributesToSet, Of};

pub(super) const OPERATION: Operation<Number> = Operation {
    changes: true,
    result_bytes: 64,
    ..Operation::v4(Number::Create, "Create").of_kind(Kind::Create)
};

pub(super) async fn handle(c: &mut Compound<'_>, args: Args<'_>) -> Result<ResOk, Status> {
    let dir = c.object_to_change()?;
    directory::check(dir)?;
    let (kind, target, device) = parts(&args.what)?;
    let name = args.name.checked()?;
    let supported = attributes::supported_in(c.minor_version, &dir.share);
    let wanted = AttributesToSet::decode(&args.attributes, supported, Of::New, c.names())?;
    let made = make(dir, name, NewObject { kind, target, device, wanted: &wanted }).await?;
    let change = directory::change(&made.dir);
    let object = dir.beside(made.found.node);
    c.set_object(object);
    Ok(ResOk { change, attributes_set: wanted.attributes })
}

fn parts(what: &What<'_>) -> Result<(FileKind, Vec<u8>, Device), Status> {
    let none = (Vec::new(), Device::default());
    let (kind, (target, device)) = match what {
        What::SymbolicLink(text) => (FileKind::Symlink, (link_text(*text)?, none.1)),
        What::BlockDevice(device) => (FileKind::BlockDevice, (none.0, number(*device))),
        What::CharacterDevice(device) => (FileKind::CharDevice, (none.0, number(*device))),
        What::Socket => (FileKind::Socket, none),
        What::Fifo => (FileKind::Fifo, none),
        What::Directory => (FileKind::Directory, none),
        What::Other(_) => return Err(Status::BadType),
    };
    Ok((kind, target, device))
}

/// POSIX allows neither an empty link text nor one with a NUL.
fn link_text(text: Text<'_>) -> Result<Vec<u8>, Status> {
    let text = text.within_path_limit()?;
    if text.contains(&0) { Err(Status::BadChar) } else { Ok(text.to_vec()) }
}

fn number(device: SpecData) -> Device {
    Device { major: device.major, minor: device.minor }
}

//! The ways to create a file (RFC 8881 18.16.3): UNCHECKED4, GUARDED4, EXCLUSIVE4 and EXCLUSIVE4_1.

use nfs_wire::v4::attr::{Attribute, AttributeSet, Attributes, Value};
use nfs_wire::v4::open::CreateHow;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Verifier;
use share::Created;
use storage::{Device, FileKind, SetTime};

use super::target::{FileToOpen, look_up};
use crate::exclusive::Mark;
use crate::object::Object;
use crate::v4::attributes;
use crate::v4::compound::Compound;
use crate::v4::operation::{directory, new_object};
use crate::v4::set_attributes::{AttributesToSet, Of};

/// Where the verifier of an exclusive creation is kept: the client sets these next.
const VERIFIER_IN: AttributeSet = AttributeSet::of(&[Attribute::TimeAccessSet, Attribute::TimeModifySet]);

/// Creates the file, or uses the existing one where the client allows that.
pub(super) async fn create(
    c: &Compound<'_>,
    dir: &Object,
    name: &[u8],
    how: &CreateHow<'_>,
) -> Result<FileToOpen, Status> {
    let supported = attributes::supported_in(c.minor_version, &dir.share);
    let names = c.names();
    match how {
        CreateHow::Unchecked(attributes) => {
            unchecked(dir, name, *attributes, AttributesToSet::decode(attributes, supported, Of::New, names)?)
                .await
        }
        CreateHow::Guarded(attributes) => {
            make(dir, name, AttributesToSet::decode(attributes, supported, Of::New, names)?).await
        }
        CreateHow::Exclusive(verifier) => {
            // "SHOULD NOT leave the file's access control to anyone but the owner of the file."
            let mut new = AttributesToSet::decode(&Attributes::EMPTY, supported, Of::New, names)?;
            new.set.mode = Some(0);
            exclusive(dir, name, *verifier, new).await
        }
        CreateHow::ExclusiveWithAttributes(verifier, attributes) => {
            // "If the client attempts to set in cva_attrs an attribute that is not in suppattr_exclcreat, the server MUST
            // return NFS4ERR_INVAL."
            if !attributes.set.difference(attributes::exclusive(supported)).is_empty() {
                return Err(Status::Inval);
            }
            exclusive(dir, name, *verifier, AttributesToSet::decode(attributes, supported, Of::New, names)?)
                .await
        }
    }
}

async fn unchecked(
    dir: &Object,
    name: &[u8],
    attributes: Attributes<'_>,
    new: AttributesToSet<'_>,
) -> Result<FileToOpen, Status> {
    let truncates = attributes.value(Attribute::Size) == Some(Value::Size(0));
    let refused = match make(dir, name, new).await {
        // A caller may open an existing file although the directory is not writable.
        Err(status @ (Status::Exist | Status::Access | Status::RoFs)) => status,
        answer => return answer,
    };
    let found = match look_up(dir, name).await {
        Err(Status::NoEnt) => return Err(refused),
        found => found?,
    };
    // "the attributes specified by createattrs are not used, except that when createattrs specifies the size attribute
    // with a size of zero, the existing file is truncated"
    let attributes_set = if truncates { AttributeSet::of(&[Attribute::Size]) } else { AttributeSet::EMPTY };
    Ok(FileToOpen { truncates, attributes_set, ..found })
}

/// Creates the file, marked with the verifier, or finds the file that an earlier transmission of this call has created.
async fn exclusive(
    dir: &Object,
    name: &[u8],
    verifier: Verifier,
    mut new: AttributesToSet<'_>,
) -> Result<FileToOpen, Status> {
    let mark = Mark::of(verifier.0);
    new.set.atime = Some(SetTime::To(mark.atime));
    new.set.mtime = Some(SetTime::To(mark.mtime));
    new.attributes = new.attributes.union(VERIFIER_IN);
    let attributes_set = new.attributes;
    match make(dir, name, new).await {
        Err(Status::Exist) => {}
        answer => return answer,
    }
    let found = look_up(dir, name).await?;
    if !mark.is_on(&found.found.attributes) {
        return Err(Status::Exist);
    }
    Ok(FileToOpen { attributes_set, is_new: true, ..found })
}

async fn make(dir: &Object, name: &[u8], wanted: AttributesToSet<'_>) -> Result<FileToOpen, Status> {
    if dir.is_read_only() {
        return Err(Status::RoFs);
    }
    let new = new_object::NewObject {
        kind: FileKind::Regular,
        target: Vec::new(),
        device: Device::default(),
        wanted: &wanted,
    };
    let Created { found, dir: change } = new_object::make(dir, name, new).await?;
    Ok(FileToOpen {
        object: dir.beside(found.node.clone()),
        found,
        is_new: true,
        truncates: false,
        change: directory::change(&change),
        attributes_set: wanted.attributes,
    })
}

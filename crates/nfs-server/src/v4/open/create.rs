//! The ways to make a file (RFC 8881 18.16.3): UNCHECKED4, GUARDED4, EXCLUSIVE4 and EXCLUSIVE4_1.

use nfs_wire::v4::attr::{Attribute, AttributeSet, Attributes, Value};
use nfs_wire::v4::open::CreateHow;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ChangeInfo, Verifier};
use share::{Case, Created, NewObject};
use storage::{Device, FileKind, SetAttributes, SetTime, Want};

use super::Target;
use super::claim::look_up;
use crate::exclusive::Mark;
use crate::object::Object;
use crate::status;

/// The mode of a file whose maker does not say one.
const FILE_MODE: u32 = 0o600;
/// Where the verifier of an exclusive creation is kept: the client sets these next.
const VERIFIER_IN: AttributeSet = AttributeSet::of(&[Attribute::TimeAccessSet, Attribute::TimeModifySet]);

/// Makes the file, or takes the one that is there where that is meant.
pub(super) async fn create(dir: &Object, name: &[u8], how: &CreateHow<'_>) -> Result<Target, Status> {
    match how {
        CreateHow::Unchecked(attributes) => unchecked(dir, name, *attributes).await,
        CreateHow::Guarded(attributes) => make(dir, name, New::with(*attributes)?).await,
        CreateHow::Exclusive(verifier) => {
            // "SHOULD NOT leave the file's access control to anyone but the owner of the file."
            let mut new = New::with(Attributes::EMPTY)?;
            new.object.mode = 0;
            exclusive(dir, name, *verifier, new).await
        }
        CreateHow::ExclusiveWithAttributes(verifier, attributes) => {
            // "If the client attempts to set in cva_attrs an attribute that is not in suppattr_exclcreat, the server MUST
            // return NFS4ERR_INVAL."
            if !attributes.set.intersection(VERIFIER_IN).is_empty() {
                return Err(Status::Inval);
            }
            exclusive(dir, name, *verifier, New::with(*attributes)?).await
        }
    }
}

/// A file to make.
struct New {
    object: NewObject,
    /// Which of its attributes its maker has said.
    set: AttributeSet,
}

async fn unchecked(dir: &Object, name: &[u8], attributes: Attributes<'_>) -> Result<Target, Status> {
    let new = New::with(attributes)?;
    let truncates = attributes.value(Attribute::Size) == Some(Value::Size(0));
    let refused = match make(dir, name, new).await {
        // To open a file that exists, the directory need not be writable.
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
    Ok(Target { truncates, attributes_set, ..found })
}

/// Makes the file, marked with the verifier; or finds the one that an earlier transmission of this call has made.
async fn exclusive(dir: &Object, name: &[u8], verifier: Verifier, mut new: New) -> Result<Target, Status> {
    let mark = Mark::of(verifier.0);
    new.object.set.atime = Some(SetTime::To(mark.atime));
    new.object.set.mtime = Some(SetTime::To(mark.mtime));
    new.set = new.set.union(VERIFIER_IN);
    let attributes_set = new.set;
    match make(dir, name, new).await {
        Err(Status::Exist) => {}
        answer => return answer,
    }
    let found = look_up(dir, name).await?;
    if !mark.is_on(&found.found.attributes) {
        return Err(Status::Exist);
    }
    Ok(Target { attributes_set, is_new: true, ..found })
}

async fn make(dir: &Object, name: &[u8], new: New) -> Result<Target, Status> {
    if dir.is_read_only() {
        return Err(Status::RoFs);
    }
    let New { object, set } = new;
    let created = dir.share.create(&dir.caller, &dir.node, name, Case::Sensitive, object).await;
    let Created { found, dir: change } = created.map_err(status::v4)?;
    Ok(Target {
        object: dir.beside(found.node.clone()),
        found,
        is_new: true,
        truncates: false,
        change: ChangeInfo { atomic: false, before: change.before.change(), after: change.after.change() },
        attributes_set: set,
    })
}

impl New {
    /// A file with the attributes that its maker wants.
    fn with(attributes: Attributes<'_>) -> Result<Self, Status> {
        let mut set = SetAttributes::default();
        let mut mode = FILE_MODE;
        for value in attributes.values() {
            match value? {
                Value::Mode(bits) => mode = bits,
                Value::Size(size) => set.size = Some(size).filter(|size| *size != 0),
                _ => return Err(Status::AttrNotSupp),
            }
        }
        let object = NewObject {
            kind: FileKind::Regular,
            target: Vec::new(),
            device: Device::default(),
            mode,
            set,
            want: Want::FLAGS,
            security: None,
            mode_bounds: true,
        };
        Ok(Self { object, set: attributes.set })
    }
}

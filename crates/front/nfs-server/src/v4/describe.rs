//! Describes an object, or the root of the pseudo file system, by its attributes for clients.

use nfs_wire::v4::attr::AttributeSet;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Fsid;
use share::ShareId;
use storage::{Attributes, Capabilities, NodeRef, Space};

use super::acl::ReplyAcl;
use super::attributes::{self, FileSystem, Needs, Subject, Telling};
use super::compound::Compound;
use super::locations::Locations;
use super::place::Place;
use super::{filehandle, pseudo_fs};
use crate::attributes::FILE_BYTES_MAX;
use crate::object::Object;
use crate::status;

/// The pseudo file system holds nothing.
const NO_SPACE: Space = Space { total: 0, free: 0, available: 0, files: 1, files_free: 0, block: 4096 };

/// The attributes of a place that a client asks for.
///
/// # Errors
/// [`Status::Inval`] for attributes that can only be set; [`Status::Moved`] for a file system that another server has; those of
/// the store.
pub(super) async fn tell(c: &Compound<'_>, place: &Place, wanted: AttributeSet) -> Result<Telling, Status> {
    attributes::check_readable(wanted)?;
    let subject = match place {
        Place::Root => root(c, wanted).await?,
        Place::Absent(absent) => absent.subject(c, wanted)?,
        Place::Object(object) => {
            let needs = Needs::of(wanted);
            let fs = file_system(c, object, &needs).await?;
            let share = &object.share;
            let seen = if needs.written {
                share.present_attributes(&object.call, &object.node, needs.want).await
            } else {
                share.attributes(&object.call, &object.node, needs.want).await
            };
            let seen = seen.map_err(status::v4)?;
            describe(c, object, fs, &object.node, seen, &needs).await?
        }
    };
    Ok(Telling { wanted, subject })
}

/// The attributes that a place supports.
pub(super) fn supported(c: &Compound<'_>, place: &Place) -> AttributeSet {
    match place {
        Place::Absent(absent) => absent.supported(),
        Place::Root => attributes::supported(c.minor_version, Capabilities::empty(), false),
        Place::Object(object) => attributes::supported_in(c.minor_version, &object.share),
    }
}

/// The values that all objects of a share have in common.
pub(super) async fn file_system(
    c: &Compound<'_>,
    object: &Object,
    needs: &Needs,
) -> Result<FileSystem, Status> {
    let share = &object.share;
    let space = if needs.space {
        Some(share.space(&object.call, &object.node).await.map_err(status::v4)?)
    } else {
        None
    };
    let capabilities = share.capabilities();
    Ok(FileSystem {
        fsid: Fsid { major: crate::attributes::fsid(share), minor: 0 },
        supported: attributes::supported_in(c.minor_version, share),
        capabilities,
        lease_seconds: lease_seconds(c),
        file_bytes_max: FILE_BYTES_MAX.min(share.file_bytes_max()),
        space,
    })
}

/// Describes an object of the same share as `of`, with these attributes.
pub(super) async fn describe(
    c: &Compound<'_>,
    of: &Object,
    fs: FileSystem,
    node: &NodeRef,
    seen: Attributes,
    needs: &Needs,
) -> Result<Subject, Status> {
    let share = &of.share;
    let names = c.names_told();
    let is_own = node.id() == of.node.id();
    let seen = if is_own { of.seen(seen) } else { seen };
    let mut subject = Subject::new(fs, seen, names);
    if seen.id == share.root().id() {
        subject.mounted_on = entry_id(share.id());
    }
    if needs.acl {
        let security = share.security(&of.call, node).await.map_err(status::v4)?;
        subject.acl = Some(ReplyAcl::of(&security).with_names(names));
    }
    if needs.handle {
        let own = if is_own {
            filehandle::of(c.server(), of)
        } else {
            filehandle::of_node(c.server(), share, node)
        };
        subject.handle = Some(own?);
    }
    if needs.quota {
        subject.quota = share.quota_room(&of.call, node).await.map_err(status::v4)?;
    }
    if needs.locations {
        subject.locations = Some(Locations::of(Some(share.name()), &c.server().v4.listen).await?);
    }
    Ok(subject)
}

async fn root(c: &Compound<'_>, wanted: AttributeSet) -> Result<Subject, Status> {
    let capabilities = Capabilities::empty();
    let fs = FileSystem {
        fsid: Fsid { major: 0, minor: 0 },
        supported: attributes::supported(c.minor_version, capabilities, false),
        capabilities,
        lease_seconds: lease_seconds(c),
        file_bytes_max: FILE_BYTES_MAX,
        space: Some(NO_SPACE),
    };
    let mut subject = Subject::new(fs, pseudo_fs::attributes(c), None);
    subject.handle = Some(pseudo_fs::root_handle(c.server())?);
    if Needs::of(wanted).locations {
        subject.locations = Some(Locations::of(None, &c.server().v4.listen).await?);
    }
    Ok(subject)
}

/// The number of a share's entry in the root, which follows the root's own.
pub(super) fn entry_id(share: ShareId) -> u64 {
    u64::from(share.0).saturating_add(2)
}

fn lease_seconds(c: &Compound<'_>) -> u32 {
    u32::try_from(c.server().v4.times.lease.as_secs()).unwrap_or(u32::MAX)
}

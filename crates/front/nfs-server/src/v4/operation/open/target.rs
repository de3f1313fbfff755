//! The file to open, once it is found or created.

use nfs_wire::v4::attr::AttributeSet;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::ChangeInfo;
use share::{Case, Found};
use storage::{Attributes, Want};

use crate::object::Object;
use crate::v4::operation::directory;
use crate::{snapshots, status};

/// A file that is about to be opened.
pub(super) struct FileToOpen {
    /// The file, with the caller as known there.
    pub(super) object: Object,
    pub(super) found: Found,
    /// Whether the file was just created, so that its creator may do what was asked for.
    pub(super) is_new: bool,
    /// Whether the file is to be truncated.
    pub(super) truncates: bool,
    pub(super) change: ChangeInfo,
    pub(super) attributes_set: AttributeSet,
}

/// The file with that name.
pub(super) async fn look_up(dir: &Object, name: &[u8]) -> Result<FileToOpen, Status> {
    if snapshots::look_up(dir, name).await.map_err(status::v4)?.is_some() {
        return Err(Status::IsDir);
    }
    let found = dir.share.lookup(&dir.call, &dir.node, name, Case::Sensitive, Want::FLAGS).await;
    let found = found.map_err(|error| directory::not_found(error, name))?;
    let change = unchanged(&dir.of_directory(&found).await.map_err(directory::refused)?);
    // The directory is unchanged, and its state was read before the name was looked up, so no change can have come in
    // between.
    let known = found.dir_protection.as_ref().is_some_and(|protection| protection.attributes.is_some());
    let change = ChangeInfo { atomic: known, ..change };
    Ok(existing(dir.beside(found.node.clone()), found, change))
}

pub(super) fn existing(object: Object, found: Found, change: ChangeInfo) -> FileToOpen {
    let attributes_set = AttributeSet::EMPTY;
    FileToOpen { object, found, is_new: false, truncates: false, change, attributes_set }
}

pub(super) fn unchanged(attributes: &Attributes) -> ChangeInfo {
    ChangeInfo { atomic: false, before: attributes.change(), after: attributes.change() }
}

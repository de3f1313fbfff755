//! Creating objects, for CREATE and OPEN.

use nfs_wire::v4::status::Status;
use share::{Case, Created, File};
use storage::{Device, FileKind, Want};

use super::directory;
use crate::object::Object;
use crate::v4::set_attributes::AttributesToSet;
use crate::{snapshots, status};

/// The object to create.
#[derive(Debug)]
pub(super) struct NewObject<'w, 'a> {
    pub(super) kind: FileKind,
    /// The text of a symbolic link; empty otherwise.
    pub(super) target: Vec<u8>,
    pub(super) device: Device,
    pub(super) wanted: &'w AttributesToSet<'a>,
}

/// Creates an object with everything that its creator wants, or not at all.
///
/// # Errors
/// Those of [`share::Share::create`].
pub(super) async fn make(dir: &Object, name: &[u8], new: NewObject<'_, '_>) -> Result<Created, Status> {
    let NewObject { kind, target, device, wanted } = new;
    if snapshots::is_folder(dir, name) {
        return Err(Status::Exist);
    }
    if !dir.admits(kind, wanted.set.mode) {
        return Err(Status::Perm); // like mknod(2) and chmod(2)
    }
    let who = &dir.call.caller.identity;
    let mut set = wanted.set;
    set.uid = set.uid.filter(|uid| *uid != who.uid());
    set.flags = wanted.flags_of_new();
    let mut new = crate::new_object::new_object(kind, set);
    (new.target, new.device, new.umask, new.want) = (target, device, wanted.umask(), Want::FLAGS);
    let created = dir.share.create(&dir.call, &dir.node, name, Case::Sensitive, new).await;
    let mut created = created.map_err(directory::refused)?;
    if wanted.has_list() {
        let object = dir.beside(std::sync::Arc::clone(&created.found.node));
        let file = File::Stateless(std::sync::Arc::clone(&object.node));
        if let Err(status) = wanted.apply_list(&object, &file).await {
            // No incomplete object stays behind.
            let is_dir = kind == FileKind::Directory;
            let _ = dir.share.remove(&dir.call, &dir.node, name, is_dir).await;
            return Err(status);
        }
        let now = dir.share.attributes(&dir.call, &object.node, Want::FLAGS).await;
        created.found.attributes = now.map_err(status::v4)?;
    }
    Ok(created)
}
